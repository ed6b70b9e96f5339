//! JSON-RPC over lines, as Codex's app-server and ACP agents use it: reads and writes messages, and tracks pending calls.
//!
//! Invariant: a call takes one response. The ids of the two sides are independent.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::line::{Text, if_readable};

/// "Method not found": the error code for a request that we do not support.
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;

/// A message of the other side.
#[derive(Debug)]
pub(crate) enum Message<'a> {
    /// A request, which needs a response.
    Request { id: Value, method: Text<'a>, params: &'a RawValue },
    /// A notification.
    Notification { method: Text<'a>, params: &'a RawValue },
    /// The response to a call of ours.
    Answer { id: Value, outcome: Result<&'a RawValue, RpcError> },
}

/// Why a call failed.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct RpcError {
    #[serde(default)]
    pub(crate) code: i64,
    #[serde(default)]
    pub(crate) message: String,
    #[serde(default, deserialize_with = "if_readable")]
    pub(crate) data: Option<Value>,
}

#[derive(Deserialize)]
struct Line<'a> {
    id: Option<Value>,
    #[serde(borrow)]
    method: Option<Text<'a>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<RpcError>,
}

/// Reads a message. Parameters and results stay raw.
pub(crate) fn read(text: &str) -> serde_json::Result<Message<'_>> {
    let line: Line<'_> = serde_json::from_str(text)?;
    let params = line.params.unwrap_or(RawValue::NULL);
    match (line.id, line.method) {
        (Some(id), Some(method)) => Ok(Message::Request { id, method, params }),
        (None, Some(method)) => Ok(Message::Notification { method, params }),
        (Some(id), None) => {
            let outcome = line.error.map_or(Ok(line.result.unwrap_or(RawValue::NULL)), Err);
            Ok(Message::Answer { id, outcome })
        }
        (None, None) => Err(serde::de::Error::custom("neither a method nor an answer")),
    }
}

/// The version field of messages. JSON-RPC 2.0 requires it; Codex omits it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Header {
    /// `"jsonrpc": "2.0"`.
    Version2,
    /// No version.
    Bare,
}

/// Our side of a connection: writes messages, and tracks the pending calls, each with its purpose.
#[derive(Debug)]
pub(crate) struct Caller<Purpose> {
    header: Header,
    last: u64,
    pending: BTreeMap<u64, Purpose>,
}

impl<Purpose> Caller<Purpose> {
    pub(crate) fn new(header: Header) -> Self {
        Self { header, last: 0, pending: BTreeMap::new() }
    }

    /// Returns the line of a call. The call is then pending.
    pub(crate) fn call(&mut self, purpose: Purpose, method: &str, params: &Value) -> Vec<u8> {
        self.last += 1;
        self.pending.insert(self.last, purpose);
        self.line(json!({ "id": self.last, "method": method, "params": params }))
    }

    /// Returns the line of a notification.
    pub(crate) fn notify(&self, method: &str, params: Option<&Value>) -> Vec<u8> {
        self.line(match params {
            Some(params) => json!({ "method": method, "params": params }),
            None => json!({ "method": method }),
        })
    }

    /// Returns the line of a successful response.
    pub(crate) fn answer(&self, id: &Value, result: &Value) -> Vec<u8> {
        self.line(json!({ "id": id, "result": result }))
    }

    /// Returns the line of an error response.
    pub(crate) fn refuse(&self, id: &Value, code: i64, message: &str) -> Vec<u8> {
        self.line(json!({ "id": id, "error": { "code": code, "message": message } }))
    }

    /// Takes the pending call with this id and returns its purpose; `None` if there is none.
    pub(crate) fn answered(&mut self, id: &Value) -> Option<Purpose> {
        self.pending.remove(&id.as_u64()?)
    }

    fn line(&self, mut message: Value) -> Vec<u8> {
        if let (Header::Version2, Some(fields)) = (self.header, message.as_object_mut()) {
            fields.insert("jsonrpc".to_owned(), "2.0".into());
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(b'\n');
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(bytes: &[u8]) -> Value {
        assert_eq!(bytes.last(), Some(&b'\n'));
        serde_json::from_slice(bytes).unwrap()
    }

    #[test]
    fn the_fields_of_a_message_show_its_kind() {
        let method = |text| match read(text) {
            Ok(Message::Request { id, method, params }) => format!("request {id} {} {}", &*method, params.get()),
            Ok(Message::Notification { method, params }) => format!("notification {} {}", &*method, params.get()),
            Ok(Message::Answer { id, outcome }) => match outcome {
                Ok(result) => format!("result {id} {}", result.get()),
                Err(error) => format!("error {id} {} {}", error.code, error.message),
            },
            Err(error) => error.to_string(),
        };
        assert_eq!(method(r#"{"id":0,"method":"ask","params":{"a":1}}"#), r#"request 0 ask {"a":1}"#);
        assert_eq!(method(r#"{"method":"note"}"#), "notification note null");
        assert_eq!(method(r#"{"jsonrpc":"2.0","id":"x","result":{}}"#), r#"result "x" {}"#);
        assert_eq!(method(r#"{"id":7,"result":null}"#), "result 7 null");
        assert_eq!(method(r#"{"id":7,"error":{"code":-1,"message":"no"}}"#), "error 7 -1 no");
        assert!(method("{}").contains("neither"));
        assert!(method("[1]").contains("expected"));
    }

    #[test]
    fn a_call_takes_one_response() {
        let mut caller = Caller::new(Header::Bare);
        let call = parsed(&caller.call("first", "start", &json!({})));
        assert_eq!(call, json!({ "id": 1, "method": "start", "params": {} }));
        assert_eq!(caller.answered(&json!("1")), None);
        assert_eq!(caller.answered(&json!(2)), None);
        assert_eq!(caller.answered(&json!(1)), Some("first"));
        assert_eq!(caller.answered(&json!(1)), None);
    }

    #[test]
    fn the_version_is_written_if_it_is_required() {
        let caller = Caller::<()>::new(Header::Version2);
        assert_eq!(parsed(&caller.notify("note", None)), json!({ "jsonrpc": "2.0", "method": "note" }));
        let refusal = parsed(&caller.refuse(&json!("a"), METHOD_NOT_FOUND, "no"));
        assert_eq!(refusal, json!({ "jsonrpc": "2.0", "id": "a", "error": { "code": -32601, "message": "no" } }));
        assert_eq!(parsed(&caller.answer(&json!(0), &json!({})))["id"], 0);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_rejected(text: String) {
            let _ = read(&text);
        }
    }
}
