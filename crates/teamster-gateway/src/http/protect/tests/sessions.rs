//! The cookie of the page.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use axum::http::StatusCode;
use teamster_store::{PageRequest, Timestamp};

use super::{Fixture, bearer, fixture, with};
use crate::access::{Scope, Secret, Tokens};
use crate::clock::Clock;

const ORIGIN: (&str, &str) = ("origin", "http://localhost:4780");
const CSRF: (&str, &str) = ("x-teamster-csrf", "1");
const JSON: (&str, &str) = ("content-type", "application/json");

/// Logs in, and returns the cookie as a browser sends it.
async fn log_in(gateway: &Fixture, token: &str) -> String {
    let answer = gateway.post("/v1/session", token, "").await;
    assert_eq!(answer.status, StatusCode::CREATED);
    let cookie = answer.headers["set-cookie"].to_str().unwrap();
    for attribute in ["; Path=/", "; HttpOnly", "; SameSite=Strict", "; Max-Age="] {
        assert!(cookie.contains(attribute), "{attribute}");
    }
    assert!(!cookie.contains("Domain") && !cookie.contains(token));
    cookie.split(';').next().unwrap().to_owned()
}

async fn get(gateway: &Fixture, cookie: &str) -> StatusCode {
    gateway.send("GET", "/v1/things", &[("cookie", cookie)], "").await.status
}

#[tokio::test]
async fn a_session_reads_and_changes_with_both_headers() {
    let gateway = fixture();
    let token = gateway.token(&[Scope::Read, Scope::Send]).await;
    let cookie = log_in(&gateway, &token).await;
    let session = gateway.send("GET", "/v1/session", &[("cookie", &format!("other=1; {cookie}"))], "").await.json();
    assert_eq!(session["owner"], "ada");
    assert_eq!(session["scopes"], serde_json::json!(["read", "send"]));
    assert!(session["expiresAt"].as_str().is_some_and(|time| time.ends_with('Z')), "{session}");
    let changed = gateway.send("POST", "/v1/things", &[("cookie", &cookie), ORIGIN, CSRF, JSON], "{}").await;
    assert_eq!(changed.status, StatusCode::OK);
    assert_eq!(gateway.send("POST", "/v1/tokens", &[("cookie", &cookie), ORIGIN, CSRF, JSON], "{}").await.status, 400);
}

#[tokio::test]
async fn another_site_changes_nothing_with_the_cookie() {
    let gateway = fixture();
    let cookie = log_in(&gateway, &gateway.token(&[Scope::Admin]).await).await;
    let cookie = ("cookie", cookie.as_str());
    let attempts: [&[(&str, &str)]; 7] = [
        &[cookie, JSON],
        &[cookie, ORIGIN, JSON],
        &[cookie, CSRF, JSON],
        &[cookie, CSRF, JSON, ("origin", "https://evil.example")],
        &[cookie, CSRF, JSON, ("origin", "null")],
        &[cookie, CSRF, JSON, ("origin", "http://localhost:3000")],
        &[cookie, ORIGIN, CSRF, JSON, ("sec-fetch-site", "same-site")],
    ];
    for headers in attempts {
        for method in ["POST", "PUT", "PATCH", "DELETE"] {
            let answer = gateway.send(method, "/v1/things", headers, "{}").await;
            assert_eq!(answer.status, StatusCode::FORBIDDEN, "{method} {headers:?}");
        }
    }
    let read = gateway.send("GET", "/v1/things", &[cookie, ("sec-fetch-site", "cross-site")], "").await;
    assert_eq!(read.status, StatusCode::FORBIDDEN);
    assert!(gateway.audit().await.iter().any(|(_, _, details)| details.contains("csrf")));
}

