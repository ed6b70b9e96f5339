//! Paths of calls, compared with patterns of rules.
//!
//! Invariants: an allow rule matches a path only by what it names after symbolic links were resolved; a deny rule matches it by
//! everything that it may name.

use std::path::{Component, Path, PathBuf};

use super::call::Text;
use super::pattern::{Glob, Star};
use super::shell::Match;
use super::url;

/// The longest text that can be a path.
const LONGEST: usize = 4096;

/// How many paths of one call are compared with a deny rule; a call that has more is asked.
const MOST: usize = 256;

/// Looks paths up in the file system, which this crate does not touch itself.
pub trait PathResolver {
    /// Resolves the symbolic links of an absolute path, as the operating system would when the file is opened. Components that
    /// do not exist are kept. Returns `None` if the file system cannot tell what the path names.
    fn resolve(&self, path: &Path) -> Option<PathBuf>;

    /// The user's home directory, for `~/`.
    fn home(&self) -> Option<PathBuf> {
        None
    }
}

/// A [`PathResolver`] that knows no file system: paths are compared by their text, and symbolic links are not seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct TextOnly;

impl PathResolver for TextOnly {
    fn resolve(&self, path: &Path) -> Option<PathBuf> {
        Some(normalized(path))
    }
}

/// Removes `.`, and `..` with the component before it.
pub(super) fn normalized(path: &Path) -> PathBuf {
    let mut whole = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => _ = whole.pop(),
            other => whole.push(other),
        }
    }
    whole
}

/// Whether a path is this directory, after resolution.
pub(super) fn is_directory(path: &str, cwd: Option<&Path>, files: &dyn PathResolver) -> bool {
    let Some(cwd) = cwd else { return false };
    path.is_empty()
        || is_certain(path) && files.resolve(&cwd.join(path)).is_some_and(|path| files.resolve(cwd) == Some(path))
}

/// Whether a path means to every reader what it says: nothing in it is expanded, decoded, trimmed or climbs.
fn is_certain(path: &str) -> bool {
    !path.is_empty()
        && path.trim() == path
        && path.len() <= LONGEST
        && !path.starts_with(['~', '@', '"', '\'', '$', '%', '`'])
        && !path.contains(['\\', '\0'])
        && !path.chars().any(char::is_control)
        && !path.contains("://")
        && !path.to_ascii_lowercase().starts_with("file:")
        && !path.split('/').any(|part| part == "..")
        && !is_of_process(Path::new(path))
}

/// Whether a path leads through what a process has open: another process may find another file there.
fn is_of_process(path: &Path) -> bool {
    let path = path.to_string_lossy();
    let mut parts = path.split('/').filter(|part| !matches!(*part, "" | "."));
    match (parts.next(), parts.next()) {
        (Some("dev"), Some("fd" | "stdin" | "stdout" | "stderr")) => path.starts_with('/'),
        (Some("proc"), Some(_)) if path.starts_with('/') => {
            parts.any(|part| matches!(part, "cwd" | "root" | "fd" | "exe" | "map_files"))
        }
        _ => false,
    }
}

/// What a path in `/proc` names for an agent that works in `place`; `None` if only the process knows.
fn of_agent(path: &Path, place: &Path) -> Option<PathBuf> {
    let mut path = path.strip_prefix("/proc").ok()?;
    loop {
        // The number of a process, or `self`.
        let mut parts = path.components();
        parts.next()?;
        let part = parts.next()?;
        path = parts.as_path();
        match part.as_os_str().to_str()? {
            // A thread is named like a process.
            "task" => {}
            "cwd" => return Some(place.join(path)),
            "root" => return Some(Path::new("/").join(path)),
            _ => return None,
        }
    }
}

