//! The page docs/tour.md and its pictures: what a person sees in the first five minutes, on scripted agents.
//!
//! `cargo xtask tour` writes them.

mod page;
mod recorder;
mod scenes;
mod svg;

use std::path::Path;

use crate::workspace::Workspace;
use page::Page;

/// The largest picture, in bytes.
const MAX_PICTURE: usize = 60_000;

#[test]
fn the_tour_and_its_pictures_are_current() {
    let workspace = Workspace::new();
    let mut page = Page::new(&workspace);
    scenes::first_screens(&workspace, &mut page);
    let run = scenes::first_run(&workspace, &mut page);
    scenes::piped(&workspace, &mut page);
    scenes::denied(&workspace, &mut page);
    let chat = scenes::conversation(&workspace, &mut page);
    scenes::resumed(&workspace, &mut page);
    scenes::profile(&workspace, &mut page);
    assert!(run.len().max(chat.len()) < MAX_PICTURE, "{} {}", run.len(), chat.len());
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    for (name, text) in [("tour.md", page.text()), ("run.svg", run), ("chat.svg", chat)] {
        let file = docs.join(name);
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(&file, &text).unwrap();
        }
        let current = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(current == text, "docs/{name} is not current: run cargo xtask tour\n{text}");
    }
}
