//! The codes of problems: a closed, append-only list, each with its one status. What a call may be
//! refused with is said of the call, from this list.

use axum::http::StatusCode;

use crate::domain::reason::Reason;

/// The stable code of a problem, with the status that it is answered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Code {
    status: StatusCode,
    text: &'static str,
}

macro_rules! codes {
    ($($name:ident = $status:ident $text:literal;)*) => {
        impl Code {
            $(pub(super) const $name: Self = Self { status: StatusCode::$status, text: $text };)*

            /// All of them.
            pub(super) const ALL: &'static [Self] = &[$(Self::$name,)*];
        }
    };
}

codes! {
    COMPANY_REQUIRED = BAD_REQUEST "company_required";
    DUPLICATE_HEADER = BAD_REQUEST "duplicate_header";
    IDEMPOTENCY_KEY_INVALID = BAD_REQUEST "idempotency_key_invalid";
    IDEMPOTENCY_KEY_MISSING = BAD_REQUEST "idempotency_key_missing";
    INVALID_FIELD = BAD_REQUEST "invalid_field";
    INVALID_QUERY = BAD_REQUEST "invalid_query";
    MALFORMED_BODY = BAD_REQUEST "malformed_body";
    NAME_RESERVED = BAD_REQUEST "name_reserved";
    PASSWORD_LENGTH = BAD_REQUEST "password_length";
    PASSWORD_MISSING = BAD_REQUEST "password_missing";
    CREDENTIALS_INVALID = UNAUTHORIZED "credentials_invalid";
    MANDATE_EXPIRED = UNAUTHORIZED "mandate_expired";
    MANDATE_REVOKED = UNAUTHORIZED "mandate_revoked";
    SESSION_INVALID = UNAUTHORIZED "session_invalid";
    TOKEN_INVALID = UNAUTHORIZED "token_invalid";
    AGENTS_ONLY = FORBIDDEN "agents_only";
    AUDITORS_READ_ONLY = FORBIDDEN "auditors_read_only";
    CALLER_CANNOT_APPROVE = FORBIDDEN "caller_cannot_approve";
    HOST_NOT_ALLOWED = FORBIDDEN "host_not_allowed";
    HUMANS_ONLY = FORBIDDEN "humans_only";
    NOT_AN_ACCOUNTANT = FORBIDDEN "not_an_accountant";
    NOT_AN_ADMIN = FORBIDDEN "not_an_admin";
    NOT_AN_APPROVER = FORBIDDEN "not_an_approver";
    NOT_AN_AUDITOR = FORBIDDEN "not_an_auditor";
    OPERATOR_ONLY = FORBIDDEN "operator_only";
    ORIGIN_NOT_ALLOWED = FORBIDDEN "origin_not_allowed";
    SELF_APPROVAL = FORBIDDEN "self_approval";
    SELF_GRANT = FORBIDDEN "self_grant";
    NOT_FOUND = NOT_FOUND "not_found";
    METHOD_NOT_ALLOWED = METHOD_NOT_ALLOWED "method_not_allowed";
    REQUEST_TIMEOUT = REQUEST_TIMEOUT "request_timeout";
    ALREADY_CLOSED = CONFLICT "already_closed";
    ALREADY_DECIDED = CONFLICT "already_decided";
    APPROVAL_EXPIRED = CONFLICT "approval_expired";
    BASELINE_MISSING = CONFLICT "baseline_missing";
    FROZEN = CONFLICT "frozen";
    IDEMPOTENCY_KEY_REUSED = CONFLICT "idempotency_key_reused";
    LAST_ADMIN = CONFLICT "last_admin";
    NOT_CANCELLABLE = CONFLICT "not_cancellable";
    NOT_COMMITTABLE = CONFLICT "not_committable";
    OPERATION_CHANGED = CONFLICT "operation_changed";
    ORDER_STILL_VALID = CONFLICT "order_still_valid";
    OTHER_VENDOR = CONFLICT "other_vendor";
    PROVED_ABSENT = CONFLICT "proved_absent";
    ROLE_HELD = CONFLICT "role_held";
    USER_EXISTS = CONFLICT "user_exists";
    WRONG_STATE = CONFLICT "wrong_state";
    BODY_TOO_LARGE = PAYLOAD_TOO_LARGE "body_too_large";
    UNSUPPORTED_MEDIA_TYPE = UNSUPPORTED_MEDIA_TYPE "unsupported_media_type";
    INVALID_FIELDS = UNPROCESSABLE_ENTITY "invalid_fields";
    LIMIT_OUT_OF_RANGE = UNPROCESSABLE_ENTITY "limit_out_of_range";
    NOT_A_PRINCIPAL = UNPROCESSABLE_ENTITY "not_a_principal";
    OTHER_CURRENCY = UNPROCESSABLE_ENTITY "other_currency";
    UNKNOWN_SCOPE = UNPROCESSABLE_ENTITY "unknown_scope";
    UNKNOWN_SOURCE_ACCOUNT = UNPROCESSABLE_ENTITY "unknown_source_account";
    RATE_LIMITED = TOO_MANY_REQUESTS "rate_limited";
    INTERNAL = INTERNAL_SERVER_ERROR "internal";
    BUSY = SERVICE_UNAVAILABLE "busy";
    ERP_UNAVAILABLE = SERVICE_UNAVAILABLE "erp_unavailable";
    NOT_READY = SERVICE_UNAVAILABLE "not_ready";
    STORE_UNAVAILABLE = SERVICE_UNAVAILABLE "store_unavailable";
    TIMED_OUT = SERVICE_UNAVAILABLE "timed_out";
}

impl Code {
    /// Why somebody is not let in.
    pub(super) fn refused(reason: Reason) -> Self {
        Self { status: StatusCode::UNAUTHORIZED, text: reason.code() }
    }

    pub(super) fn status(self) -> StatusCode {
        self.status
    }

    pub(super) fn text(self) -> &'static str {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_code_stands_once() {
        let texts: BTreeSet<_> = Code::ALL.iter().map(|code| code.text()).collect();
        assert_eq!(texts.len(), Code::ALL.len());
        assert!(Code::ALL.iter().all(|code| !code.status().is_success()));
    }

    #[test]
    fn whoever_is_not_let_in_is_told_a_code_of_the_list() {
        for reason in [
            Reason::TokenInvalid,
            Reason::MandateExpired,
            Reason::MandateRevoked,
            Reason::SessionInvalid,
            Reason::CredentialsInvalid,
        ] {
            assert!(Code::ALL.contains(&Code::refused(reason)), "{reason:?}");
        }
    }
}
