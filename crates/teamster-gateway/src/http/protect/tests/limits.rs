//! Floods.

use std::num::NonZeroU32;

use axum::http::StatusCode;
use futures::future::join_all;

use super::{bearer, with};
use crate::access::Scope;
use crate::clock::Clock;

#[tokio::test]
async fn a_flood_without_a_token_is_refused_before_anything_is_looked_up() {
    let gateway = with(|config| config.limits.requests_per_second = NonZeroU32::MIN, None, Clock::system());
    let mut refused = None;
    for _ in 0..10 {
        let answer = gateway.get("/healthz", "").await;
        if answer.status == StatusCode::TOO_MANY_REQUESTS {
            refused = Some(answer);
        }
    }
    let refused = refused.expect("there is a limit");
    assert_eq!(refused.headers["retry-after"], "1");
    assert_eq!(refused.json()["code"], "RATE_LIMITED");
    assert_eq!(gateway.send_from("127.0.0.9:1", "GET", "/healthz", &[], "").await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_token_has_one_limit_from_all_addresses() {
    let gateway = with(|config| config.limits.requests_per_second = NonZeroU32::MIN, None, Clock::system());
    let authorization = bearer(&gateway.token(&[Scope::Read]).await);
    let mut statuses = Vec::new();
    for number in 0..10 {
        let peer = format!("127.0.1.{number}:1");
        let headers = [("authorization", authorization.as_str())];
        statuses.push(gateway.send_from(&peer, "GET", "/v1/things", &headers, "").await.status);
    }
    assert!(statuses.contains(&StatusCode::OK) && statuses.contains(&StatusCode::TOO_MANY_REQUESTS), "{statuses:?}");
}

#[tokio::test]
async fn behind_a_proxy_the_forwarded_address_has_the_limit() {
    let change = |config: &mut crate::config::Config| {
        config.behind_proxy = true;
        config.limits.requests_per_second = NonZeroU32::MIN;
    };
    let gateway = with(change, None, Clock::system());
    let flood = async |forwarded: &str| {
        let mut refused = 0;
        for number in 0..10 {
            // What the client itself writes changes nothing.
            let value = format!("10.0.0.{number}, {forwarded}");
            let answer = gateway.send("GET", "/healthz", &[("x-forwarded-for", &value)], "").await;
            refused += u32::from(answer.status == StatusCode::TOO_MANY_REQUESTS);
        }
        refused
    };
    assert!(flood("192.0.2.1").await >= 5);
    let answer = gateway.send("GET", "/healthz", &[("x-forwarded-for", "192.0.2.2")], "").await;
    assert_eq!(answer.status, StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn concurrent_requests_wait_a_moment_and_are_refused_then() {
    let gateway = with(|config| config.limits.concurrent_requests = 2, None, Clock::system());
    let token = gateway.token(&[Scope::Read]).await;
    // Short requests wait for each other.
    let answers = join_all((0..20).map(|_| gateway.get("/v1/things", &token))).await;
    assert!(answers.iter().all(|answer| answer.status == StatusCode::OK));
    let answers = join_all((0..5).map(|_| gateway.get("/v1/slow", &token))).await;
    let refused = answers.iter().filter(|answer| answer.status == StatusCode::TOO_MANY_REQUESTS).count();
    assert_eq!(refused, 3);
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_refused_by_its_length() {
    let change = |config: &mut crate::config::Config| {
        config.limits.body_bytes = 1_000;
        config.limits.attachment_bytes = 1_000;
    };
    let gateway = with(change, None, Clock::system());
    let authorization = bearer(&gateway.token(&[Scope::Send]).await);
    let status = async |length: &str| {
        let headers = [
            ("authorization", authorization.as_str()),
            ("content-type", "application/json"),
            ("content-length", length),
        ];
        gateway.send("POST", "/v1/things", &headers, "{}").await.status
    };
    assert_eq!(status("1001").await, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(status("99999999999999999999").await, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(status("2").await, StatusCode::OK);
}
