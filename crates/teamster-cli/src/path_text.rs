//! Paths in JSON.

use std::path::Path;

/// Returns a path as text for JSON. Invalid UTF-8 is replaced.
pub(crate) fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
