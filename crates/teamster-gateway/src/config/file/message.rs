//! What is wrong with a value, in words that need no knowledge of Rust. The input is the text of serde's error.

/// Returns the problem of the value of a key.
pub(super) fn plain(key: &str, message: &str) -> String {
    let message = message.split('\n').collect::<Vec<_>>().join("; ");
    if let Some(rest) = message.strip_prefix("unknown variant `") {
        return unknown_name(rest).unwrap_or(message);
    }
    let Some((_, rest)) = message.split_once("invalid type: ").or_else(|| message.split_once("invalid value: ")) else {
        return message;
    };
    let Some((found, expected)) = rest.split_once(", expected ") else { return message };
    let hint = if key.ends_with("_bytes") && found.starts_with("string ") {
        "; write the number of bytes, such as 10485760"
    } else {
        ""
    };
    format!("{} is not {}{hint}", value(found), kind(expected))
}

/// Formats `NAME`, expected one of `A`, `B`.
fn unknown_name(rest: &str) -> Option<String> {
    let (name, expected) = rest.split_once("`, expected ")?;
    let expected = expected.strip_prefix("one of ").unwrap_or(expected).replace('`', "");
    Some(format!("{name:?} is not valid; use {expected}"))
}

/// Returns a value as the file has it.
fn value(found: &str) -> String {
    match found {
        "map" => "a table".to_owned(),
        "sequence" => "a list".to_owned(),
        _ => match found.split_once('`') {
            Some((_, quoted)) => quoted.trim_end_matches('`').to_owned(),
            None => found.strip_prefix("string ").unwrap_or(found).to_owned(),
        },
    }
}

fn kind(expected: &str) -> &str {
    match expected {
        "a nonzero u32" | "a nonzero u64" => "a whole number from 1",
        "u32" | "u64" | "usize" => "a whole number",
        "f64" => "a number",
        "a boolean" => "true or false",
        "a string" | "path string" => "a text",
        "a sequence" => "a list",
        _ if expected.starts_with("struct ") => "a table",
        _ => expected,
    }
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn a_problem_names_the_value_and_what_is_needed() {
        for (message, expected) in [
            ("invalid type: string \"many\", expected a nonzero u32", "\"many\" is not a whole number from 1"),
            ("invalid type: integer `30`, expected a boolean", "30 is not true or false"),
            ("invalid type: map, expected a sequence", "a table is not a list"),
            ("unknown variant `x`, expected `a` or `b`", "\"x\" is not valid; use a or b"),
            ("unknown variant `x`, expected one of `a`, `b`", "\"x\" is not valid; use a, b"),
            ("another text", "another text"),
        ] {
            assert_eq!(plain("key", message), expected);
        }
        let size = plain("limits.body_bytes", "invalid type: string \"10M\", expected a nonzero u32");
        assert_eq!(size, "\"10M\" is not a whole number from 1; write the number of bytes, such as 10485760");
    }
}
