//! Compares the paths of a call with the path pattern of a rule.
//!
//! Invariants: an allow rule matches a path only by the file that it names after symbolic links are resolved. A deny rule matches
//! a path by every file that it may name.

use std::path::{Path, PathBuf};

use super::call::Text;
use super::path::{LONGEST, PathResolver, is_certain, is_of_process, normalized};
use super::pattern::{Glob, Star};
use super::shell::Match;
use super::url;

/// The maximum number of paths of one call that are compared with a deny rule. For a call with more paths, the rule cannot decide.
const MOST: usize = 256;

/// Resolves a path in `/proc` for an agent whose working directory is `cwd`; `None` if it cannot be resolved outside the process.
fn of_agent(path: &Path, cwd: &Path) -> Option<PathBuf> {
    let mut path = path.strip_prefix("/proc").ok()?;
    loop {
        // The number of a process, or `self`.
        let mut parts = path.components();
        parts.next()?;
        let part = parts.next()?;
        path = parts.as_path();
        match part.as_os_str().to_str()? {
            // Threads have the same entries as processes.
            "task" => {}
            "cwd" => return Some(cwd.join(path)),
            "root" => return Some(Path::new("/").join(path)),
            _ => return None,
        }
    }
}

/// Splits the pattern of a rule into a directory and the rest, which is relative to it. `None` if a `..` follows a wildcard.
fn anchored(rule: &str, cwd: Option<&Path>, files: &dyn PathResolver) -> Option<(PathBuf, String)> {
    let (mut base, rest) = if let Some(rest) = rule.strip_prefix("~/") {
        (files.home()?, rest)
    } else if rule.starts_with('/') {
        // An absolute rule within the session's directory is the same as the relative one.
        let inside = cwd.and_then(|cwd| rule.strip_prefix(cwd.to_str()?)?.strip_prefix('/'));
        match (cwd, inside) {
            (Some(cwd), Some(rest)) if cwd != Path::new("/") => (cwd.to_owned(), rest),
            _ => (PathBuf::from("/"), rule.trim_start_matches('/')),
        }
    } else {
        (cwd?.to_owned(), rule)
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in rest.split('/') {
        match part {
            "." | "" => {}
            ".." => match parts.pop() {
                Some(wild) if wild.contains(['*', '?']) => return None,
                Some(_) => {}
                None => _ = base.pop(),
            },
            part => parts.push(part),
        }
    }
    let end = if rest.ends_with('/') && !parts.is_empty() { "/" } else { "" };
    Some((base, parts.join("/") + end))
}

/// Whether an allow rule matches this path: the file that the path names now is in the place that the rule names.
pub(super) fn allows(rule: &str, path: &str, cwd: Option<&Path>, files: &dyn PathResolver) -> bool {
    let inside = || {
        let whole = if path.starts_with('/') { PathBuf::from(path) } else { cwd?.join(path) };
        let (base, rest) = anchored(rule, cwd, files)?;
        let found = files.resolve(&whole)?;
        let found = found.strip_prefix(files.resolve(&base)?).ok()?.to_str()?;
        Some(Glob::new(&rest).matches(found, Star::WithinName))
    };
    is_certain(path) && inside().unwrap_or(false)
}

/// Whether a deny rule may cover a path in any of these texts.
pub(super) fn denies(rule: &str, texts: &[Text], cwd: Option<&Path>, files: &dyn PathResolver) -> Match {
    let glob = Glob::lowercase(rule);
    let by_text = |text: &str| {
        let text = text.to_lowercase();
        glob.matches(&text, Star::Everything)
            || glob.matches(text.trim_end_matches('/').rsplit('/').next().unwrap_or_default(), Star::Everything)
    };
    if texts.iter().any(|text| by_text(&text.text)) {
        return Match::Yes;
    }
    let may_be_path = |text: &&Text| !text.is_prose() && text.text.len() <= LONGEST && !text.text.trim().contains('\n');
    let paths: Vec<&Text> = texts.iter().filter(may_be_path).collect();
    let anchors = anchors(rule, cwd, files);
    let mut bases: Vec<PathBuf> = cwd.into_iter().map(Path::to_owned).collect();
    let directories = paths.iter().filter(|text| text.is_directory());
    bases.extend(directories.flat_map(|text| possible_paths(&text.text, cwd.unwrap_or(Path::new("/")), files)));
    let (mut compared, mut undecided) = (0, Match::No);
    for base in &bases {
        for text in &paths {
            compared += 1;
            if compared > MOST {
                return Match::Maybe;
            }
            let found = possible_paths(&text.text, base, files);
            if is_of_others_home(&text.text) || found.iter().any(|path| is_of_process(path)) {
                undecided = Match::Maybe;
            }
            if found.iter().any(|path| anchors.iter().any(|anchor| anchor.covers(path)) || by_name(&glob, rule, path)) {
                return Match::Yes;
            }
        }
    }
    undecided
}

/// Whether a text starts with the home directory of a named user, such as `~root/`.
fn is_of_others_home(text: &str) -> bool {
    let name = text.trim().strip_prefix('~').and_then(|rest| rest.split_once('/'));
    name.is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-+".contains(c))
    })
}

