//! Names of servers, as a CLI and its model can take them, and back.
//!
//! A CLI makes one name out of a server's and a tool's, in an alphabet of its own, and some drop a server without a word whose
//! name they cannot take. So each server goes under a name that survives this, and out of which the tool's name can be told;
//! callers see the names they gave. Invariant: of any set of servers, each has a name of its own, or the set is refused.

use std::collections::BTreeMap;

use crate::bounded::Ids;
use teamster_types::request::{McpServer, RequestError};

/// How a CLI names servers and their tools.
#[derive(Debug)]
pub(in crate::agent) struct Style {
    /// The agent, for what it is told.
    pub(in crate::agent) agent: &'static str,
    /// What stands before the server's name in a tool's.
    pub(in crate::agent) prefix: &'static str,
    /// What stands between the two. A server's name never holds it, nor ends with a piece of it.
    pub(in crate::agent) separator: &'static str,
    /// What stands behind the server's name in a rule for all of its tools.
    pub(in crate::agent) all: &'static str,
    /// What stands for any character that cannot stand for itself.
    pub(in crate::agent) filler: char,
    /// Characters of a server's name: models take tools of about 64.
    pub(in crate::agent) longest: usize,
    /// Names that the CLI keeps for itself.
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

    /// A tool's name as the CLI writes it.
    fn tool(tool: &str) -> String {
        tool.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' }).collect()
    }
}

/// The digits of a character's number.
fn hex(c: char) -> impl Iterator<Item = char> {
    let number = u32::from(c);
    let digits = (number.max(1).ilog2() / 4 + 1).min(8);
    (0..digits).rev().filter_map(move |place| char::from_digit(number >> (4 * place) & 0xf, 16))
}

/// How many of the user's own servers are known.
const MAX_OTHERS: usize = 1000;

/// The servers of a run, by both their names.
#[derive(Debug)]
pub(in crate::agent) struct Names {
    style: &'static Style,
    /// Given and wire names, in the order of the former.
    pairs: Vec<(String, String)>,
    /// The user's own servers, as far as the CLI has told.
    others: Ids,
}

/// What a rule for tools names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::agent) struct Named<'a> {
    /// The server's given name.
    pub(in crate::agent) server: &'a str,
    /// The tool; all of them if left out.
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
                let message = format!("{agent} would call both {other:?} and {name:?} {wire:?}: rename one of them");
                return Err(RequestError::McpConfig { message });
            }
            pairs.push((name.clone(), wire));
        }
        Ok(Self { style, pairs, others: Ids::of(MAX_OTHERS) })
    }

    /// How the CLI calls a server of the run.
    pub(in crate::agent) fn wire<'a>(&'a self, name: &'a str) -> &'a str {
        self.pairs.iter().find(|(given, _)| given == name).map_or(name, |(_, wire)| wire)
    }

    /// How the caller calls a server. Those that are not of the run keep their names.
    pub(in crate::agent) fn given<'a>(&'a self, wire: &'a str) -> &'a str {
        self.pairs.iter().find(|(_, known)| known == wire).map_or(wire, |(given, _)| given)
    }

    /// Learns of a server that the CLI has, beside those of the run.
    pub(in crate::agent) fn learn(&mut self, wire: &str) {
        if !self.pairs.iter().any(|(_, known)| known == wire) {
            self.others.add(wire.to_owned());
        }
    }

    /// The server's given name, and the tool's, of a tool of a server that is known. The longest name wins.
    pub(in crate::agent) fn split<'t>(&self, tool: &'t str) -> Option<(String, &'t str)> {
        let rest = tool.strip_prefix(self.style.prefix)?;
        let of = |wire: &str| rest.strip_prefix(wire)?.strip_prefix(self.style.separator);
        let ours = self.pairs.iter().filter_map(|(given, wire)| Some((wire.len(), given, of(wire)?)));
        let others = self.others.iter().filter_map(|(name, ())| Some((name.len(), name, of(&Style::tool(name))?)));
        let longest = ours.chain(others).max_by_key(|(length, _, _)| *length);
        longest.map(|(_, name, tool)| (name.clone(), tool))
    }

    /// The same of any server's tool: where the server is not known, its name ends at the first separator.
    pub(in crate::agent) fn guess<'t>(&self, tool: &'t str) -> Option<(String, &'t str)> {
        self.split(tool).or_else(|| {
            let (server, tool) = tool.strip_prefix(self.style.prefix)?.split_once(self.style.separator)?;
            Some((server.to_owned(), tool))
        })
    }

    /// A tool as a rule names it on every agent, if it is of a server of the run; else as the CLI calls it.
    pub(in crate::agent) fn rule(&self, tool: &str) -> String {
        match self.split(tool) {
            Some((server, tool)) => format!("mcp__{server}__{tool}"),
            None => tool.to_owned(),
        }
    }

    /// The CLI's rule for all tools of a server of the run.
    pub(in crate::agent) fn all_tools(&self, server: &str) -> String {
        let Style { prefix, all, .. } = self.style;
        format!("{prefix}{}{all}", self.wire(server))
    }

    /// How the CLI calls a tool of a server of the run.
    pub(in crate::agent) fn tool(&self, server: &str, tool: &str) -> String {
        let Style { prefix, separator, .. } = self.style;
        format!("{prefix}{}{separator}{}", self.wire(server), Style::tool(tool))
    }

    /// A rule in the CLI's words, in which servers of the run go by the names that it knows; `None` for other rules.
    pub(in crate::agent) fn translated(&self, rule: &str) -> Option<String> {
        let Named { server, tool } = self.named(rule)?;
        Some(tool.map_or_else(|| self.all_tools(server), |tool| self.tool(server, tool)))
    }

    /// What a rule names, if that is a server of the run: `mcp__SERVER`, `mcp__SERVER__*` or `mcp__SERVER__TOOL` on every
    /// agent, and a tool as the agent itself calls it, the server by the caller's name or by the CLI's.
    pub(in crate::agent) fn named<'a>(&'a self, rule: &'a str) -> Option<Named<'a>> {
        let Style { prefix, separator, .. } = *self.style;
        let everywhere = rule.strip_prefix("mcp__").map(|rest| (rest, "__"));
        let here = rule.strip_prefix(prefix).map(|rest| (rest, separator));
        let mut found: Option<(usize, Named<'a>)> = None;
        for (rest, separator) in everywhere.into_iter().chain(here) {
            for (server, wire) in &self.pairs {
                for name in [server, wire] {
                    let Some(behind) = rest.strip_prefix(name.as_str()) else { continue };
                    let tool = match behind.strip_prefix(separator) {
                        _ if behind.is_empty() && separator == "__" => None,
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
    fn a_name_that_a_cli_can_take_stays_and_any_other_is_made_one() {
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
    fn two_servers_with_one_name_are_refused_by_both_their_names() {
        let error = names(&UNDERSCORES, &["my.calc", "my_calc"]).unwrap_err();
        let text = r#"MCP configuration: one would call both "my.calc" and "my_calc" "my_calc": rename one of them"#;
        assert_eq!(error.to_string(), text);
    }

    #[test]
    fn a_tools_name_tells_its_server() {
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
    fn a_rule_names_a_server_by_either_name_in_the_words_of_all_or_of_one() {
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
