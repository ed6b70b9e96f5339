//! Against servers that are made for it.

use std::time::Duration;

use teamster_agents::protocol::Method;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::*;

fn server(max_bytes: usize) -> Server {
    let mut limits = Limits::default();
    limits.max_line_bytes = max_bytes;
    limits.drain = Duration::ZERO;
    Server::new("user", &Password::new().unwrap(), &limits)
}

fn get(id: u64, path: &str) -> ServerCall {
    ServerCall { id: CallId(id), method: Method::Get, path: path.to_owned(), body: None }
}

async fn next(server: &mut Server) -> ServerEvent {
    timeout(Duration::from_secs(30), server.next()).await.expect("nothing is heard")
}

async fn broken(server: &mut Server) -> (Option<CallId>, String) {
    match next(server).await {
        ServerEvent::Unreachable { call, why } => (call, why),
        other => panic!("{other:?}"),
    }
}

/// Reads a request's head, and what it says.
async fn head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

/// A server that says this to whoever comes, and leaves.
async fn says(answers: Vec<&'static str>) -> (String, tokio::task::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let task = tokio::spawn(async move {
        let mut heads = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            heads.push(head(&mut stream).await);
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
        heads
    });
    (address, task)
}

#[test]
fn only_an_address_of_this_machine_is_called() {
    for good in ["http://127.0.0.1:4096", "http://127.0.0.1:80/", "http://[::1]:4096", "http://127.8.9.1:1"] {
        assert!(call::local(good).is_some(), "{good}");
    }
    for bad in [
        "http://10.0.0.1:4096",
        "http://localhost:4096",
        "https://127.0.0.1:4096",
        "http://127.0.0.1",
        "http://127.0.0.1:4096/path",
        "http://x@127.0.0.1:4096",
        "http://127.0.0.1.example.org:80",
        "http://0.0.0.0:4096",
        "127.0.0.1:4096",
        "",
    ] {
        assert_eq!(call::local(bad), None, "{bad}");
    }
}

#[tokio::test]
async fn a_call_before_the_address_is_known_or_to_another_machine_is_refused() {
    let mut server = server(100);
    server.call(get(1, "/"));
    assert_eq!(broken(&mut server).await.0, Some(CallId(1)));
    server.connect("http://10.0.0.1:80");
    let (call, why) = broken(&mut server).await;
    assert!(call.is_none() && why.contains("10.0.0.1"), "{why}");
}

#[tokio::test]
async fn a_reply_comes_with_its_status_and_the_password_goes_in_a_header_alone() {
    let (address, heads) = says(vec!["HTTP/1.1 401 Unauthorized\r\ncontent-length: 2\r\n\r\nno"]).await;
    let mut server = server(100);
    server.connect(&address);
    let body = Some(b"{}".to_vec());
    server.call(ServerCall { id: CallId(7), method: Method::Post, path: "/a?b=c".to_owned(), body });
    let ServerEvent::Reply { call, status, body } = next(&mut server).await else { panic!("no reply") };
    assert_eq!((call, status, &*body), (CallId(7), 401, b"no".as_slice()));
    let head = heads.await.unwrap().remove(0).to_lowercase();
    assert!(head.starts_with("post /a?b=c http/1.1") && head.contains("authorization: basic "), "{head}");
    assert!(!head.contains(server.password.expose()) && !format!("{server:?}").contains(server.password.expose()));
}

#[tokio::test]
async fn a_body_that_is_too_long_or_cut_and_a_connection_that_is_refused_are_told() {
    let long = "HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\n12345678901234567890";
    let cut = "HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\n123";
    let (address, task) = says(vec![long, cut, ""]).await;
    let mut server = server(10);
    server.connect(&address);
    for (id, words) in
        [(1, "longer than 10 bytes"), (2, "broke off"), (3, "cannot be reached"), (4, "cannot be reached")]
    {
        if id == 4 {
            task.abort();
            // The listener goes with the task.
            while !task.is_finished() {
                tokio::task::yield_now().await;
            }
        }
        server.call(get(id, "/"));
        let (call, why) = broken(&mut server).await;
        assert_eq!(call, Some(CallId(id)));
        assert!(why.contains(words), "{why}");
    }
}

#[tokio::test]
async fn events_come_in_order_and_their_end_is_told() {
    let stream = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
        data: one\n\n: nothing\n\ndata: two is too long\n\ndata: three\n\ndata: cut";
    let (address, _task) = says(vec![stream]).await;
    let mut server = server(10);
    server.connect(&address);
    server.subscribe("/event");
    let mut told = Vec::new();
    let why = loop {
        match next(&mut server).await {
            ServerEvent::Event(data) => told.push(String::from_utf8(data.to_vec()).unwrap()),
            ServerEvent::TooLong { length, .. } => told.push(format!("{length}")),
            ServerEvent::Unreachable { call: None, why } => break why,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(told, ["one", "21", "three"]);
    assert!(why.contains("end"), "{why}");
}

#[tokio::test]
async fn a_stream_that_is_denied_is_broken() {
    let (address, _task) = says(vec!["HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n"]).await;
    let mut server = server(10);
    server.connect(&address);
    server.subscribe("/event");
    assert_eq!(broken(&mut server).await, (None, "it answered with status 401".to_owned()));
}

#[tokio::test]
async fn a_server_that_nobody_listens_to_has_to_wait() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut server = server(1 << 20);
    server.connect(&format!("http://{}", listener.local_addr().unwrap()));
    server.subscribe("/event");
    let (mut stream, _) = listener.accept().await.unwrap();
    head(&mut stream).await;
    stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n").await.unwrap();
    let event = format!("data: {}\n\n", "x".repeat(1 << 16));
    let mut written = 0;
    // More than this does not fit into sockets and what we keep.
    while timeout(Duration::from_millis(300), stream.write_all(event.as_bytes())).await.is_ok() {
        written += 1;
        assert!(written < 1000, "it never waits");
    }
    for _ in 0..written {
        assert!(matches!(next(&mut server).await, ServerEvent::Event(_)));
    }
}

#[tokio::test]
async fn calls_are_bounded_in_number() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut server = server(10);
    server.connect(&format!("http://{}", listener.local_addr().unwrap()));
    for id in 0..=64 {
        server.call(get(id, "/"));
    }
    assert_eq!(broken(&mut server).await.0, Some(CallId(64)));
}

#[tokio::test]
async fn what_was_sent_before_the_end_is_heard_after_it_and_then_no_more() {
    let stream = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\ndata: last\n\n";
    let (address, task) = says(vec![stream]).await;
    let mut server = server(10);
    server.connect(&address);
    server.subscribe("/event");
    task.await.unwrap();
    assert!(matches!(server.rest().await, Some(ServerEvent::Event(data)) if &*data == b"last"));
    assert!(server.rest().await.is_none());
}
