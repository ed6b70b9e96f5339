//! Tokens in requests.

use axum::http::StatusCode;

use super::{bearer, fixture, with};
use crate::access::{Scope, Secret, Tokens};
use crate::clock::Clock;

#[tokio::test]
async fn without_a_token_only_open_routes_answer() {
    let gateway = fixture();
    assert_eq!(gateway.get("/healthz", "").await.text, "ok");
    assert_eq!(gateway.get("/", "").await.text, "page");
    for path in ["/v1/things", "/v1/tokens", "/v1/audit", "/v1/session", "/nothing", "/healthz/", "//healthz"] {
        let answer = gateway.get(path, "").await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{path}");
        assert_eq!(answer.headers["www-authenticate"], "Bearer");
        assert_eq!(answer.headers["content-type"], "application/problem+json");
        assert_eq!(answer.json()["code"], "UNAUTHORIZED");
    }
}

#[tokio::test]
async fn another_spelling_of_a_path_opens_nothing() {
    let gateway = fixture();
    let spellings = [
        "//v1/things",
        "/v1//things",
        "/./v1/things",
        "/healthz/../v1/things",
        "/healthz/%2e%2e/v1/things",
        "/%2e/v1/things",
        "/v1/%74hings",
        "/v1/things/",
        "/V1/things",
        "/v1/things;x=/healthz",
        "/v1/things%00",
        "/healthz%2f..%2fv1/things",
        "http://localhost:4780/v1/things",
    ];
    for path in spellings {
        let answer = gateway.get(path, "").await;
        assert!(matches!(answer.status.as_u16(), 400 | 401 | 404), "{path}: {}", answer.status);
        assert_ne!(answer.text, "things", "{path}");
    }
}