/// Where the pattern of a rule begins: a directory, and the rest relative to it. `None` if the rule climbs after a wildcard.
fn anchored(rule: &str, cwd: Option<&Path>, files: &dyn PathResolver) -> Option<(PathBuf, String)> {
    let (mut base, rest) = if let Some(rest) = rule.strip_prefix("~/") {
        (files.home()?, rest)
    } else if rule.starts_with('/') {
        // An absolute rule for the session's directory is the relative one.
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

/// Whether an allow rule matches this path: the file that it names now lies where the rule says.
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

/// Whether a deny rule may mean any of these texts.
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
    let mut places: Vec<PathBuf> = cwd.into_iter().map(Path::to_owned).collect();
    let directories = paths.iter().filter(|text| text.is_directory());
    places.extend(directories.flat_map(|text| spellings(&text.text, cwd.unwrap_or(Path::new("/")), files)));
    let (mut looked, mut undecided) = (0, Match::No);
    for place in &places {
        for text in &paths {
            looked += 1;
            if looked > MOST {
                return Match::Maybe;
            }
            let found = spellings(&text.text, place, files);
            if is_of_others_home(&text.text) || found.iter().any(|path| is_of_process(path)) {
                undecided = Match::Maybe;
            }
            if found.iter().any(|path| anchors.iter().any(|anchor| anchor.holds(path)) || by_name(&glob, rule, path)) {
                return Match::Yes;
            }
        }
    }
    undecided
}

/// Whether a text begins with the home of a user that it names.
fn is_of_others_home(text: &str) -> bool {
    let name = text.trim().strip_prefix('~').and_then(|rest| rest.split_once('/'));
    name.is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-+".contains(c))
    })
}

/// Whether a rule without a directory is about a file of this name.
fn by_name(glob: &Glob, rule: &str, path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_lowercase();
    !rule.contains('/') && glob.matches(&name, Star::Everything)
}

/// What a deny rule means on this machine.
struct Anchor {
    base: String,
    rest: Glob,
}

impl Anchor {
    fn new(base: &Path, rest: &str) -> Self {
        Self { base: base.to_string_lossy().to_lowercase(), rest: Glob::lowercase(rest) }
    }

    fn holds(&self, path: &Path) -> bool {
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
        // A directory is meant by the rule for what is in it.
        self.rest.matches(inside, Star::Everything)
            || !inside.is_empty() && self.rest.matches(&format!("{inside}/"), Star::Everything)
            || of_input()
    }
}

fn anchors(rule: &str, cwd: Option<&Path>, files: &dyn PathResolver) -> Vec<Anchor> {
    let Some((base, rest)) = anchored(rule, cwd, files) else { return Vec::new() };
    let mut found = vec![Anchor::new(&base, &rest)];
    found.extend(files.resolve(&base).map(|base| Anchor::new(&base, &rest)));
    // What the rule names may be a link itself.
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

/// The absolute paths that a text may name: by its letters, and with symbolic links resolved before or after `..`.
fn spellings(text: &str, place: &Path, files: &dyn PathResolver) -> Vec<PathBuf> {
    let text = text.trim().trim_start_matches(['@', '"', '\'']).trim_end_matches(['"', '\'']);
    let lower = text.to_ascii_lowercase();
    let text = ["file://localhost", "file://", "file:"]
        .iter()
        .find_map(|scheme| lower.starts_with(scheme).then(|| text.get(scheme.len()..)).flatten())
        .unwrap_or(text);
    if text.is_empty() || text.contains('\0') {
        return Vec::new();
    }
    let mut wholes = vec![place.join(text)];
    if let Some(home) = files.home() {
        for sign in ["~", "$HOME", "${HOME}"] {
            if let Some(rest) = text.strip_prefix(sign).filter(|rest| rest.is_empty() || rest.starts_with('/')) {
                wholes.push(home.join(rest.trim_start_matches('/')));
            }
        }
    }
    for sign in ["$PWD/", "${PWD}/", "~+/"] {
        wholes.extend(text.strip_prefix(sign).map(|rest| place.join(rest)));
    }
    if text.contains('%') {
        wholes.push(place.join(url::decoded(text)));
    }
    if text.contains('\\') {
        wholes.push(place.join(text.replace("\\ ", " ").replace('\\', "/")));
    }
    let mut found = Vec::new();
    for whole in wholes {
        let plain = normalized(&whole);
        if let Some(path) = of_agent(&plain, place) {
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
