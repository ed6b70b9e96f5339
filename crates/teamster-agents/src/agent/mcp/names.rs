//! Translates the names of MCP servers and their tools between the caller and the CLI.
//!
//! A CLI combines the names of a server and a tool into one name, with a limited set of characters. Some CLIs silently drop a
//! server whose name contains others. Therefore each server has a *wire name*: a name that the CLI does not change, and that
//! can be split from the tool's name again. Callers see the *given names*, which they chose.
//!
//! Invariant: all servers of a set have different wire names, or the set is rejected.

use std::collections::BTreeMap;

use crate::bounded::Ids;
use teamster_types::request::{McpServer, RequestError};

/// How a CLI names servers and their tools.
#[derive(Debug)]
pub(in crate::agent) struct Style {
    /// The agent, for error messages.
    pub(in crate::agent) agent: &'static str,
    /// The prefix of a tool's name, before the server's name.
    pub(in crate::agent) prefix: &'static str,
    /// The separator of server and tool. A wire name neither contains it nor ends with a part of it.
    pub(in crate::agent) separator: &'static str,
    /// The suffix, after the server's name, of a rule for all of its tools.
    pub(in crate::agent) all: &'static str,
    /// The replacement of any character that is not allowed.
    pub(in crate::agent) filler: char,
    /// The maximum characters of a wire name. Models accept about 64 for the whole name of a tool.
    pub(in crate::agent) longest: usize,
    /// Names that the CLI reserves.
    pub(in crate::agent) reserved: &'static [&'static str],
}

impl Style {
    fn wire(&self, name: &str) -> String {
        let mut wire = String::new();
        for c in name.chars() {
            match c {
                'a'..='z' | 'A'..='Z' | '0'..='9' | '-' => wire.push(c),
                _ if !c.is_ascii() && c.is_alphanumeric() => wire.extend(['u'].into_iter().chain(hex(c))),
                _ if self.filler == '_' && wire.ends_with('_') => {}
                _ => wire.push(self.filler),
            }
        }
        let mut wire: String = wire.trim_matches(self.filler).chars().take(self.longest).collect();
        wire.truncate(wire.trim_end_matches(self.filler).len());
        if wire.is_empty() {
            wire.push_str("server");
        }
        if self.reserved.contains(&wire.to_ascii_lowercase().as_str()) {
            wire.push_str("-mcp");
        }
        wire
    }

    /// Returns the name of a tool as the CLI writes it.
    fn tool(tool: &str) -> String {
        tool.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' }).collect()
    }
}

/// Returns the hexadecimal digits of a character's code point.
fn hex(c: char) -> impl Iterator<Item = char> {
    let number = u32::from(c);
    let digits = (number.max(1).ilog2() / 4 + 1).min(8);
    (0..digits).rev().filter_map(move |place| char::from_digit(number >> (4 * place) & 0xf, 16))
}

/// The maximum number of the user's own servers that are remembered.
const MAX_OTHERS: usize = 1000;

/// The servers of a run, with given and wire names.
#[derive(Debug)]
pub(in crate::agent) struct Names {
    style: &'static Style,
    /// Given and wire names, in the order of the given names.
    pairs: Vec<(String, String)>,
    /// The user's own servers that the CLI reported.
    others: Ids,
}

/// The server and tool that a rule names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::agent) struct Named<'a> {
    /// The given name of the server.
    pub(in crate::agent) server: &'a str,
    /// The tool; `None` for all tools.
    pub(in crate::agent) tool: Option<&'a str>,
}

impl Names {
    pub(in crate::agent) fn new(
        style: &'static Style,
        servers: &BTreeMap<String, McpServer>,
    ) -> Result<Self, RequestError> {
        let mut taken: BTreeMap<String, &str> = BTreeMap::new();
        let mut pairs = Vec::new();
        for name in servers.keys() {
            let wire = style.wire(name);
            if let Some(other) = taken.insert(wire.clone(), name) {
                let agent = style.agent;
                let message =
                    format!("{agent} uses the name {wire:?} for both {other:?} and {name:?}: rename one of them");
                return Err(RequestError::McpConfig { message });
            }
            pairs.push((name.clone(), wire));
        }
        Ok(Self { style, pairs, others: Ids::of(MAX_OTHERS) })
    }

    /// Returns the wire name of a server of the run.
    pub(in crate::agent) fn wire<'a>(&'a self, name: &'a str) -> &'a str {
        self.pairs.iter().find(|(given, _)| given == name).map_or(name, |(_, wire)| wire)
    }

