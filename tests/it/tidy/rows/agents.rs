//! API 3: what agents call, what they propose, and what becomes of it.

use super::Row;

pub(super) const ROWS: &[Row] = &[
    // Calls.
    (
        "call GET /v1/bills",
        &[
            "api::reading::each_filter_of_bills_leaves_what_it_says",
            "api::reading::bills_come_ascending_in_pages_of_at_most_200",
        ],
    ),
    (
        "call GET /v1/bills/{invoice_ref}",
        &[
            "api::reading::each_word_of_attention_says_what_it_is_for",
            "payments::a_credit_note_is_no_bill",
            "payments::another_companys_bill_is_as_good_as_none",
        ],
    ),
    (
        "call GET /v1/vendors/{vendor_id}",
        &["api::reading::a_vendor_is_shown_with_its_account_and_how_that_is_on_file"],
    ),
    (
        "call GET /v1/mandates/current",
        &["api::reading::a_mandate_says_what_it_grants_and_what_is_left_of_it"],
    ),
    (
        "call POST /v1/operations",
        &[
            "payments::an_honest_bill_is_paid_once_and_leaves_two_receipts",
            "hostile::headers::a_key_is_one_plain_short_word",
            "hostile::bodies::a_mode_is_commit_or_prepare",
        ],
    ),
    (
        "call POST /v1/operations/{id}/commit",
        &[
            "payments::a_prepared_payment_books_nothing_until_its_commit",
            "payments::a_commit_that_meets_an_error_can_be_sent_again",
        ],
    ),
    (
        "call POST /v1/operations/{id}/cancel",
        &[
            "payments::what_needs_a_human_waits_and_can_be_withdrawn",
            "api::states::the_same_key_has_the_status_of_each_state",
        ],
    ),
    (
        "call GET /v1/operations/{id}",
        &[
            "people::reading::a_human_waits_for_an_operation_to_change",
            "api::states::what_is_claimed_or_unknown_is_answered_with_202",
            "hostile::addresses::parameters_are_known_stand_once_and_have_a_form",
        ],
    ),
    (
        "call GET /v1/operations",
        &[
            "api::reading::an_agents_own_operations_come_in_pages_and_by_status",
            "people::reading::the_operations_of_all_agents_come_in_pages_and_by_status",
        ],
    ),
    (
        "call GET /v1/openapi.json",
        &["openapi::the_document_is_open_to_anybody_and_counted_by_no_limit"],
    ),
    // What deserves a look.
    (
        "attention iban_changed_recently",
        &["api::reading::each_word_of_attention_says_what_it_is_for"],
    ),
    (
        "attention account_not_verified",
        &["api::reading::each_word_of_attention_says_what_it_is_for"],
    ),
    (
        "attention account_changed_in_erp",
        &["api::reading::each_word_of_attention_says_what_it_is_for"],
    ),
    (
        "attention account_not_payable",
        &["api::reading::each_word_of_attention_says_what_it_is_for"],
    ),
    ("attention account_ambiguous", &["api::reading::each_word_of_attention_says_what_it_is_for"]),
    ("attention no_account", &["api::reading::each_word_of_attention_says_what_it_is_for"]),
    ("attention partially_paid", &["api::reading::each_word_of_attention_says_what_it_is_for"]),
    (
        "attention possible_duplicate",
        &[
            "api::reading::each_word_of_attention_says_what_it_is_for",
            "facts::of_two_bills_with_one_reference_neither_is_paid_until_one_is_withdrawn",
        ],
    ),
    (
        "attention open_credit",
        &[
            "api::reading::each_word_of_attention_says_what_it_is_for",
            "facts::open_credit_of_the_vendor_needs_a_second_person_until_it_is_used_up",
        ],
    ),
    ("attention vendor_frozen", &["api::reading::each_word_of_attention_says_what_it_is_for"]),
    (
        "rule: payee_iban is null where there is none or it is ambiguous",
        &["api::reading::each_word_of_attention_says_what_it_is_for"],
    ),
    (
        "rule: agents see account numbers masked",
        &["attacks::a_caller_with_a_mandate_never_sees_a_whole_number_and_neither_does_the_log"],
    ),
    // Actions and their arguments.
    (
        "action invoice.pay",
        &[
            "payments::an_honest_bill_is_paid_once_and_leaves_two_receipts",
            "hostile::arguments::arguments_are_an_object_with_exactly_the_known_names",
        ],
    ),
    (
        "action vendor.update_bank_details",
        &[
            "bank::with_a_call_back_and_a_second_person_the_account_changes_once",
            "api::stages::the_reason_of_a_change_has_1_to_500_characters",
        ],
    ),
    (
        "rule: a reference stands where it may and says one thing",
        &[
            "hostile::arguments::a_reference_stands_where_it_may_and_says_one_thing",
            "hostile::arguments::a_reference_names_the_bills_own_vendor_and_the_mandates_own_journal",
        ],
    ),
    (
        "rule: the record counts, never the spelling",
        &[
            "payments::the_payee_is_the_bills_own_vendor_or_nobody",
            "hostile::ibans::spaces_and_small_letters_are_the_same_number",
        ],
    ),
    (
        "rule: an amount is at most what is left",
        &["hostile::amounts::an_amount_is_at_most_what_is_left_to_the_last_cent"],
    ),
    // Keys.
    (
        "rule: the same key answers the same operation with the status of its state",
        &[
            "api::states::the_same_key_has_the_status_of_each_state",
            "callers::one_key_used_twice_at_once_makes_one_operation",
        ],
    ),
    (
        "rule: the same key with other content is refused",
        &[
            "payments::the_same_key_answers_the_same_operation",
            "callers::one_key_used_at_once_for_other_content_is_refused",
        ],
    ),
    (
        "rule: a key belongs to company, principal and agent",
        &[
            "callers::an_operation_is_shown_to_its_own_agent_of_its_own_principal_and_company_only",
            "hostile::foreign::a_key_of_somebody_else_is_no_key_of_ours",
        ],
    ),
    (
        "rule: a denial at error binds no key, any other does",
        &[
            "payments::payee_checks_decide",
            "api::stages::a_store_that_cannot_be_read_denies_and_binds_no_key",
            "callers::a_denial_that_is_no_error_binds_its_key",
        ],
    ),
    (
        "rule: a call waits up to 5 s for what executes",
        &[
            "api::states::what_the_erp_takes_a_moment_for_is_waited_for",
            "api::states::what_is_claimed_or_unknown_is_answered_with_202",
        ],
    ),
    // An operation.
    ("origin mandate", &["payments::an_honest_bill_is_paid_once_and_leaves_two_receipts"]),
    ("origin system_of_record", &["payments::an_honest_bill_is_paid_once_and_leaves_two_receipts"]),
    (
        "origin bounded_by_system_of_record",
        &["payments::what_needs_a_human_waits_and_can_be_withdrawn"],
    ),
    ("origin untrusted", &["bank::without_a_call_back_nothing_changes_and_finance_is_told_once"]),
    (
        "rule: agents see a closed list of facts, humans all and the receipt's number",
        &[
            "facts::accounts::an_account_that_another_vendor_has_needs_a_second_person_and_agents_learn_no_more",
            "people::reading::every_role_reads_all_of_the_company_and_sees_whole_numbers",
        ],
    ),
    (
        "rule: reasons are the forbids, the rules that barred the level below, or the permit",
        &[
            "src/gateway/policy/cases::every_case_is_decided_as_expected",
            "duplicates::a_similar_pair_can_be_cleared_as_well",
        ],
    ),
    (
        "status prepared",
        &[
            "api::states::the_same_key_has_the_status_of_each_state",
            "api::states::a_prepared_one_holds_no_slot_and_expires_after_a_day",
        ],
    ),
    ("status executed", &["api::states::the_same_key_has_the_status_of_each_state"]),
    ("status pending", &["api::states::the_same_key_has_the_status_of_each_state"]),
    ("status executing", &["api::states::what_is_claimed_or_unknown_is_answered_with_202"]),
    ("status unknown", &["api::states::what_is_claimed_or_unknown_is_answered_with_202"]),
    (
        "status denied",
        &[
            "api::states::the_same_key_has_the_status_of_each_state",
            "src/http/operation_view::a_denial_has_the_status_of_its_stage",
            "api::stages::a_store_that_cannot_be_read_denies_and_binds_no_key",
        ],
    ),
    (
        "status failed",
        &[
            "api::states::the_same_key_has_the_status_of_each_state",
            "exactly_once::an_order_that_cannot_be_sent_for_long_fails_and_gives_everything_back",
        ],
    ),
    ("status rejected", &["api::states::the_same_key_has_the_status_of_each_state"]),
    ("status expired", &["api::states::the_same_key_has_the_status_of_each_state"]),
    ("status cancelled", &["api::states::the_same_key_has_the_status_of_each_state"]),
    // When what is judged.
    (
        "rule: a mandate's expiry is judged at propose and commit only",
        &["api::mandates::a_mandates_time_is_judged_where_it_is_presented_and_nowhere_else"],
    ),
    (
        "rule: a commit makes its mandate the operation's",
        &["api::mandates::a_commit_makes_its_own_mandate_the_operations"],
    ),
    (
        "rule: the same key after an error makes its mandate the operation's",
        &["api::mandates::the_same_key_after_an_error_makes_its_own_mandate_the_operations"],
    ),
    (
        "rule: revocation, scope, principal, budget and freezes are judged again at execution",
        &[
            "api::mandates::what_may_not_execute_any_more_is_ended_before_it_is_sent",
            "votes::lock::what_is_revoked_or_frozen_meanwhile_is_not_claimed",
            "attacks::a_budget_is_not_passed_by_many_at_once",
        ],
    ),
    (
        "rule: another hash voids the votes and the operation stays pending with what is true",
        &[
            "votes::a_vote_is_for_one_hash",
            "api::waiting::a_vote_that_was_voided_has_no_second_life_when_its_hash_comes_back",
        ],
    ),
    (
        "rule: a level never falls while pending, nor is a rule that asked for it forgotten",
        &[
            "votes::a_level_never_falls_while_an_operation_is_pending",
            "src/gateway/pipeline::a_level_never_falls_and_forgets_no_rule_that_asked_for_it",
        ],
    ),
    ("rule: a level that rises voids the votes", &["votes::a_level_rises_and_voids_the_votes"]),
    (
        "rule: a denial after the votes ends it denied",
        &["votes::what_denies_after_the_last_vote_ends_the_operation"],
    ),
    (
        "rule: an error ends and voids nothing, and a worker decides again",
        &[
            "votes::between::an_error_after_the_vote_voids_nothing_and_the_worker_goes_on",
            "between::an_error_after_the_claim_ends_nothing_and_sends_nothing",
        ],
    ),
    (
        "rule: after a crash the worker takes up what has complete votes",
        &["votes::between::a_crash_after_the_vote_loses_nothing"],
    ),
    (
        "rule: at most 20 operations of a mandate are pending",
        &[
            "api::waiting::twenty_of_a_mandate_wait_and_each_of_them_is_approved",
            "callers::one_mandate_does_not_flood_the_people_who_approve",
        ],
    ),
    (
        "rule: what is unknown is settled by the daemon itself",
        &[
            "exactly_once::a_lost_answer_is_found_and_never_pays_twice",
            "api::later::what_is_unknown_is_settled_under_a_freeze_and_after_a_revocation",
        ],
    ),
];
