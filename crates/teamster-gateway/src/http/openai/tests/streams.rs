//! Streams.

use super::*;

#[tokio::test]
async fn a_stream_has_one_id_the_role_first_and_one_choice() {
    let fixture = fixture();
    let mut chunks = Chunks::of(fixture.send(&ask(true)).await);
    // The role comes before the agent starts.
    let first = chunks.next().await;
    assert_eq!(first["object"], "chat.completion.chunk");
    assert_eq!(first["choices"][0]["delta"], json!({ "role": "assistant", "content": "" }));
    let running = fixture.claim().await;
    running.text("m1", "Hel").await;
    let second = chunks.next().await;
    running.emit("thinking", json!({ "text": "hm", "messageId": "m1" })).await;
    running.emit("text", json!({ "text": "of a subagent", "messageId": "m2", "parentToolId": "t" })).await;
    running.text("m1", "lo").await;
    running.finish(EndState::Done, None).await;
    let rest = chunks.rest().await;
    assert_eq!(rest.last().unwrap(), "[DONE]");
    let mut all = vec![first, second];
    all.extend(rest[..rest.len() - 1].iter().map(|text| serde_json::from_str(text).unwrap()));
    for chunk in &all {
        assert_eq!((&chunk["id"], &chunk["created"]), (&all[0]["id"], &all[0]["created"]));
        assert_eq!(chunk["model"], "claude");
        assert_eq!(chunk["choices"][0]["index"], 0);
        assert!(chunk.get("usage").is_none());
    }
    let texts: Vec<_> = all.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!(texts, ["", "Hel", "lo"]);
    let reasons: Vec<_> = all.iter().map(|chunk| &chunk["choices"][0]["finish_reason"]).collect();
    assert_eq!(reasons.iter().filter(|reason| !reason.is_null()).count(), 1);
    assert_eq!(*reasons[reasons.len() - 1], "stop");
}

#[tokio::test]
async fn usage_is_in_the_last_chunk_and_only_on_request() {
    let fixture = fixture();
    let mut body = ask(true);
    body["stream_options"] = json!({ "include_usage": true });
    let chunks = Chunks::of(fixture.send(&body).await);
    let running = fixture.claim().await;
    running.text("m", "Hi").await;
    running.finish(EndState::Done, None).await;
    let all = chunks.rest().await;
    let (done, all) = all.split_last().unwrap();
    assert_eq!(done, "[DONE]");
    let all: Vec<Value> = all.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
    let (last, others) = all.split_last().unwrap();
    assert_eq!(last["choices"], json!([]));
    assert_eq!(last["usage"], json!({ "prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12 }));
    assert!(others.iter().all(|chunk| chunk["usage"] == Value::Null && chunk.get("usage").is_some()));
}

#[tokio::test]
async fn an_error_after_the_start_is_an_error_and_no_end() {
    let fixture = fixture();
    let chunks = Chunks::of(fixture.send(&ask(true)).await);
    let running = fixture.claim().await;
    running.text("m", "Half an ans").await;
    running.finish(EndState::Failed, Some(("AUTH", "log in first"))).await;
    let all = chunks.rest().await;
    assert!(all.iter().all(|text| !text.contains("\"stop\"") && text != "[DONE]"), "{all:?}");
    let error: Value = serde_json::from_str(all.last().unwrap()).unwrap();
    let expected = json!({ "message": "log in first", "type": "server_error", "param": null, "code": "AUTH" });
    assert_eq!(error, json!({ "error": expected }));
}

#[tokio::test]
async fn a_silent_stream_has_empty_chunks_without_ids_or_comments() {
    let fixture = with(|config| config.timing.heartbeat = Duration::from_millis(20));
    let mut chunks = Chunks::of(fixture.send(&ask(true)).await);
    chunks.next().await;
    for _ in 0..3 {
        // `Chunks` accepts nothing but data.
        assert_eq!(chunks.next().await["choices"][0]["delta"], json!({ "content": "" }));
    }
    let running = fixture.claim().await;
    running.finish(EndState::Done, None).await;
    assert_eq!(chunks.rest().await.last().unwrap(), "[DONE]");
}

#[tokio::test]
async fn a_text_that_another_attempt_repeats_is_sent_once() {
    let fixture = fixture();
    let chunks = Chunks::of(fixture.send(&ask(true)).await);
    let running = fixture.claim().await;
    running.text("m1", "Hello wor").await;
    running.retry().await;
    let running = fixture.claim().await;
    running.text("m2", "Hello ").await;
    running.text("m2", "world").await;
    running.finish(EndState::Done, None).await;
    let all = chunks.rest().await;
    let texts = all.iter().filter_map(|text| serde_json::from_str::<Value>(text).ok());
    let texts: String =
        texts.filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str().map(str::to_owned)).collect();
    assert_eq!(texts, "Hello world");
}

#[tokio::test]
async fn a_shutdown_ends_the_stream_with_an_error_and_aborts_the_turn() {
    let fixture = fixture();
    let mut chunks = Chunks::of(fixture.send(&ask(true)).await);
    chunks.next().await;
    fixture.gateway.stopping().cancel();
    let all = chunks.rest().await;
    assert!(all[0].contains("SHUTTING_DOWN") && all.len() == 1, "{all:?}");
    fixture.wait_for(TurnState::Aborted).await;
}

#[tokio::test]
async fn a_client_that_reads_nothing_is_disconnected_and_its_turn_ends() {
    let fixture = impatient();
    let unread = fixture.send(&ask(true)).await;
    assert_eq!(unread.status(), StatusCode::OK);
    fixture.wait_for(TurnState::Aborted).await;
    drop(unread);
}
