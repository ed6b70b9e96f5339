//! The public items that can be reached from the root of a crate.

use std::collections::{BTreeMap, BTreeSet};

use syn::{Item, ItemImpl, Type};

use super::crates::{Crates, Import, ModulePath, Target, as_use, defines, imports, joined};
use super::items::{impl_lines, is_public, lines, macro_name, visibility};

pub(crate) struct Listing<'c> {
    crates: &'c Crates,
    /// The `impl` blocks of each type.
    impls: BTreeMap<(ModulePath, String), Vec<&'c ItemImpl>>,
    /// The first public path of each item.
    listed: BTreeMap<(ModulePath, String), String>,
    lines: BTreeSet<String>,
    /// The modules on the way from the root.
    open: Vec<ModulePath>,
}

impl<'c> Listing<'c> {
    pub(crate) fn new(crates: &'c Crates) -> Self {
        let mut impls: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (path, items) in &crates.modules {
            for item in items {
                let Item::Impl(block) = item else { continue };
                if let Some(Target::Item(module, name)) = self_type(block).and_then(|name| crates.resolve(path, &name))
                {
                    impls.entry((module, name)).or_default().push(block);
                }
            }
        }
        Self { crates, impls, listed: BTreeMap::new(), lines: BTreeSet::new(), open: Vec::new() }
    }

    /// Returns the lines of a crate. An item that was listed before is one line with its first path.
    pub(crate) fn of_crate(&mut self, name: &str) -> String {
        self.module(name, &vec![name.to_owned()]);
        let lines = std::mem::take(&mut self.lines);
        lines.into_iter().map(|line| line + "\n").collect()
    }

    fn module(&mut self, public: &str, path: &ModulePath) {
        let crates = self.crates;
        let Some(items) = crates.modules.get(path) else { return };
        if self.open.contains(path) {
            return;
        }
        self.open.push(path.clone());
        for item in items {
            match item {
                Item::Mod(child) if is_public(&child.vis) => {
                    let name = child.ident.to_string();
                    let public = format!("{public}::{name}");
                    self.lines.insert(format!("{public} mod"));
                    self.module(&public, &joined(path, &name));
                }
                Item::Use(_) => {
                    let Some((_, tree)) = as_use(item).filter(|(visibility, _)| is_public(visibility)) else {
                        continue;
                    };
                    for import in imports(tree) {
                        self.import(public, path, &import);
                    }
                }
                Item::Macro(call) => {
                    if let Some(name) = macro_name(call) {
                        self.item(&format!("{public}::{name}"), path, &name);
                    }
                }
                item if visibility(item).is_some_and(is_public) => {
                    if let Some(name) = name(item) {
                        self.item(&format!("{public}::{name}"), path, &name);
                    }
                }
                _ => {}
            }
        }
        self.open.pop();
    }

    fn import(&mut self, public: &str, at: &ModulePath, import: &Import) {
        match (self.crates.resolve(at, &import.path), &import.name) {
            (Some(Target::Module(module)), None) => self.module(public, &module),
            (Some(Target::Module(module)), Some(name)) => {
                let public = format!("{public}::{name}");
                self.lines.insert(format!("{public} mod"));
                self.module(&public, &module);
            }
            (Some(Target::Item(module, item)), Some(name)) => self.item(&format!("{public}::{name}"), &module, &item),
            (_, name) => {
                let name = name.as_deref().unwrap_or("*");
                self.lines.insert(format!("{public}::{name} = {}", import.path.join("::")));
            }
        }
    }

    fn item(&mut self, public: &str, module: &ModulePath, name: &str) {
        let key = (module.clone(), name.to_owned());
        if let Some(first) = self.listed.get(&key) {
            if first != public {
                self.lines.insert(format!("{public} = {first}"));
            }
            return;
        }
        self.listed.insert(key.clone(), public.to_owned());
        let crates = self.crates;
        let items = crates.modules.get(module).into_iter().flatten().filter(|item| defines(item, name));
        self.lines.extend(items.flat_map(|item| lines(item, public)));
        let blocks = self.impls.get(&key).into_iter().flatten();
        self.lines.extend(blocks.flat_map(|block| impl_lines(block, public)));
    }
}

fn name(item: &Item) -> Option<String> {
    Some(match item {
        Item::Const(item) => item.ident.to_string(),
        Item::Enum(item) => item.ident.to_string(),
        Item::Fn(item) => item.sig.ident.to_string(),
        Item::Static(item) => item.ident.to_string(),
        Item::Struct(item) => item.ident.to_string(),
        Item::Trait(item) => item.ident.to_string(),
        Item::Type(item) => item.ident.to_string(),
        _ => return None,
    })
}

/// Returns the path of the type that a block implements.
fn self_type(block: &ItemImpl) -> Option<Vec<String>> {
    match &*block.self_ty {
        Type::Path(path) => Some(path.path.segments.iter().map(|segment| segment.ident.to_string()).collect()),
        _ => None,
    }
}
