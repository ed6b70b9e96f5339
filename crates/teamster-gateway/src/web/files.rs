//! The files of the page.

use std::sync::LazyLock;

use sha2::{Digest as _, Sha256};

/// A file of the page.
#[derive(Debug)]
pub(super) struct File {
    /// Its path in the URL, without the first slash.
    pub(super) path: &'static str,
    /// Its media type.
    pub(super) media_type: &'static str,
    pub(super) content: &'static [u8],
    /// The content in the format zlib, if that is smaller.
    pub(super) deflated: Option<Vec<u8>>,
    /// A hash of the content, in quotes.
    pub(super) tag: String,
}

/// Names the committed files. A test compares the list with the directory.
macro_rules! files {
    ($($path:literal: $media_type:expr,)*) => {
        &[$(($path, $media_type, include_bytes!(concat!("dist/", $path)))),*]
    };
}

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

/// The path, media type and content of each file.
const EMBEDDED: &[(&str, &str, &[u8])] = files! {
    "index.html": HTML,
    "icon.svg": "image/svg+xml",
    "assets/conversation.js": SCRIPT,
    "assets/grammars.js": SCRIPT,
    "assets/jsxRuntime.js": SCRIPT,
    "assets/operate.js": SCRIPT,
    "assets/page.js": SCRIPT,
    "assets/problem.js": SCRIPT,
    "assets/style.css": STYLE,
    "assets/usage.js": SCRIPT,
};

/// The files of the page. They are compressed once, when the first one is requested.
pub(super) static FILES: LazyLock<Vec<File>> = LazyLock::new(|| {
    let file = |(path, media_type, content): &(&'static str, &'static str, &'static [u8])| {
        let deflated = miniz_oxide::deflate::compress_to_vec_zlib(content, 9);
        let deflated = (deflated.len() < content.len()).then_some(deflated);
        File { path, media_type, content, deflated, tag: format!("\"{}\"", short_hash([*content])) }
    };
    EMBEDDED.iter().map(file).collect()
});

/// The build of the page: a hash of all files. A page that is open compares it with its own.
pub(super) static BUILD: LazyLock<String> =
    LazyLock::new(|| short_hash(EMBEDDED.iter().flat_map(|(path, _, content)| [path.as_bytes(), *content])));

fn short_hash<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes());
        hash.update(part);
    }
    let mut text = base16ct::lower::encode_string(&hash.finalize());
    text.truncate(24);
    text
}
