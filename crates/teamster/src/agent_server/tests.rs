//! Tests with small HTTP servers.

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
    timeout(Duration::from_secs(30), server.next()).await.expect("no event arrives")
}

async fn unreachable(server: &mut Server) -> (Option<CallId>, String) {
    match next(server).await {
        ServerEvent::Unreachable { call, why } => (call, why),
        other => panic!("{other:?}"),
    }
}

/// Reads the head of a request.
async fn head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

/// Starts a server that sends these responses, one for each connection, and then stops.
async fn serve(answers: Vec<&'static str>) -> (String, tokio::task::JoinHandle<Vec<String>>) {
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
async fn a_call_before_the_address_is_known_or_to_another_machine_is_rejected() {
    let mut server = server(100);
    server.call(get(1, "/"));
    assert_eq!(unreachable(&mut server).await.0, Some(CallId(1)));
    server.connect("http://10.0.0.1:80");
    let (call, why) = unreachable(&mut server).await;
    assert!(call.is_none() && why.contains("10.0.0.1"), "{why}");
}

#[tokio::test]
async fn a_reply_has_its_status_and_the_password_is_only_in_a_header() {
    let (address, heads) = serve(vec!["HTTP/1.1 401 Unauthorized\r\ncontent-length: 2\r\n\r\nno"]).await;
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
async fn a_body_that_is_too_long_or_cut_and_a_refused_connection_are_reported() {
    let long = "HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\n12345678901234567890";
    let cut = "HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\n123";
    let (address, task) = serve(vec![long, cut, ""]).await;
    let mut server = server(10);
    server.connect(&address);
    for (id, words) in
        [(1, "longer than 10 bytes"), (2, "was cut off"), (3, "cannot be reached"), (4, "cannot be reached")]
    {
        if id == 4 {
            task.abort();
            // The task owns the listener.
            while !task.is_finished() {
                tokio::task::yield_now().await;
            }
        }
        server.call(get(id, "/"));
        let (call, why) = unreachable(&mut server).await;
        assert_eq!(call, Some(CallId(id)));
        assert!(why.contains(words), "{why}");
    }
}

#[tokio::test]
async fn events_arrive_in_order_and_their_end_is_reported() {
    let stream = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
        data: one\n\n: nothing\n\ndata: two is too long\n\ndata: three\n\ndata: cut";
    let (address, _task) = serve(vec![stream]).await;
    let mut server = server(10);
    server.connect(&address);
    server.subscribe("/event");
    let mut texts = Vec::new();
    let why = loop {
        match next(&mut server).await {
            ServerEvent::Event(data) => texts.push(String::from_utf8(data.to_vec()).unwrap()),
            ServerEvent::TooLong { length, .. } => texts.push(format!("{length}")),
            ServerEvent::Unreachable { call: None, why } => break why,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(texts, ["one", "21", "three"]);
    assert!(why.contains("end"), "{why}");
}

#[tokio::test]
async fn a_stream_that_the_server_denies_is_unreachable() {
    let (address, _task) = serve(vec!["HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n"]).await;
    let mut server = server(10);
    server.connect(&address);
    server.subscribe("/event");
    assert_eq!(unreachable(&mut server).await, (None, "it responded with status 401".to_owned()));
}

#[tokio::test]
async fn a_server_waits_while_its_events_are_not_taken() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut server = server(1 << 20);
    server.connect(&format!("http://{}", listener.local_addr().unwrap()));
    server.subscribe("/event");
    let (mut stream, _) = listener.accept().await.unwrap();
    head(&mut stream).await;
    stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n").await.unwrap();
    let event = format!("data: {}\n\n", "x".repeat(1 << 16));
    let mut written = 0;
    // The sockets and the client hold less than this.
    while timeout(Duration::from_millis(300), stream.write_all(event.as_bytes())).await.is_ok() {
        written += 1;
        assert!(written < 1000, "the server never waits");
    }
    for _ in 0..written {
        assert!(matches!(next(&mut server).await, ServerEvent::Event(_)));
    }
}

#[tokio::test]
async fn the_number_of_concurrent_calls_is_limited() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut server = server(10);
    server.connect(&format!("http://{}", listener.local_addr().unwrap()));
    for id in 0..=64 {
        server.call(get(id, "/"));
    }
    assert_eq!(unreachable(&mut server).await.0, Some(CallId(64)));
}

#[tokio::test]
async fn events_sent_before_the_exit_arrive_after_it_and_no_others() {
    let stream = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\ndata: last\n\n";
    let (address, task) = serve(vec![stream]).await;
    let mut server = server(10);
    server.connect(&address);
    server.subscribe("/event");
    task.await.unwrap();
    assert!(matches!(server.rest().await, Some(ServerEvent::Event(data)) if &*data == b"last"));
    assert!(server.rest().await.is_none());
}