    /// Returns the given name of a server. A server that is not of the run keeps its name.
    pub(in crate::agent) fn given<'a>(&'a self, wire: &'a str) -> &'a str {
        self.pairs.iter().find(|(_, known)| known == wire).map_or(wire, |(given, _)| given)
    }

    /// Adds a server that the CLI reported. Servers of the run are ignored.
    pub(in crate::agent) fn learn(&mut self, wire: &str) {
        if !self.pairs.iter().any(|(_, known)| known == wire) {
            self.others.add(wire.to_owned());
        }
    }

    /// Splits the name of a tool into the given name of a known server and the tool. The longest matching name wins.
    pub(in crate::agent) fn split<'t>(&self, tool: &'t str) -> Option<(String, &'t str)> {
        let rest = tool.strip_prefix(self.style.prefix)?;
        let of = |wire: &str| rest.strip_prefix(wire)?.strip_prefix(self.style.separator);
        let ours = self.pairs.iter().filter_map(|(given, wire)| Some((wire.len(), given, of(wire)?)));
        let others = self.others.iter().filter_map(|(name, ())| Some((name.len(), name, of(&Style::tool(name))?)));
        let longest = ours.chain(others).max_by_key(|(length, _, _)| *length);
        longest.map(|(_, name, tool)| (name.clone(), tool))
    }

    /// Splits the name of a tool of any server. The name of an unknown server ends at the first separator.
    pub(in crate::agent) fn guess<'t>(&self, tool: &'t str) -> Option<(String, &'t str)> {
        self.split(tool).or_else(|| {
            let (server, tool) = tool.strip_prefix(self.style.prefix)?.split_once(self.style.separator)?;
            Some((server.to_owned(), tool))
        })
    }

    /// Returns the name of a tool in rules: `mcp__SERVER__TOOL` for a known server, otherwise the name that the CLI uses.
    pub(in crate::agent) fn rule(&self, tool: &str) -> String {
        match self.split(tool) {
            Some((server, tool)) => format!("mcp__{server}__{tool}"),
            None => tool.to_owned(),
        }
    }

    /// Returns the CLI's rule for all tools of a server of the run.
    pub(in crate::agent) fn all_tools(&self, server: &str) -> String {
        let Style { prefix, all, .. } = self.style;
        format!("{prefix}{}{all}", self.wire(server))
    }

    /// Returns the CLI's name of a tool of a server of the run.
    pub(in crate::agent) fn tool(&self, server: &str, tool: &str) -> String {
        let Style { prefix, separator, .. } = self.style;
        format!("{prefix}{}{separator}{}", self.wire(server), Style::tool(tool))
    }

    /// Translates a rule for a server of the run to the CLI's syntax; `None` for other rules.
    pub(in crate::agent) fn translated(&self, rule: &str) -> Option<String> {
        let Named { server, tool } = self.named(rule)?;
        Some(tool.map_or_else(|| self.all_tools(server), |tool| self.tool(server, tool)))
    }

    /// Returns what a rule names, if that is a server of the run. Every agent accepts `mcp__SERVER`, `mcp__SERVER__*` and
    /// `mcp__SERVER__TOOL`, and the agent's own name of a tool. The server may have its given name or its wire name.
    pub(in crate::agent) fn named<'a>(&'a self, rule: &'a str) -> Option<Named<'a>> {
        let Style { prefix, separator, .. } = *self.style;
        let everywhere = rule.strip_prefix("mcp__").map(|rest| (rest, "__"));
        let here = rule.strip_prefix(prefix).map(|rest| (rest, separator));
        let mut found: Option<(usize, Named<'a>)> = None;
        for (rest, separator) in everywhere.into_iter().chain(here) {
            for (server, wire) in &self.pairs {
                for name in [server, wire] {
                    let Some(after) = rest.strip_prefix(name.as_str()) else { continue };
                    let tool = match after.strip_prefix(separator) {
                        _ if after.is_empty() && separator == "__" => None,
                        Some("*") => None,
                        Some(tool) if !tool.is_empty() => Some(tool),
                        _ => continue,
                    };
                    if found.is_none_or(|(length, _)| name.len() > length) {
                        found = Some((name.len(), Named { server, tool }));
                    }
                }
            }
        }
        found.map(|(_, named)| named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static UNDERSCORES: Style =
        Style { agent: "one", prefix: "mcp__", separator: "__", all: "", filler: '_', longest: 20, reserved: &["own"] };
    static DASHES: Style =
        Style { agent: "two", prefix: "mcp_", separator: "_", all: "_*", filler: '-', longest: 20, reserved: &[] };

    fn names(style: &'static Style, servers: &[&str]) -> Result<Names, RequestError> {
        let servers = servers.iter().map(|&name| (name.to_owned(), McpServer::stdio("x"))).collect();
        Names::new(style, &servers)
    }

    #[test]
    fn a_name_that_the_cli_accepts_is_unchanged_and_any_other_is_replaced() {
        for (name, underscores, dashes) in [
            ("calc", "calc", "calc"),
            ("my-calc", "my-calc", "my-calc"),
            ("my_calc", "my_calc", "my-calc"),
            ("io.github.me/calc", "io_github_me_calc", "io-github-me-calc"),
            ("a__b_", "a_b", "a--b"),
            ("漢 ü", "u6f22_ufc", "u6f22-ufc"),
            ("Own", "Own-mcp", "Own"),
            ("...", "server", "server"),
            ("a very long name, indeed", "a_very_long_name_ind", "a-very-long-name--in"),
        ] {
            assert_eq!((UNDERSCORES.wire(name), DASHES.wire(name)), (underscores.into(), dashes.into()), "{name}");
        }
    }

    #[test]
    fn two_servers_with_the_same_wire_name_are_rejected_and_the_error_names_both() {
        let error = names(&UNDERSCORES, &["my.calc", "my_calc"]).unwrap_err();
        let text =
            r#"MCP configuration: one uses the name "my_calc" for both "my.calc" and "my_calc": rename one of them"#;
        assert_eq!(error.to_string(), text);
    }

    #[test]
    fn the_name_of_a_tool_is_split_into_server_and_tool() {
        let mut names = names(&UNDERSCORES, &["a", "my.dots"]).unwrap();
        assert_eq!(names.split("mcp__my_dots__add"), Some(("my.dots".into(), "add")));
        assert_eq!(names.split("mcp__a___add"), Some(("a".into(), "_add")));
        assert_eq!(names.split("mcp__other__add"), None);
        assert_eq!(names.guess("mcp__other__add"), Some(("other".into(), "add")));
        assert_eq!(names.guess("Bash"), None);
        names.learn("a__b c");
        assert_eq!(names.split("mcp__a__b_c__d"), Some(("a__b c".into(), "d")));
    }

    #[test]
    fn a_rule_may_use_either_name_of_a_server_and_either_syntax() {
        let names = names(&DASHES, &["my_calc", "a"]).unwrap();
        let calc = |tool| Some(Named { server: "my_calc", tool });
        for (rule, named) in [
            ("mcp__my_calc", calc(None)),
            ("mcp__my-calc__*", calc(None)),
            ("mcp__my_calc__add", calc(Some("add"))),
            ("mcp_my_calc_*", calc(None)),
            ("mcp_my-calc_add", calc(Some("add"))),
            ("mcp_a_b_c", Some(Named { server: "a", tool: Some("b_c") })),
            ("mcp_a", None),
            ("mcp__my_calc__", None),
            ("mcp__other__add", None),
            ("run_shell_command", None),
        ] {
            assert_eq!(names.named(rule), named, "{rule}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_set_of_names_maps_one_to_one_and_back(
            given in proptest::collection::btree_set("[a-c_.\\- /ü漢]{1,6}|\\PC{1,30}", 1..6),
            tool in "[a-z_\\-]{1,8}",
        ) {
            for style in [&UNDERSCORES, &DASHES] {
                let servers: Vec<&str> = given.iter().map(String::as_str).collect();
                let Ok(names) = names(style, &servers) else { continue };
                let wires: std::collections::BTreeSet<_> = given.iter().map(|name| names.wire(name)).collect();
                proptest::prop_assert_eq!(wires.len(), given.len());
                for name in &given {
                    let wire = names.wire(name);
                    proptest::prop_assert!(wire.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)));
                    proptest::prop_assert!(!wire.is_empty() && wire.len() <= style.longest + 4);
                    proptest::prop_assert_eq!(names.given(wire), name);
                    let whole = names.tool(name, &tool);
                    proptest::prop_assert_eq!(names.split(&whole), Some((name.clone(), tool.as_str())));
                }
            }
        }
    }
}
