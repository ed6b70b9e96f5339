//! Compares the public items of `teamster` and `teamster-types` with `docs/public-api.txt`, so that a review shows each
//! change of the API.
//!
//! The list comes from the sources, because the stable toolchain has no rustdoc JSON. It shows names, signatures, fields,
//! variants, derives and implementations of traits. Update it with
//! `UPDATE_DOCS=1 cargo test -p teamster --test public_api`.

#![expect(clippy::panic, reason = "the lints take helpers of tests for library code")]

mod crates;
mod items;
mod listing;

use std::path::Path;

use crates::Crates;
use listing::Listing;

const HEADER: &str = "\
# The public API, one item a line. A test checks this file: see crates/teamster/tests/public_api.
# Update it: UPDATE_DOCS=1 cargo test -p teamster --test public_api
";

#[test]
fn the_listed_public_api_is_current() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let crates =
        Crates::read(&root, &["teamster", "teamster-types", "teamster-agents", "teamster-config", "teamster-process"]);
    let mut listing = Listing::new(&crates);
    let current = format!("{HEADER}\n{}\n{}", listing.of_crate("teamster"), listing.of_crate("teamster_types"));
    let path = root.join("docs/public-api.txt");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &current).expect("the list can be written");
    }
    let listed = std::fs::read_to_string(&path).unwrap_or_default();
    let added: Vec<_> = current.lines().filter(|line| !listed.lines().any(|other| other == *line)).collect();
    let removed: Vec<_> = listed.lines().filter(|line| !current.lines().any(|other| other == *line)).collect();
    assert!(
        current == listed,
        "docs/public-api.txt is out of date (UPDATE_DOCS=1); added: {added:#?}; removed: {removed:#?}"
    );
}

#[test]
fn the_root_of_the_crate_lists_the_main_types() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let listed = std::fs::read_to_string(root.join("docs/public-api.txt")).expect("the list exists");
    for name in ["Backend", "Control", "Registry", "Run", "RunRequest", "Runtime", "Session", "SessionOptions"] {
        let path = format!("teamster::{name}");
        let found = listed.lines().any(|line| line.split([' ', '<']).next() == Some(&path));
        assert!(found, "{path}");
    }
}
