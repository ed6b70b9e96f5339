//! Tools that are served to agents, as an agent sees them: over HTTP. Each name is a promise.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "the lints take helpers of tests for library code"
)]

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use teamster::RunRequest;
use teamster::tools::{CallContext, JsonSchema, Reply, ServeError, ServedTools, Tool, ToolServer, schemars};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

const BOUND: Duration = Duration::from_mins(1);

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

fn add() -> Tool {
    Tool::new("add", "Adds two numbers", |Add { a, b }: Add| async move {
        a.checked_add(b).map(|sum| format!("the sum is {sum}")).ok_or("the sum is too large")
    })
}

/// A tool that never answers, whether it is being called, and whether a call of it was dropped.
fn hanging() -> (Tool, Arc<AtomicBool>, Arc<AtomicBool>) {
    struct Gone(Arc<AtomicBool>);
    impl Drop for Gone {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let (called, dropped) = <(Arc<AtomicBool>, Arc<AtomicBool>)>::default();
    let (begins, ends) = (Arc::clone(&called), Arc::clone(&dropped));
    let tool = Tool::new("hang", "Never answers", move |Nothing {}| {
        let (begins, gone) = (Arc::clone(&begins), Gone(Arc::clone(&ends)));
        async move {
            let _gone = gone;
            begins.store(true, Ordering::SeqCst);
            pending::<Result<Reply, String>>().await
        }
    });
    (tool, called, dropped)
}

async fn served(tool: Tool) -> ServedTools {
    ToolServer::new("calc").with(tool).instructions("Add with add.").serve().await.unwrap()
}

async fn until(flag: &AtomicBool) {
    let looks = async {
        while !flag.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(BOUND, looks).await.unwrap();
}

/// Where the server is, and the header that it wants.
fn address(tools: &ServedTools) -> (String, String) {
    let server = tools.server();
    let endpoint = server.endpoint().unwrap();
    (endpoint.url.clone(), endpoint.all_headers()["Authorization"].clone())
}

/// A request in flight.
async fn ask(tools: &ServedTools, extra: &str, body: &Value) -> TcpStream {
    let (url, _) = address(tools);
    let host = url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
    let mut stream = TcpStream::connect(host).await.unwrap();
    let body = body.to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nMCP-Protocol-Version: 2025-06-18\r\n\
         Accept: application/json, text/event-stream\r\nConnection: close\r\nContent-Length: {}\r\n{extra}\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(body.as_bytes()).await.unwrap();
    stream
}

async fn rest(mut stream: TcpStream) -> String {
    let mut answer = Vec::new();
    // A server that refuses a long body may break off while it is sent.
    let _broken_off = timeout(BOUND, stream.read_to_end(&mut answer)).await.unwrap();
    String::from_utf8(answer).unwrap()
}

fn authorized(tools: &ServedTools) -> String {
    format!("Authorization: {}\r\n", address(tools).1)
}

fn request(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

fn call(tool: &str, arguments: &Value) -> Value {
    request("tools/call", &json!({"name": tool, "arguments": arguments}))
}

/// Asks, as one who knows the token, and gives the answer to it.
async fn answer(tools: &ServedTools, body: &Value) -> Value {
    let text = rest(ask(tools, &authorized(tools), body).await).await;
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    let events = text.lines().filter_map(|line| line.strip_prefix("data:"));
    let mut messages = events.filter_map(|data| serde_json::from_str::<Value>(data).ok());
    messages.find(|message| message["id"] == 1).unwrap_or_else(|| panic!("no answer: {text}"))
}

async fn called(tool: Tool, name: &str, arguments: Value) -> (Value, bool) {
    let tools = served(tool).await;
    let result = answer(&tools, &call(name, &arguments)).await["result"].clone();
    (result.clone(), result["isError"] == json!(true))
}

#[tokio::test]
async fn a_tool_is_told_with_what_it_is_for_and_what_it_takes() {
    let tools = served(add().read_only()).await;
    let listed = answer(&tools, &request("tools/list", &json!({}))).await;
    let tool = &listed["result"]["tools"][0];
    assert_eq!((&tool["name"], &tool["description"]), (&json!("add"), &json!("Adds two numbers")));
    assert_eq!(tool["inputSchema"]["required"], json!(["a", "b"]));
    assert_eq!(tool["annotations"]["readOnlyHint"], true);
}

#[tokio::test]
async fn the_server_says_its_name_and_how_to_use_it() {
    let tools = served(add()).await;
    let hello =
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let told = answer(&tools, &request("initialize", &hello)).await["result"].clone();
    assert_eq!((&told["serverInfo"]["name"], &told["instructions"]), (&json!("calc"), &json!("Add with add.")));
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
async fn arguments_that_do_not_fit_are_refused_before_the_tool_is_called() {
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
async fn a_tool_that_panics_is_a_failed_call_and_the_next_one_goes_well() {
    let tool = Tool::new("divide", "Divides", |Add { a, b }: Add| async move {
        assert_ne!(b, 0, "division by zero");
        Ok::<_, String>(format!("about {}", a / b))
    });
    let tools = served(tool).await;
    let failed = answer(&tools, &call("divide", &json!({"a": 1, "b": 0}))).await;
    assert_eq!(failed["result"]["isError"], true);
    let text = failed["result"]["content"][0]["text"].as_str().unwrap();
    assert!(!text.contains("zero"), "what a panic says is for the host: {text}");
    let well = answer(&tools, &call("divide", &json!({"a": 84, "b": 2}))).await;
    assert_eq!(well["result"]["content"][0]["text"], "about 42");
}

#[tokio::test]
async fn a_tool_that_is_not_there_is_an_error() {
    let tools = served(add()).await;
    let answer = answer(&tools, &call("subtract", &json!({}))).await;
    assert!(answer["error"]["message"].as_str().unwrap().contains("\"subtract\""), "{answer}");
}

#[tokio::test]
async fn json_and_images_are_replies_too() {
    let tool = Tool::new("show", "Shows", |Nothing {}| async {
        Ok::<_, String>(Reply::from(json!({"width": 2})).and(Reply::image("image/png", b"\x89PNG")))
    });
    let (result, _) = called(tool, "show", json!({})).await;
    assert_eq!(result["structuredContent"], Value::Null, "agents would give the model that alone");
    assert_eq!(result["content"][0]["text"], "```json\n{\"width\":2}\n```");
    assert_eq!(result["content"][1], json!({"type": "image", "data": "iVBORw==", "mimeType": "image/png"}));
}

#[tokio::test]
async fn json_alone_is_a_document_and_json_beside_something_else_is_a_block() {
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
        let told: Vec<_> = result["content"].as_array().unwrap().iter().map(|block| &block["text"]).collect();
        assert_eq!((json!(told), &result["structuredContent"]), (texts, &document));
    }
}

fn with_progress(arguments: &Value) -> Value {
    let params = json!({
        "name": "work", "arguments": arguments,
        "_meta": {"progressToken": "p1", "claudecode/toolUseId": "toolu_1", "other": true},
    });
    request("tools/call", &params)
}

#[tokio::test]
async fn a_tool_reports_its_progress_to_an_agent_that_asks_for_it_and_to_no_other() {
    let work = || {
        Tool::with_context("work", "Works", |Nothing {}, call: CallContext| async move {
            call.progress(1.0, Some(2.0), Some("half")).await;
            call.progress(2.0, None, None).await;
            Ok::<_, String>("done")
        })
    };
    let tools = served(work()).await;
    let text = rest(ask(&tools, &authorized(&tools), &with_progress(&json!({}))).await).await;
    let reports: Vec<Value> =
        text.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("data:")?).ok()).collect();
    let reports: Vec<_> = reports.iter().filter(|message| message["method"] == "notifications/progress").collect();
    let expected = json!({"progressToken": "p1", "progress": 1.0, "total": 2.0, "message": "half"});
    assert_eq!(reports[0]["params"], expected, "{text}");
    assert_eq!((reports.len(), &reports[1]["params"]["progress"]), (2, &json!(2.0)), "{text}");
    let text = rest(ask(&tools, &authorized(&tools), &call("work", &json!({}))).await).await;
    assert!(text.contains("\"done\"") && !text.contains("progress"), "{text}");
}

#[tokio::test]
async fn a_tool_knows_the_call_and_the_label_of_its_caller() {
    let work = Tool::with_context("work", "Works", |Nothing {}, call: CallContext| async move {
        let told = json!({
            "tool": call.tool(), "call": call.call_id(), "label": call.label(), "other": call.meta().get("other"),
            "agent": call.agent(), "cancelled": call.is_cancelled(),
        });
        Ok::<_, String>(told)
    });
    let tools = served(work).await;
    let mut offered = RunRequest::new("Work.");
    tools.offer_labeled("ada", &mut offered);
    let mine = offered.mcp_servers["calc"].endpoint().unwrap().all_headers()["Authorization"].clone();
    assert_ne!(mine, address(&tools).1, "each offer has its own token");
    for (header, label) in [(format!("Authorization: {mine}\r\n"), json!("ada")), (authorized(&tools), Value::Null)] {
        let text = rest(ask(&tools, &header, &with_progress(&json!({}))).await).await;
        let expected = json!({
            "tool": "work", "call": "toolu_1", "label": label, "other": true, "agent": null, "cancelled": false,
        });
        assert!(text.contains(&expected.to_string().replace('"', "\\\"")), "{text}");
    }
    drop(tools);
}

#[tokio::test]
async fn a_call_that_is_cancelled_by_a_message_is_dropped_and_no_other_callers() {
    let (tool, called, dropped) = hanging();
    let tools = served(tool).await;
    let stream = ask(&tools, &authorized(&tools), &call("hang", &json!({}))).await;
    until(&called).await;
    let cancel = |id: u64| json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    let mut offered = RunRequest::new("Work.");
    tools.offer(&mut offered);
    let other = offered.mcp_servers["calc"].endpoint().unwrap().all_headers()["Authorization"].clone();
    let others = format!("Authorization: {other}\r\n");
    for (header, id) in [(others, 1), (authorized(&tools), 2)] {
        let text = rest(ask(&tools, &header, &cancel(id)).await).await;
        assert!(text.starts_with("HTTP/1.1 202"), "{text}");
        assert!(!dropped.load(Ordering::SeqCst));
    }
    rest(ask(&tools, &authorized(&tools), &cancel(1)).await).await;
    until(&dropped).await;
    assert!(rest(stream).await.contains("the call was given up"));
}

#[tokio::test]
async fn work_that_a_tool_has_started_elsewhere_learns_that_the_call_is_over() {
    let (tell, told) = tokio::sync::oneshot::channel();
    let tell = std::sync::Mutex::new(Some(tell));
    let called = Arc::<AtomicBool>::default();
    let begins = Arc::clone(&called);
    let tool = Tool::with_context("hang", "Never answers", move |Nothing {}, call: CallContext| {
        let (tell, begins) = (tell.lock().unwrap().take(), Arc::clone(&begins));
        async move {
            tokio::spawn(async move {
                begins.store(true, Ordering::SeqCst);
                call.cancelled().await;
                tell.map(|tell| tell.send(call.is_cancelled()))
            });
            pending::<Result<Reply, String>>().await
        }
    });
    let tools = served(tool).await;
    let stream = ask(&tools, &authorized(&tools), &call("hang", &json!({}))).await;
    until(&called).await;
    drop(stream);
    assert!(timeout(BOUND, told).await.unwrap().unwrap());
}

#[tokio::test]
async fn a_schema_that_is_known_at_run_time_is_told_and_what_it_requires_is_checked() {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    let tool = || {
        Tool::with_schema("weather", "Tells the weather", schema.clone(), |input, _call| async move {
            Ok::<_, String>(format!("rain in {}", input["city"].as_str().unwrap_or("?")))
        })
    };
    let tools = served(tool()).await;
    let listed = answer(&tools, &request("tools/list", &json!({}))).await;
    assert_eq!(listed["result"]["tools"][0]["inputSchema"], schema);
    let (result, failed) = called(tool(), "weather", json!({"city": "Oslo"})).await;
    assert_eq!((&result["content"][0]["text"], failed), (&json!("rain in Oslo"), false));
    let (result, failed) = called(tool(), "weather", json!({"town": "Oslo"})).await;
    assert!(failed && result["content"][0]["text"].as_str().unwrap().contains("`city`"), "{result}");
}

#[tokio::test]
async fn a_schema_that_is_not_one_of_an_object_is_refused() {
    for (schema, said) in [
        (json!("object"), "no JSON object"),
        (json!({}), "no `type`"),
        (json!({"type": "string"}), "not \"object\""),
        (json!({"type": "object", "properties": []}), "`properties`"),
        (json!({"type": "object", "properties": {"a": "string"}}), "\"a\" has no schema"),
        (json!({"type": "object", "required": "a"}), "`required`"),
    ] {
        let tool = Tool::with_schema("t", "", schema, |_, _| async { Ok::<_, String>(()) });
        let error = ToolServer::new("s").with(tool).serve().await.unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}

#[tokio::test]
async fn who_does_not_know_the_token_gets_nothing() {
    let tools = served(add()).await;
    let other = served(add()).await;
    let strangers = ["", "Authorization: Bearer 1\r\n", "Authorization: \r\n"].map(str::to_owned);
    for headers in strangers.into_iter().chain([authorized(&other), format!("X-{}", authorized(&tools))]) {
        let text = rest(ask(&tools, &headers, &call("add", &json!({"a": 1, "b": 2}))).await).await;
        assert!(text.starts_with("HTTP/1.1 401"), "{headers:?}: {text}");
    }
}

#[tokio::test]
async fn a_web_page_gets_nothing_even_if_it_knew_the_token() {
    let tools = served(add()).await;
    let headers = format!("Origin: http://localhost:1234\r\n{}", authorized(&tools));
    let text = rest(ask(&tools, &headers, &call("add", &json!({"a": 1, "b": 2}))).await).await;
    assert!(text.starts_with("HTTP/1.1 403"), "{text}");
}

#[tokio::test]
async fn arguments_without_measure_are_refused() {
    let tools = served(add()).await;
    let long = "x".repeat(17 << 20);
    let (url, _) = address(&tools);
    let host = url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap().to_owned();
    let mut stream = TcpStream::connect(&host).await.unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nAccept: application/json, \
         text/event-stream\r\nConnection: close\r\nContent-Length: {}\r\n{}\r\n",
        long.len(),
        authorized(&tools)
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let (mut reads, mut writes) = stream.into_split();
    let sends = tokio::spawn(async move { writes.write_all(long.as_bytes()).await });
    let mut first = [0; 12];
    timeout(BOUND, reads.read_exact(&mut first)).await.unwrap().unwrap();
    assert_eq!(&first, b"HTTP/1.1 413");
    drop(reads);
    drop(tools);
    _ = timeout(BOUND, sends).await.unwrap();
}

#[tokio::test]
async fn a_call_that_the_agent_gives_up_is_dropped() {
    let (tool, called, dropped) = hanging();
    let tools = served(tool).await;
    let stream = ask(&tools, &authorized(&tools), &call("hang", &json!({}))).await;
    until(&called).await;
    assert!(!dropped.load(Ordering::SeqCst));
    drop(stream);
    until(&dropped).await;
}

#[tokio::test]
async fn nothing_of_the_server_outlives_it() {
    let (tool, called, dropped) = hanging();
    let tools = served(tool).await;
    let stream = ask(&tools, &authorized(&tools), &call("hang", &json!({}))).await;
    let (url, _) = address(&tools);
    until(&called).await;
    timeout(BOUND, tools.shutdown()).await.unwrap();
    assert!(dropped.load(Ordering::SeqCst), "the call is gone when the shutdown is over");
    rest(stream).await;
    let host = url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
    assert!(TcpStream::connect(host).await.is_err());
}

#[tokio::test]
async fn dropping_the_served_tools_ends_calls_too() {
    let (tool, called, dropped) = hanging();
    let tools = served(tool).await;
    let stream = ask(&tools, &authorized(&tools), &call("hang", &json!({}))).await;
    until(&called).await;
    drop(tools);
    until(&dropped).await;
    rest(stream).await;
}

#[tokio::test]
async fn what_cannot_be_offered_is_refused_with_its_name() {
    let tool = |name: &str| Tool::new(name, "", |Nothing {}| async { Ok::<_, String>(()) });
    for name in ["", "two words", "ü", "a.b", &"x".repeat(49)] {
        let error = ToolServer::new("s").with(tool(name)).serve().await.unwrap_err();
        assert!(matches!(&error, ServeError::Tool { name: wrong, .. } if wrong == name), "{error}");
    }
    let error = ToolServer::new("s").with(tool("a")).with(tool("b")).with(tool("a")).serve().await.unwrap_err();
    assert_eq!(error.to_string(), r#"the tool "a" cannot be offered: there are two of this name"#);
    let number = Tool::new("n", "", |_: i64| async { Ok::<_, String>(()) });
    let error = ToolServer::new("s").with(number).serve().await.unwrap_err();
    assert!(error.to_string().contains("must be a struct"), "{error}");
}

#[tokio::test]
async fn a_run_to_which_the_tools_are_offered_may_call_them_and_shows_no_token() {
    let tools = served(add()).await;
    let mut request = RunRequest::new("Add.");
    tools.offer(&mut request);
    request.validate().unwrap();
    assert_eq!(request.permissions.allow, ["mcp__calc"]);
    let offered = request.mcp_servers["calc"].endpoint().unwrap().all_headers()["Authorization"].clone();
    for token in [address(&tools).1, offered] {
        let token = token.strip_prefix("Bearer ").unwrap();
        assert!(token.len() >= 43, "256 bits");
        assert!(!format!("{request:?}{tools:?}").contains(token));
    }
}
