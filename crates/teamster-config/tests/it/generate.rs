//! Documents as people write them, and worse.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use teamster_config::document::Entries;

/// Names of entries, of which the user has some too.
pub(crate) fn entries() -> impl Strategy<Value = Entries> {
    let name = select(vec!["user", "ours", "a.b", "with space", "\"quoted\"", "ü", "x-y_z"]);
    let text = select(vec!["", "plain", "a\nb", "a\r\nb\t\"c\" \\ \u{7f}", "ünï ☃ '''", "\u{1}"]);
    let leaf = prop_oneof![
        text.prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        select(vec![0.5, 1.0, 1e300, -0.0]).prop_map(Value::from),
    ];
    let value = leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((select(vec!["command", "env", "odd key"]), inner), 0..3)
                .prop_map(|fields| fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    });
    vec((name, value), 1..4).prop_map(|entries| {
        let object = |value: Value| if value.is_object() { value } else { json!({ "value": value }) };
        entries.into_iter().map(|(name, value)| (name.to_owned(), object(value))).collect()
    })
}

/// Text in TOML, most of it valid.
pub(crate) fn toml() -> impl Strategy<Value = String> {
    let piece = select(vec![
        "",
        "# a comment",
        "key = 1",
        "other = \"x\" # behind",
        "list = [\n  1, # one\n  2,\n]",
        "text = \"\"\"\na\n  b\\\n  c\n\"\"\"",
        "date = 2026-11-22T10:00:00Z",
        "float = 1.50",
        "dotted.key = 'y'",
        "  \t",
        "mcp_servers = { user = { command = \"u\" } }",
        "mcp_servers = {}",
        "mcp_servers.user.command = \"u\"",
        "mcp_servers.\"a.b\" = { command = 'c' }",
        "[mcp_servers]",
        "[mcp_servers.user]\ncommand = \"u\"\nargs = [\"x\"]",
        "[mcp_servers.user.env]\nA = \"b\"",
        "[ mcp_servers . ours ] # mine\ncommand = 'o'",
        "user = { command = \"inline\" }",
        "[table]",
        "[table.inner]\nz = {a=1,b=[{c=2}]}",
        "[[array]]\nn = 1",
        "[[array]]",
        "[profiles.x]\nmodel = 'm'",
    ]);
    (any::<bool>(), vec((piece, select(vec!["\n", "\n", "\r\n", "\n\n"])), 0..12), 0..3_u8).prop_map(
        |(bom, pieces, ends)| {
            let mut text = String::new();
            for (piece, end) in pieces {
                text.push_str(piece);
                text.push_str(end);
            }
            finish(bom, text, ends)
        },
    )
}

/// Text in JSON with comments, most of it valid.
pub(crate) fn jsonc() -> impl Strategy<Value = String> {
    let blank =
        || select(vec!["", "", " ", "\n", "\n  ", "\n\t", "\n\n", " // c\n", "/* b */", " /* a\n b */ ", "\r\n"]);
    let leaf = select(vec!["1", "-1.50e3", "true", "null", "\"x\"", "\"\\u00e9 {\\\"\"", "[]", "{}"]);
    let value = leaf.prop_map(str::to_owned).prop_recursive(4, 24, 5, move |inner| {
        let name = select(vec!["user", "ours", "mcpServers", "a.b", "theme", "z"]);
        let prop = (name, inner.clone(), blank(), blank(), blank(), blank());
        let props = vec(prop, 0..5).prop_map(|props| {
            let mut seen = std::collections::BTreeSet::new();
            props.into_iter().filter(|prop| seen.insert(prop.0)).collect::<Vec<_>>()
        });
        prop_oneof![
            (vec(inner, 0..4), blank(), any::<bool>())
                .prop_map(|(values, blank, trailing)| list('[', ']', &values, blank, trailing)),
            (props, blank(), any::<bool>()).prop_map(|(props, blank, trailing)| {
                let props =
                    props.into_iter().map(|(name, value, a, b, c, d)| format!("{a}\"{name}\"{b}:{c}{value}{d}"));
                list('{', '}', &props.collect::<Vec<_>>(), blank, trailing)
            }),
        ]
    });
    let root = vec((select(vec!["theme", "mcpServers", "x", "y"]), value, blank(), blank(), blank(), blank()), 0..4);
    let document = (root, blank(), any::<bool>()).prop_map(|(props, blank, trailing)| {
        let mut seen = std::collections::BTreeSet::new();
        let props = props.into_iter().filter(|prop| seen.insert(prop.0));
        let props = props.map(|(name, value, a, b, c, d)| format!("{a}\"{name}\"{b}:{c}{value}{d}"));
        list('{', '}', &props.collect::<Vec<_>>(), blank, trailing)
    });
    let document = prop_oneof![8 => document, 1 => Just(String::new())];
    (any::<bool>(), blank(), document, blank(), 0..3_u8)
        .prop_map(|(bom, before, text, behind, ends)| finish(bom, format!("{before}{text}{behind}"), ends))
}

fn list(open: char, close: char, parts: &[String], blank: &str, trailing: bool) -> String {
    let comma = if trailing && !parts.is_empty() { "," } else { "" };
    format!("{open}{}{comma}{blank}{close}", parts.join(","))
}

fn finish(bom: bool, text: String, ends: u8) -> String {
    let text = match ends {
        0 => text,
        1 => text.trim_end_matches(['\r', '\n']).to_owned(),
        _ => text.replace("\r\n", "\n").replace('\n', "\r\n"),
    };
    if bom { format!("\u{feff}{text}") } else { text }
}
