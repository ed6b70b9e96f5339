//! A corpus of calls with their verdicts, checked as a whole.

use super::*;

const CORPUS: &str = include_str!("corpus.txt");

/// A file system with some symbolic links.
pub(super) struct Links;

impl PathResolver for Links {
    fn resolve(&self, path: &Path) -> Option<PathBuf> {
        let mut whole = PathBuf::new();
        for part in path.components() {
            match part {
                std::path::Component::CurDir => {}
                std::path::Component::ParentDir => _ = whole.pop(),
                other => whole.push(other),
            }
            whole = match whole.to_str()? {
                "/project/src/link" => "/etc".into(),
                "/project/alias" => "/project/secrets".into(),
                "/project/vault" => "/data/vault".into(),
                "/project/src/loop" => return None,
                _ => whole,
            };
        }
        Some(whole)
    }

    fn home(&self) -> Option<PathBuf> {
        Some("/home/me".into())
    }
}

/// Returns the tool and the input of a line.
fn call(rule: &str, text: &str) -> (String, Value) {
    let tool = rule.split('(').next().unwrap().to_owned();
    let field = match tool.as_str() {
        "Bash" => "command",
        "WebFetch" => "url",
        _ => "file_path",
    };
    if matches!(text, "[]" | "null") || text.starts_with("{\"") || text == "{}" {
        let mut input: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let tool = match input.as_object_mut().and_then(|fields| fields.remove("_tool")) {
            Some(tool) => tool.as_str().unwrap().to_owned(),
            None => tool,
        };
        return (tool, input);
    }
    let text = serde_json::from_str::<String>(text).unwrap_or_else(|_| text.to_owned());
    (tool, json!({ field: text }))
}

#[test]
fn every_call_of_the_corpus_has_its_verdict() {
    let (mut section, mut checked, mut wrong) = (None, 0, Vec::new());
    for (number, line) in CORPUS.lines().enumerate() {
        if line.starts_with('#') || line.is_empty() {
            continue;
        }
        if let Some((kind, list)) = line.strip_prefix('[').and_then(|line| line.split_once("] ")) {
            section = Some((kind, list.split(" & ").collect::<Vec<_>>()));
            continue;
        }
        let (kind, list) = section.as_ref().unwrap();
        let (wanted, text) = line.split_once(" | ").unwrap_or_else(|| panic!("line {}: no verdict", number + 1));
        let (tool, mut input) = call(list[0], text);
        let server = input.as_object_mut().and_then(|fields| fields.remove("_server"));
        let server = server.as_ref().and_then(Value::as_str);
        let call = ToolCall::new(&tool, &input).of_server(server);
        let verdict = match *kind {
            "allow" => rules(list, &[]).verdict(PermissionMode::Ask, &call, &Links),
            "deny" => rules(&["*"], list).verdict(PermissionMode::Full, &call, &Links),
            other => panic!("line {}: {other}", number + 1),
        };
        let found = match verdict {
            None => "none",
            Some(Verdict::Allow) => "allow",
            Some(Verdict::Ask { .. }) => "ask",
            Some(Verdict::Deny { .. }) => "deny",
            Some(Verdict::Unreadable) => "unreadable",
        };
        checked += 1;
        if found != wanted {
            wrong.push(format!("corpus.txt:{}: {found}, not {line}", number + 1));
        }
    }
    assert!(wrong.is_empty(), "{} of {checked}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(checked >= 300, "the corpus has only {checked} calls");
}
