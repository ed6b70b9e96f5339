//! The callers that may use the tools, and the end of the server.

use super::*;

#[tokio::test]
async fn a_request_without_the_token_is_rejected() {
    let tools = served(add()).await;
    let other = served(add()).await;
    let strangers = ["", "Authorization: Bearer 1\r\n", "Authorization: \r\n"].map(str::to_owned);
    for headers in strangers.into_iter().chain([authorized(&other), format!("X-{}", authorized(&tools))]) {
        let text = rest(send(&tools, &headers, &call("add", &json!({"a": 1, "b": 2}))).await).await;
        assert!(text.starts_with("HTTP/1.1 401"), "{headers:?}: {text}");
    }
}

#[tokio::test]
async fn a_request_of_a_web_page_is_rejected_even_with_the_token() {
    let tools = served(add()).await;
    let headers = format!("Origin: http://localhost:1234\r\n{}", authorized(&tools));
    let text = rest(send(&tools, &headers, &call("add", &json!({"a": 1, "b": 2}))).await).await;
    assert!(text.starts_with("HTTP/1.1 403"), "{text}");
}

#[tokio::test]
async fn arguments_that_are_too_large_are_rejected() {
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
async fn nothing_of_the_server_outlives_its_shutdown() {
    let (tool, called, dropped) = hanging();
    let tools = served(tool).await;
    let stream = send(&tools, &authorized(&tools), &call("hang", &json!({}))).await;
    let (url, _) = address(&tools);
    until(&called).await;
    timeout(BOUND, tools.shutdown()).await.unwrap();
    assert!(dropped.load(Ordering::SeqCst), "the call is gone when the shutdown is over");
    rest(stream).await;
    let host = url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
    assert!(TcpStream::connect(host).await.is_err());
}

#[tokio::test]
async fn dropping_the_served_tools_ends_its_calls() {
    let (tool, called, dropped) = hanging();
    let tools = served(tool).await;
    let stream = send(&tools, &authorized(&tools), &call("hang", &json!({}))).await;
    until(&called).await;
    drop(tools);
    until(&dropped).await;
    rest(stream).await;
}

#[tokio::test]
async fn a_run_may_call_the_tools_offered_to_it_and_shows_no_token() {
    let tools = served(add()).await;
    let mut request = RunRequest::new("Add.");
    tools.offer(&mut request);
    request.validate().unwrap();
    assert_eq!(request.permissions.allow, ["mcp__calc", "mcp__calc__add"]);
    let offered = request.mcp_servers["calc"].endpoint().unwrap().all_headers()["Authorization"].clone();
    for token in [address(&tools).1, offered] {
        let token = token.strip_prefix("Bearer ").unwrap();
        assert!(token.len() >= 43, "256 bits");
        assert!(!format!("{request:?}{tools:?}").contains(token));
    }
}
