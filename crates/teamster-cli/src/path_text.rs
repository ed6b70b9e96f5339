//! Paths as text.

use std::path::Path;

use crate::printable::{Printable, printable};

/// Returns a path for people: the home directory is `~`.
pub(crate) fn home_relative(path: &Path) -> Printable {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    match home.and_then(|home| path.strip_prefix(home).ok()) {
        Some(rest) if rest.as_os_str().is_empty() => "~".into(),
        Some(rest) => printable!("~/{}", rest),
        None => printable!("{}", path),
    }
}

/// Returns a path as text for JSON. Invalid UTF-8 is replaced.
pub(crate) fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
