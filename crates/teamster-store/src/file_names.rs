//! Finds the names of files in documents: a file is named by the SHA-256 of its content, in hexadecimal digits.

use std::collections::BTreeSet;

/// The number of digits of a name.
const DIGITS: usize = 64;

/// Moves the names that a document contains from one set to the other.
pub(crate) fn take_names(document: &str, wanted: &mut BTreeSet<String>, found: &mut Vec<String>) {
    for text in document.split('"').filter(|text| text.len() == DIGITS) {
        found.extend(wanted.take(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_texts_of_a_document_are_names() {
        let (one, other) = ("a".repeat(DIGITS), "b".repeat(DIGITS));
        let document = format!(r#"{{"hash":"{one}","text":"see {other}"}}"#);
        let (mut wanted, mut found) = (BTreeSet::from([one.clone(), other.clone()]), Vec::new());
        take_names(&document, &mut wanted, &mut found);
        assert_eq!((found, wanted), (vec![one], BTreeSet::from([other])));
    }
}
