//! The content of messages: texts and attachments.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::error::ApiError;

/// The longest name of an attachment, in characters.
const LONGEST_NAME: usize = 100;

/// A file in a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Attached {
    /// Its name, for the agent and for people.
    pub(super) name: String,
    /// Its media type, as the client states it.
    pub(super) media_type: String,
    /// Its content.
    pub(super) bytes: Vec<u8>,
}

/// Reads the content of a message: a text, or a list of parts. Files are added to `attached`, and the text names them.
pub(super) fn read(content: &Value, param: &str, attached: &mut Vec<Attached>) -> Result<String, ApiError> {
    match content {
        Value::String(text) => checked(text, param).map(str::to_owned),
        Value::Null => Ok(String::new()),
        Value::Array(parts) => {
            let texts = parts.iter().enumerate().map(|(index, part)| {
                let param = format!("{param}[{index}]");
                read_part(part, &param, attached)
            });
            Ok(texts.collect::<Result<Vec<_>, _>>()?.join("\n"))
        }
        _ => Err(ApiError::invalid(param, "must be a text or a list of parts")),
    }
}

fn read_part(part: &Value, param: &str, attached: &mut Vec<Attached>) -> Result<String, ApiError> {
    let field = |name: &str| part.get(name).and_then(Value::as_str);
    match field("type") {
        Some("text" | "input_text" | "output_text") => text_of(part, "text", param),
        Some("refusal") => text_of(part, "refusal", param),
        Some("image_url") => {
            let url = part.get("image_url").and_then(|image| image.get("url")).and_then(Value::as_str);
            attach(url, None, &format!("{param}.image_url.url"), attached)
        }
        Some("file") => {
            let empty = Map::new();
            let file = part.get("file").and_then(Value::as_object).unwrap_or(&empty);
            let name = file.get("filename").and_then(Value::as_str);
            attach(file.get("file_data").and_then(Value::as_str), name, &format!("{param}.file.file_data"), attached)
        }
        Some(_) | None => {
            let problem = "must be text, image_url or file: the agents take no other content";
            Err(ApiError::invalid(format!("{param}.type"), problem))
        }
    }
}

fn text_of(part: &Value, name: &str, param: &str) -> Result<String, ApiError> {
    let param = format!("{param}.{name}");
    let text =
        part.get(name).and_then(Value::as_str).ok_or_else(|| ApiError::invalid(param.clone(), "must be a text"))?;
    checked(text, &param).map(str::to_owned)
}

fn checked<'a>(text: &'a str, param: &str) -> Result<&'a str, ApiError> {
    if text.contains('\0') {
        return Err(ApiError::invalid(param, "must not contain the character NUL"));
    }
    Ok(text)
}

/// Adds a file, and returns the text that replaces it in the prompt.
fn attach(
    url: Option<&str>,
    name: Option<&str>,
    param: &str,
    attached: &mut Vec<Attached>,
) -> Result<String, ApiError> {
    // The gateway does not fetch addresses for a client: they may be in its own network.
    let problem = "must be a data URL, such as data:image/png;base64,...: the gateway does not fetch other addresses";
    let invalid = || ApiError::invalid(param, problem);
    let (header, data) = url.and_then(|url| url.strip_prefix("data:")?.split_once(',')).ok_or_else(invalid)?;
    let media_type = header.strip_suffix(";base64").ok_or_else(invalid)?;
    let (kind, subtype) = media_type.split_once('/').ok_or_else(invalid)?;
    let is_token = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte))
    };
    if media_type.len() > LONGEST_NAME || !is_token(kind) || !is_token(subtype) {
        return Err(ApiError::invalid(param, "must have a media type without parameters, such as image/png"));
    }
    let bytes = STANDARD.decode(data).map_err(|_| ApiError::invalid(param, "must have valid Base64 data"))?;
    let extension = subtype.split(['+', '.', '-']).next().unwrap_or("bin");
    let number = attached.len().saturating_add(1);
    let name = name.and_then(plain_name).unwrap_or_else(|| format!("{kind}-{number}.{extension}"));
    let text = format!("[attached file: {name}]");
    attached.push(Attached { name, media_type: media_type.to_owned(), bytes });
    Ok(text)
}

/// Returns a file name on one line, without a directory.
fn plain_name(name: &str) -> Option<String> {
    let name = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let name: String = name.chars().filter(|char| !char.is_control()).take(LONGEST_NAME).collect();
    let name = name.trim().to_owned();
    (!name.is_empty() && name != "." && name != "..").then_some(name)
}