/// Whether a rule without a directory covers a file of this name.
fn by_name(glob: &Glob, rule: &str, path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_lowercase();
    !rule.contains('/') && glob.matches(&name, Star::Everything)
}

/// A deny rule as a directory and a pattern relative to it, in lower case.
struct Anchor {
    base: String,
    rest: Glob,
}

impl Anchor {
    fn new(base: &Path, rest: &str) -> Self {
        Self { base: base.to_string_lossy().to_lowercase(), rest: Glob::lowercase(rest) }
    }

    fn covers(&self, path: &Path) -> bool {
        let path = path.to_string_lossy().to_lowercase();
        let inside = match path.strip_prefix(self.base.trim_end_matches('/')) {
            Some("") => "",
            Some(rest) => match rest.strip_prefix('/') {
                Some(rest) => rest,
                None => return false,
            },
            None => return false,
        };
        let of_input = || path.contains(['*', '?', '[', '{']) && self.rest.intersects(&Glob::of_input(inside));
        // A rule for the content of a directory also covers the directory.
        self.rest.matches(inside, Star::Everything)
            || !inside.is_empty() && self.rest.matches(&format!("{inside}/"), Star::Everything)
            || of_input()
    }
}

fn anchors(rule: &str, cwd: Option<&Path>, files: &dyn PathResolver) -> Vec<Anchor> {
    let Some((base, rest)) = anchored(rule, cwd, files) else { return Vec::new() };
    let mut found = vec![Anchor::new(&base, &rest)];
    found.extend(files.resolve(&base).map(|base| Anchor::new(&base, &rest)));
    // The path in the rule may be a symbolic link.
    let (named, rest): (Vec<&str>, Vec<&str>) = {
        let parts: Vec<&str> = rest.split('/').collect();
        let wild = parts.iter().position(|part| part.contains(['*', '?'])).unwrap_or(parts.len());
        (parts.iter().take(wild).copied().collect(), parts.iter().skip(wild).copied().collect())
    };
    if !named.is_empty() {
        let real = files.resolve(&base.join(named.join("/")));
        found.extend(real.map(|real| Anchor::new(&real, &rest.join("/"))));
    }
    found
}

/// Returns the absolute paths that a text may name: as written, and with symbolic links resolved before or after `..`. Relative
/// paths are relative to `base`.
fn possible_paths(text: &str, base: &Path, files: &dyn PathResolver) -> Vec<PathBuf> {
    let text = text.trim().trim_start_matches(['@', '"', '\'']).trim_end_matches(['"', '\'']);
    let lower = text.to_ascii_lowercase();
    let text = ["file://localhost", "file://", "file:"]
        .iter()
        .find_map(|scheme| lower.starts_with(scheme).then(|| text.get(scheme.len()..)).flatten())
        .unwrap_or(text);
    if text.is_empty() || text.contains('\0') {
        return Vec::new();
    }
    let mut wholes = vec![base.join(text)];
    if let Some(home) = files.home() {
        for sign in ["~", "$HOME", "${HOME}"] {
            if let Some(rest) = text.strip_prefix(sign).filter(|rest| rest.is_empty() || rest.starts_with('/')) {
                wholes.push(home.join(rest.trim_start_matches('/')));
            }
        }
    }
    for sign in ["$PWD/", "${PWD}/", "~+/"] {
        wholes.extend(text.strip_prefix(sign).map(|rest| base.join(rest)));
    }
    if text.contains('%') {
        wholes.push(base.join(url::decoded(text)));
    }
    if text.contains('\\') {
        wholes.push(base.join(text.replace("\\ ", " ").replace('\\', "/")));
    }
    let mut found = Vec::new();
    for whole in wholes {
        let plain = normalized(&whole);
        if let Some(path) = of_agent(&plain, base) {
            found.extend(files.resolve(&path));
            found.push(normalized(&path));
        }
        found.extend(files.resolve(&whole));
        found.extend(files.resolve(&plain));
        found.push(plain);
    }
    found.dedup();
    found
}
