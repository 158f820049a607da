//! Calls byte by byte, as no client library would send them, and what comes back.

use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::described::Exchange;

/// How long a daemon may take for one answer.
const PATIENCE: Duration = Duration::from_secs(40);

/// A call as it is written on the line.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    method: String,
    target: String,
    version: &'static str,
    headers: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
    /// Whether the length of the body is announced as it is.
    announced: bool,
}

impl Call {
    /// A call with a `Host` and nothing else.
    pub(crate) fn new(method: &str, target: &str, host: &str) -> Self {
        let call = Self {
            method: method.to_owned(),
            target: target.to_owned(),
            version: "HTTP/1.1",
            headers: Vec::new(),
            body: Vec::new(),
            announced: true,
        };
        call.with("Host", host)
    }

    /// Adds a header, beside one of that name that may stand there.
    pub(crate) fn with(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.headers.push((name.to_owned(), value.as_ref().to_vec()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(kept, _)| !kept.eq_ignore_ascii_case(name));
        self
    }

    /// Puts a header in the place of all of that name.
    pub(crate) fn set(self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.without(name).with(name, value)
    }

    pub(crate) fn to(mut self, target: &str) -> Self {
        target.clone_into(&mut self.target);
        self
    }

    pub(crate) fn version(mut self, version: &'static str) -> Self {
        self.version = version;
        self
    }

    pub(crate) fn body(mut self, body: impl AsRef<[u8]>) -> Self {
        self.body = body.as_ref().to_vec();
        self
    }

    /// Sends the body as it is, without saying how long it is.
    pub(crate) fn unannounced(mut self) -> Self {
        self.announced = false;
        self
    }

    /// Sends the body in pieces of that size.
    pub(crate) fn chunked(mut self, piece: usize) -> Self {
        let mut body = Vec::new();
        for part in self.body.chunks(piece) {
            body.extend(format!("{:x}\r\n", part.len()).as_bytes());
            body.extend(part);
            body.extend(b"\r\n");
        }
        body.extend(b"0\r\n\r\n");
        self.body = body;
        self.unannounced().set("Transfer-Encoding", "chunked")
    }

    /// This call and what was heard.
    pub(crate) fn with_answer<'a>(&'a self, heard: &'a Heard) -> Exchange<'a> {
        Exchange {
            method: &self.method,
            target: &self.target,
            sent: if self.announced { &self.body } else { &[] },
            status: heard.status,
            headers: heard.headers.clone(),
            body: &heard.body,
        }
    }

    pub(crate) fn is_head(&self) -> bool {
        self.method == "HEAD"
    }

    /// All bytes of it.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut all = format!("{} {} {}\r\n", self.method, self.target, self.version).into_bytes();
        for (name, value) in &self.headers {
            all.extend(name.as_bytes());
            all.extend(b": ");
            all.extend(value);
            all.extend(b"\r\n");
        }
        if self.announced && !self.body.is_empty() {
            all.extend(format!("Content-Length: {}\r\n", self.body.len()).as_bytes());
        }
        all.extend(b"Connection: close\r\n\r\n");
        all.extend(&self.body);
        all
    }
}

/// An answer.
#[derive(Debug, Clone)]
pub(crate) struct Heard {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
    pub(crate) json: Value,
    /// What came after the body: a second answer, where one call was taken for two.
    pub(crate) after: String,
}

impl Heard {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(kept, _)| kept == name);
        let only = found.next().map(|(_, value)| value.as_str());
        assert!(found.next().is_none(), "`{name}` stands twice: {self:?}");
        only
    }

    pub(crate) fn text(&self, pointer: &str) -> &str {
        self.json.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    pub(crate) fn reasons(&self) -> Vec<&str> {
        let reasons = self.json.pointer("/decision/reasons").and_then(Value::as_array);
        reasons.into_iter().flatten().filter_map(Value::as_str).collect()
    }
}

/// Sends those bytes and hears the answer; none where the line is closed without one.
pub(crate) async fn exchange(address: &str, sent: &[u8], is_head: bool) -> Option<Heard> {
    let talk = async {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let (mut hear, mut say) = stream.split();
        let mut found = Vec::new();
        // Whoever is refused half way may find the line cut before everything was said, and after
        // the answer. What matters is what was heard.
        let saying = async { drop(say.write_all(sent).await) };
        let hearing = async { drop(hear.read_to_end(&mut found).await) };
        tokio::join!(saying, hearing);
        found
    };
    let found = tokio::time::timeout(PATIENCE, talk).await.expect("no answer in time");
    read(&found, is_head)
}

fn read(found: &[u8], is_head: bool) -> Option<Heard> {
    let end = found.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = String::from_utf8(found[..end].to_vec()).unwrap();
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().unwrap();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.map_or(0, |(_, value)| value.parse().unwrap());
    let rest = &found[end + 4..];
    let length = if is_head { 0 } else { length };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let body = text(&rest[..length]);
    let json = serde_json::from_str(&body).unwrap_or(Value::Null);
    Some(Heard { status, headers, json, body, after: text(&rest[length..]) })
}
