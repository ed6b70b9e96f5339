//! The JSON that programs get, and the meaning of their status codes.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::StatusCode;
use serde::Serialize;
use teamster_channel::{ButtonStyle, Content, Delivered, Outgoing, RateScope, SendError, SendOutcome};

/// The body of a request.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    r#type: &'static str,
    /// Always present, so that an answer can be routed by it alone.
    target: Target<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    turn_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    conversation_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    answers: Vec<Answer<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<File<'a>>,
    /// The position of a part, starting at 0, and the number of parts.
    part: u32,
    parts: u32,
    may_be_repeat: bool,
    created_at: String,
}

#[derive(Debug, Serialize)]
struct Target<'a> {
    channel: &'a str,
    chat: &'a str,
    thread: &'a str,
}

/// A possible answer to a permission request or a question.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'a> {
    label: &'a str,
    token: &'a str,
    style: ButtonStyle,
    takes_text: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct File<'a> {
    name: &'a str,
    media_type: &'a str,
    data: String,
}

/// Returns the body for an item.
pub(crate) fn body(channel: &str, outgoing: &Outgoing) -> Result<Vec<u8>, serde_json::Error> {
    let Outgoing { address, conversation, turn, content, part, bytes, may_be_repeat, created_at_ms, .. } = outgoing;
    let created = jiff::Timestamp::from_millisecond(*created_at_ms).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    let mut body = Body {
        r#type: "notice",
        target: Target { channel, chat: &address.chat, thread: &address.thread },
        text: Some(content.text()),
        error: None,
        code: None,
        session_id: None,
        turn_id: turn.as_deref(),
        conversation_id: conversation.as_deref(),
        request_id: None,
        answers: Vec::new(),
        outcome: None,
        file: None,
        part: part.index,
        parts: part.count,
        may_be_repeat: *may_be_repeat,
        created_at: format!("{created:.3}"),
    };
    match content {
        Content::Answer { session_id, .. } => {
            body.r#type = "answer";
            body.session_id = session_id.as_deref();
        }
        Content::Failure { error, code } => {
            body.r#type = "failure";
            body.text = None;
            (body.error, body.code) = (Some(error.as_str()), Some(code.as_str()));
        }
        Content::Prompt(prompt) => {
            body.r#type = "permission_request";
            body.request_id = Some(&prompt.id);
            body.answers = prompt
                .buttons
                .iter()
                .map(|button| Answer {
                    label: &button.label,
                    token: &button.token,
                    style: button.style,
                    takes_text: button.takes_text,
                })
                .collect();
        }
        Content::PromptClosed { id, outcome, .. } => {
            body.r#type = "permission_closed";
            (body.request_id, body.outcome) = (Some(id.as_str()), Some(outcome.as_str()));
        }
        Content::File(file) => {
            body.r#type = "file";
            let data = STANDARD.encode(bytes);
            body.file = Some(File { name: &file.name, media_type: &file.media_type, data });
        }
        _ => {}
    }
    serde_json::to_vec(&body)
}

/// Returns what the status of an answer means.
pub(crate) fn outcome(status: StatusCode, retry_after: Option<&str>, now: jiff::Timestamp) -> SendOutcome {
    if status.is_success() {
        return SendOutcome::Sent(Delivered::default());
    }
    let reason = format!("the receiver answers with status {}", status.as_u16());
    let is_temporary = status.is_server_error()
        || matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS);
    SendOutcome::NotSent(if is_temporary {
        let after = retry_after.and_then(|value| wait(value, now));
        // A receiver has one limit for all of its chats.
        let scope = if after.is_some() { RateScope::Channel } else { RateScope::Chat };
        SendError::Later { reason, after, scope }
    } else if status.is_redirection() {
        SendError::Never(format!("{reason}: redirects are not followed; configure the final URL"))
    } else {
        SendError::Never(reason)
    })
}

