//! The links of a Markdown page to files of the repository: each file must exist.

use std::path::Path;

use pulldown_cmark::{Event, Options, Parser, Tag};

use super::source::{Check, Finding, Source};

pub(super) fn check(source: &Source, root: &Path) -> Vec<Finding> {
    let folder = root.join(source.path.parent().unwrap_or(Path::new("")));
    let parser = Parser::new_ext(&source.text, Options::ENABLE_TABLES).into_offset_iter();
    let links = parser.filter_map(|(event, range)| match event {
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => Some((dest_url, range.start)),
        _ => None,
    });
    let broken = links.filter(|(url, _)| is_broken(url, &folder));
    broken
        .map(|(url, at)| Finding {
            file: source.path.clone(),
            line: Some(source.text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1),
            check: Check::Links,
            text: format!("the link `{url}` names no file of the repository"),
        })
        .collect()
}

/// Whether a link names a file that does not exist. URLs and places within the page are not checked.
fn is_broken(url: &str, folder: &Path) -> bool {
    let file = url.split_once('#').map_or(url, |(file, _)| file);
    !file.is_empty() && !file.contains(':') && !folder.join(file).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_to_a_missing_file_is_found_with_its_line() {
        let text = "# A page\n\n[here](page.md), [there](missing.md#part) and [away](https://example.com/x)\n";
        let source = Source { path: "page.md".into(), text: text.to_owned() };
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("page.md"), text).unwrap();
        let found: Vec<_> = check(&source, folder.path()).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["page.md:3: the link `missing.md#part` names no file of the repository"]);
    }
}
