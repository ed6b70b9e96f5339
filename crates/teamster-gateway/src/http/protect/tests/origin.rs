//! `Host`, `Origin` and content types.

use axum::http::StatusCode;

use super::{bearer, fixture, with};
use crate::access::Scope;
use crate::clock::Clock;

#[tokio::test]
async fn a_request_under_another_name_is_refused_even_for_open_routes() {
    let gateway = fixture();
    let token = gateway.token(&[Scope::Admin]).await;
    let authorization = bearer(&token);
    let wrong = [
        "",
        "evil.example",
        "evil.example:4780",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "127.0.0.2",
        "127.1",
        "localhost.",
        "xlocalhost",
        "localhost:4780x",
        "localhost:",
        "0.0.0.0:4780",
        "[::]:4780",
        "user@localhost",
    ];
    for host in wrong {
        for path in ["/v1/things", "/healthz", "/"] {
            let answer = gateway.send("GET", path, &[("host", host), ("authorization", &authorization)], "").await;
            assert_eq!(answer.status, StatusCode::FORBIDDEN, "{host} {path}");
        }
    }
    for host in ["localhost", "LOCALHOST:4780", "127.0.0.1:8080", "[::1]:4780"] {
        let answer = gateway.send("GET", "/v1/things", &[("host", host), ("authorization", &authorization)], "").await;
        assert_eq!(answer.status, StatusCode::OK, "{host}");
    }
    let doubled = [("host", "localhost"), ("host", "localhost"), ("authorization", authorization.as_str())];
    assert_eq!(gateway.send("GET", "/v1/things", &doubled, "").await.status, StatusCode::FORBIDDEN);
    let absolute = [("host", "localhost"), ("authorization", authorization.as_str())];
    let answer = gateway.send("GET", "http://evil.example/v1/things", &absolute, "").await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn configured_names_and_the_listen_address_are_accepted() {
    let change = |config: &mut crate::config::Config| {
        config.listen = "192.0.2.10:4780".parse().unwrap();
        config.behind_proxy = true;
        config.hosts = vec!["Agents.example".to_owned(), "other.example:8443".to_owned()];
    };
    let gateway = with(change, None, Clock::system());
    let status = async |host: &str, origin: &str| {
        gateway.send("GET", "/healthz", &[("host", host), ("origin", origin)], "").await.status.as_u16()
    };
    for (host, expected) in [
        ("agents.example", 200),
        ("agents.example:443", 200),
        ("other.example:8443", 200),
        ("other.example", 403),
        ("other.example:1", 403),
        ("192.0.2.10:4780", 200),
    ] {
        assert_eq!(status(host, "").await, expected, "{host}");
    }
    // A proxy may replace `Host`.
    assert_eq!(status("127.0.0.1:4780", "https://agents.example").await, 200);
    assert_eq!(status("agents.example", "https://agents.example").await, 200);
    assert_eq!(status("agents.example", "http://agents.example").await, 403);
    assert_eq!(status("agents.example", "https://agents.example.evil.example").await, 403);
}

#[tokio::test]
async fn a_request_of_another_site_is_refused_even_with_a_token() {
    let gateway = fixture();
    let authorization = bearer(&gateway.token(&[Scope::Admin]).await);
    let origins = [
        "https://evil.example",
        "null",
        "http://localhost:3000",
        "https://localhost:4780",
        "http://localhost",
        "http://127.0.0.1:4780",
        "http://localhost:4780.evil.example",
        "http://localhost:4780/",
        "file://",
    ];
    for origin in origins {
        let headers = [("origin", origin), ("authorization", authorization.as_str())];
        assert_eq!(gateway.send("GET", "/v1/things", &headers, "").await.status, StatusCode::FORBIDDEN, "{origin}");
        let preflight = [("origin", origin), ("access-control-request-method", "POST")];
        let answer = gateway.send("OPTIONS", "/v1/things", &preflight, "").await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{origin}");
        assert!(!answer.headers.contains_key("access-control-allow-origin"));
    }
    let own = [("origin", "http://localhost:4780"), ("authorization", authorization.as_str())];
    assert_eq!(gateway.send("GET", "/v1/things", &own, "").await.status, StatusCode::OK);
}

#[tokio::test]
async fn what_a_form_can_send_is_refused() {
    let gateway = fixture();
    let authorization = bearer(&gateway.token(&[Scope::Admin]).await);
    let refused = [
        "text/plain",
        "TEXT/plain; charset=utf-8",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "",
    ];
    for content_type in refused {
        let headers = [("authorization", authorization.as_str()), ("content-type", content_type)];
        let answer = gateway.send("POST", "/v1/things", &headers, "{}").await;
        assert_eq!(answer.status, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{content_type}");
    }
    let headers = [("authorization", authorization.as_str()), ("content-type", "application/json; charset=utf-8")];
    assert_eq!(gateway.send("POST", "/v1/things", &headers, "{}").await.status, StatusCode::OK);
}

#[tokio::test]
async fn responses_forbid_that_they_are_sniffed_framed_or_stored() {
    let gateway = fixture();
    for path in ["/", "/v1/things"] {
        let answer = gateway.get(path, "").await;
        assert_eq!(answer.headers["x-content-type-options"], "nosniff");
        assert_eq!(answer.headers["x-frame-options"], "DENY");
        assert_eq!(answer.headers["referrer-policy"], "no-referrer");
        assert_eq!(answer.headers["cache-control"], "no-store");
    }
}

#[tokio::test]
async fn a_webhook_is_not_reached_under_another_name() {
    let gateway = fixture();
    let config = crate::channels::WebhookConfig::new("ci", "https://ci.example.org", "s3cret-0123456789abcdef");
    let webhooks = crate::channels::router(crate::channels::webhooks(&[config]).unwrap());
    let options = crate::http::ProtectionOptions { listen: gateway.gateway.config().listen, fixed_token: None };
    let protection = crate::http::Protection::new(gateway.gateway.clone(), options).unwrap();
    let app = protection.protect(webhooks, axum::Router::new());
    let webhook = super::Fixture { app, ..gateway };
    for (host, expected) in [("evil.example", StatusCode::FORBIDDEN), ("localhost:4780", StatusCode::UNAUTHORIZED)] {
        let answer = webhook.send("POST", "/v1/webhooks/ci", &[("host", host)], "{}").await;
        assert_eq!(answer.status, expected, "{host}: {}", answer.text);
    }
}
