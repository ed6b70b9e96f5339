//! Import loops: the files of a crate must import each other in one direction.
//!
//! An import leads to the file that defines the item, through any re-exports. A file that declares a module, or
//! re-exports its items, does not depend on it. If a file adds methods to a type of another file, a caller of these
//! methods depends only on the file that defines the type. Code for tests does not count.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Result;
use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;

use super::modules::{self, FileModules, Module, ModulePath};
use super::source::{Check, Finding};

/// Which names a file takes from another one.
type Imports<'a> = BTreeMap<(&'a Path, &'a Path), BTreeSet<String>>;

/// Chains of re-exports longer than this are not followed: they would be a loop of globs.
const MAX_HOPS: usize = 16;

/// Checks every crate. A finding is a file that takes part in a loop.
pub(super) fn check(files: &BTreeMap<&Path, FileModules>) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for root_file in files.keys().filter(|file| is_root(file)) {
        let tree = modules::tree(files, root_file)?;
        findings.extend(loops(&imports(&tree)));
    }
    Ok(findings)
}

/// Whether a file is the root of a crate: `src/lib.rs`, `src/main.rs` or one of `src/bin`.
fn is_root(file: &Path) -> bool {
    let is_in = |name| file.parent().is_some_and(|parent| parent.ends_with(name));
    let name = file.file_name().and_then(|name| name.to_str());
    (is_in("src") && matches!(name, Some("lib.rs" | "main.rs"))) || is_in("src/bin")
}

/// Returns a finding for each file of a loop, with what it takes from the other files of the loop.
fn loops(imports: &Imports<'_>) -> Vec<Finding> {
    let graph = DiGraphMap::<&Path, ()>::from_edges(imports.keys());
    let mut findings = Vec::new();
    for files in tarjan_scc(&graph).into_iter().filter(|files| files.len() > 1) {
        for &file in &files {
            let inside = imports.iter().filter(|((from, to), _)| *from == file && files.contains(to));
            let lines = inside.map(|((_, to), names)| {
                let names = names.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
                format!("\n    {names} from {}", to.display())
            });
            let text = format!("is in an import loop of {} files; it takes{}", files.len(), lines.collect::<String>());
            findings.push(Finding { file: file.to_owned(), line: None, check: Check::Imports, text });
        }
    }
    findings.sort();
    findings
}

fn imports(tree: &BTreeMap<ModulePath, Module>) -> Imports<'_> {
    let mut found = Imports::new();
    for (path, module) in tree {
        let written = module.paths.iter().chain(module.uses.iter().filter(|one| !one.is_reexport).map(|one| &one.path));
        for name in written {
            if let Some((file, item)) = resolve(tree, path, name, MAX_HOPS)
                && file != module.file
            {
                found.entry((module.file.as_path(), file)).or_default().insert(item);
            }
        }
    }
    found
}

/// The file that defines what a path means in a module, and the item's name; `None` for what other crates define.
fn resolve<'a>(
    tree: &'a BTreeMap<ModulePath, Module>,
    from: &ModulePath,
    path: &[String],
    hops: usize,
) -> Option<(&'a Path, String)> {
    let hops = hops.checked_sub(1)?;
    let mut at = from.clone();
    let mut rest = path;
    let mut is_first = true;
    while let Some((segment, after)) = rest.split_first() {
        match segment.as_str() {
            "crate" => at.clear(),
            "self" => {}
            "super" => _ = at.pop()?,
            name => {
                let child: ModulePath = at.iter().cloned().chain([name.to_owned()]).collect();
                if tree.contains_key(&child) {
                    at = child;
                } else {
                    return item(tree, &at, name, after, is_first && at == *from, hops);
                }
            }
        }
        (rest, is_first) = (after, false);
    }
    let module = tree.get(&at)?;
    Some((&module.file, at.last().cloned().unwrap_or_else(|| "crate".to_owned())))
}

/// What a name means in a module that has no child of that name.
fn item<'a>(
    tree: &'a BTreeMap<ModulePath, Module>,
    at: &ModulePath,
    name: &str,
    after: &[String],
    is_own: bool,
    hops: usize,
) -> Option<(&'a Path, String)> {
    let module = tree.get(at)?;
    if module.items.iter().any(|item| item == name) {
        return Some((&module.file, name.to_owned()));
    }
    // A name that only this module imports is invisible to others, except to its children.
    if let Some(import) = module.uses.iter().find(|import| import.name.as_deref() == Some(name)) {
        let same = is_own && import.path.first().is_some_and(|first| first == name) && import.path.len() == 1;
        let path: Vec<String> = import.path.iter().chain(after).cloned().collect();
        return if same { None } else { resolve(tree, at, &path, hops) };
    }
    let mut globs = module.uses.iter().filter(|import| import.name.is_none());
    globs.find_map(|import| {
        let path: Vec<String> = import.path.iter().cloned().chain([name.to_owned()]).chain(after.to_vec()).collect();
        resolve(tree, at, &path, hops)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&'static str, &str)]) -> Vec<String> {
        let modules = |(file, text): &(&'static str, &str)| {
            (Path::new(*file), FileModules::of(&syn::parse_file(text).unwrap().items))
        };
        check(&files.iter().map(modules).collect()).unwrap().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn two_files_that_use_each_other_are_a_loop_also_through_a_re_export() {
        let found = found(&[
            ("src/lib.rs", "mod a; mod b; pub use a::One;"),
            ("src/a.rs", "use crate::b::two; pub struct One; fn go() { two() }"),
            ("src/b.rs", "pub fn two() { let _ = crate::One; }"),
        ]);
        let expected = [
            "src/a.rs: is in an import loop of 2 files; it takes\n    two from src/b.rs",
            "src/b.rs: is in an import loop of 2 files; it takes\n    One from src/a.rs",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_parent_that_uses_its_child_and_is_used_by_it_is_a_loop() {
        let files = [
            ("src/lib.rs", "mod child; use child::run; pub struct Options; fn main() { run() }"),
            ("src/child.rs", "use super::Options; pub fn run() { _ = Options; }"),
        ];
        assert_eq!(found(&files).len(), 2);
    }

    #[test]
    fn a_parent_that_only_declares_and_re_exports_its_children_is_in_no_loop() {
        let files = [
            ("src/lib.rs", "mod first; mod second; pub use first::One; pub use second::Two;"),
            ("src/first.rs", "pub struct One;"),
            ("src/second.rs", "use super::One; pub struct Two(One);"),
        ];
        assert_eq!(found(&files), [""; 0]);
    }

    #[test]
    fn what_tests_import_does_not_count() {
        let files = [
            ("src/lib.rs", "mod a; mod b;"),
            ("src/a.rs", "pub struct One; #[cfg(test)] mod tests { use crate::b::Two; }"),
            ("src/b.rs", "use crate::a::One; pub struct Two(One);"),
        ];
        assert_eq!(found(&files), [""; 0]);
    }
}
