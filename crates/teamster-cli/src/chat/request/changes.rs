//! The changes of files, as Codex 0.169.0 and agents that speak ACP report them.
//!
//! A field is formatted only if each of its members is known. Otherwise it is shown as JSON, so that nothing is hidden.

use std::path::Path;

use serde::Deserialize;

use super::fields::Fields;
use super::location::{self, Location};
use crate::printable::{Printable, folded, printable};
use crate::render::pretty::diff;

/// The files that a call changes.
pub(super) enum Changes {
    /// Codex: the files, and one text with the changes of all of them.
    Codex { files: Vec<CodexFile>, diff: Option<String> },
    /// ACP: the old and the new text of each file.
    Acp(Vec<AcpDiff>),
}

/// A member of `changes`: `{"path": ..., "kind": ...}`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CodexFile {
    path: String,
    kind: CodexKind,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum CodexKind {
    Name(Kind),
    Object(KindObject),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KindObject {
    r#type: Kind,
    #[serde(default)]
    move_path: Option<String>,
}

/// The kind of a change. Each agent uses some of these names.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Add,
    Delete,
    Update,
    Modify,
}

/// A block of type `diff` (ACP, protocol version 1), with what Gemini CLI 0.61.0 adds.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AcpDiff {
    #[serde(rename = "type")]
    _type: AcpType,
    path: String,
    #[serde(rename = "oldText", default)]
    old: Option<String>,
    #[serde(rename = "newText")]
    new: String,
    #[serde(rename = "_meta", default)]
    meta: Option<AcpMeta>,
}

#[derive(Deserialize)]
enum AcpType {
    #[serde(rename = "diff")]
    Diff,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AcpMeta {
    #[serde(default)]
    kind: Option<Kind>,
}

impl CodexKind {
    fn kind(&self) -> Kind {
        match self {
            Self::Name(kind) | Self::Object(KindObject { r#type: kind, .. }) => *kind,
        }
    }

    fn move_path(&self) -> Option<&str> {
        match self {
            Self::Object(object) => object.move_path.as_deref(),
            Self::Name(_) => None,
        }
    }
}

impl Changes {
    /// Removes the changes from the fields of a call; `None` if there are none, or if they have unknown members.
    pub(super) fn take(fields: &mut Fields) -> Option<Self> {
        if let Some(files) = fields.take_parsed::<Vec<CodexFile>>("changes", |files| !files.is_empty()) {
            return Some(Self::Codex { files, diff: fields.take_text(&["diff"]) });
        }
        let diffs = fields.take_parsed::<Vec<AcpDiff>>("diffs", |diffs| !diffs.is_empty())?;
        // The paths of the diffs are shown with them.
        fields.take_parsed::<Vec<String>>("paths", |paths| paths.iter().eq(diffs.iter().map(|diff| &diff.path)));
        Some(Self::Acp(diffs))
    }

    /// Returns where the changes are, if all are in the working directory or one is not.
    pub(super) fn location(&self, directory: &Path) -> Location {
        let is_inside = |path: &str| location::of_path(path, directory).0 == Location::Inside;
        let all_inside = match self {
            Self::Codex { files, .. } => {
                files.iter().all(|file| is_inside(&file.path) && file.kind.move_path().is_none_or(is_inside))
            }
            Self::Acp(diffs) => diffs.iter().all(|diff| is_inside(&diff.path)),
        };
        if all_inside { Location::Inside } else { Location::Outside }
    }

    /// Formats each path and its change.
    pub(super) fn lines(&self, directory: Option<&Path>, width: usize) -> Vec<Printable> {
        match self {
            Self::Codex { files, diff } => {
                let mut lines: Vec<_> = files
                    .iter()
                    .flat_map(|file| {
                        let mut lines = path_lines(&file.path, Some(file.kind.kind()), directory, width);
                        let target = file.kind.move_path();
                        lines.extend(target.map(|to| folded("    move to: ".into(), to, width)).unwrap_or_default());
                        lines
                    })
                    .collect();
                // The text of one new or deleted file is its content; otherwise it is a patch.
                lines.extend(match (files.as_slice(), diff) {
                    (_, None) => Vec::new(),
                    ([only], Some(diff)) if only.kind.kind() == Kind::Add => diff::of_new_text(diff, width),
                    ([only], Some(diff)) if only.kind.kind() == Kind::Delete => diff::of_texts(diff, "", width),
                    (_, Some(diff)) => diff::of_patch(diff, width),
                });
                lines
            }
            Self::Acp(diffs) => diffs
                .iter()
                .flat_map(|diff| {
                    let kind = diff.meta.as_ref().and_then(|meta| meta.kind);
                    let mut lines = path_lines(&diff.path, kind, directory, width);
                    lines.extend(match &diff.old {
                        Some(old) => diff::of_texts(old, &diff.new, width),
                        None => diff::of_new_text(&diff.new, width),
                    });
                    lines
                })
                .collect(),
        }
    }
}

/// Formats a path, with the file that it leads to by links if the working directory is on this machine.
pub(super) fn file_lines(head: Printable, path: &str, directory: Option<&Path>, width: usize) -> Vec<Printable> {
    let mut lines = folded(head, path, width);
    let real = directory.and_then(|directory| location::of_path(path, directory).1);
    let real = real.map(|real| folded("    link to: ".into(), &real.to_string_lossy(), width));
    lines.extend(real.unwrap_or_default());
    lines
}

fn path_lines(path: &str, kind: Option<Kind>, directory: Option<&Path>, width: usize) -> Vec<Printable> {
    // The kind precedes the path, so that no path can imitate it.
    let head = match kind {
        Some(Kind::Add) => printable!("    new file: "),
        Some(Kind::Delete) => printable!("    delete file: "),
        Some(Kind::Update | Kind::Modify) | None => printable!("    file: "),
    };
    file_lines(head, path, directory, width)
}
