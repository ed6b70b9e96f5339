//! OpenCode's configuration as JSON text.
//!
//! 1.18.33 replaces `{env:NAME}` and `{file:PATH}` in the text before it reads it as JSON, wherever they stand. Words of a
//! request must mean themselves, so their braces are written as `\u007b`; where we want a file, we write one on purpose.

use crate::launch::{Arg, Launch, PrivateFile};

/// A string as JSON, in which nothing is replaced.
pub(super) fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('{', "\\u007b")
}

/// An object of JSON texts, in this order. Keys are quoted already.
pub(super) fn object(fields: impl IntoIterator<Item = (String, String)>) -> String {
    let fields: Vec<String> = fields.into_iter().map(|(key, value)| format!("{key}:{value}")).collect();
    format!("{{{}}}", fields.join(","))
}

/// A list of strings.
pub(super) fn list<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let texts: Vec<String> = texts.into_iter().map(quote).collect();
    format!("[{}]", texts.join(","))
}

/// A private file whose path stands in a variable of its own. Gives the variable's name.
fn file(launch: &mut Launch, content: &str) -> String {
    let number = launch.files.len() + 1;
    let (name, variable) = (format!("text-{number}"), format!("TEAMSTER_FILE_{number}"));
    launch.files.push(PrivateFile { name: name.clone().into(), content: content.as_bytes().to_vec() });
    let path = Arg::PathOf { before: String::new(), file: name.into(), after: String::new() };
    launch.env.insert(variable.clone(), Some(path));
    variable
}

/// The path of a private file with this content, as JSON.
pub(super) fn path_of(launch: &mut Launch, content: &str) -> String {
    format!("\"{{env:{}}}\"", file(launch, content))
}

/// A text that only the agent's process reads, as JSON. Blanks around it stand in the JSON: 1.18.33 cuts them off a file.
pub(super) fn secret(launch: &mut Launch, text: &str) -> String {
    // What JavaScript cuts off and Rust does not.
    let blank = |c: char| c.is_whitespace() || c == '\u{feff}';
    let core = text.trim_matches(blank);
    if core.is_empty() {
        return quote(text);
    }
    let (before, after) = text.split_once(core).unwrap_or_default();
    let inside = |text: &str| quote(text).trim_matches('"').to_owned();
    format!("\"{}{{file:{{env:{}}}}}{}\"", inside(before), file(launch, core), inside(after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_word_of_a_request_is_replaced_by_a_file_or_a_variable() {
        let text = quote("{env:HOME} {file:/etc/passwd} \"x\"");
        assert!(!text.contains('{'), "{text}");
        assert_eq!(serde_json::from_str::<String>(&text).unwrap(), "{env:HOME} {file:/etc/passwd} \"x\"");
    }

    #[test]
    fn a_secret_stands_in_a_file_and_keeps_its_blanks() {
        let mut launch = Launch::new("x");
        assert_eq!(secret(&mut launch, " a b\n"), "\" {file:{env:TEAMSTER_FILE_1}}\\n\"");
        assert_eq!(launch.files[0].content, b"a b");
        assert_eq!(secret(&mut launch, "\t"), "\"\\t\"");
        assert_eq!(secret(&mut launch, "\""), "\"{file:{env:TEAMSTER_FILE_2}}\"");
    }
}
