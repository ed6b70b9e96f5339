//! Entries in documents that people write, and documents that are rejected.

use serde_json::json;
use teamster_config::document::{DocumentError, Entries, Format, Location, merge, take_out};

fn toml() -> Location {
    Location { format: Format::Toml, at: vec!["mcp_servers".to_owned()] }
}

fn jsonc() -> Location {
    Location { format: Format::Jsonc, at: vec!["mcpServers".to_owned()] }
}

fn one() -> Entries {
    [("ours".to_owned(), json!({"args": ["-x"], "command": "serve", "env": {"A": "b"}}))].into()
}

fn merged(base: &str, location: &Location, entries: &Entries) -> String {
    String::from_utf8(merge(Some(base.as_bytes()), location, entries).unwrap()).unwrap()
}

fn taken(current: &str, base: &str, location: &Location) -> String {
    let taken = take_out(current.as_bytes(), Some(base.as_bytes()), location, &[one()]).unwrap();
    assert_eq!(taken.changed, Vec::<String>::new());
    String::from_utf8(taken.bytes).unwrap()
}

const TOML: &str = "[mcp_servers.ours]\nargs = [\"-x\"]\ncommand = \"serve\"\nenv = { A = \"b\" }\n";

#[test]
fn a_toml_table_is_added_after_similar_tables() {
    let base = "model = \"m\" # mine\n\n[mcp_servers.user]\ncommand = \"u\"\n\n# the end\n[profiles]\nx = 1";
    let merged = merged(base, &toml(), &one());
    assert_eq!(merged.replace(&format!("\n{TOML}"), ""), base);
}

#[test]
fn an_empty_toml_document_gets_the_entries_alone() {
    assert_eq!(merged("", &toml(), &one()), TOML);
    assert_eq!(merge(None, &toml(), &one()).unwrap(), TOML.as_bytes());
}

#[test]
fn an_inline_table_stays_inline() {
    let base = "mcp_servers = { user = { command = \"u\" } } # mine\n";
    let got = merged(base, &toml(), &one());
    assert!(got.starts_with("mcp_servers = { user = { command = \"u\" }") && got.ends_with("} # mine\n"), "{got}");
    assert!(got.contains("ours = {"), "{got}");
}

#[test]
fn dotted_keys_stay_as_they_are() {
    let base = "mcp_servers.user.command = \"u\"\nmodel = \"m\"\n";
    let got = merged(base, &toml(), &one());
    assert!(got.contains("mcp_servers.user.command = \"u\"\n") && got.contains("model = \"m\"\n"), "{got}");
}

#[test]
fn line_ends_and_a_byte_order_mark_stay_and_new_lines_follow_most_others() {
    let base = "\u{feff}a = 1\r\nb = 2\n# c\r\n[d]\r\ne = \"\"\"\r\nx\n\"\"\"\r\n";
    let merged = merged(base, &toml(), &one());
    let (before, ours) = merged.split_once("\r\n[mcp_servers.ours]").unwrap();
    assert_eq!(before, base);
    assert_eq!(ours, TOML.strip_prefix("[mcp_servers.ours]").unwrap().replace('\n', "\r\n"));
}

#[test]
fn an_object_over_lines_gets_lines_and_one_on_a_line_gets_none() {
    let over_lines = "{\n\t// mine\n\t\"theme\": \"dark\" // note\n}\n";
    let expected = "{\n\t// mine\n\t\"theme\": \"dark\", // note\n\t\"mcpServers\": {\n\t\t\"ours\": {\n\t\t\t\"args\": [\n\t\t\t\t\"-x\"\n\t\t\t],\n\t\t\t\"command\": \"serve\",\n\t\t\t\"env\": {\n\t\t\t\t\"A\": \"b\"\n\t\t\t}\n\t\t}\n\t}\n}\n";
    assert_eq!(merged(over_lines, &jsonc(), &one()), expected);
    let on_one = "{\"theme\":\"dark\", \"mcpServers\": {\"user\": {\"command\": \"u\"},} }";
    let expected = "{\"theme\":\"dark\", \"mcpServers\": {\"user\": {\"command\": \"u\"}, \"ours\": OURS,} }";
    let ours = one()["ours"].to_string();
    assert_eq!(merged(on_one, &jsonc(), &one()), expected.replace("OURS", &ours));
}

#[test]
fn an_empty_json_document_becomes_an_object_after_its_comments() {
    for (base, before) in [("", ""), ("\n", "\n"), ("// note", "// note\n"), ("/* a */\r\n", "/* a */\r\n")] {
        let merged = merged(base, &jsonc(), &one());
        let rest = merged.strip_prefix(before).unwrap();
        let value: serde_json::Value = serde_json::from_str(rest).unwrap();
        assert_eq!(value, json!({"mcpServers": one()}), "{base:?}");
    }
}

