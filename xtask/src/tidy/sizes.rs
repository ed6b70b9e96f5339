//! Limits on the length of files and functions.

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::source::{Check, Finding, Source};

const MAX_FILE_LINES: usize = 400;
/// Lines of a function's body with code on them.
const MAX_FUNCTION_LINES: usize = 60;

pub(super) fn check(source: &Source, syntax: &syn::File) -> Vec<Finding> {
    let mut functions = Functions { source, findings: Vec::new() };
    functions.visit_file(syntax);
    let mut findings = functions.findings;
    findings.extend(check_length(source));
    findings
}

/// Checks the length of a file.
pub(super) fn check_length(source: &Source) -> Option<Finding> {
    let lines = source.text.lines().count();
    (lines > MAX_FILE_LINES).then(|| {
        let text = format!("{lines} lines; split it by subject into files of at most {MAX_FILE_LINES}");
        Finding { file: source.path.clone(), line: None, check: Check::Files, text }
    })
}

struct Functions<'a> {
    source: &'a Source,
    findings: Vec<Finding>,
}

impl Functions<'_> {
    fn function(&mut self, name: &syn::Ident, body: &syn::Block) {
        let (start, end) = (body.span().start().line, body.span().end().line);
        let inside = self.source.text.lines().skip(start).take(end.saturating_sub(start + 1)).map(str::trim);
        let lines = inside.filter(|line| !line.is_empty() && !line.starts_with("//")).count();
        if lines > MAX_FUNCTION_LINES {
            self.findings.push(Finding {
                file: self.source.path.clone(),
                line: Some(name.span().start().line),
                check: Check::Functions,
                text: format!("`{name}` has {lines} lines; split it into functions of at most {MAX_FUNCTION_LINES}"),
            });
        }
    }
}

impl Visit<'_> for Functions<'_> {
    fn visit_item_fn(&mut self, function: &syn::ItemFn) {
        self.function(&function.sig.ident, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &syn::ImplItemFn) {
        self.function(&function.sig.ident, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &syn::TraitItemFn) {
        if let Some(body) = &function.default {
            self.function(&function.sig.ident, body);
        }
        visit::visit_trait_item_fn(self, function);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: String) -> Vec<String> {
        let syntax = syn::parse_file(&text).unwrap();
        check(&Source { path: "src/a.rs".into(), text }, &syntax).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_function_with_61_lines_of_code_is_too_long() {
        let long = |lines| format!("struct S;\nimpl S {{\n    fn go() {{\n{}    }}\n}}\n", "go();\n".repeat(lines));
        assert_eq!(found(long(60)), [""; 0]);
        assert_eq!(found(long(61)), ["src/a.rs:3: `go` has 61 lines; split it into functions of at most 60"]);
    }

    #[test]
    fn blank_lines_and_comments_do_not_count_for_a_function() {
        assert_eq!(found(format!("fn go() {{\n{}}}\n", "go();\n\n// why\n".repeat(60))), [""; 0]);
    }

    #[test]
    fn a_file_with_401_lines_is_too_long() {
        assert_eq!(found("struct S;\n".repeat(400)), [""; 0]);
        let [found] = &found("struct S;\n".repeat(401))[..] else { panic!() };
        assert!(found.starts_with("src/a.rs: 401 lines"), "{found}");
    }
}
