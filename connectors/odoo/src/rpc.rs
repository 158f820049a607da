//! Calls of Odoo's external API under one identity. It knows no bill and no vendor; it knows what a
//! failure of a call proves.

use std::sync::Arc;

use countersign_erp_source::{Identity, ReadError};
use secrecy::ExposeSecret;
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};

use crate::http::{Endpoint, Failure, Service};
use crate::options::Credential;
use crate::remembered::{Asked, Remembered};
use crate::xmlrpc::{self, Answer, Fault, Value};

/// Odoo's fault for anything that it did not foresee, an answer that cannot be written after the
/// commit included.
pub(crate) const FAULT_UNFORESEEN: i32 = 1;
/// A rule of the business said no. By itself it proves nothing about a write: what other modules do
/// after the commit is reported in the same way.
pub(crate) const FAULT_REFUSED: i32 = 2;
/// The credential is wrong, or code that ran says so.
pub(crate) const FAULT_CREDENTIAL: i32 = 3;
/// A right is missing, or code that ran says so.
pub(crate) const FAULT_RIGHT: i32 = 4;

/// A database of a server.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) endpoint: Endpoint,
    pub(crate) database: String,
}

/// One identity in a database.
#[derive(Debug)]
pub(crate) struct Session {
    server: Arc<Server>,
    credential: Credential,
    uid: Remembered<i32>,
}

/// Why a call gave no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CallError {
    /// The call itself surely never left this host.
    NotSent(String),
    /// The credential was refused at the sign-in, before the call itself was sent.
    Denied(String),
    /// Odoo answered with a fault.
    Fault(Fault),
    /// No whole answer came.
    Lost(String),
    /// An answer came that cannot be used.
    Unreadable(String),
}

impl Session {
    pub(crate) fn new(server: Arc<Server>, credential: Credential) -> Self {
        Self { server, credential, uid: Remembered::nothing() }
    }

    pub(crate) fn login(&self) -> &str {
        &self.credential.login
    }

    /// Calls a method and takes its value as the type that is expected.
    pub(crate) async fn call<T: DeserializeOwned>(
        &self,
        model: &str,
        method: &str,
        args: Json,
        named: Json,
    ) -> Result<T, CallError> {
        let value = self.value(model, method, args, named).await?;
        xmlrpc::decode(value).ok_or_else(|| {
            CallError::Unreadable(format!("`{model}.{method}` answered in another form than known"))
        })
    }

    /// Runs a server action by id. What it is told goes in the context under our own name.
    pub(crate) async fn run<T: DeserializeOwned>(
        &self,
        action: i32,
        told: Json,
    ) -> Result<T, CallError> {
        let named = json!({ "context": { "lang": "en_US", "tz": "UTC", "countersign": told } });
        self.call("ir.actions.server", "run", json!([[action]]), named).await
    }

    /// Calls a method.
    pub(crate) async fn value(
        &self,
        model: &str,
        method: &str,
        args: Json,
        named: Json,
    ) -> Result<Value, CallError> {
        let unsendable = |error: xmlrpc::Unsendable| CallError::NotSent(error.to_string());
        let args = xmlrpc::from_json(&args).map_err(unsendable)?;
        let named = xmlrpc::from_json(&named).map_err(unsendable)?;
        let uid = self.uid().await?;
        let params = vec![
            Value::String(self.server.database.clone()),
            Value::Int(uid),
            Value::String(self.credential.password.expose_secret().to_owned()),
            Value::String(model.to_owned()),
            Value::String(method.to_owned()),
            args,
            named,
        ];
        let body = xmlrpc::write_call("execute_kw", params).map_err(unsendable)?;
        let answer = self.post(Service::Object, body).await;
        // The user may have been replaced by another one of the same login. Asking anew after every
        // refusal would cost Odoo a check of the password each time.
        if answer.as_ref().is_err_and(CallError::may_be_stale) {
            self.uid.forget().await;
        }
        answer
    }

    /// The user's id. Callers that come at once ask once, since each check of a password costs Odoo
    /// half a second of one core.
    async fn uid(&self) -> Result<i32, CallError> {
        self.uid.get(async { self.sign_in().await.map(Asked::Holds) }).await
    }

    async fn sign_in(&self) -> Result<i32, CallError> {
        let params = vec![
            Value::String(self.server.database.clone()),
            Value::String(self.credential.login.clone()),
            Value::String(self.credential.password.expose_secret().to_owned()),
            Value::Struct(std::collections::BTreeMap::new()),
        ];
        let body = xmlrpc::write_call("authenticate", params)
            .map_err(|error| CallError::NotSent(error.to_string()))?;
        // Whatever happens here, the call that was asked for was not sent.
        match self.post(Service::Common, body).await {
            Ok(Value::Int(uid)) if uid > 0 => Ok(uid),
            Ok(Value::Bool(false)) => Err(wrong_credential()),
            Err(CallError::Fault(fault)) if fault.code == FAULT_CREDENTIAL => {
                Err(wrong_credential())
            }
            Ok(_) => Err(CallError::NotSent("Odoo gave no user id".to_owned())),
            Err(CallError::Fault(fault)) => {
                Err(CallError::NotSent(format!("fault {} at the sign-in", fault.code)))
            }
            Err(
                CallError::NotSent(reason)
                | CallError::Denied(reason)
                | CallError::Lost(reason)
                | CallError::Unreadable(reason),
            ) => Err(CallError::NotSent(format!("at the sign-in: {reason}"))),
        }
    }

