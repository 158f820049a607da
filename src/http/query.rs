//! What stands in the address of a call: path segments and query parameters, each known, each at
//! most once.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use axum::Json;
use axum::extract::{FromRequestParts, Path, Query};
use axum::http::Uri;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::Shared;
use super::call::{Field, names};
use super::code::Code;
use super::forms;
use super::problem::Problem;

/// How many items a page has at most.
const LIMIT_MAX: u16 = 200;
/// How many it has if nobody says.
const LIMIT_DEFAULT: u16 = 50;
/// What a list that is given in pages is asked with.
pub(super) const PAGED: [Field; 2] = [LIMIT, CURSOR];
/// How many items a page is to have.
pub(super) const LIMIT: Field = Field::may("limit", forms::limit);
/// Where it is to begin.
pub(super) const CURSOR: Field = Field::may("cursor", forms::cursor);

/// How long a call may wait for an operation.
const WAIT_MAX: Duration = Duration::from_mins(1);
/// Longer cursors are not ours.
const CURSOR_CHARS_MAX: usize = 1024;

/// Path segments. What cannot be read is the name of nothing.
#[derive(Debug)]
pub(super) struct Segments<T>(pub(super) T);

impl<T: DeserializeOwned + Send> FromRequestParts<Shared> for Segments<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared) -> Result<Self, Problem> {
        let read = Path::<T>::from_request_parts(parts, shared).await;
        read.map(|Path(segments)| Self(segments)).map_err(|_unreadable| Problem::not_found())
    }
}

/// A call that takes no parameter.
#[derive(Debug)]
pub(super) struct NoParams;

impl FromRequestParts<Shared> for NoParams {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _shared: &Shared) -> Result<Self, Problem> {
        Params::read(&parts.uri, &[]).map(|_none| Self)
    }
}

/// Query parameters by name.
#[derive(Debug)]
pub(super) struct Params(BTreeMap<String, String>);

fn invalid(text: String) -> Problem {
    Problem::new(Code::INVALID_QUERY, text)
}

impl Params {
    /// Reads those that the call knows.
    pub(super) fn read(uri: &Uri, known: &[Field]) -> Result<Self, Problem> {
        let pairs = Query::<Vec<(String, String)>>::try_from_uri(uri)
            .map_err(|_fault| invalid("the query cannot be read".to_owned()))?;
        let mut all = BTreeMap::new();
        for (name, value) in pairs.0 {
            if !known.iter().any(|known| known.name == name) {
                return Err(invalid(if known.is_empty() {
                    "this call takes no query parameters".to_owned()
                } else {
                    format!("the query parameters of this call are {}", names(known).join(", "))
                }));
            }
            if all.insert(name.clone(), value).is_some() {
                return Err(invalid(format!("`{name}` stands twice")));
            }
        }
        Ok(Self(all))
    }

    /// The parameter of that name.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The parameter of that name, in a form of its own.
    pub(super) fn parse<T>(
        &self,
        name: &str,
        form: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, Problem> {
        let read = |text| parse(text).ok_or_else(|| invalid(format!("`{name}` is {form}")));
        self.text(name).map(read).transpose()
    }

    /// How many items a page has.
    pub(super) fn limit(&self) -> Result<u16, Problem> {
        let read = |text: &str| {
            u16::from_str(text)
                .ok()
                .filter(|limit| text.bytes().all(|b| b.is_ascii_digit()) && *limit <= LIMIT_MAX)
                .filter(|limit| *limit > 0)
        };
        let limit = self.parse("limit", "a number from 1 to 200", read)?;
        Ok(limit.unwrap_or(LIMIT_DEFAULT))
    }

    /// How long to wait.
    pub(super) fn wait(&self) -> Result<Duration, Problem> {
        let read =
            |text: &str| humantime::parse_duration(text).ok().filter(|wait| *wait <= WAIT_MAX);
        Ok(self.parse("wait", "a duration like `30s`, at most `60s`", read)?.unwrap_or_default())
    }

    /// The page of that list that is asked for.
    pub(super) fn page(&self, list: List) -> Result<Page, Problem> {
        let after = self.after(list)?.unwrap_or_default();
        Ok(Page { list, after, limit: self.limit()? })
    }

    /// After which id the page begins.
    pub(super) fn after(&self, of: List) -> Result<Option<String>, Problem> {
        self.parse("cursor", "the `next_cursor` of an earlier answer to the same call", |text| {
            of.read_cursor(text)
        })
    }
}

/// One page of a list: one item more than it holds says whether there is another.
#[derive(Debug)]
pub(super) struct Page {
    list: List,
    after: String,
    limit: u16,
}

impl Page {
    /// After which id it begins.
    pub(super) fn after(&self) -> String {
        self.after.clone()
    }

