//! The module tree of a crate, from the syntax of its files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, UseTree};

/// The names of a module's place in its crate; empty for the root.
pub(super) type ModulePath = Vec<String>;

/// A module, inline or a file.
#[derive(Debug, Clone, Default)]
pub(super) struct Module {
    /// Relative to the workspace's root.
    pub(super) file: PathBuf,
    /// The items that it defines, by name.
    pub(super) items: Vec<String>,
    /// What it imports.
    pub(super) uses: Vec<Import>,
    /// Paths of more than one segment that its code writes out, such as `events::read`.
    pub(super) paths: Vec<Vec<String>>,
}

/// One name of a `use` declaration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Import {
    /// Where the name comes from, as written.
    pub(super) path: Vec<String>,
    /// The name in this module; `None` for `*`.
    pub(super) name: Option<String>,
    /// Whether it has a visibility: others can reach the item through this module.
    pub(super) is_reexport: bool,
}

/// The modules of one file, without those of other files.
#[derive(Debug, Default)]
pub(super) struct FileModules {
    /// Each module with its place within the file; the first is the file itself.
    modules: Vec<(ModulePath, Module)>,
    /// The modules that are in other files.
    children: Vec<Child>,
}

/// A `mod name;`.
#[derive(Debug)]
struct Child {
    /// Its place within the file that declares it.
    path: ModulePath,
    /// The file that a `#[path]` attribute names.
    named: Option<String>,
}

impl FileModules {
    pub(super) fn of(items: &[Item]) -> Self {
        let mut file = Self::default();
        file.read(ModulePath::new(), items);
        file
    }

    fn read(&mut self, path: ModulePath, items: &[Item]) {
        let mut module = Module::default();
        for item in items {
            let Item::Mod(child) = item else {
                module.read(item);
                continue;
            };
            if is_test(&child.attrs) {
                continue;
            }
            let child_path: ModulePath = path.iter().cloned().chain([child.ident.to_string()]).collect();
            match &child.content {
                Some((_, items)) => self.read(child_path, items),
                None => self.children.push(Child { path: child_path, named: path_attribute(&child.attrs) }),
            }
        }
        self.modules.push((path, module));
    }
}

/// Puts the module tree of a crate together, from its root file.
pub(super) fn tree(files: &BTreeMap<&Path, FileModules>, root_file: &Path) -> Result<BTreeMap<ModulePath, Module>> {
    let mut tree = BTreeMap::new();
    add_file(files, root_file, &root_file.with_file_name(""), &ModulePath::new(), &mut tree)?;
    Ok(tree)
}

/// Adds the modules of `file`, whose children are in `folder`.
fn add_file(
    files: &BTreeMap<&Path, FileModules>,
    file: &Path,
    folder: &Path,
    path: &ModulePath,
    tree: &mut BTreeMap<ModulePath, Module>,
) -> Result<()> {
    let read = files.get(file).with_context(|| format!("{} is missing", file.display()))?;
    let within = |relative: &ModulePath| path.iter().chain(relative).cloned().collect::<ModulePath>();
    for (relative, module) in &read.modules {
        tree.insert(within(relative), Module { file: file.to_owned(), ..module.clone() });
    }
    for Child { path: relative, named } in &read.children {
        let child_folder = folder.join(relative.iter().collect::<PathBuf>());
        let named = named.as_ref().map(|named| normal(&file.with_file_name(named)));
        let candidates = [named, Some(child_folder.with_added_extension("rs")), Some(child_folder.join("mod.rs"))];
        let found = candidates.into_iter().flatten().find(|file| files.contains_key(file.as_path()));
        let child_file =
            found.with_context(|| format!("{}: no file for `mod {}`", file.display(), relative.join("::")))?;
        add_file(files, &child_file, &child_folder, &within(relative), tree)?;
    }
    Ok(())
}

/// Removes each `..` with the folder before it.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path {
        if part == ".." {
            normal.pop();
        } else {
            normal.push(part);
        }
    }
    normal
}

impl Module {
    fn read(&mut self, item: &Item) {
        let (attrs, name) = match item {
            Item::Const(item) => (&item.attrs, Some(&item.ident)),
            Item::Enum(item) => (&item.attrs, Some(&item.ident)),
            Item::Fn(item) => (&item.attrs, Some(&item.sig.ident)),
            Item::Macro(item) => (&item.attrs, item.ident.as_ref()),
            Item::Static(item) => (&item.attrs, Some(&item.ident)),
            Item::Struct(item) => (&item.attrs, Some(&item.ident)),
            Item::Trait(item) => (&item.attrs, Some(&item.ident)),
            Item::Type(item) => (&item.attrs, Some(&item.ident)),
            Item::Use(item) => {
                if !is_test(&item.attrs) {
                    let is_reexport = !matches!(item.vis, syn::Visibility::Inherited);
                    read_use(&item.tree, &mut Vec::new(), is_reexport, &mut self.uses);
                }
                return;
            }
            Item::Impl(item) => (&item.attrs, None),
            _ => return,
        };
        if is_test(attrs) {
            return;
        }
        self.items.extend(name.map(ToString::to_string));
        Paths(self).visit_item(item);
    }
}

fn read_use(tree: &UseTree, path: &mut Vec<String>, is_reexport: bool, uses: &mut Vec<Import>) {
    let mut import = |path: &[String], last: Option<&syn::Ident>, name: Option<String>| {
        let last = last.map(ToString::to_string).filter(|last| last != "self");
        let path = path.iter().cloned().chain(last).collect();
        uses.push(Import { path, name, is_reexport });
    };
    match tree {
        UseTree::Path(tree) => {
            path.push(tree.ident.to_string());
            read_use(&tree.tree, path, is_reexport, uses);
            path.pop();
        }
        UseTree::Name(tree) if tree.ident == "self" => import(path, None, path.last().cloned()),
        UseTree::Name(tree) => import(path, Some(&tree.ident), Some(tree.ident.to_string())),
        UseTree::Rename(tree) => import(path, Some(&tree.ident), Some(tree.rename.to_string())),
        UseTree::Glob(_) => import(path, None, None),
        UseTree::Group(group) => {
            for tree in &group.items {
                read_use(tree, path, is_reexport, uses);
            }
        }
    }
}

/// Collects the paths that code writes out, and the imports within functions.
struct Paths<'a>(&'a mut Module);

impl Visit<'_> for Paths<'_> {
    fn visit_path(&mut self, path: &syn::Path) {
        if path.segments.len() > 1 {
            self.0.paths.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }

    /// `pub(in PATH)` imports nothing.
    fn visit_vis_restricted(&mut self, _: &syn::VisRestricted) {}

    fn visit_item_use(&mut self, item: &syn::ItemUse) {
        let mut uses = Vec::new();
        read_use(&item.tree, &mut Vec::new(), false, &mut uses);
        self.0.paths.extend(uses.into_iter().map(|import| import.path));
    }
}

/// Whether an item is compiled in tests only.
fn is_test(attrs: &[Attribute]) -> bool {
    attrs.iter().any(|attr| {
        let cfg = attr.path().is_ident("cfg").then(|| attr.parse_args::<syn::Path>().ok()).flatten();
        cfg.is_some_and(|cfg| cfg.is_ident("test"))
    })
}

/// The file that `#[path = "..."]` names.
fn path_attribute(attrs: &[Attribute]) -> Option<String> {
    attrs.iter().find_map(|attr| match &attr.meta {
        syn::Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    })
}
