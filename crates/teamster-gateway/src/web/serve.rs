//! The routes of the page's files.

use axum::Router;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;

use super::files::{BUILD, FILES, File};

/// What the page may load and do: its own files, and calls of this gateway. No text can become a script.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; \
    font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
    trusted-types 'none'";

/// Returns the routes of the page: `/`, its files, and `/page-build.json`. They need no token.
pub fn router() -> Router {
    let build = get(|| std::future::ready(build()));
    FILES.iter().fold(Router::new().route("/page-build.json", build), |router, file| {
        let handler = get(move |headers: HeaderMap| std::future::ready(respond(file, &headers)));
        let path = if file.path == "index.html" { "/".to_owned() } else { format!("/{}", file.path) };
        router.route(&path, handler)
    })
}

/// Returns the build of the page, so that an open page can detect that it is old.
fn build() -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    (headers, format!("{{\"build\":\"{}\"}}", *BUILD)).into_response()
}

/// Returns a file, or 304 if the browser has it. Its name does not change with its content, so a browser always
/// revalidates it.
fn respond(file: &'static File, request: &HeaderMap) -> Response {
    let mut headers = HeaderMap::new();
    let mut set = |name: HeaderName, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    };
    set(header::ETAG, &file.tag);
    set(header::CACHE_CONTROL, "no-cache");
    set(header::VARY, "Accept-Encoding");
    set(header::CONTENT_SECURITY_POLICY, POLICY);
    set(HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
    set(HeaderName::from_static("cross-origin-resource-policy"), "same-origin");
    set(HeaderName::from_static("permissions-policy"), "camera=(), microphone=(), geolocation=(), payment=()");
    if has(request, &header::IF_NONE_MATCH, |tag| tag.trim_start_matches("W/") == file.tag || tag == "*") {
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    set(header::CONTENT_TYPE, file.media_type);
    match &file.deflated {
        Some(deflated) if has(request, &header::ACCEPT_ENCODING, accepts_deflate) => {
            set(header::CONTENT_ENCODING, "deflate");
            (headers, deflated.as_slice()).into_response()
        }
        _ => (headers, file.content).into_response(),
    }
}

/// Returns whether an item of a header's list satisfies a condition.
fn has(request: &HeaderMap, name: &HeaderName, is_wanted: impl Fn(&str) -> bool) -> bool {
    let texts = request.get_all(name).iter().filter_map(|value| value.to_str().ok());
    texts.flat_map(|text| text.split(',')).any(|item| is_wanted(item.trim()))
}

fn accepts_deflate(item: &str) -> bool {
    let (coding, quality) = item.split_once(';').unwrap_or((item, ""));
    let is_refused = quality.trim().strip_prefix("q=").is_some_and(|weight| weight.parse() == Ok(0.0));
    coding.trim().eq_ignore_ascii_case("deflate") && !is_refused
}
