//! The tables `[projects."DIRECTORY".AGENT]` of the user's file: the rules that a person saved in a chat of this directory.
//!
//! They are in the user's file, because a project's file cannot give permissions: anyone who can write to the project can
//! write that file.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use teamster::agent::rules::ToolRules;
use teamster::request::Permissions;
use toml::Spanned;
use toml::de::DeValue;

use super::error::Invalid;
use super::toml_text::{self, format_list};
use super::write::LockedFile;

/// The table, and the key of its lists.
const TABLE: &str = "projects";
const KEY: &str = "allow_tool";

/// The saved rules, by directory and agent.
pub(crate) type SavedRules = BTreeMap<PathBuf, BTreeMap<String, Vec<String>>>;

/// Reads the table. Problems are added to those of the file.
pub(super) fn read(value: &Spanned<DeValue<'_>>, problems: &mut Vec<Invalid>) -> SavedRules {
    let mut saved = SavedRules::new();
    for (directory, value) in table(value, "[projects.\"DIRECTORY\".AGENT]", problems) {
        if !Path::new(directory.get_ref().as_ref()).is_absolute() {
            let problem = format!("{:?} is no absolute path of a directory", directory.get_ref());
            problems.push(Invalid { at: directory.span().start, problem });
        }
        let agents = saved.entry(PathBuf::from(directory.get_ref().as_ref())).or_default();
        for (agent, value) in table(value, "[projects.\"DIRECTORY\".AGENT]", problems) {
            let rules: &mut Vec<String> = agents.entry(agent.get_ref().as_ref().to_owned()).or_default();
            for (key, value) in table(value, "[projects.\"DIRECTORY\".AGENT]", problems) {
                let at = key.span().start;
                match (key.get_ref().as_ref(), value.get_ref()) {
                    (KEY, DeValue::Array(items)) => {
                        for item in items {
                            match rule(item.get_ref()) {
                                Ok(rule) => rules.push(rule),
                                Err(problem) => problems.push(Invalid { at: item.span().start, problem }),
                            }
                        }
                    }
                    (KEY, _) => problems.push(Invalid { at, problem: format!("{KEY}: a list is needed") }),
                    (other, _) => {
                        problems.push(Invalid { at, problem: format!("unknown key {other:?}: only {KEY} is allowed") });
                    }
                }
            }
        }
    }
    saved
}

fn table<'v, 'i>(
    value: &'v Spanned<DeValue<'i>>,
    form: &str,
    problems: &mut Vec<Invalid>,
) -> Vec<(&'v Spanned<std::borrow::Cow<'i, str>>, &'v Spanned<DeValue<'i>>)> {
    if let DeValue::Table(table) = value.get_ref() {
        return table.iter().collect();
    }
    problems.push(Invalid { at: value.span().start, problem: format!("a table is needed, as in {form}") });
    Vec::new()
}

fn rule(value: &DeValue<'_>) -> Result<String, String> {
    let DeValue::String(text) = value else { return Err("a rule in quotes is needed".to_owned()) };
    let permissions = Permissions::default().with_allow([text.as_ref()]);
    ToolRules::read(&permissions, None).map(|_| text.as_ref().to_owned()).map_err(|error| error.to_string())
}

/// Adds rules of an agent for a directory to the file.
///
/// # Errors
/// The file cannot be changed. Then it is as before.
pub(crate) fn save(file: &Path, directory: &Path, agent: &str, rules: &[String]) -> io::Result<()> {
    change(file, directory, agent, |known| {
        let new: Vec<String> = rules.iter().filter(|rule| !known.contains(rule)).cloned().collect();
        known.extend(new);
    })
}

/// Removes a rule of an agent for a directory from the file.
///
/// # Errors
/// The file cannot be changed. Then it is as before.
pub(crate) fn remove(file: &Path, directory: &Path, agent: &str, rule: &str) -> io::Result<()> {
    change(file, directory, agent, |known| known.retain(|known| known != rule))
}

fn change(file: &Path, directory: &Path, agent: &str, edit: impl FnOnce(&mut Vec<String>)) -> io::Result<()> {
    let invalid = |problem: String| io::Error::new(io::ErrorKind::InvalidData, problem);
    let directory = directory.to_str().ok_or_else(|| invalid("the path of the directory is not UTF-8".to_owned()))?;
    let path = [TABLE, directory, agent, KEY].map(str::to_owned);
    let locked = LockedFile::open(file)?;
    let text = locked.text()?;
    let known = toml_text::list_at(text, &path).unwrap_or_default();
    let mut rules = known.clone();
    edit(&mut rules);
    if rules == known {
        return Ok(());
    }
    let new = if rules.is_empty() {
        toml_text::without(text, &path).map(|new| new.unwrap_or_else(|| text.to_owned()))
    } else {
        toml_text::with_value(text, &path, &format_list(&rules)).map(|(new, _)| new)
    };
    let new = new.map_err(|error| invalid(error.to_string()))?;
    locked.replace(&new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ConfigFile, Owner, parse};
    use crate::plan::tests::TestInputs;

    fn read_text(text: &str) -> ConfigFile {
        parse(Path::new("c"), text.as_bytes(), Owner::User, Some(&[]), &TestInputs::default())
    }

    #[test]
    fn saved_rules_are_added_read_and_removed() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("new/config.toml");
        let directory = Path::new("/home/me/my app");
        let rules = ["Bash(npm install:*)", "Bash(tail:*)"].map(str::to_owned);
        save(&file, directory, "claude", &rules).unwrap();
        save(&file, directory, "claude", &rules).unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        insta::assert_snapshot!(text, @r#"
        [projects."/home/me/my app".claude]
        allow_tool = [
          "Bash(npm install:*)",
          "Bash(tail:*)",
        ]
        "#);
        let saved = read_text(&text);
        assert!(saved.problems.is_empty(), "{:?}", saved.problems);
        assert_eq!(saved.projects[directory]["claude"], rules);
        remove(&file, directory, "claude", "Bash(tail:*)").unwrap();
        remove(&file, directory, "codex", "Bash(tail:*)").unwrap();
        let saved = read_text(&std::fs::read_to_string(&file).unwrap());
        assert_eq!(saved.projects[directory]["claude"], ["Bash(npm install:*)"]);
        remove(&file, directory, "claude", "Bash(npm install:*)").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "[projects.\"/home/me/my app\".claude]\n");
    }

    #[test]
    fn a_wrong_entry_is_a_problem_with_its_line() {
        let text = "[projects]\nx = 1\n[projects.'a'.claude]\nallow_tool = ['Bash(', 1]\ndeny = 2\n[projects.'/b'.c]\nallow_tool = 'x'";
        let problems: Vec<String> = read_text(text).problems.iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(problems.join("\n"), @r#"
        c:2: "x" is no absolute path of a directory
        c:2: a table is needed, as in [projects."DIRECTORY".AGENT]
        c:3: "a" is no absolute path of a directory
        c:4: "Bash(" is not a valid tool rule: the closing bracket is missing; use TOOL, TOOL(WORDS:*), TOOL(PATTERN) or mcp__SERVER__TOOL
        c:4: a rule in quotes is needed
        c:5: unknown key "deny": only allow_tool is allowed
        c:7: allow_tool: a list is needed
        "#);
    }
}
