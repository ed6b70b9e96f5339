//! The modules of the crates, and the resolution of names in them.

use std::collections::BTreeMap;
use std::path::Path;

use syn::{Attribute, Ident, Item, UseTree, Visibility};

/// The crate's name and the names of the modules.
pub(crate) type ModulePath = Vec<String>;

/// The maximum number of re-exports that are followed for one name.
const MAX_HOPS: usize = 16;

pub(crate) struct Crates {
    pub(crate) modules: BTreeMap<ModulePath, Vec<Item>>,
}

/// What a name means.
#[derive(Debug)]
pub(crate) enum Target {
    Module(ModulePath),
    Item(ModulePath, String),
}

/// One name of a `use` declaration.
pub(crate) struct Import {
    pub(crate) path: Vec<String>,
    /// The name in the importing module; `None` for `*`.
    pub(crate) name: Option<String>,
}

impl Crates {
    pub(crate) fn read(root: &Path, packages: &[&str]) -> Self {
        let mut crates = Self { modules: BTreeMap::new() };
        for package in packages {
            let folder = root.join("crates").join(package).join("src");
            crates.read_file(vec![package.replace('-', "_")], &folder.join("lib.rs"), &folder);
        }
        crates
    }

    /// Reads a file whose child modules are in `folder`.
    fn read_file(&mut self, path: ModulePath, file: &Path, folder: &Path) {
        let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let items = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display())).items;
        self.add(path, items, folder);
    }

    fn add(&mut self, path: ModulePath, mut items: Vec<Item>, folder: &Path) {
        items.retain(|item| attributes(item).is_none_or(|attributes| !is_hidden(attributes)));
        for item in &mut items {
            let Item::Mod(module) = item else { continue };
            let name = module.ident.to_string();
            let child = joined(&path, &name);
            let child_folder = folder.join(&name);
            if let Some((_, content)) = module.content.take() {
                self.add(child, content, &child_folder);
                continue;
            }
            let files = [folder.join(format!("{name}.rs")), child_folder.join("mod.rs")];
            if let Some(file) = files.into_iter().find(|file| file.is_file()) {
                self.read_file(child, &file, &child_folder);
            }
        }
        self.modules.insert(path, items);
    }

    /// Returns what a path means that is written in the module `at`; `None` for items of other crates.
    pub(crate) fn resolve(&self, at: &[String], path: &[String]) -> Option<Target> {
        self.resolve_within(at, path, MAX_HOPS)
    }

    fn resolve_within(&self, at: &[String], path: &[String], hops: usize) -> Option<Target> {
        let hops = hops.checked_sub(1)?;
        let (first, rest) = path.split_first()?;
        let start = match first.as_str() {
            "crate" => at.get(..1)?,
            "self" => at,
            "super" => at.get(..at.len().checked_sub(1)?)?,
            name if !self.modules.contains_key(&joined(at, name))
                && self.modules.contains_key(std::slice::from_ref(first)) =>
            {
                std::slice::from_ref(first)
            }
            _ => return self.look_up(at, path, hops),
        };
        match rest.first().map(String::as_str) {
            None => Some(Target::Module(start.to_vec())),
            Some("super") => self.resolve_within(start, rest, hops),
            Some(_) => self.look_up(start, rest, hops),
        }
    }

    fn look_up(&self, at: &[String], path: &[String], hops: usize) -> Option<Target> {
        let (name, rest) = path.split_first()?;
        let child = joined(at, name);
        if self.modules.contains_key(&child) {
            return if rest.is_empty() { Some(Target::Module(child)) } else { self.look_up(&child, rest, hops) };
        }
        let items = self.modules.get(at)?;
        if items.iter().any(|item| defines(item, name)) {
            return rest.is_empty().then(|| Target::Item(at.to_vec(), name.clone()));
        }
        let imports: Vec<Import> = items.iter().filter_map(as_use).flat_map(|(_, tree)| imports(tree)).collect();
        if let Some(import) = imports.iter().find(|import| import.name.as_ref() == Some(name)) {
            let path: Vec<String> = import.path.iter().chain(rest).cloned().collect();
            return if path == [name.clone()] { None } else { self.resolve_within(at, &path, hops) };
        }
        imports.iter().filter(|import| import.name.is_none()).find_map(|import| {
            match self.resolve_within(at, &import.path, hops)? {
                Target::Module(module) => self.look_up(&module, path, hops.checked_sub(1)?),
                Target::Item(..) => None,
            }
        })
    }
}

pub(crate) fn joined(path: &[String], name: &str) -> ModulePath {
    path.iter().cloned().chain([name.to_owned()]).collect()
}

pub(crate) fn as_use(item: &Item) -> Option<(&Visibility, &UseTree)> {
    match item {
        Item::Use(item) => Some((&item.vis, &item.tree)),
        _ => None,
    }
}

pub(crate) fn imports(tree: &UseTree) -> Vec<Import> {
    fn read(tree: &UseTree, path: &[String], found: &mut Vec<Import>) {
        let with = |name: &Ident| if name == "self" { path.to_vec() } else { joined(path, &name.to_string()) };
        match tree {
            UseTree::Path(tree) => read(&tree.tree, &joined(path, &tree.ident.to_string()), found),
            UseTree::Name(tree) => {
                let path = with(&tree.ident);
                found.push(Import { name: path.last().cloned(), path });
            }
            UseTree::Rename(tree) => {
                found.push(Import { path: with(&tree.ident), name: Some(tree.rename.to_string()) });
            }
            UseTree::Glob(_) => found.push(Import { path: path.to_vec(), name: None }),
            UseTree::Group(group) => group.items.iter().for_each(|tree| read(tree, path, found)),
        }
    }
    let mut found = Vec::new();
    read(tree, &[], &mut found);
    found
}

/// Whether an item defines this name. Names that a macro call defines are among its tokens.
pub(crate) fn defines(item: &Item, name: &str) -> bool {
    match item {
        Item::Const(item) => item.ident == name,
        Item::Enum(item) => item.ident == name,
        Item::Fn(item) => item.sig.ident == name,
        Item::Static(item) => item.ident == name,
        Item::Struct(item) => item.ident == name,
        Item::Trait(item) => item.ident == name,
        Item::Type(item) => item.ident == name,
        Item::Macro(item) => super::items::macro_name(item).is_some_and(|defined| defined == name),
        _ => false,
    }
}

pub(crate) fn attributes(item: &Item) -> Option<&[Attribute]> {
    Some(match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => return None,
    })
}

/// Whether an item is compiled for tests only, or hidden from the documentation.
pub(crate) fn is_hidden(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let argument = attribute.parse_args::<syn::Path>().ok();
        let is =
            |name, word| attribute.path().is_ident(name) && argument.as_ref().is_some_and(|path| path.is_ident(word));
        is("cfg", "test") || is("doc", "hidden")
    })
}
