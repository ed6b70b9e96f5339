//! The context of a call: its caller, its progress and its cancellation.

use super::*;

fn with_progress(arguments: &Value) -> Value {
    let params = json!({
        "name": "work", "arguments": arguments,
        "_meta": {"progressToken": "p1", "claudecode/toolUseId": "toolu_1", "other": true},
    });
    request("tools/call", &params)
}

#[tokio::test]
async fn a_tool_reports_its_progress_only_to_an_agent_that_requests_it() {
    let work = || {
        Tool::with_context("work", "Works", |Nothing {}, call: CallContext| async move {
            call.progress(1.0, Some(2.0), Some("half")).await;
            call.progress(2.0, None, None).await;
            Ok::<_, String>("done")
        })
    };
    let tools = served(work()).await;
    let text = rest(send(&tools, &authorized(&tools), &with_progress(&json!({}))).await).await;
    let reports: Vec<Value> =
        text.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("data:")?).ok()).collect();
    let reports: Vec<_> = reports.iter().filter(|message| message["method"] == "notifications/progress").collect();
    let expected = json!({"progressToken": "p1", "progress": 1.0, "total": 2.0, "message": "half"});
    assert_eq!(reports[0]["params"], expected, "{text}");
    assert_eq!((reports.len(), &reports[1]["params"]["progress"]), (2, &json!(2.0)), "{text}");
    let text = rest(send(&tools, &authorized(&tools), &call("work", &json!({}))).await).await;
    assert!(text.contains("\"done\"") && !text.contains("progress"), "{text}");
}

#[tokio::test]
async fn a_tool_knows_the_call_and_the_label_of_its_caller() {
    let work = Tool::with_context("work", "Works", |Nothing {}, call: CallContext| async move {
        let known = json!({
            "tool": call.tool(), "call": call.call_id(), "label": call.label(), "other": call.meta().get("other"),
            "agent": call.agent(), "cancelled": call.is_cancelled(),
        });
        Ok::<_, String>(known)
    });
    let tools = served(work).await;
    let mut offered = RunRequest::new("Work.");
    tools.offer_labeled("ada", &mut offered);
    let mine = offered.mcp_servers["calc"].endpoint().unwrap().all_headers()["Authorization"].clone();
    assert_ne!(mine, address(&tools).1, "each offer has its own token");
    for (header, label) in [(format!("Authorization: {mine}\r\n"), json!("ada")), (authorized(&tools), Value::Null)] {
        let text = rest(send(&tools, &header, &with_progress(&json!({}))).await).await;
        let expected = json!({
            "tool": "work", "call": "toolu_1", "label": label, "other": true, "agent": null, "cancelled": false,
        });
        assert!(text.contains(&expected.to_string().replace('"', "\\\"")), "{text}");
    }
    drop(tools);
}

#[tokio::test]
async fn a_message_cancels_the_call_of_its_caller_and_no_other() {
    let (tool, called, dropped) = hanging();
    let tools = served(tool).await;
    let stream = send(&tools, &authorized(&tools), &call("hang", &json!({}))).await;
    until(&called).await;
    let cancel = |id: u64| json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    let mut offered = RunRequest::new("Work.");
    tools.offer(&mut offered);
    let other = offered.mcp_servers["calc"].endpoint().unwrap().all_headers()["Authorization"].clone();
    let others = format!("Authorization: {other}\r\n");
    for (header, id) in [(others, 1), (authorized(&tools), 2)] {
        let text = rest(send(&tools, &header, &cancel(id)).await).await;
        assert!(text.starts_with("HTTP/1.1 202"), "{text}");
        assert!(!dropped.load(Ordering::SeqCst));
    }
    rest(send(&tools, &authorized(&tools), &cancel(1)).await).await;
    until(&dropped).await;
    assert!(rest(stream).await.contains("the call was given up"));
}

#[tokio::test]
async fn work_that_a_tool_has_started_elsewhere_sees_that_the_call_is_canceled() {
    let (sender, canceled) = tokio::sync::oneshot::channel();
    let sender = std::sync::Mutex::new(Some(sender));
    let called = Arc::<AtomicBool>::default();
    let starts = Arc::clone(&called);
    let tool = Tool::with_context("hang", "Never replies", move |Nothing {}, call: CallContext| {
        let (sender, starts) = (sender.lock().unwrap().take(), Arc::clone(&starts));
        async move {
            tokio::spawn(async move {
                starts.store(true, Ordering::SeqCst);
                call.cancelled().await;
                sender.map(|sender| sender.send(call.is_cancelled()))
            });
            pending::<Result<Reply, String>>().await
        }
    });
    let tools = served(tool).await;
    let stream = send(&tools, &authorized(&tools), &call("hang", &json!({}))).await;
    until(&called).await;
    drop(stream);
    assert!(timeout(BOUND, canceled).await.unwrap().unwrap());
}

#[tokio::test]
async fn a_call_whose_agent_disconnects_is_dropped() {
    let (tool, called, dropped) = hanging();
    let tools = served(tool).await;
    let stream = send(&tools, &authorized(&tools), &call("hang", &json!({}))).await;
    until(&called).await;
    assert!(!dropped.load(Ordering::SeqCst));
    drop(stream);
    until(&dropped).await;
}