    /// How many items to ask for.
    pub(super) fn more(&self) -> u16 {
        self.limit.saturating_add(1)
    }

    /// The answer with those of the items that are on the page.
    pub(super) fn answer<'i, T: 'i, V: Serialize>(
        &self,
        found: &'i [T],
        id: impl Fn(&'i T) -> &'i str,
        view: impl Fn(&'i T) -> V,
    ) -> Response {
        let limit = usize::from(self.limit);
        let last = found.get(limit.saturating_sub(1)).filter(|_| found.len() > limit);
        let next_cursor = last.map(|last| self.list.cursor(id(last)));
        let items: Vec<V> = found.iter().take(limit).map(view).collect();
        Json(json!({ "items": items, "next_cursor": next_cursor })).into_response()
    }
}

/// A list that is given in pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum List {
    Alarms,
    Approvals,
    Bills,
    Freezes,
    Mandates,
    Operations,
    Users,
}

impl List {
    fn tag(self) -> &'static str {
        match self {
            Self::Alarms => "alarms:",
            Self::Approvals => "approvals:",
            Self::Bills => "bills:",
            Self::Freezes => "freezes:",
            Self::Mandates => "mandates:",
            Self::Operations => "operations:",
            Self::Users => "users:",
        }
    }

    /// Names the last item of a page, in a form that nobody builds upon.
    pub(super) fn cursor(self, last: &str) -> String {
        URL_SAFE_NO_PAD.encode(format!("{}{last}", self.tag()))
    }

    fn read_cursor(self, text: &str) -> Option<String> {
        if text.len() > CURSOR_CHARS_MAX {
            return None;
        }
        let text = String::from_utf8(URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
        text.strip_prefix(self.tag()).map(ToOwned::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Result<Params, Problem> {
        let uri: Uri = format!("/v1/operations?{query}").parse().unwrap();
        Params::read(&uri, &[LIMIT, CURSOR, Field::may("wait", forms::wait)])
    }

    #[test]
    fn parameters_are_known_and_stand_once() {
        assert!(read("").is_ok());
        assert!(read("limit=1&wait=1s").is_ok());
        assert!(read("limits=1").is_err());
        assert!(read("limit=1&limit=1").is_err());
        assert!(read("limit=1&l%69mit=1").is_err());
    }

    #[test]
    fn a_page_has_1_to_200_items() {
        let limit = |query: &str| read(query).unwrap().limit().ok();
        assert_eq!(limit(""), Some(50));
        assert_eq!(limit("limit=1"), Some(1));
        assert_eq!(limit("limit=200"), Some(200));
        for bad in ["0", "201", "-1", "%2B1", "1.0", "", "99999", "a"] {
            assert_eq!(limit(&format!("limit={bad}")), None, "`{bad}`");
        }
    }

    #[test]
    fn a_call_waits_a_minute_at_most() {
        let wait = |query: &str| read(query).unwrap().wait().ok();
        assert_eq!(wait(""), Some(Duration::ZERO));
        assert_eq!(wait("wait=30s"), Some(Duration::from_secs(30)));
        assert_eq!(wait("wait=1m"), Some(Duration::from_mins(1)));
        for bad in ["61s", "60001ms", "30", "", "-1s", "1h"] {
            assert_eq!(wait(&format!("wait={bad}")), None, "`{bad}`");
        }
    }

    #[test]
    fn a_cursor_is_of_one_list() {
        let cursor = List::Bills.cursor("INV/ é 1");
        let after = |list| read(&format!("cursor={cursor}")).unwrap().after(list).ok().flatten();
        assert_eq!(after(List::Bills).as_deref(), Some("INV/ é 1"));
        assert_eq!(after(List::Operations), None);
        assert!(read("cursor=INV-1").unwrap().after(List::Bills).is_err());
    }
}
