//! The JSON that programs send.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use teamster_channel::{Address, Attachment, Author, ChatCommand, Edit, Message, PromptAnswer};

/// The longest id of a request, chat, thread or author, in bytes.
pub(crate) const MAX_ID: usize = 256;

/// The largest number of attachments.
const MAX_ATTACHMENTS: usize = 32;

/// The body of a request.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
struct Body {
    r#type: Kind,
    chat: Option<String>,
    thread: String,
    author: Option<BodyAuthor>,
    text: Option<String>,
    attachments: Vec<BodyAttachment>,
    /// The `webhook-id` of the message that an edit replaces.
    id: Option<String>,
    token: Option<String>,
    message: Option<String>,
    name: Option<String>,
    argument: String,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    #[default]
    Message,
    Edit,
    Answer,
    Command,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct BodyAuthor {
    id: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    is_bot: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct BodyAttachment {
    name: String,
    #[serde(default)]
    media_type: String,
    /// The content in base64.
    data: String,
}

/// The content of a request.
#[derive(Debug)]
pub(crate) enum Request {
    Message(Message),
    Edit(Edit),
    Answer(PromptAnswer),
    Command(ChatCommand),
}

/// Reads a body. `id` is the id of the request. An error is a text for the program's author.
pub(crate) fn parse(id: &str, body: &[u8]) -> Result<Request, String> {
    let body: Body = serde_json::from_slice(body).map_err(|error| format!("the body is invalid: {error}"))?;
    Ok(match body.r#type {
        Kind::Message => {
            let (address, author) = (address(&body)?, author(body.author)?);
            let text = body.text.unwrap_or_default();
            if text.trim().is_empty() && body.attachments.is_empty() {
                return Err("text must not be empty: send a text or an attachment".to_owned());
            }
            let attachments = attachments(body.attachments)?;
            Request::Message(Message {
                ids: vec![id.to_owned()],
                address,
                author,
                text,
                attachments,
                is_addressed: true,
            })
        }
        Kind::Edit => Request::Edit(Edit { id: required(body.id, "id")?, text: required(body.text, "text")? }),
        Kind::Answer => Request::Answer(PromptAnswer {
            address: address(&body)?,
            token: required(body.token, "token")?,
            message: body.message,
            author: author(body.author)?,
        }),
        Kind::Command => Request::Command(ChatCommand {
            address: address(&body)?,
            name: required(body.name, "name")?,
            argument: body.argument,
            author: author(body.author)?,
        }),
    })
}

fn required(value: Option<String>, name: &str) -> Result<String, String> {
    value.filter(|value| !value.is_empty()).ok_or_else(|| format!("{name} is missing"))
}

fn id(value: &str, name: &str) -> Result<String, String> {
    if value.len() > MAX_ID || value.chars().any(char::is_control) {
        return Err(format!("{name} must have at most {MAX_ID} bytes and no control characters"));
    }
    Ok(value.to_owned())
}

fn address(body: &Body) -> Result<Address, String> {
    let chat = required(body.chat.clone(), "chat")?;
    Ok(Address { chat: id(&chat, "chat")?, thread: id(&body.thread, "thread")? })
}

fn author(author: Option<BodyAuthor>) -> Result<Author, String> {
    let BodyAuthor { id: author, name, is_bot } = author.ok_or("author is missing")?;
    let author = required(Some(author), "author.id")?;
    Ok(Author { id: id(&author, "author.id")?, name, is_bot })
}

fn attachments(found: Vec<BodyAttachment>) -> Result<Vec<Attachment>, String> {
    if found.len() > MAX_ATTACHMENTS {
        return Err(format!("attachments must be at most {MAX_ATTACHMENTS}"));
    }
    let decode = |(number, BodyAttachment { name, media_type, data }): (usize, BodyAttachment)| {
        if name.chars().any(char::is_control) {
            return Err(format!("attachments[{number}].name must not have control characters"));
        }
        let bytes = STANDARD.decode(data);
        let bytes = bytes.map_err(|error| format!("attachments[{number}].data is not base64: {error}"))?;
        let media_type = if media_type.is_empty() { "application/octet-stream".to_owned() } else { media_type };
        Ok(Attachment { name, media_type, bytes })
    };
    found.into_iter().enumerate().map(decode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_needs_chat_author_and_a_text_or_an_attachment() {
        let body = br#"{"chat":"c","author":{"id":"a"},"text":"hi","attachments":[{"name":"x","data":"aGk="}]}"#;
        let Request::Message(message) = parse("id-1", body).unwrap() else { panic!("it is a message") };
        assert_eq!((message.ids, message.text.as_str()), (vec!["id-1".to_owned()], "hi"));
        assert_eq!(message.attachments[0].bytes, b"hi");
        for (body, wanted) in [
            ("{}", "chat is missing"),
            (r#"{"chat":"c","text":"hi"}"#, "author is missing"),
            (r#"{"chat":"c","author":{"id":""},"text":"hi"}"#, "author.id is missing"),
            (r#"{"chat":"c","author":{"id":"a"},"text":" "}"#, "text must not be empty"),
            (r#"{"chat":"c\u0000","author":{"id":"a"},"text":"x"}"#, "chat must have"),
            (
                r#"{"chat":"c","author":{"id":"a"},"text":"x","attachments":[{"name":"x","data":"%"}]}"#,
                "attachments[0]",
            ),
            (r#"{"chat":"c","author":{"id":"a"},"txt":"x"}"#, "unknown field `txt`"),
            (r#"{"type":"other"}"#, "unknown variant `other`"),
            ("[1", "the body is invalid"),
        ] {
            let error = parse("id", body.as_bytes()).unwrap_err();
            assert!(error.contains(wanted), "{body}: {error}");
        }
    }

    #[test]
    fn answers_commands_and_edits_are_read() {
        let answer = br#"{"type":"answer","chat":"c","author":{"id":"a"},"token":"t","message":"m"}"#;
        assert!(matches!(parse("1", answer), Ok(Request::Answer(answer)) if answer.token == "t"));
        let command = br#"{"type":"command","chat":"c","author":{"id":"a"},"name":"agent","argument":"codex"}"#;
        assert!(matches!(parse("1", command), Ok(Request::Command(command)) if command.argument == "codex"));
        let edit = br#"{"type":"edit","id":"old","text":"new"}"#;
        assert!(matches!(parse("1", edit), Ok(Request::Edit(edit)) if edit.id == "old"));
    }
}
