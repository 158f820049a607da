//! API 3: the stages of an operation, each with the reasons that it refuses for.

use super::Row;

pub(super) const ROWS: &[Row] = &[
    // Stages, in order, each with its reasons.
    (
        "rule: who is not let in leaves a receipt and no operation",
        &["api::stages::who_is_not_let_in_leaves_a_receipt_and_no_operation"],
    ),
    (
        "reason token_invalid",
        &[
            "api::stages::who_is_not_let_in_leaves_a_receipt_and_no_operation",
            "hostile::tokens::a_token_that_differs_in_anything_is_none",
        ],
    ),
    (
        "reason mandate_expired",
        &[
            "api::stages::who_is_not_let_in_leaves_a_receipt_and_no_operation",
            "api::mandates::a_mandates_time_is_judged_where_it_is_presented_and_nowhere_else",
        ],
    ),
    (
        "reason mandate_revoked",
        &[
            "api::stages::who_is_not_let_in_leaves_a_receipt_and_no_operation",
            "callers::a_mandate_revoked_after_the_caller_was_let_in_pays_nothing",
        ],
    ),
    ("reason unknown_action", &["hostile::bodies::an_action_is_one_of_a_closed_list"]),
    (
        "reason invalid_args",
        &["hostile::arguments::arguments_are_an_object_with_exactly_the_known_names"],
    ),
    ("reason invalid_mode", &["hostile::bodies::a_mode_is_commit_or_prepare"]),
    ("reason bill_not_found", &["payments::another_companys_bill_is_as_good_as_none"]),
    (
        "reason payee_not_on_file",
        &[
            "payments::the_payee_is_the_bills_own_vendor_or_nobody",
            "answers::only_an_active_account_of_the_bills_own_vendor_is_on_file",
            "api::stages::whose_a_wrong_payee_is_stands_in_the_receipt_only",
        ],
    ),
    (
        "reason too_many_guesses",
        &[
            "guessing::an_agent_that_guesses_accounts_is_answered_no_more_for_a_day",
            "guessing::a_bill_is_paid_by_reference_whatever_was_guessed_and_by_whom",
        ],
    ),
    (
        "reason not_in_mandate",
        &[
            "answers::money_leaves_only_from_the_account_that_the_mandate_was_issued_for",
            "hostile::arguments::a_currency_is_three_capital_letters_and_the_mandates",
        ],
    ),
    ("reason vendor_not_found", &["api::stages::a_vendor_that_is_not_the_companys_is_none"]),
    ("reason scope_not_held", &["callers::a_mandate_for_something_else_does_not_pay"]),
    (
        "reason budget_exceeded",
        &[
            "payments::amounts_stay_within_bill_budget_and_calls",
            "attacks::a_budget_is_not_passed_by_many_at_once",
        ],
    ),
    ("reason calls_exceeded", &["payments::amounts_stay_within_bill_budget_and_calls"]),
    (
        "rule: budget and calls are reserved at the claim and given back on failed",
        &[
            "api::reading::a_mandate_says_what_it_grants_and_what_is_left_of_it",
            "exactly_once::an_order_that_cannot_be_sent_for_long_fails_and_gives_everything_back",
        ],
    ),
    (
        "reason currency_needs_rate",
        &["hostile::amounts::a_bill_in_another_currency_than_the_companys_is_not_paid"],
    ),
    (
        "reason baseline_missing",
        &[
            "answers::before_the_first_contact_nothing_is_paid",
            "bank::beginning::before_the_first_contact_nobody_calls_back_or_confirms",
        ],
    ),
    (
        "reason floor_bill_not_open",
        &[
            "attacks::the_floor_holds_under_a_policy_that_permits_everything",
            "src/ap/facts/floor::each_fact_alone_refuses_when_it_is_wrong",
        ],
    ),
    (
        "reason floor_bill_inconsistent",
        &["src/ap/facts/floor::each_fact_alone_refuses_when_it_is_wrong"],
    ),
    (
        "reason floor_other_vendor",
        &["src/ap/facts/floor::each_fact_alone_refuses_when_it_is_wrong"],
    ),
    (
        "reason floor_over_residual",
        &["attacks::the_floor_holds_under_a_policy_that_permits_everything"],
    ),
    (
        "reason floor_other_currency",
        &["src/ap/facts/floor::each_fact_alone_refuses_when_it_is_wrong"],
    ),
    (
        "reason floor_changed_in_erp",
        &["attacks::the_floor_holds_under_a_policy_that_permits_everything"],
    ),
    (
        "reason floor_ambiguous",
        &["attacks::of_several_accounts_only_the_one_that_the_bill_names_is_paid"],
    ),
    (
        "reason floor_erp_forbids",
        &["attacks::the_floor_holds_under_a_policy_that_permits_everything"],
    ),
    (
        "reason floor_own_account",
        &["attacks::the_floor_holds_under_a_policy_that_permits_everything"],
    ),
    (
        "reason floor_sanctioned",
        &["attacks::the_floor_holds_under_a_policy_that_permits_everything"],
    ),
    (
        "reason floor_vop_no_match",
        &["attacks::the_floor_holds_under_a_policy_that_permits_everything"],
    ),
    (
        "reason floor_total_changed",
        &["between::the_total_of_the_first_claim_binds_the_rest_of_the_bill"],
    ),
    (
        "reason floor_no_callback",
        &["attacks::no_policy_opens_a_change_of_bank_details_without_a_call_back"],
    ),
    (
        "reason floor_phone_untrusted",
        &[
            "bank::beginning::only_what_is_on_file_and_the_vendors_alone_is_confirmed_whatever_the_policies_say",
        ],
    ),
    (
        "reason floor_not_on_file",
        &[
            "bank::beginning::only_what_is_on_file_and_the_vendors_alone_is_confirmed_whatever_the_policies_say",
        ],
    ),
    ("reason account_on_file", &["bank::beginning::the_account_that_is_on_file_is_no_change"]),
    (
        "reason callback_denied",
        &[
            "bank::calls::a_later_no_ends_the_request_and_raises_an_alarm",
            "api::later::a_no_ends_the_request_that_it_is_about_and_no_other",
        ],
    ),
    (
        "reason already_paid",
        &[
            "payments::a_second_try_is_refused_as_already_paid",
            "api::stages::what_is_paid_or_under_way_is_said_before_the_policies_are_asked",
        ],
    ),
    (
        "reason order_adopted",
        &["bank::restored::what_waited_in_the_copy_and_was_paid_after_it_is_not_paid_twice"],
    ),
    (
        "reason operation_in_progress",
        &[
            "api::stages::what_is_paid_or_under_way_is_said_before_the_policies_are_asked",
            "callers::an_operation_is_shown_to_its_own_agent_of_its_own_principal_and_company_only",
        ],
    ),
    (
        "reason frozen",
        &[
            "payments::a_freeze_stops_at_once",
            "api::mandates::what_may_not_execute_any_more_is_ended_before_it_is_sent",
        ],
    ),
    (
        "reason too_many_pending",
        &["api::waiting::twenty_of_a_mandate_wait_and_each_of_them_is_approved"],
    ),
    (
        "reason recently_rejected",
        &[
            "votes::a_rejected_bill_is_not_accepted_again_from_the_same_principals_agents_for_a_day",
            "api::later::a_rejected_bank_change_is_not_accepted_again_for_a_day",
            "api::later::what_a_human_began_may_be_begun_again_after_a_rejection",
        ],
    ),
    ("reason erp_unavailable", &["payments::payee_checks_decide"]),
    ("reason erp_not_ready", &["answers::a_clock_a_guard_or_a_silence_that_is_wrong_stops_paying"]),
    (
        "reason store_unavailable",
        &["api::stages::a_store_that_cannot_be_read_denies_and_binds_no_key"],
    ),
    (
        "reason fact_unavailable",
        &[
            "answers::a_list_that_does_not_answer_is_a_denial",
            "facts::what_the_erp_does_not_tell_is_no_fact",
        ],
    ),
    ("reason policy_failed", &["attacks::a_forbid_that_fails_to_evaluate_denies"]),
    ("reason erp_refused", &["exactly_once::a_refusal_of_the_erp_fails_and_gives_everything_back"]),
    (
        "reason never_sent",
        &["exactly_once::an_order_that_cannot_be_sent_for_long_fails_and_gives_everything_back"],
    ),
    ("reason proved_absent", &["answers::what_is_proved_absent_and_does_not_stand_any_more_fails"]),
    (
        "reason erp_contradicts_store",
        &["answers::an_erp_that_contradicts_the_store_stops_everything"],
    ),
    (
        "reason booked_otherwise",
        &["answers::what_was_booked_otherwise_is_written_down_as_it_is_and_freezes_the_vendor"],
    ),
];