#[tokio::test]
async fn a_session_ends_with_its_logout_and_with_its_token() {
    let gateway = fixture();
    let token = gateway.token(&[Scope::Read]).await;
    let (first, second) = (log_in(&gateway, &token).await, log_in(&gateway, &token).await);
    assert_eq!((get(&gateway, &first).await, get(&gateway, &second).await), (StatusCode::OK, StatusCode::OK));
    let ended = gateway.send("DELETE", "/v1/session", &[("cookie", &first), ORIGIN, CSRF], "").await;
    assert_eq!(ended.status, StatusCode::NO_CONTENT);
    assert!(ended.headers["set-cookie"].to_str().unwrap().contains("Max-Age=0"));
    assert_eq!((get(&gateway, &first).await, get(&gateway, &second).await), (StatusCode::UNAUTHORIZED, StatusCode::OK));

    let tokens = Tokens::new(gateway.gateway.clone());
    let (all, _) = tokens.list(PageRequest::first(1)).await.unwrap();
    tokens.revoke(all[0].id).await.unwrap();
    assert_eq!(get(&gateway, &second).await, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_session_ends_with_its_time() {
    let now = Arc::new(AtomicI64::new(1_800_000_000_000));
    let clock = {
        let now = Arc::clone(&now);
        Clock::new(move || Timestamp::from_millis(now.load(Ordering::SeqCst)))
    };
    let gateway = with(|_| {}, None, clock);
    let cookie = log_in(&gateway, &gateway.token(&[Scope::Read]).await).await;
    now.fetch_add(30 * 86_400_000 - 1, Ordering::SeqCst);
    assert_eq!(get(&gateway, &cookie).await, StatusCode::OK);
    now.fetch_add(1, Ordering::SeqCst);
    assert_eq!(get(&gateway, &cookie).await, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_session_of_another_fixed_token_is_over() {
    let secret = |text: &str| Some(Secret::fixed(text).unwrap());
    let fixed = "0123456789abcdef0123456789abcdef";
    let gateway = with(|_| {}, secret(fixed), Clock::system());
    let cookie = log_in(&gateway, fixed).await;
    assert_eq!(get(&gateway, &cookie).await, StatusCode::OK);
    for other in [None, secret("fedcba9876543210fedcba9876543210")] {
        let listen = gateway.gateway.config().listen;
        let options = super::ProtectionOptions { listen, fixed_token: other };
        let protection = super::Protection::new(gateway.gateway.clone(), options).unwrap();
        let app = protection.protect(axum::Router::new(), crate::http::tokens::router(protection.clone()).into());
        let other = Fixture { app, gateway: gateway.gateway.clone(), directory: tempfile::tempdir().unwrap() };
        let answer = other.send("GET", "/v1/session", &[("cookie", &cookie)], "").await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    }
}

#[tokio::test]
async fn a_cookie_is_no_token_and_starts_no_session() {
    let gateway = fixture();
    let cookie = log_in(&gateway, &gateway.token(&[Scope::Admin]).await).await;
    let secret = cookie.split_once('=').unwrap().1;
    assert_eq!(gateway.get("/v1/things", secret).await.status, StatusCode::UNAUTHORIZED);
    let again = gateway.send("POST", "/v1/session", &[("cookie", &cookie), ORIGIN, CSRF], "").await;
    assert_eq!(again.status, StatusCode::FORBIDDEN);
    let log_out = gateway.token(&[Scope::Read]).await;
    let answer = gateway.send("DELETE", "/v1/session", &[("authorization", &bearer(&log_out))], "").await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn behind_tls_the_cookie_is_secure() {
    let gateway = with(|config| config.behind_proxy = true, None, Clock::system());
    let token = gateway.token(&[Scope::Read]).await;
    let answer = gateway.post("/v1/session", &token, "").await;
    assert!(answer.headers["set-cookie"].to_str().unwrap().ends_with("; Secure"));
}

#[tokio::test]
async fn the_sessions_of_a_token_are_limited() {
    let gateway = fixture();
    let token = gateway.token(&[Scope::Read]).await;
    let mut created = 0;
    loop {
        let answer = gateway.post("/v1/session", &token, "").await;
        if answer.status != StatusCode::CREATED {
            assert_eq!(answer.status, StatusCode::TOO_MANY_REQUESTS);
            assert!(answer.headers.contains_key("retry-after"));
            break;
        }
        created += 1;
        assert!(created < 1_000, "there is no limit");
    }
    let other = gateway.token(&[Scope::Read]).await;
    assert_eq!(gateway.post("/v1/session", &other, "").await.status, StatusCode::CREATED);
}
