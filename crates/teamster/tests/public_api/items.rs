//! The lines of one item.

use quote::ToTokens;
use syn::parse::ParseStream;
use syn::token::Brace;
use syn::{
    Attribute, Fields, Ident, ImplItem, Item, ItemImpl, ItemMacro, LitStr, Signature, Token, TraitItem, Visibility,
};

pub(crate) fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// Returns the visibility of an item; `None` for items that have none.
pub(crate) fn visibility(item: &Item) -> Option<&Visibility> {
    Some(match item {
        Item::Const(item) => &item.vis,
        Item::Enum(item) => &item.vis,
        Item::Fn(item) => &item.vis,
        Item::Mod(item) => &item.vis,
        Item::Static(item) => &item.vis,
        Item::Struct(item) => &item.vis,
        Item::Trait(item) => &item.vis,
        Item::Type(item) => &item.vis,
        Item::Use(item) => &item.vis,
        _ => return None,
    })
}

/// Returns the lines of an item with this public path.
pub(crate) fn lines(item: &Item, path: &str) -> Vec<String> {
    match item {
        Item::Const(item) => vec![format!("{path}: const {}", text(&item.ty))],
        Item::Static(item) => vec![format!("{path}: static {}", text(&item.ty))],
        Item::Type(item) => vec![format!("{path}: type = {}", text(&item.ty))],
        Item::Fn(item) => vec![function(&item.sig, path)],
        Item::Struct(item) => {
            let mut lines = vec![format!("{path} struct{}", properties(&item.attrs))];
            lines.extend(fields(&item.fields, path));
            lines
        }
        Item::Enum(item) => {
            let mut lines = vec![format!("{path} enum{}", properties(&item.attrs))];
            for mut variant in item.variants.iter().cloned() {
                variant.attrs.clear();
                variant.fields.iter_mut().for_each(|field| field.attrs.clear());
                lines.push(format!("{path}::{}", text(&variant)));
            }
            lines
        }
        Item::Trait(item) => {
            let bounds = Some(text(&item.supertraits)).filter(|bounds| !bounds.is_empty());
            let mut lines =
                vec![format!("{path} trait{}", bounds.map(|bounds| format!(": {bounds}")).unwrap_or_default())];
            lines.extend(item.items.iter().filter_map(|item| match item {
                TraitItem::Fn(method) => {
                    let kind = if method.default.is_some() { " (provided)" } else { " (required)" };
                    Some(function(&method.sig, &format!("{path}::{}", method.sig.ident)) + kind)
                }
                TraitItem::Type(item) => Some(format!("{path}::{}: type", item.ident)),
                TraitItem::Const(item) => Some(format!("{path}::{}: const {}", item.ident, text(&item.ty))),
                _ => None,
            }));
            lines
        }
        Item::Macro(item) => macro_call(item, path),
        _ => Vec::new(),
    }
}

/// Returns the lines of an `impl` block for the type with this public path.
pub(crate) fn impl_lines(block: &ItemImpl, path: &str) -> Vec<String> {
    if let Some((name, _)) = &block.trait_ {
        return vec![format!("{path} impl {}", text(name))];
    }
    let item = |item: &ImplItem| match item {
        ImplItem::Fn(method) if is_public(&method.vis) && !super::crates::is_hidden(&method.attrs) => {
            Some(function(&method.sig, &format!("{path}::{}", method.sig.ident)))
        }
        ImplItem::Const(item) if is_public(&item.vis) => {
            Some(format!("{path}::{}: const {}", item.ident, text(&item.ty)))
        }
        _ => None,
    };
    block.items.iter().filter_map(item).collect()
}

/// Returns the name of the type that a macro call such as `id! { SessionId }` defines.
pub(crate) fn macro_name(item: &ItemMacro) -> Option<String> {
    if item.ident.is_some() || item.mac.path.is_ident("macro_rules") {
        return None;
    }
    names(item).into_iter().next()
}

/// Returns the type's name and the names of its variants.
fn names(item: &ItemMacro) -> Vec<String> {
    fn parse(input: ParseStream<'_>) -> syn::Result<Vec<String>> {
        input.call(Attribute::parse_outer)?;
        let mut names = vec![input.parse::<Ident>()?.to_string()];
        if input.peek(Brace) {
            let variants;
            syn::braced!(variants in input);
            while !variants.is_empty() {
                variants.call(Attribute::parse_outer)?;
                names.push(variants.parse::<Ident>()?.to_string());
                variants.parse::<Token![=]>()?;
                variants.parse::<LitStr>()?;
                variants.parse::<Option<Token![,]>>()?;
            }
        }
        Ok(names)
    }
    item.mac.parse_body_with(parse).unwrap_or_default()
}

fn macro_call(item: &ItemMacro, path: &str) -> Vec<String> {
    let members = names(item).into_iter().skip(1).map(|name| format!("{path}::{name}"));
    std::iter::once(format!("{path} {}!", text(&item.mac.path))).chain(members).collect()
}

fn fields<'a>(fields: &'a Fields, path: &'a str) -> impl Iterator<Item = String> + 'a {
    fields.iter().enumerate().filter(|(_, field)| is_public(&field.vis)).map(move |(index, field)| {
        let name = field.ident.as_ref().map_or_else(|| index.to_string(), ToString::to_string);
        format!("{path}::{name}: {}", text(&field.ty))
    })
}

/// Returns the derives of a type, and whether it is non-exhaustive.
fn properties(attributes: &[Attribute]) -> String {
    let mut found = String::new();
    for attribute in attributes {
        if attribute.path().is_ident("non_exhaustive") {
            found.insert_str(0, " #[non_exhaustive]");
        } else if attribute.path().is_ident("derive") {
            found += " ";
            found += &text(&attribute.meta);
        }
    }
    found
}

fn function(signature: &Signature, path: &str) -> String {
    let mut signature = signature.clone();
    signature.ident = Ident::new("NAME", signature.ident.span());
    format!("{path}: {}", text(&signature).replacen("fn NAME", "fn", 1))
}

/// Prints syntax without the spaces that tokens have between them.
fn text(syntax: &impl ToTokens) -> String {
    let mut text = syntax.to_token_stream().to_string().replace('\n', " ");
    for (from, to) in [
        (" :: ", "::"),
        (":: ", "::"),
        (" : ", ": "),
        (" ,", ","),
        (" < ", "<"),
        (" >", ">"),
        ("< ", "<"),
        ("& ", "&"),
        (" (", "("),
        ("( ", "("),
        (" )", ")"),
        (" <", "<"),
        ("->(", "-> ("),
        (",)", ")"),
        (", >", ">"),
        (" =(", " = ("),
        (", }", " }"),
        ("(mut ", "("),
        (", mut ", ", "),
    ] {
        text = text.replace(from, to);
    }
    text
}
