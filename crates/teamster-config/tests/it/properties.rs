//! What holds for any document.

use proptest::prelude::*;
use teamster_config::document::{DocumentError, Entries, Format, Location, merge, take_out};

use crate::generate;

fn place(format: Format) -> Location {
    let key = match format {
        Format::Toml => "mcp_servers",
        _ => "mcpServers",
    };
    Location { format, at: vec![key.to_owned()] }
}

/// Whether a document is one that cannot take entries, as its author would see.
fn is_refusal(error: &DocumentError) -> bool {
    matches!(error, DocumentError::Syntax { .. } | DocumentError::NotATable { .. } | DocumentError::Duplicate { .. })
}

/// The user's lines, in order, among those of the merged document. (Of blanks inside of headers `toml_edit` keeps few.)
fn keeps_lines(base: &str, merged: &str) -> bool {
    let plain = |text: &str| text.trim_start_matches('\u{feff}').replace([' ', '\r'], "");
    let (base, merged) = (plain(base), plain(merged));
    let mut lines = merged.split('\n');
    base.trim_end_matches('\n').split('\n').all(|line| lines.any(|found| found == line))
}

fn holds(format: Format, base: &str, ours: &Entries, more: &Entries) -> Result<(), TestCaseError> {
    let place = place(format);
    let bytes = base.as_bytes();
    let merged = match merge(Some(bytes), &place, ours) {
        Ok(merged) => merged,
        Err(error) => {
            prop_assert!(is_refusal(&error), "{error:?}\n{base}");
            return Ok(());
        }
    };
    // (That it parses, holds the entries and keeps all else is checked before it is given out.)
    let shadows = ours.keys().any(|name| base.contains(name.as_str()) || base.contains("a.b"));
    let text = String::from_utf8(merged.clone()).unwrap();
    if !shadows && !base.contains("mcp_servers = {") && format == Format::Toml {
        prop_assert!(keeps_lines(base, &text), "{base}\n-----\n{text}");
    }

    let taken = take_out(&merged, Some(bytes), &place, std::slice::from_ref(ours)).unwrap();
    prop_assert_eq!(String::from_utf8(taken.bytes).unwrap(), base);
    prop_assert!(taken.changed.is_empty());

    // With what another run adds, it comes back too, whatever of the two sets is left to be known.
    let both: Entries = more.iter().chain(ours).map(|(name, value)| (name.clone(), value.clone())).collect();
    let merged = merge(Some(bytes), &place, &both).map_err(|error| TestCaseError::fail(format!("{error:?}")))?;
    let taken = take_out(&merged, Some(bytes), &place, &[both, ours.clone()]).unwrap();
    prop_assert_eq!(String::from_utf8(taken.bytes).unwrap(), base);
    Ok(())
}

/// The user adds a line at the top, one at the end, or changes every blank: what is taken out leaves that edit alone.
fn keeps_edits(format: Format, base: &str, ours: &Entries) -> Result<(), TestCaseError> {
    let place = place(format);
    let (note, tail) = match format {
        Format::Toml => ("# added\n", "\n# added below\n"),
        _ => ("// added\n", "\n// added below\n"),
    };
    let Ok(merged) = merge(Some(base.as_bytes()), &place, ours) else { return Ok(()) };
    let merged = String::from_utf8(merged).unwrap();
    let top = |text: &str| match text.strip_prefix('\u{feff}') {
        Some(text) => format!("\u{feff}{note}{text}"),
        None => format!("{note}{text}"),
    };
    for edit in [&top as &dyn Fn(&str) -> String, &|text: &str| format!("{text}{tail}")] {
        let taken =
            take_out(edit(&merged).as_bytes(), Some(base.as_bytes()), &place, std::slice::from_ref(ours)).unwrap();
        let taken = String::from_utf8(taken.bytes).unwrap();
        // The same, but for blanks, where the edit touches ours.
        let squeeze = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        if base.contains('\n') {
            let (found, wanted) = (squeeze(&taken), squeeze(&edit(base)));
            prop_assert!(found == wanted || is_like(&found, &wanted), "{}\n-----\n{}", taken, edit(base));
        }
    }
    Ok(())
}

/// What came back by structure may stand elsewhere, with other blanks; nothing is lost, and nothing is left of ours.
fn is_like(found: &str, wanted: &str) -> bool {
    let sorted = |text: &str| {
        let mut chars: Vec<_> = text.chars().filter(|char| !matches!(char, ' ' | ',')).collect();
        chars.sort_unstable();
        chars
    };
    sorted(found) == sorted(wanted)
}

#[test]
fn a_comment_above_an_entry_that_took_the_place_of_the_users_survives() {
    let value = serde_json::json!({"value": ""});
    let ours: Entries = ["a.b", "user"].map(|name| (name.to_owned(), value.clone())).into();
    for base in [
        "mcp_servers.\"a.b\" = { command = 'c' }\nkey = 1\nmcp_servers.user.command = \"u\"\n",
        "\n\n[mcp_servers.user.env]\nA = \"b\"\n\n",
        "# a comment\nmcp_servers.user.command = \"u\"\n# another\n[table.inner]\nz = 1\n",
    ] {
        keeps_edits(Format::Toml, base, &ours).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn a_toml_document_merged_and_restored_is_identical(
        base in generate::toml(), ours in generate::entries(), more in generate::entries(),
    ) {
        holds(Format::Toml, &base, &ours, &more)?;
    }

    #[test]
    fn a_json_document_merged_and_restored_is_identical(
        base in generate::jsonc(), ours in generate::entries(), more in generate::entries(),
    ) {
        holds(Format::Jsonc, &base, &ours, &more)?;
    }

    #[test]
    fn an_edit_of_a_toml_document_survives(base in generate::toml(), ours in generate::entries()) {
        keeps_edits(Format::Toml, &base, &ours)?;
    }

    #[test]
    fn an_edit_of_a_json_document_survives(base in generate::jsonc(), ours in generate::entries()) {
        keeps_edits(Format::Jsonc, &base, &ours)?;
    }

    #[test]
    fn no_text_makes_it_panic_or_lose_a_byte(text in "[\\[\\]{}a-b=\",:#/* \n\r.]{0,40}", ours in generate::entries()) {
        for format in [Format::Toml, Format::Jsonc] {
            let place = place(format);
            if let Ok(merged) = merge(Some(text.as_bytes()), &place, &ours) {
                let taken = take_out(&merged, Some(text.as_bytes()), &place, std::slice::from_ref(&ours)).unwrap();
                prop_assert_eq!(String::from_utf8(taken.bytes).unwrap(), text.clone());
            }
            _ = take_out(text.as_bytes(), Some(b""), &place, std::slice::from_ref(&ours));
        }
    }
}