#[tokio::test]
async fn a_token_is_read_from_its_header_only() {
    let gateway = fixture();
    let token = gateway.token(&[Scope::Admin]).await;
    assert_eq!(gateway.get("/v1/things", &token).await.text, "things");
    assert_eq!(
        gateway.send("GET", "/v1/things", &[("authorization", &format!("bearer {token}"))], "").await.text,
        "things"
    );

    for name in ["token", "access_token", "api_key", "authorization"] {
        let answer = gateway.get(&format!("/v1/things?{name}={token}"), "").await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{name}");
    }
    let wrong = [
        ("x-api-key", token.clone()),
        ("authorization", token.clone()),
        ("authorization", format!("Basic {token}")),
        ("authorization", format!("Bearer  {token} x")),
        ("authorization", format!("Bearer {token}x")),
        ("authorization", format!("Bearer {}", token.to_uppercase())),
        ("authorization", "Bearer ".to_owned()),
        ("authorization", format!("Bearer {}", "x".repeat(100_000))),
        ("cookie", format!("teamster_session={token}")),
    ];
    for (name, value) in &wrong {
        let answer = gateway.send("GET", "/v1/things", &[(name, value)], "").await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{name}");
        assert!(!answer.text.contains(&token));
    }
    let doubled = [("authorization", bearer(&token)), ("authorization", bearer(&token))];
    let doubled = doubled.each_ref().map(|(name, value)| (*name, value.as_str()));
    assert_eq!(gateway.send("GET", "/v1/things", &doubled, "").await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_revoked_token_is_refused_at_once() {
    let gateway = fixture();
    let token = gateway.token(&[Scope::Read]).await;
    assert_eq!(gateway.get("/v1/things", &token).await.status, StatusCode::OK);
    let tokens = Tokens::new(gateway.gateway.clone());
    let (all, _) = tokens.list(teamster_store::PageRequest::first(10)).await.unwrap();
    tokens.revoke(all[0].id).await.unwrap();
    let answer = gateway.get("/v1/things", &token).await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    // The response does not reveal whether a token ever existed.
    assert_eq!(answer.text, gateway.get("/v1/things", &format!("tms_{}", "A".repeat(43))).await.text);
}

#[tokio::test]
async fn a_token_does_only_what_its_scopes_permit() {
    let gateway = fixture();
    let cases: [(&[Scope], u16, u16, u16); 4] = [
        (&[Scope::Read], 200, 403, 403),
        (&[Scope::Send], 403, 200, 403),
        (&[Scope::Approve], 403, 200, 403),
        (&[Scope::Admin], 200, 200, 200),
    ];
    for (scopes, read, change, admin) in cases {
        let token = gateway.token(scopes).await;
        assert_eq!(gateway.get("/v1/things", &token).await.status, read, "{scopes:?}");
        assert_eq!(gateway.post("/v1/things", &token, "{}").await.status, change, "{scopes:?}");
        assert_eq!(gateway.get("/v1/audit", &token).await.status, admin, "{scopes:?}");
        assert_eq!(gateway.get("/v1/session", &token).await.status, StatusCode::OK, "{scopes:?}");
        let body = r#"{"owner":"eve","scopes":["admin"]}"#;
        let created = if admin == 200 { 201 } else { 403 };
        assert_eq!(gateway.post("/v1/tokens", &token, body).await.status, created, "{scopes:?}");
    }
    let denied = gateway.audit().await;
    assert!(denied.iter().any(|(action, actor, _)| action == "authorization.denied" && actor.starts_with("token:")));
}

#[tokio::test]
async fn the_fixed_token_is_an_admin_and_a_similar_one_is_not() {
    let fixed = "0123456789abcdef0123456789abcdef";
    let gateway = with(|_| {}, Some(Secret::fixed(fixed).unwrap()), Clock::system());
    assert_eq!(gateway.get("/v1/audit", fixed).await.status, StatusCode::OK);
    for wrong in [fixed.strip_suffix('f').unwrap(), &format!("{fixed}0"), &fixed.to_uppercase()] {
        assert_eq!(gateway.get("/v1/audit", wrong).await.status, StatusCode::UNAUTHORIZED, "{wrong}");
    }
}

#[tokio::test]
async fn guesses_lock_the_fixed_token_for_the_address_but_no_token_of_the_store() {
    let fixed = "0123456789abcdef0123456789abcdef";
    let gateway = with(|_| {}, Some(Secret::fixed(fixed).unwrap()), Clock::system());
    let token = gateway.token(&[Scope::Read]).await;
    let mut locked = None;
    for _ in 0..30 {
        let answer = gateway.get("/v1/things", "a-guess").await;
        if answer.status == StatusCode::TOO_MANY_REQUESTS {
            locked = Some(answer);
            break;
        }
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    }
    let locked = locked.expect("the address is locked");
    assert!(locked.headers["retry-after"].to_str().unwrap().parse::<u64>().unwrap() >= 1);
    assert_eq!(gateway.get("/v1/things", fixed).await.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(gateway.get("/v1/things", &token).await.status, StatusCode::OK);
    let elsewhere = [("authorization", bearer(fixed))];
    let elsewhere = elsewhere.each_ref().map(|(name, value)| (*name, value.as_str()));
    assert_eq!(gateway.send_from("127.0.0.2:9", "GET", "/v1/things", &elsewhere, "").await.status, StatusCode::OK);
}

#[tokio::test]
async fn denials_are_in_the_audit_log_without_secrets_and_cannot_fill_the_disk() {
    let gateway = fixture();
    for number in 0..200 {
        gateway.get("/v1/things?token=tms_secret", &format!("tms_guess-{number}")).await;
    }
    let log = gateway.audit().await;
    assert!((1..=10).contains(&log.len()), "{}", log.len());
    assert!(log.iter().all(|(action, actor, _)| action == "authentication.denied" && actor == "unknown"));
    let text = format!("{log:?}");
    assert!(!text.contains("guess") && !text.contains("secret"), "{text}");
    let page = gateway.gateway.store().audit_log(teamster_store::PageRequest::first(1)).await.unwrap();
    let entry = &page.items[0].entry;
    assert_eq!((entry.subject.as_str(), entry.origin.as_str()), ("/v1/things", "127.0.0.1"));
}

#[tokio::test]
async fn debug_output_shows_no_secret() {
    let fixed = "0123456789abcdef0123456789abcdef";
    let gateway = fixture();
    let fixed_token = Some(Secret::fixed(fixed).unwrap());
    let options = super::ProtectionOptions { listen: gateway.gateway.config().listen, fixed_token };
    let text = format!("{options:?} {:?}", super::Protection::new(gateway.gateway.clone(), options.clone()).unwrap());
    assert!(!text.contains(fixed) && text.contains("***"), "{text}");
    let new = crate::access::NewToken { owner: "ada".to_owned(), scopes: vec![Scope::Read] };
    let created = Tokens::new(gateway.gateway.clone()).create(new).await.unwrap();
    assert!(!format!("{created:?}").contains(created.1.expose()));
}

#[test]
fn a_short_fixed_token_is_refused_where_others_can_try_it() {
    use crate::config::Config;
    let short = || Some(Secret::fixed("hunter2").unwrap());
    let change = |config: &mut Config| config.listen = "192.0.2.1:4780".parse().unwrap();
    let refused = std::panic::catch_unwind(|| with(change, short(), Clock::system()));
    assert!(refused.is_err());
    with(|_| {}, short(), Clock::system());
}
