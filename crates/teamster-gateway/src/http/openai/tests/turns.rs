//! Whole answers, and the turns of clients that disconnect.

use super::*;

async fn in_time<T>(work: impl Future<Output = T>) -> T {
    timeout(LIMIT, work).await.expect("there is no answer")
}

#[tokio::test]
async fn without_a_stream_there_is_one_object() {
    let fixture = fixture();
    let body = ask(false);
    let (response, ()) = in_time(async {
        tokio::join!(fixture.send(&body), async {
            let running = fixture.claim().await;
            running.text("m1", "Hello").await;
            running.text("m2", "there").await;
            running.finish(EndState::Done, None).await;
        })
    })
    .await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers()["content-type"], "application/json");
    let turn: TurnId = response.headers()["x-teamster-turn"].to_str().unwrap().parse().unwrap();
    let answer = json_of(response).await;
    assert_eq!(answer["object"], "chat.completion");
    assert_eq!(answer["id"], format!("chatcmpl-{turn}"));
    assert_eq!(answer["choices"].as_array().unwrap().len(), 1);
    assert_eq!(answer["choices"][0]["message"]["content"], "Hello\n\nthere");
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
    assert_eq!(answer["usage"]["total_tokens"], 12);
}

#[tokio::test]
async fn the_result_is_the_answer_of_an_agent_that_does_not_stream() {
    let fixture = fixture();
    let body = ask(false);
    let (response, ()) = in_time(async {
        tokio::join!(fixture.send(&body), async {
            let running = fixture.claim().await;
            running.emit("done", json!({ "result": { "text": "All at once" } })).await;
            running.finish(EndState::Done, None).await;
        })
    })
    .await;
    assert_eq!(json_of(response).await["choices"][0]["message"]["content"], "All at once");
}

#[tokio::test]
async fn a_failed_turn_has_a_status_and_is_not_repeated_by_the_client() {
    let cases = [
        ("RATE_LIMIT", 429, "rate_limit_error", "RATE_LIMIT"),
        ("BUDGET", 429, "rate_limit_error", "insufficient_quota"),
        ("CONTEXT_WINDOW", 400, "invalid_request_error", "context_length_exceeded"),
        ("AUTH", 502, "server_error", "AUTH"),
        ("DEADLINE_EXCEEDED", 504, "server_error", "DEADLINE_EXCEEDED"),
    ];
    for (code, status, kind, shown) in cases {
        let fixture = fixture();
        let body = ask(false);
        let (response, ()) = in_time(async {
            tokio::join!(fixture.send(&body), async {
                fixture.claim().await.finish(EndState::Failed, Some((code, "why"))).await;
            })
        })
        .await;
        assert_eq!(response.status().as_u16(), status, "{code}");
        assert_eq!(response.headers()["x-should-retry"], "false");
        let error = json!({ "message": "why", "type": kind, "param": null, "code": shown });
        assert_eq!(json_of(response).await, json!({ "error": error }));
    }
}

#[tokio::test]
async fn an_abort_by_others_is_an_error() {
    let fixture = fixture();
    let chunks = Chunks::of(fixture.send(&ask(true)).await);
    let turn = fixture.turns().await[0].id;
    fixture.gateway.abort_turn(turn).await.unwrap();
    assert!(chunks.rest().await.last().unwrap().contains("ABORTED"));
}

#[tokio::test]
async fn a_client_that_disconnects_aborts_its_turn() {
    // A stream, before and after its first chunk.
    let fixture = fixture();
    drop(fixture.send(&ask(true)).await);
    fixture.wait_for(TurnState::Aborted).await;

    let fixture = super::fixture();
    let mut chunks = Chunks::of(fixture.send(&ask(true)).await);
    let running = fixture.claim().await;
    running.text("m", "Hi").await;
    chunks.next().await;
    drop(chunks);
    let turn = running.claim.lease.turn;
    eventually(async || fixture.turn(turn).await.abort_requested.then_some(())).await;

    // A whole answer, while it waits and while it is accepted.
    for wait in [Duration::from_millis(100), Duration::ZERO] {
        let fixture = super::fixture();
        _ = timeout(wait, fixture.send(&ask(false))).await;
        let settled = async || {
            let turns = fixture.turns().await;
            turns.iter().all(|turn| turn.state == TurnState::Aborted).then_some(())
        };
        eventually(settled).await;
    }
}

#[tokio::test]
async fn a_turn_that_has_ended_is_not_aborted() {
    let fixture = fixture();
    let chunks = Chunks::of(fixture.send(&ask(true)).await);
    let running = fixture.claim().await;
    let turn = running.claim.lease.turn;
    running.finish(EndState::Done, None).await;
    chunks.rest().await;
    let turn = fixture.turn(turn).await;
    assert_eq!((turn.state, turn.abort_requested), (TurnState::Done, false));
}

#[tokio::test]
async fn a_full_queue_leaves_no_conversation_behind() {
    let fixture = with(|config| config.limits.queue_total = 1);
    let first = Chunks::of(fixture.send(&ask(true)).await);
    let response = fixture.send(&ask(true)).await;
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(response.headers().contains_key("retry-after"));
    assert!(!response.headers().contains_key("x-should-retry"));
    assert_eq!(json_of(response).await["error"]["code"], "QUEUE_FULL");
    let (filter, page) = (ConversationFilter::default(), PageRequest::first(9));
    let found = fixture.store().conversations(filter, page, fixture.gateway.now()).await.unwrap();
    assert_eq!(found.items.len(), 1);
    drop(first);
}

#[tokio::test]
async fn requests_beyond_the_permits_are_refused() {
    let fixture = with(|config| config.limits.subscribers = 1);
    let first = Chunks::of(fixture.send(&ask(true)).await);
    let response = fixture.send(&ask(false)).await;
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    drop(first);
    // The permit is released soon after the client has disconnected.
    let is_free = async || (fixture.send(&ask(true)).await.status() == StatusCode::OK).then_some(());
    eventually(is_free).await;
}