#[test]
fn the_users_own_entry_is_replaced_and_restored_even_beside_an_edit() {
    let base = "{\n  \"mcpServers\": {\n    \"ours\": { /* mine */ \"command\": \"u\" },\n    \"b\": 1\n  }\n}\n";
    let merged = merged(base, &jsonc(), &one());
    assert!(!merged.contains("mine") && merged.contains("serve"), "{merged}");
    let edited = merged.replace("\"b\": 1", "\"b\": 2, \"c\": 3");
    assert_eq!(taken(&edited, base, &jsonc()), base.replace("\"b\": 1", "\"b\": 2, \"c\": 3"));

    let base = "[mcp_servers.a]\ncommand = \"a\"\n\n# mine\n[mcp_servers.ours] # too\ncommand = \"u\"\n[mcp_servers.ours.env]\nX = \"y\"\n\n[z]\nk = 1\n";
    let merged = self::merged(base, &toml(), &one());
    assert!(!merged.contains("\"u\"") && merged.contains("serve"), "{merged}");
    let edited = format!("{merged}l = 2\n");
    assert_eq!(taken(&edited, base, &toml()), format!("{base}l = 2\n"));
}

#[test]
fn an_edit_made_meanwhile_is_kept_exactly() {
    let base = "{\n  // mine\n  \"a\": 1\n}\n";
    let merged = merged(base, &jsonc(), &one());
    let edited = merged.replace("// mine", "// yours");
    assert_eq!(taken(&edited, base, &jsonc()), base.replace("// mine", "// yours"));
    // An edit directly beside the entry is kept too.
    let edited = merged.replace("\"a\": 1,", "\"a\": 2, \"b\": 3,");
    let taken_out: serde_json::Value =
        serde_json::from_str(&taken(&edited, base, &jsonc()).replace("// mine", "")).unwrap();
    assert_eq!(taken_out, json!({"a": 2, "b": 3}));
}

#[test]
fn an_entry_that_was_changed_meanwhile_is_kept_and_reported() {
    let merged = merged("{}", &jsonc(), &one());
    let edited = merged.replace("serve", "theirs");
    let taken = take_out(edited.as_bytes(), Some(b"{}"), &jsonc(), &[one()]).unwrap();
    assert_eq!((taken.bytes.as_slice(), taken.changed), (edited.as_bytes(), vec!["ours".to_owned()]));
}

#[test]
fn an_entry_that_was_removed_meanwhile_is_not_added_again() {
    let base = "{\"mcpServers\": {\"ours\": {\"command\": \"u\"}}}";
    let taken = taken("{\"mcpServers\": {}}", base, &jsonc());
    assert_eq!(taken, "{\"mcpServers\": {}}");
}

#[test]
fn a_document_that_cannot_contain_entries_is_rejected_with_the_location() {
    let not_a_table = |at: &str, found| DocumentError::NotATable { at: at.to_owned(), found };
    let cases = [
        (jsonc(), "{\"mcpServers\": null}", not_a_table("\"mcpServers\"", "null")),
        (jsonc(), "{\"mcpServers\": []}", not_a_table("\"mcpServers\"", "an array")),
        (jsonc(), "[1]", not_a_table("the document", "an array")),
        (jsonc(), "null", not_a_table("the document", "null")),
        (
            jsonc(),
            "{\"mcpServers\": {}, \"mcpServers\": {}}",
            DocumentError::Duplicate { key: "\"mcpServers\"".to_owned() },
        ),
        (
            jsonc(),
            "{\"mcpServers\": {\"a\": 1, \"a\": 2}}",
            DocumentError::Duplicate { key: "\"mcpServers.a\"".to_owned() },
        ),
        (toml(), "mcp_servers = 1", not_a_table("\"mcp_servers\"", "a single value")),
        (toml(), "[[mcp_servers]]\na = 1", not_a_table("\"mcp_servers\"", "an array of tables")),
    ];
    for (location, base, expected) in cases {
        assert_eq!(merge(Some(base.as_bytes()), &location, &one()), Err(expected), "{base}");
    }
    assert_eq!(merge(Some(b"\xff"), &toml(), &one()), Err(DocumentError::NotText));
    for (location, base) in
        [(jsonc(), "{\n\"a\" 1}"), (jsonc(), "{}\n{}"), (toml(), "a = 1\na = 2"), (toml(), "x = 1\n= 2")]
    {
        let error = merge(Some(base.as_bytes()), &location, &one()).unwrap_err();
        assert!(matches!(error, DocumentError::Syntax { line: 2, .. }), "{base}: {error:?}");
    }
}

#[test]
fn an_error_does_not_show_the_content_of_the_document() {
    for (location, base) in [(toml(), "key = \"s3cret\" x"), (jsonc(), "{\"key\": \"s3cret\" x}")] {
        let error = merge(Some(base.as_bytes()), &location, &one()).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("s3cret"), "{error:?}");
    }
}

#[test]
fn a_value_that_toml_does_not_have_is_refused() {
    for value in [json!({"a": null}), json!({"a": [u64::MAX]})] {
        let entries = [("x".to_owned(), value)].into();
        assert!(matches!(merge(None, &toml(), &entries), Err(DocumentError::Unrepresentable { .. })));
    }
}

#[test]
fn duplicates_elsewhere_are_nobodys_business() {
    let base = "{\"a\": 1, \"a\": 2}";
    assert_eq!(taken(&merged(base, &jsonc(), &one()), base, &jsonc()), base);
}
