//! Hosts of URLs.

/// Returns the host of a URL in lower case; `None` if any part of the URL is unusual.
pub(super) fn host(url: &str) -> Option<String> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
    let host = rest.split(['/', '?', '#']).next()?;
    let host = host.split_once(':').map_or(host, |(host, port)| if port.is_empty() { "" } else { host });
    let is_plain = !host.is_empty() && host.chars().all(|c| c.is_ascii_alphanumeric() || c == '.' || c == '-');
    let climbs = url.split(['/', '?', '#']).any(|part| part == "..");
    let odd = climbs || url.contains(['\\', '@', '%']) || url.chars().any(|c| c.is_whitespace() || c.is_control());
    (is_plain && !odd).then(|| host.to_ascii_lowercase())
}

/// Characters that may end the authority of a URL within a text.
const ENDS: [char; 12] = ['/', '?', '#', ' ', '"', '\'', ')', '>', ',', ';', '\0', '\u{a0}'];

/// Returns everything in a text that may be the host of a URL, in lower case.
pub(super) fn hosts(text: &str) -> Vec<String> {
    // URL parsers drop tabs and line ends, read a backslash as a slash, and accept any number of slashes.
    let text: String = text.chars().filter(|c| !matches!(c, '\t' | '\r' | '\n')).collect();
    let text = decoded(&text.replace('\\', "/"));
    let mut found = Vec::new();
    for rest in std::iter::once(text.as_str()).chain(text.split(':').skip(1)) {
        let rest = rest.trim_start_matches(['/', ' ']);
        let authority = rest.split(ENDS).next().unwrap_or_default();
        for host in [authority, authority.rsplit('@').next().unwrap_or_default()] {
            let host = host.split(':').next().unwrap_or_default().trim_end_matches('.');
            found.push(host.to_lowercase());
        }
    }
    // `user:password@host`: the colon does not end the authority.
    for part in text.split('@').skip(1) {
        let host = part.split(ENDS).next().unwrap_or_default().split(':').next().unwrap_or_default();
        found.push(host.trim_end_matches('.').to_lowercase());
    }
    found.retain(|host| !host.is_empty());
    found
}

/// Whether a text names a host in a form that some parsers map to another one: with letters that are mapped to ASCII, or as a
/// number.
pub(super) fn has_unusual_host(text: &str) -> bool {
    let is_number = |host: &String| {
        let parts: Vec<&str> = host.split('.').collect();
        let number = |part: &&str| {
            let digits = part.strip_prefix("0x").unwrap_or(part);
            !digits.is_empty()
                && digits.chars().all(|c| c.is_ascii_hexdigit())
                && part.starts_with(|c: char| c.is_ascii_digit())
        };
        let is_address =
            parts.len() == 4 && parts.iter().all(|part| part.parse::<u8>().is_ok_and(|n| n.to_string() == **part));
        parts.iter().all(number) && !is_address
    };
    let lower = text.to_ascii_lowercase();
    let is_url = lower.contains("://") || lower.contains(":\\") || lower.starts_with("//") || lower.starts_with("http");
    // A lone number may be a port.
    let is_odd = |host: &String| {
        let is_encoded = !host.is_ascii() || host.contains('%') || host.split('.').any(|part| part.starts_with("xn--"));
        is_encoded || is_number(host) && (host.contains('.') || host.len() > 5)
    };
    is_url && hosts(text).iter().any(is_odd)
}

/// Decodes `%XX` for ASCII.
pub(super) fn decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.get(..2).and_then(|code| u8::from_str_radix(code, 16).ok()).filter(u8::is_ascii);
        match (code, part.get(2..)) {
            (Some(code), Some(rest)) => whole.extend([char::from(code).to_string().as_str(), rest]),
            _ => whole.extend(["%", part]),
        }
    }
    whole
}
