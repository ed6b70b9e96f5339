//! Calls and their replies.

use super::*;

#[tokio::test]
async fn a_tool_is_listed_with_its_description_and_its_input() {
    let tools = served(add().read_only()).await;
    let listed = response(&tools, &request("tools/list", &json!({}))).await;
    let tool = &listed["result"]["tools"][0];
    assert_eq!((&tool["name"], &tool["description"]), (&json!("add"), &json!("Adds two numbers")));
    assert_eq!(tool["inputSchema"]["required"], json!(["a", "b"]));
    assert_eq!(tool["annotations"]["readOnlyHint"], true);
}

#[tokio::test]
async fn the_server_reports_its_name_and_its_instructions() {
    let tools = served(add()).await;
    let hello =
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let info = response(&tools, &request("initialize", &hello)).await["result"].clone();
    assert_eq!((&info["serverInfo"]["name"], &info["instructions"]), (&json!("calc"), &json!("Add with add.")));
}

#[tokio::test]
async fn a_call_gets_its_reply() {
    let (result, failed) = called(add(), "add", json!({"a": 19, "b": 23})).await;
    assert!(!failed);
    assert_eq!(result["content"], json!([{"type": "text", "text": "the sum is 42"}]));
    assert!(result.get("structuredContent").is_none());
}

#[tokio::test]
async fn an_error_is_a_failed_call_with_its_text() {
    let (result, failed) = called(add(), "add", json!({"a": i64::MAX, "b": 1})).await;
    assert!(failed);
    assert_eq!(result["content"][0]["text"], "the sum is too large");
}

#[tokio::test]
async fn arguments_that_do_not_match_are_rejected_before_the_tool_is_called() {
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    let tool = Tool::new("add", "Adds", move |_: Add| {
        count.fetch_add(1, Ordering::SeqCst);
        async { Ok::<_, String>(()) }
    });
    let (result, failed) = called(tool, "add", json!({"a": "nineteen", "b": 23})).await;
    assert!(failed);
    assert!(result["content"][0]["text"].as_str().unwrap().starts_with("these arguments do not fit: "), "{result}");
    assert_eq!(calls.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_tool_that_panics_is_a_failed_call_and_the_next_call_succeeds() {
    let tool = Tool::new("divide", "Divides", |Add { a, b }: Add| async move {
        assert_ne!(b, 0, "division by zero");
        Ok::<_, String>(format!("about {}", a / b))
    });
    let tools = served(tool).await;
    let failed = response(&tools, &call("divide", &json!({"a": 1, "b": 0}))).await;
    assert_eq!(failed["result"]["isError"], true);
    let text = failed["result"]["content"][0]["text"].as_str().unwrap();
    assert!(!text.contains("zero"), "the message of a panic is for the host: {text}");
    let next = response(&tools, &call("divide", &json!({"a": 84, "b": 2}))).await;
    assert_eq!(next["result"]["content"][0]["text"], "about 42");
}

#[tokio::test]
async fn an_unknown_tool_is_an_error() {
    let tools = served(add()).await;
    let error = response(&tools, &call("subtract", &json!({}))).await;
    assert!(error["error"]["message"].as_str().unwrap().contains("\"subtract\""), "{error}");
}

#[tokio::test]
async fn json_and_images_are_replies_too() {
    let tool = Tool::new("show", "Shows", |Nothing {}| async {
        Ok::<_, String>(Reply::from(json!({"width": 2})).and(Reply::image("image/png", b"\x89PNG")))
    });
    let (result, _) = called(tool, "show", json!({})).await;
    assert_eq!(result["structuredContent"], Value::Null, "agents would give the model only the document");
    assert_eq!(result["content"][0]["text"], "```json\n{\"width\":2}\n```");
    assert_eq!(result["content"][1], json!({"type": "image", "data": "iVBORw==", "mimeType": "image/png"}));
}

#[tokio::test]
async fn a_single_json_value_is_a_document_and_json_beside_other_blocks_is_a_block() {
    let reply =
        |reply: fn() -> Reply| Tool::new("show", "Shows", move |Nothing {}| async move { Ok::<_, String>(reply()) });
    for (made, texts, document) in [
        ((|| json!({"a": 1}).into()) as fn() -> Reply, json!([r#"{"a":1}"#]), json!({"a": 1})),
        (|| json!(42).into(), json!(["42"]), json!({"result": 42})),
        (|| "42".into(), json!(["42"]), json!({"result": 42})),
        (|| "no JSON".into(), json!(["no JSON"]), Value::Null),
        (|| Reply::from("Here:").and(json!(42)), json!(["Here:", "42"]), Value::Null),
        (|| Reply::from(json!([1])).and("is it"), json!(["```json\n[1]\n```", "is it"]), Value::Null),
        (|| Reply::from("42").and("is it"), json!(["```json\n42\n```", "is it"]), Value::Null),
        (Reply::default, json!([]), Value::Null),
    ] {
        let (result, _) = called(reply(made), "show", json!({})).await;
        let shown: Vec<_> = result["content"].as_array().unwrap().iter().map(|block| &block["text"]).collect();
        assert_eq!((json!(shown), &result["structuredContent"]), (texts, &document));
    }
}
