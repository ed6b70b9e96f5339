//! Tokens and the audit log by HTTP, and the first token.

use axum::http::StatusCode;

use super::{fixture, with};
use crate::access::{FirstToken, Scope, Secret};
use crate::clock::Clock;

#[tokio::test]
async fn a_secret_is_shown_once() {
    let gateway = fixture();
    let admin = gateway.token(&[Scope::Admin]).await;
    let created = gateway.post("/v1/tokens", &admin, r#"{"owner":"bob","scopes":["send","read","read"]}"#).await;
    assert_eq!(created.status, StatusCode::CREATED);
    assert_eq!(created.headers["cache-control"], "no-store");
    let created = created.json();
    let secret = created["secret"].as_str().unwrap();
    assert!(secret.starts_with("tms_"));
    assert_eq!(created["scopes"], serde_json::json!(["read", "send"]));
    assert_eq!(gateway.get("/v1/things", secret).await.status, StatusCode::OK);

    let listed = gateway.get("/v1/tokens", &admin).await;
    assert!(!listed.text.contains(secret) && !listed.text.contains("secret") && !listed.text.contains("hash"));
    assert_eq!(listed.json()["items"][1]["owner"], "bob");
    let stored = gateway.gateway.store().tokens(teamster_store::PageRequest::first(9)).await.unwrap();
    assert!(!format!("{stored:?}").contains(secret));

    let path = format!("/v1/tokens/{}", created["id"].as_str().unwrap());
    let revoked = gateway.send("DELETE", &path, &[("authorization", &super::bearer(&admin))], "").await;
    assert_eq!(revoked.status, StatusCode::OK);
    assert!(revoked.json()["revokedAt"].is_string());
    assert_eq!(gateway.get("/v1/things", secret).await.status, StatusCode::UNAUTHORIZED);
    let log = gateway.get("/v1/audit", &admin).await;
    let actions: Vec<_> = log.json()["items"].as_array().unwrap().iter().map(|entry| entry["action"].clone()).collect();
    assert_eq!(actions, ["token.create", "token.revoke", "authentication.denied"]);
    assert_eq!(log.json()["items"][0]["origin"], "127.0.0.1");
    assert!(!log.text.contains(secret));
}

#[tokio::test]
async fn lists_have_pages() {
    let gateway = fixture();
    let admin = gateway.token(&[Scope::Admin]).await;
    for _ in 0..4 {
        gateway.token(&[Scope::Read]).await;
    }
    let first = gateway.get("/v1/tokens?limit=3", &admin).await.json();
    assert_eq!(first["items"].as_array().unwrap().len(), 3);
    let cursor = first["nextCursor"].as_str().unwrap();
    let second = gateway.get(&format!("/v1/tokens?limit=3&cursor={cursor}"), &admin).await.json();
    assert_eq!(second["items"].as_array().unwrap().len(), 2);
    assert!(second.get("nextCursor").is_none());
    for query in ["limit=0", "limit=501", "limit=x", "cursor=!!", "unknown=1"] {
        let answer = gateway.get(&format!("/v1/tokens?{query}"), &admin).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{query}");
    }
}

#[tokio::test]
async fn an_invalid_token_is_not_created_and_the_answer_contains_why() {
    let gateway = fixture();
    let admin = gateway.token(&[Scope::Admin]).await;
    let bodies = [
        r#"{"owner":"","scopes":["read"]}"#,
        r#"{"owner":"a\nb","scopes":["read"]}"#,
        r#"{"owner":"bob","scopes":[]}"#,
        r#"{"owner":"bob","scopes":["root"]}"#,
        r#"{"owner":"bob"}"#,
        r#"{"owner":"bob","scopes":["read"],"hash":"x"}"#,
        "not json",
    ];
    for body in bodies {
        let answer = gateway.post("/v1/tokens", &admin, body).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{body}");
        assert!(answer.json()["detail"].as_str().unwrap().len() > 10);
    }
    let unknown = "/v1/tokens/018f0000-0000-7000-8000-000000000000";
    let authorization = super::bearer(&admin);
    let answer = gateway.send("DELETE", unknown, &[("authorization", &authorization)], "").await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_first_token_is_created_once_in_a_file_that_only_this_user_can_read() {
    let gateway = fixture();
    let FirstToken::Created { secret, file } = gateway.first().await else { panic!("there was a token") };
    assert_eq!(file, gateway.directory.path().join("token"));
    assert_eq!(std::fs::read_to_string(&file).unwrap().trim(), secret.expose());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }
    assert_eq!(gateway.get("/v1/audit", secret.expose()).await.status, StatusCode::OK);
    assert_eq!(gateway.first().await, FirstToken::Exists { file: file.clone() });
    // The output of a log shows the file only.
    assert!(!format!("{:?}", FirstToken::Created { secret: secret.clone(), file }).contains(secret.expose()));
}

#[tokio::test]
async fn a_store_whose_token_file_is_missing_gets_another_token() {
    let gateway = fixture();
    let FirstToken::Created { secret: earlier, file } = gateway.first().await else { panic!("there was a token") };
    std::fs::remove_file(&file).unwrap();
    let FirstToken::Created { secret, .. } = gateway.first().await else { panic!("there is no way in") };
    assert_eq!(std::fs::read_to_string(&file).unwrap().trim(), secret.expose());
    for secret in [earlier, secret] {
        assert_eq!(gateway.get("/v1/audit", secret.expose()).await.status, StatusCode::OK);
    }
}

#[tokio::test]
async fn a_session_is_not_the_first_token() {
    let fixed = "0123456789abcdef0123456789abcdef";
    let gateway = with(|_| {}, Some(Secret::fixed(fixed).unwrap()), Clock::system());
    assert_eq!(gateway.post("/v1/session", fixed, "").await.status, StatusCode::CREATED);
    assert!(matches!(gateway.first().await, FirstToken::Created { .. }));
}

#[tokio::test]
async fn a_file_of_the_first_token_that_others_can_read_is_replaced() {
    let gateway = fixture();
    let file = gateway.directory.path().join("token");
    std::fs::write(&file, "old").unwrap();
    let FirstToken::Created { secret, .. } = gateway.first().await else { panic!("there was a token") };
    assert_eq!(std::fs::read_to_string(&file).unwrap().trim(), secret.expose());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
