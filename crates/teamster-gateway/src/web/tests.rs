//! The page's files and their headers.

use std::collections::BTreeSet;
use std::path::Path;

use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request};
use tower::ServiceExt as _;

use super::files::FILES;
use super::router;

async fn request(path: &str, headers: &[(&str, &str)]) -> (u16, HeaderMap, Vec<u8>) {
    let builder = headers.iter().fold(Request::get(path), |builder, (name, value)| builder.header(*name, *value));
    let response = router().oneshot(builder.body(Body::empty()).unwrap()).await.unwrap();
    let (parts, body) = response.into_parts();
    (parts.status.as_u16(), parts.headers, to_bytes(body, usize::MAX).await.unwrap().to_vec())
}

#[test]
fn every_built_file_is_embedded() {
    fn list(folder: &Path, prefix: &str, found: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            if entry.file_type().unwrap().is_dir() {
                list(&entry.path(), &format!("{name}/"), found);
            } else {
                found.insert(name);
            }
        }
    }
    let mut found = BTreeSet::new();
    list(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/web/dist"), "", &mut found);
    let embedded: BTreeSet<_> = FILES.iter().map(|file| file.path.to_owned()).collect();
    assert_eq!(found, embedded);
}

#[tokio::test]
async fn the_page_forbids_scripts_and_styles_in_its_text() {
    let (status, headers, body) = request("/", &[]).await;
    assert_eq!((status, headers["content-type"].to_str().unwrap()), (200, "text/html; charset=utf-8"));
    let policy = headers["content-security-policy"].to_str().unwrap();
    for part in ["default-src 'none'", "script-src 'self'", "style-src 'self'", "trusted-types 'none'"] {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!policy.contains("unsafe"));
    let html = String::from_utf8(body).unwrap();
    assert!(!html.contains("<style") && !html.contains("style=") && !html.contains("onload="));
    assert_eq!(html.matches("<script").count(), html.matches("src=\"/assets/").count());
}

#[tokio::test]
async fn a_browser_that_has_a_file_does_not_load_it_again() {
    let (_, headers, _) = request("/assets/page.js", &[]).await;
    assert_eq!(headers["cache-control"], "no-cache");
    let tag = headers["etag"].to_str().unwrap().to_owned();
    let (status, headers, body) = request("/assets/page.js", &[("if-none-match", &tag)]).await;
    assert_eq!((status, body.len()), (304, 0));
    assert_eq!(headers["etag"].to_str().unwrap(), tag);
    assert_eq!(request("/assets/page.js", &[("if-none-match", "\"other\"")]).await.0, 200);
    assert_ne!(request("/", &[]).await.1["etag"].to_str().unwrap(), tag);
}

#[tokio::test]
async fn files_are_compressed_for_clients_that_accept_it() {
    let (_, headers, plain) = request("/assets/page.js", &[("accept-encoding", "gzip")]).await;
    assert!(!headers.contains_key("content-encoding"));
    let (_, headers, deflated) = request("/assets/page.js", &[("accept-encoding", "gzip, deflate, br")]).await;
    assert_eq!(headers["content-encoding"], "deflate");
    assert_eq!(miniz_oxide::inflate::decompress_to_vec_zlib(&deflated).unwrap(), plain);
    let refused = request("/assets/page.js", &[("accept-encoding", "deflate;q=0")]).await;
    assert!(!refused.1.contains_key("content-encoding"));
}

#[tokio::test]
async fn the_build_is_a_hash_of_the_files() {
    let (status, headers, body) = request("/page-build.json", &[]).await;
    assert_eq!((status, headers["cache-control"].to_str().unwrap()), (200, "no-store"));
    let value: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(value["build"].as_str().unwrap().len(), 24);
}
