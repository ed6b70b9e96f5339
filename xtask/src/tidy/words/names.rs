//! The names that a Rust file defines.

use proc_macro2::{TokenStream, TokenTree};
use syn::Ident;
use syn::visit::{self, Visit};

use super::text::{Kind, Passage, Word};

/// Returns a passage for each name; a name of several words has these words.
pub(super) fn of(syntax: &syn::File) -> Vec<Passage> {
    let mut names = Names(Vec::new());
    names.visit_file(syntax);
    names.0
}

struct Names(Vec<Passage>);

impl Names {
    fn add(&mut self, kind: Kind, name: &Ident) {
        let line = name.span().start().line;
        let words = split(&name.to_string()).into_iter().map(|text| Word { text, line }).collect();
        self.0.push(Passage { kind, words });
    }

    /// Reads the names that the text of a macro defines.
    fn read_tokens(&mut self, tokens: TokenStream) {
        let mut keyword = None;
        for token in tokens {
            match token {
                TokenTree::Ident(name) if name == "mut" => {}
                TokenTree::Ident(name) => {
                    if let Some(kind) = keyword {
                        self.add(kind, &name);
                    }
                    keyword = match name.to_string().as_str() {
                        "fn" | "mod" | "let" | "const" | "static" => Some(Kind::Name),
                        "struct" | "enum" | "trait" => Some(Kind::TypeName),
                        _ => None,
                    };
                }
                TokenTree::Group(group) => {
                    self.read_tokens(group.stream());
                    keyword = None;
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => keyword = None,
            }
        }
    }
}

impl Visit<'_> for Names {
    fn visit_item(&mut self, item: &syn::Item) {
        match item {
            syn::Item::Const(item) => self.add(Kind::Name, &item.ident),
            syn::Item::Static(item) => self.add(Kind::Name, &item.ident),
            syn::Item::Mod(item) => self.add(Kind::Name, &item.ident),
            syn::Item::Enum(item) => self.add(Kind::TypeName, &item.ident),
            syn::Item::Struct(item) => self.add(Kind::TypeName, &item.ident),
            syn::Item::Trait(item) => self.add(Kind::TypeName, &item.ident),
            syn::Item::Type(item) => self.add(Kind::TypeName, &item.ident),
            _ => {}
        }
        visit::visit_item(self, item);
    }

    fn visit_signature(&mut self, signature: &syn::Signature) {
        self.add(Kind::Name, &signature.ident);
        visit::visit_signature(self, signature);
    }

    fn visit_variant(&mut self, variant: &syn::Variant) {
        self.add(Kind::Name, &variant.ident);
        visit::visit_variant(self, variant);
    }

    fn visit_field(&mut self, field: &syn::Field) {
        if let Some(name) = &field.ident {
            self.add(Kind::Name, name);
        }
        visit::visit_field(self, field);
    }

    fn visit_pat_ident(&mut self, pattern: &syn::PatIdent) {
        self.add(Kind::Name, &pattern.ident);
        visit::visit_pat_ident(self, pattern);
    }

    fn visit_macro(&mut self, call: &syn::Macro) {
        self.read_tokens(call.tokens.clone());
    }
}

/// Splits `snake_case` and `CamelCase` into lower-case words.
fn split(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_after_lower = false;
    for letter in name.chars() {
        let starts_word = letter == '_' || (letter.is_uppercase() && is_after_lower);
        if starts_word {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| letter != '_') {
            word.extend(letter.to_lowercase());
        }
        is_after_lower = letter.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn a_name_is_split_into_its_words() {
        assert_eq!(split("goes_on_with"), ["goes", "on", "with"]);
        assert_eq!(split("_StandIn2"), ["stand", "in2"]);
        assert_eq!(split("MAX_LEN"), ["max", "len"]);
    }
}
