//! API 4: what humans call, and what they are refused.

use super::Row;

pub(super) const ROWS: &[Row] = &[
    // Calls.
    (
        "call POST /v1/sessions",
        &[
            "people::sessions::a_human_signs_in_and_out",
            "people::sessions::a_session_lives_twelve_hours_by_the_daemons_clock",
        ],
    ),
    ("call DELETE /v1/sessions/current", &["people::sessions::a_human_signs_in_and_out"]),
    (
        "call GET /v1/approvals",
        &[
            "api::waiting::a_human_sees_what_he_could_approve_and_nothing_else",
            "votes::approvals_are_listed_page_by_page",
            "bank::the_one_who_called_never_approves_even_as_an_approver",
        ],
    ),
    (
        "call POST /v1/operations/{id}/approve",
        &[
            "votes::a_step_up_is_the_principals_vote_and_executes_by_itself",
            "votes::four_eyes_are_an_approver_who_is_not_the_principal",
            "api::waiting::a_second_vote_for_the_same_hash_is_the_first_one",
        ],
    ),
    (
        "call POST /v1/operations/{id}/reject",
        &[
            "votes::who_could_approve_the_principal_and_an_admin_may_reject",
            "api::waiting::the_principal_rejects_whatever_else_he_is",
            "api::later::a_person_who_called_may_reject_but_only_for_another_reason",
        ],
    ),
    (
        "call POST /v1/operations/{id}/settle",
        &[
            "votes::by_hand::an_approver_who_is_not_the_principal_settles_what_is_unknown",
            "votes::by_hand::what_the_erp_can_say_by_now_is_what_is_written_down",
            "votes::by_hand::nobody_else_makes_the_gateway_take_the_erps_word",
        ],
    ),
    (
        "call POST /v1/vendors/{vendor_id}/callbacks",
        &[
            "bank::calls::a_call_says_whether_it_counts_and_why_not",
            "bank::calls::a_call_back_counts_for_thirty_days",
            "bank::calls::who_is_disabled_while_his_call_is_written_down_leaves_no_call_back",
            "bank::requested::a_request_that_the_gateway_has_itself_counts_whatever_the_caller_says_of_it",
            "bank::requested::a_number_that_is_put_back_and_confirmed_was_on_file_before",
            "bank::denied::a_no_about_an_account_that_the_erp_was_edited_to_freezes_the_vendor",
            "api::later::a_read_back_that_differs_voids_what_was_confirmed_before",
        ],
    ),
    (
        "call POST /v1/vendors/{vendor_id}/phone-confirmations",
        &["bank::calls::a_changed_number_is_not_called_before_it_is_confirmed_or_ninety_days_old"],
    ),
    (
        "call POST /v1/vendors/{vendor_id}/bank-confirmations",
        &[
            "bank::confirming::an_account_that_changed_becomes_the_baseline_by_call_back_and_four_eyes",
            "bank::confirming::an_unverified_vendor_is_verified_the_same_way_once_its_phone_is",
            "bank::confirming::who_confirms_an_account_sees_the_one_that_was_there_before_the_edit",
        ],
    ),
    (
        "call GET /v1/vendors/{vendor_id}/bank-history",
        &["bank::beginning::a_history_says_since_when_by_whom_and_why"],
    ),
    (
        "call POST /v1/bills/{invoice_ref}/not-duplicate",
        &[
            "duplicates::an_approver_clears_a_suspicion_over_http",
            "duplicates::a_pair_that_is_none_or_a_person_who_may_not_clears_nothing",
        ],
    ),
    (
        "call GET /v1/alarms",
        &[
            "bank::without_a_call_back_nothing_changes_and_finance_is_told_once",
            "bank::confirming::another_company_sees_and_confirms_nothing",
        ],
    ),
    (
        "call POST /v1/alarms/{id}/close",
        &[
            "bank::confirming::another_company_sees_and_confirms_nothing",
            "api::later::an_alarm_of_the_whole_store_is_the_operators",
        ],
    ),
    (
        "call GET /v1/freezes",
        &["api::later::a_company_sees_its_own_freezes_and_those_of_everything"],
    ),
    (
        "call POST /v1/freezes",
        &[
            "bank::frozen::a_vendor_is_frozen_at_once_and_thawed_by_an_approver",
            "bank::frozen::what_is_wrong_about_a_freeze_is_said",
        ],
    ),
    (
        "call DELETE /v1/freezes/{id}",
        &[
            "bank::frozen::a_vendor_is_frozen_at_once_and_thawed_by_an_approver",
            "bank::calls::a_no_while_the_change_is_being_carried_out_ends_it_before_it_is_sent",
        ],
    ),
    (
        "call POST /v1/mandates",
        &[
            "people::mandates::an_admin_issues_a_mandate_that_its_agent_pays_under",
            "people::mandates::only_an_admin_issues",
            "people::mandates::a_mandate_grants_what_can_be_granted",
        ],
    ),
    (
        "call GET /v1/mandates",
        &["people::mandates::an_accountant_sees_his_own_mandates_and_an_admin_all"],
    ),
    (
        "call POST /v1/mandates/{id}/revoke",
        &[
            "people::mandates::an_admin_or_its_principal_revokes_a_mandate_at_once",
            "people::mandates::an_admin_who_was_disabled_after_he_was_let_in_revokes_nothing",
        ],
    ),
    (
        "call GET /v1/receipts",
        &["people::receipts::an_auditor_reads_receipts_as_an_export_has_them"],
    ),
    (
        "call GET /v1/receipts/{seq}",
        &["people::receipts::an_auditor_reads_receipts_as_an_export_has_them"],
    ),
    ("call GET /v1/users", &["people::users::only_an_admin_changes_users_and_an_auditor_may_look"]),
    ("call POST /v1/users", &["people::users::an_admin_adds_users_and_roles"]),
    (
        "call POST /v1/users/{name}/disable",
        &[
            "people::users::with_a_disabled_human_ends_all_that_was_his",
            "votes::between::a_disabled_approvers_vote_counts_no_more",
            "api::later::what_a_disabled_human_began_himself_is_cancelled",
            "api::later::a_disabled_callers_call_back_has_no_second_life",
        ],
    ),
    // The rules below the table.
    (
        "rule: whoever has several companies names one",
        &[
            "people::reading::who_acts_in_two_companies_names_one",
            "people::users::an_admin_of_two_companies_says_which",
        ],
    ),
    (
        "rule: a step-up is one vote of the mandate's principal",
        &[
            "votes::a_step_up_is_the_principals_vote_and_executes_by_itself",
            "src/domain/vote::a_step_up_is_the_principals_own",
        ],
    ),
    (
        "rule: four eyes are an approver, not the principal, not who called",
        &[
            "votes::four_eyes_are_an_approver_who_is_not_the_principal",
            "bank::the_one_who_called_never_approves_even_as_an_approver",
            "bank::who_calls_while_a_change_waits_does_not_approve_it",
            "src/domain/vote::a_vote_counts_while_its_human_may_still_give_it",
        ],
    ),
    (
        "rule: whoever starts a confirmation never approves it",
        &[
            "bank::confirming::an_account_that_changed_becomes_the_baseline_by_call_back_and_four_eyes",
        ],
    ),
    (
        "rule: not_booked is said only after the order's time",
        &["votes::by_hand::nothing_is_said_to_be_absent_before_the_orders_time_is_over"],
    ),
    (
        "rule: closing an alarm unblocks nothing",
        &["bank::confirming::another_company_sees_and_confirms_nothing"],
    ),
    (
        "rule: under a freeze pending stays pending, executing and unknown are settled",
        &[
            "api::later::what_is_unknown_is_settled_under_a_freeze_and_after_a_revocation",
            "votes::between::a_freeze_voids_the_votes_and_what_is_pending_stays_pending",
            "votes::lock::a_freeze_while_a_vote_is_decided_on_leaves_what_waits",
        ],
    ),
    (
        "rule: a freeze voids what is not spent, and nothing else",
        &[
            "bank::frozen::a_freeze_voids_votes_that_are_not_spent",
            "api::waiting::who_approved_what_was_executed_stays_known",
        ],
    ),
    (
        "rule: revoking cancels what is prepared or pending, and what is unknown is settled",
        &[
            "people::mandates::an_admin_or_its_principal_revokes_a_mandate_at_once",
            "api::later::what_is_unknown_is_settled_under_a_freeze_and_after_a_revocation",
        ],
    ),
    (
        "rule: a vote counts no longer than its operation waits",
        &[
            "votes::nobody_approves_after_the_time_is_over",
            "api::waiting::a_vote_that_waits_counts_no_longer_than_the_operation",
        ],
    ),
    // What is decided by or because of a human.
    ("reason role_not_held", &["bank::beginning::who_may_not_act_in_the_company_begins_nothing"]),
    (
        "reason rejected",
        &[
            "votes::who_could_approve_the_principal_and_an_admin_may_reject",
            "api::waiting::what_is_rejected_or_denied_keeps_no_vote",
        ],
    ),
    (
        "reason not_booked",
        &["votes::by_hand::nothing_is_said_to_be_absent_before_the_orders_time_is_over"],
    ),
    (
        "reason credentials_invalid",
        &["people::sessions::wrong_user_wrong_password_and_disabled_user_have_one_answer"],
    ),
    (
        "reason session_invalid",
        &[
            "people::sessions::a_human_signs_in_and_out",
            "hostile::humans::a_session_that_is_none_or_ended_makes_no_call",
        ],
    ),
    (
        "reason sign_in_limited",
        &["people::sessions::guessing_is_slow_and_shuts_nobody_out_for_long"],
    ),
    // Refusals, 403.
    (
        "refusal self_approval",
        &[
            "votes::four_eyes_are_an_approver_who_is_not_the_principal",
            "bank::calls::a_no_while_the_change_is_being_carried_out_ends_it_before_it_is_sent",
        ],
    ),
    (
        "refusal caller_cannot_approve",
        &["bank::the_one_who_called_never_approves_even_as_an_approver"],
    ),
    (
        "refusal not_an_approver",
        &[
            "votes::four_eyes_are_an_approver_who_is_not_the_principal",
            "hostile::humans::a_role_that_is_missing_closes_the_call",
        ],
    ),
    (
        "refusal humans_only",
        &[
            "hostile::humans::no_agent_and_nobody_makes_a_call_of_humans",
            "hostile::foreign::what_is_for_humans_is_closed_whatever_the_id",
        ],
    ),
    ("refusal agents_only", &["hostile::humans::a_session_makes_no_call_of_agents"]),
    (
        "refusal auditors_read_only",
        &[
            "bank::frozen::a_vendor_is_frozen_at_once_and_thawed_by_an_approver",
            "bank::confirming::another_company_sees_and_confirms_nothing",
        ],
    ),
    ("refusal not_an_accountant", &["bank::calls::a_call_says_whether_it_counts_and_why_not"]),
    (
        "refusal not_an_admin",
        &[
            "people::users::only_an_admin_changes_users_and_an_auditor_may_look",
            "hostile::humans::a_role_that_is_missing_closes_the_call",
        ],
    ),
    ("refusal not_an_auditor", &["people::receipts::receipts_are_for_auditors_of_their_company"]),
    (
        "refusal operator_only",
        &[
            "bank::frozen::what_is_wrong_about_a_freeze_is_said",
            "people::users::who_acts_in_other_companies_too_is_the_operators_to_disable",
        ],
    ),
    ("refusal self_grant", &["people::users::nobody_gives_a_role_to_himself"]),
    ("refusal host_not_allowed", &["hostile::headers::only_our_own_host_is_served"]),
    (
        "refusal origin_not_allowed",
        &["hostile::headers::a_page_of_somebody_else_calls_nothing_that_changes_anything"],
    ),
    // Refusals, 409.
    ("refusal operation_changed", &["votes::a_vote_is_for_one_hash"]),
    (
        "refusal already_decided",
        &["votes::a_step_up_is_the_principals_vote_and_executes_by_itself"],
    ),
    ("refusal approval_expired", &["votes::nobody_approves_after_the_time_is_over"]),
    ("refusal frozen", &["bank::frozen::a_vendor_is_frozen_at_once_and_thawed_by_an_approver"]),
    (
        "refusal order_still_valid",
        &["votes::by_hand::nothing_is_said_to_be_absent_before_the_orders_time_is_over"],
    ),
    (
        "refusal proved_absent",
        &["votes::by_hand::what_the_erp_proves_not_to_be_booked_is_not_said_to_be"],
    ),
    ("refusal already_closed", &["bank::confirming::another_company_sees_and_confirms_nothing"]),
    (
        "refusal baseline_missing",
        &["bank::beginning::before_the_first_contact_nobody_calls_back_or_confirms"],
    ),
    ("refusal other_vendor", &["duplicates::an_approver_clears_a_suspicion_over_http"]),
    ("refusal last_admin", &["people::users::the_last_admin_stays"]),
    ("refusal role_held", &["people::users::an_admin_adds_users_and_roles"]),
    ("refusal user_exists", &["people::users::an_admin_adds_users_and_roles"]),
    ("refusal idempotency_key_reused", &["payments::the_same_key_answers_the_same_operation"]),
    (
        "refusal not_cancellable",
        &[
            "callers::what_is_over_is_neither_committed_nor_cancelled",
            "api::states::what_is_claimed_or_unknown_is_answered_with_202",
        ],
    ),
    (
        "refusal not_committable",
        &[
            "callers::what_is_over_is_neither_committed_nor_cancelled",
            "api::states::a_prepared_one_holds_no_slot_and_expires_after_a_day",
        ],
    ),
    // No call comes to it so far, and that is what is tried.
    ("refusal wrong_state", &["openapi::the_document_holds_together"]),
];
