//! The forms of a secret: its lines, other line ends, and its common encodings.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD};
use serde_json::Value;

/// The minimum length of a secret. Shorter values are ordinary words: `true`, `default`, `8080`.
pub(crate) const SHORTEST: usize = 8;

/// Returns every form of a value that is at least [`SHORTEST`] bytes long.
///
/// The flag is true if a part of the form at a cut is a secret too. That is so for the value, its lines and its JSON strings,
/// but not for encodings.
pub(super) fn of(value: &str) -> BTreeMap<String, bool> {
    let mut forms = BTreeMap::new();
    for plain in plain_forms(value) {
        for encoded in encodings(&plain) {
            forms.entry(encoded).or_insert(false);
        }
        for quoted in quoted_forms(&plain) {
            forms.insert(quote(&quoted), true);
            forms.insert(quoted, true);
        }
        forms.insert(plain, true);
    }
    forms.retain(|form, _| form.len() >= SHORTEST);
    forms
}

/// Returns the value with line feeds, with carriage returns before them, and each of its lines. If a value contains `\n` as two
/// characters, as in variables without real line breaks, the forms with real line breaks are returned too.
fn plain_forms(value: &str) -> Vec<String> {
    let mut forms = vec![value.to_owned()];
    let unix = value.replace("\r\n", "\n");
    let unescaped = unix.replace("\\r\\n", "\n").replace("\\n", "\n");
    for text in [unix, unescaped] {
        if text.contains('\n') {
            forms.extend(text.lines().map(|line| line.trim().to_owned()));
            forms.push(text.replace('\n', "\r\n"));
        }
        forms.push(text);
    }
    forms.sort_unstable();
    forms.dedup();
    forms.retain(|form| form.len() >= SHORTEST);
    forms
}

/// Returns the value as it appears in JSON strings. Writers differ in what they escape without need: slashes (PHP), characters
/// of HTML (Go, Gson), and characters outside ASCII (Python, PHP).
fn quoted_forms(value: &str) -> [String; 6] {
    let quoted = quote(value);
    let html = quoted.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026");
    let gson = html.replace('=', "\\u003d").replace('\'', "\\u0027");
    let ascii = ascii(&quoted);
    [quoted.replace('/', "\\/"), html, gson, ascii.replace('/', "\\/"), ascii, quoted]
}

/// Returns the text with escapes for all characters outside ASCII.
fn ascii(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        if character.is_ascii() {
            escaped.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                // Writing to a string cannot fail.
                _ = write!(escaped, "\\u{unit:04x}");
            }
        }
    }
    escaped
}

/// Returns the value as it appears in a JSON string.
fn quote(value: &str) -> String {
    let quoted = Value::from(value).to_string();
    quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(&quoted).to_owned()
}

fn encodings(value: &str) -> impl Iterator<Item = String> {
    let base64 = (0..3).flat_map(|offset| {
        let mut bytes = vec![0; offset];
        bytes.extend_from_slice(value.as_bytes());
        // The characters that depend only on the secret, and not on the text around it.
        let (first, end) = ((offset * 8).div_ceil(6), bytes.len() * 8 / 6);
        let alphabets = [BASE64_STANDARD_NO_PAD.encode(&bytes), BASE64_URL_SAFE_NO_PAD.encode(&bytes)];
        alphabets.map(|encoded| encoded.get(first..end).unwrap_or_default().to_owned())
    });
    let (mut upper, mut lower) = (String::new(), String::new());
    for byte in value.bytes() {
        // Writing to a string cannot fail.
        _ = write!(upper, "{byte:02X}");
        _ = write!(lower, "{byte:02x}");
    }
    let percent = UNRESERVED.into_iter().flat_map(|unreserved| {
        let encoded = percent_encoded(value, unreserved);
        let lower = lower_digits(&encoded);
        [encoded.replace("%20", "+"), lower.replace("%20", "+"), lower, encoded]
    });
    base64.chain([upper, lower]).chain(percent)
}

/// Characters that are not escaped in URLs besides letters and digits: in RFC 3986, Python, `encodeURIComponent` and
/// `encodeURI`.
const UNRESERVED: [&[u8]; 4] = [b"-._~", b"-._~/", b"-._~!*'()", b"-._~!*'();/?:@&=+$,#"];

/// Returns the encoded text with lower-case letters in its escapes.
fn lower_digits(encoded: &str) -> String {
    let mut escape = 0;
    let lower = encoded.chars().map(|character| {
        escape = if character == '%' { 3 } else { escape - i32::from(escape > 0) };
        if escape > 0 { character.to_ascii_lowercase() } else { character }
    });
    lower.collect()
}

fn percent_encoded(value: &str, unreserved: &[u8]) -> String {
    let mut encoded = String::new();
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || unreserved.contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}