    async fn post(&self, service: Service, body: String) -> Result<Value, CallError> {
        let body = self.server.endpoint.post(service, body).await.map_err(|error| match error {
            Failure::NotSent(reason) => CallError::NotSent(reason),
            Failure::Lost(reason) => CallError::Lost(reason),
        })?;
        match xmlrpc::read_answer(&body) {
            Ok(Answer::Value(value)) => Ok(value),
            Ok(Answer::Fault(fault)) => Err(CallError::Fault(fault)),
            Err(error) => Err(CallError::Unreadable(error.to_string())),
        }
    }
}

fn wrong_credential() -> CallError {
    CallError::Denied("wrong login or password".to_owned())
}

impl CallError {
    /// Whether login or password were refused, whenever.
    pub(crate) fn is_of_credential(&self) -> bool {
        match self {
            Self::Denied(_) => true,
            Self::Fault(fault) => fault.code == FAULT_CREDENTIAL,
            Self::NotSent(_) | Self::Lost(_) | Self::Unreadable(_) => false,
        }
    }

    /// Whether an id that we remember, of a user or an action, may not be there any more. Odoo
    /// reports that as it reports any refusal by a rule of the business; what our own text or a
    /// missing right refuses was found.
    pub(crate) fn may_be_stale(&self) -> bool {
        self.is_of_credential()
            || matches!(self, Self::Fault(fault)
                if fault.code == FAULT_REFUSED && fault.marker().is_none())
    }

    /// What the failure means for a read under that identity.
    pub(crate) fn of_read(self, identity: Identity) -> ReadError {
        if self.is_of_credential() {
            return ReadError::Denied { identity, reason: "wrong login or password".to_owned() };
        }
        match self {
            Self::NotSent(reason) | Self::Lost(reason) => ReadError::Unavailable { reason },
            Self::Denied(reason) => ReadError::Denied { identity, reason },
            Self::Unreadable(what) => ReadError::Malformed { what },
            Self::Fault(fault) if fault.code == FAULT_RIGHT => {
                ReadError::Denied { identity, reason: fault.for_log() }
            }
            Self::Fault(fault) => ReadError::Unavailable { reason: fault.for_log() },
        }
    }

    /// For the log and for people; repeats no record of the ERP's.
    pub(crate) fn for_log(&self) -> String {
        match self {
            Self::NotSent(reason)
            | Self::Denied(reason)
            | Self::Lost(reason)
            | Self::Unreadable(reason) => reason.clone(),
            Self::Fault(fault) => fault.for_log(),
        }
    }
}

impl Fault {
    /// Code, our own marker or the class of an exception. The rest of a fault's text may repeat
    /// records, and is left out.
    pub(crate) fn for_log(&self) -> String {
        let code = self.code;
        if let Some(marker) = self.marker() {
            return format!("fault {code}: {marker}");
        }
        let last = self.text.trim_end().lines().next_back().unwrap_or_default();
        let class = last.split(':').next().unwrap_or_default();
        let is_name =
            |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || ".".contains(c));
        if code == FAULT_UNFORESEEN && is_name(class) {
            return format!("fault {code}: {class}");
        }
        format!("fault {code}")
    }

    /// The code that our own text in Odoo gave, where it is the whole text: a name in a text of
    /// Odoo's must not speak for the guard.
    pub(crate) fn marker(&self) -> Option<&str> {
        let code = self.text.strip_prefix("COUNTERSIGN ").filter(|_| self.code == FAULT_REFUSED)?;
        let is_code = code.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        (is_code && !code.is_empty()).then_some(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(code: i32, text: &str) -> Fault {
        Fault { code, text: text.to_owned() }
    }

    #[test]
    fn only_a_whole_text_of_ours_speaks_for_the_guard() {
        assert_eq!(fault(2, "COUNTERSIGN bad_seal").marker(), Some("bad_seal"));
        for (code, text) in [
            (1, "COUNTERSIGN bad_seal"),
            (4, "COUNTERSIGN bad_seal"),
            (2, "COUNTERSIGN bad_seal\n"),
            (2, "COUNTERSIGN "),
            (2, "Vendor `COUNTERSIGN bad_seal` is archived"),
            (2, "COUNTERSIGN bad_seal is archived"),
        ] {
            assert_eq!(fault(code, text).marker(), None, "{text}");
        }
    }

    #[test]
    fn a_fault_in_the_log_names_no_record() {
        let traceback = "Traceback (most recent call last):\nKeyError: 'FR76 secret'";
        assert_eq!(fault(1, traceback).for_log(), "fault 1: KeyError");
        assert_eq!(fault(1, "x FR76 y").for_log(), "fault 1");
        assert_eq!(fault(2, "No account FR76").for_log(), "fault 2");
        assert_eq!(fault(2, "COUNTERSIGN too_late").for_log(), "fault 2: too_late");
    }
}
