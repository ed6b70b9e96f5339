//! Expands variables in documents, so that the documents need not contain secrets.
//!
//! `${NAME}`, `${env:NAME}` and `${NAME:-default}` are replaced, as Claude Code does in `.mcp.json`. `$${` is an escaped `${`. A
//! plain `$NAME` is not a variable, because passwords may contain dollar signs. The replacement is not expanded again.

/// Returns the value of a variable.
pub(super) type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Returns the text with expanded variables.
pub(super) fn expand(text: &str, variable: Lookup<'_>) -> Result<String, String> {
    let mut whole = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        if let Some(before) = before.strip_suffix('$') {
            whole.extend([before, "${"]);
            rest = after;
            continue;
        }
        let Some((inside, behind)) = after.split_once('}') else {
            return Err("holds \"${\" without \"}\": write \"$${\" for the text itself".to_owned());
        };
        whole.push_str(before);
        whole.push_str(&value(inside, variable)?);
        rest = behind;
    }
    whole.push_str(rest);
    Ok(whole)
}

fn value(inside: &str, variable: Lookup<'_>) -> Result<String, String> {
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    let name = name.strip_prefix("env:").unwrap_or(name);
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if name.is_empty() || !plain || name.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(format!("holds ${{{inside}}}, which names no variable: write \"$${{\" for the text itself"));
    }
    match variable(name).or_else(|| default.map(str::to_owned)) {
        Some(value) => Ok(value),
        None => Err(format!("needs the variable {name}, which is not set: set it, or write ${{{name}:-a default}}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> Result<String, String> {
        expand(text, &|name| match name {
            "A" => Some("${B}".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        })
    }

    #[test]
    fn variables_are_filled_in_once_and_dollars_stay() {
        for (text, filled) in [
            ("x${A}y", "x${B}y"),
            ("${env:A}", "${B}"),
            ("${C:-d:-e}", "d:-e"),
            ("${EMPTY:-d}", ""),
            ("$A $$ $1 {A} $", "$A $$ $1 {A} $"),
            ("$${A} $${C", "${A} ${C"),
        ] {
            assert_eq!(expanded(text).as_deref(), Ok(filled), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_filled_in_is_refused() {
        for text in ["${C}", "${", "${}", "${A", "${input:key}", "${A B}", "${1}", "${workspaceFolder}"] {
            assert!(expanded(text).is_err(), "{text}");
        }
    }
}
