//! OpenCode's configuration as JSON text.
//!
//! 1.18.33 replaces `{env:NAME}` and `{file:PATH}` anywhere in the text before it parses the JSON. The values of a request
//! must stay as they are, so their braces are written as `\u007b`. Only the configuration itself contains such references.

use crate::launch::{Arg, Launch, PrivateFile};

/// Returns a string as JSON, without braces that the CLI would replace.
pub(super) fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('{', "\\u007b")
}

/// Returns an object of JSON texts in the given order. The keys are JSON already.
pub(super) fn object(fields: impl IntoIterator<Item = (String, String)>) -> String {
    let fields: Vec<String> = fields.into_iter().map(|(key, value)| format!("{key}:{value}")).collect();
    format!("{{{}}}", fields.join(","))
}

/// Returns a list of strings as JSON.
pub(super) fn list<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let texts: Vec<String> = texts.into_iter().map(quote).collect();
    format!("[{}]", texts.join(","))
}

/// Adds a private file, and a variable that contains its path. Returns the name of the variable.
fn file(launch: &mut Launch, content: &str) -> String {
    let number = launch.files.len() + 1;
    let (name, variable) = (format!("text-{number}"), format!("TEAMSTER_FILE_{number}"));
    launch.files.push(PrivateFile { name: name.clone().into(), content: content.as_bytes().to_vec() });
    let path = Arg::PathOf { before: String::new(), file: name.into(), after: String::new() };
    launch.env.insert(variable.clone(), Some(path));
    variable
}

/// Adds a private file with this content, and returns its path as JSON.
pub(super) fn path_of(launch: &mut Launch, content: &str) -> String {
    format!("\"{{env:{}}}\"", file(launch, content))
}

/// Returns a text as JSON that only the agent's process can read, because it is in a private file. Blanks around the text are
/// in the JSON: 1.18.33 trims files.
pub(super) fn secret(launch: &mut Launch, text: &str) -> String {
    // JavaScript trims this character and Rust does not.
    let blank = |c: char| c.is_whitespace() || c == '\u{feff}';
    let trimmed = text.trim_matches(blank);
    if trimmed.is_empty() {
        return quote(text);
    }
    let (before, after) = text.split_once(trimmed).unwrap_or_default();
    let escaped = |text: &str| quote(text).trim_matches('"').to_owned();
    format!("\"{}{{file:{{env:{}}}}}{}\"", escaped(before), file(launch, trimmed), escaped(after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_of_a_request_is_replaced_by_a_file_or_a_variable() {
        let text = quote("{env:HOME} {file:/etc/passwd} \"x\"");
        assert!(!text.contains('{'), "{text}");
        assert_eq!(serde_json::from_str::<String>(&text).unwrap(), "{env:HOME} {file:/etc/passwd} \"x\"");
    }

    #[test]
    fn a_secret_is_in_a_private_file_and_keeps_its_blanks() {
        let mut launch = Launch::new("x");
        assert_eq!(secret(&mut launch, " a b\n"), "\" {file:{env:TEAMSTER_FILE_1}}\\n\"");
        assert_eq!(launch.files[0].content, b"a b");
        assert_eq!(secret(&mut launch, "\t"), "\"\\t\"");
        assert_eq!(secret(&mut launch, "\""), "\"{file:{env:TEAMSTER_FILE_2}}\"");
    }
}