/// Reads the header `Retry-After`: seconds, or a date.
fn wait(value: &str, now: jiff::Timestamp) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let at = jiff::fmt::rfc2822::parse(value).ok()?.timestamp();
    Some(Duration::try_from(at.duration_since(now)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use teamster_channel::{Address, Button, Operation, Part, Prompt};

    use super::*;

    fn outgoing(content: Content) -> Outgoing {
        Outgoing {
            key: "t:1:answer:0".into(),
            address: Address { chat: "c".into(), thread: String::new() },
            conversation: Some("k".into()),
            turn: Some("t".into()),
            operation: Operation::New,
            content,
            part: Part::ONLY,
            bytes: Arc::from(*b"hi"),
            may_be_repeat: false,
            created_at_ms: 1_800_000_000_123,
        }
    }

    fn json(content: Content) -> serde_json::Value {
        serde_json::from_slice(&body("webhook-ci", &outgoing(content)).unwrap()).unwrap()
    }

    #[test]
    fn an_answer_has_text_session_and_target_and_a_failure_has_error_code_and_target() {
        let answer = json(Content::Answer { text: "Hi".into(), session_id: Some("s".into()) });
        let target = serde_json::json!({"channel": "webhook-ci", "chat": "c", "thread": ""});
        assert_eq!(
            answer,
            serde_json::json!({"type": "answer", "target": target, "text": "Hi", "sessionId": "s", "turnId": "t",
                "conversationId": "k", "part": 0, "parts": 1, "mayBeRepeat": false,
                "createdAt": "2027-01-15T08:00:00.123Z"})
        );
        let failure = json(Content::Failure { error: "It failed.".into(), code: "TIMEOUT".into() });
        assert_eq!((&failure["error"], &failure["code"]), (&"It failed.".into(), &"TIMEOUT".into()));
        assert_eq!((&failure["target"], failure.get("text")), (&target, None));
    }

    #[test]
    fn a_prompt_has_its_tokens_and_a_file_its_bytes() {
        let button =
            Button { label: "Allow".into(), token: "x".into(), style: ButtonStyle::Positive, takes_text: false };
        let prompt = json(Content::Prompt(Prompt { id: "p".into(), text: "May I?".into(), buttons: vec![button] }));
        assert_eq!(prompt["answers"][0]["token"], "x");
        assert_eq!((&prompt["type"], &prompt["requestId"]), (&"permission_request".into(), &"p".into()));
        let file = teamster_channel::File {
            name: "a.txt".into(),
            media_type: "text/plain".into(),
            hash: String::new(),
            caption: "c".into(),
        };
        let file = json(Content::File(file));
        assert_eq!((&file["file"]["data"], &file["text"]), (&"aGk=".into(), &"c".into()));
    }

    #[test]
    fn each_status_has_its_outcome() {
        let now = jiff::Timestamp::UNIX_EPOCH;
        let of = |status: u16, after: Option<&str>| outcome(StatusCode::from_u16(status).unwrap(), after, now);
        for status in [200, 201, 202, 204] {
            assert!(matches!(of(status, None), SendOutcome::Sent(_)), "{status}");
        }
        for status in [408, 425, 429, 500, 502, 503, 504] {
            assert!(matches!(of(status, None), SendOutcome::NotSent(SendError::Later { after: None, .. })), "{status}");
        }
        for status in [301, 307, 400, 401, 403, 404, 410, 413, 422] {
            assert!(matches!(of(status, None), SendOutcome::NotSent(SendError::Never(_))), "{status}");
        }
        let after = |value| match of(429, Some(value)) {
            SendOutcome::NotSent(SendError::Later { after, scope, .. }) => (after, scope),
            other => panic!("{other:?}"),
        };
        assert_eq!(after("7"), (Some(Duration::from_secs(7)), RateScope::Channel));
        assert_eq!(after("Thu, 01 Jan 1970 00:01:00 GMT"), (Some(Duration::from_mins(1)), RateScope::Channel));
        assert_eq!(after("soon"), (None, RateScope::Chat));
    }
}
