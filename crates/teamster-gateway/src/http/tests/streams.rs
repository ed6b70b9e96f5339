//! Event streams, over sockets.

use std::time::{Duration, Instant};

use axum::http::{Method, StatusCode};
use futures::StreamExt as _;
use serde_json::{Value, json};
use teamster_store::{ConversationId, FeedCursor, Lease, RetentionPolicy};

use super::World;

/// The API behind a socket.
struct Server {
    client: reqwest::Client,
    base: String,
    task: tokio::task::JoinHandle<()>,
}

/// An event of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Frame {
    id: Option<String>,
    event: String,
    data: Value,
}

/// A stream that is read frame by frame.
struct Stream {
    chunks: futures::stream::BoxStream<'static, reqwest::Result<axum::body::Bytes>>,
    buffer: String,
    comments: usize,
}

impl Server {
    async fn start(world: &World) -> Self {
        // Another test of the process may have installed it.
        _ = rustls::crypto::ring::default_provider().install_default();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let router = world.router();
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { client, base, task }
    }

    async fn send(&self, path: &str, last: Option<&str>) -> reqwest::Response {
        let mut request = self.client.get(format!("{}{path}", self.base));
        if let Some(last) = last {
            request = request.header("Last-Event-ID", last);
        }
        request.send().await.unwrap()
    }

    async fn open(&self, path: &str, last: Option<&str>) -> Stream {
        let response = self.send(path, last).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["x-accel-buffering"], "no");
        assert_eq!(response.headers()["cache-control"], "no-cache");
        Stream { chunks: response.bytes_stream().boxed(), buffer: String::new(), comments: 0 }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Stream {
    /// Returns the next event. `None` is the end of the stream.
    async fn next(&mut self) -> Option<Frame> {
        loop {
            while let Some((frame, rest)) = self.buffer.split_once("\n\n") {
                let (frame, rest) = (frame.to_owned(), rest.to_owned());
                self.buffer = rest;
                if frame.starts_with(':') {
                    self.comments += 1;
                } else {
                    return Some(parse(&frame));
                }
            }
            let chunk = tokio::time::timeout(Duration::from_secs(20), self.chunks.next()).await;
            let chunk = chunk.expect("the stream is silent")?.unwrap();
            self.buffer.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    async fn take(&mut self, count: usize) -> Vec<Frame> {
        let mut frames = Vec::new();
        while frames.len() < count {
            frames.push(self.next().await.expect("the stream has ended"));
        }
        frames
    }
}

fn parse(frame: &str) -> Frame {
    let field = |name: &str| frame.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
    let data = serde_json::from_str(&field("data: ").unwrap()).unwrap();
    Frame { id: field("id: "), event: field("event: ").unwrap(), data }
}

fn text(number: usize) -> Value {
    json!({ "type": "text", "text": format!("t{number}"), "messageId": "m" })
}

/// Starts a turn, with one event in the log.
async fn turn(world: &World) -> (String, Lease) {
    let id = world.conversation().await;
    world.message(&id, "hi").await;
    (id, world.claim().await)
}

#[tokio::test]
async fn a_stream_that_is_cut_at_each_event_continues_after_it() {
    for world in World::all().await {
        let (id, lease) = turn(&world).await;
        world.append(lease, &[text(0), text(1), text(2)], true).await;
        world.finish(lease, Ok("bye")).await;
        let server = Server::start(&world).await;
        let path = format!("/v1/conversations/{id}/events");
        let all = server.open(&path, None).await.take(6).await;
        let kinds: Vec<_> = all.iter().map(|frame| frame.event.as_str()).collect();
        assert_eq!(kinds, ["turn_queued", "text", "text", "text", "done", "turn_finished"]);
        for (index, frame) in all.iter().enumerate() {
            assert_eq!(frame.id, Some((index + 1).to_string()));
            assert_eq!((&frame.data["seq"], &frame.data["type"]), (&json!(index + 1), &json!(frame.event)));
            assert_eq!(frame.data["turnId"], lease.turn.to_string());
            assert!(frame.data["at"].is_string());
        }
        for cut in 0..6 {
            let rest = server.open(&format!("{path}?after={cut}"), None).await.take(6 - cut).await;
            assert_eq!(rest, all[cut..]);
            // The header of a reconnected client overrides the parameter of its first connection.
            let rest = server.open(&format!("{path}?after=0"), Some(&cut.to_string())).await.take(6 - cut).await;
            assert_eq!(rest, all[cut..]);
        }
        let rest = server.open(&format!("{path}?after=4"), Some("")).await.take(2).await;
        assert_eq!(rest, all[4..]);
    }
}

#[tokio::test]
async fn late_repeated_or_missing_announcements_lose_and_repeat_nothing() {
    for world in World::all().await {
        let (id, lease) = turn(&world).await;
        let server = Server::start(&world).await;
        let mut stream = server.open(&format!("/v1/conversations/{id}/events"), None).await;
        let write = async {
            for number in 0..60 {
                world.append(lease, &[text(number)], number % 3 == 0).await;
                for _ in 0..number % 4 {
                    world.gateway.announce_growth(lease.conversation);
                }
                tokio::task::yield_now().await;
            }
        };
        let (frames, ()) = tokio::join!(stream.take(61), write);
        let ids: Vec<_> = frames.iter().map(|frame| frame.id.clone().unwrap().parse::<usize>().unwrap()).collect();
        assert_eq!(ids, (1..=61).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn a_silent_stream_has_heartbeats_without_ids() {
    let world = World::memory(|_| {});
    let (id, lease) = turn(&world).await;
    let server = Server::start(&world).await;
    let mut stream = server.open(&format!("/v1/conversations/{id}/events?after=1"), None).await;
    let (frame, ()) = tokio::join!(stream.next(), async {
        tokio::time::sleep(Duration::from_millis(700)).await;
        world.append(lease, &[text(0)], true).await;
    });
    assert_eq!(frame.unwrap().id.as_deref(), Some("2"));
    // The first comment, and at least two heartbeats in 700 ms.
    assert!(stream.comments >= 3, "{}", stream.comments);
}

async fn ends_with(stream: &mut Stream, code: &str) -> Value {
    let last = stream.next().await.unwrap();
    assert_eq!((last.event.as_str(), &last.id), ("stream_end", &None));
    assert_eq!(last.data["code"], code);
    assert!(!last.data["reason"].as_str().unwrap().is_empty());
    assert_eq!(stream.next().await, None);
    last.data
}

#[tokio::test]
async fn a_stream_ends_with_a_reason_when_the_gateway_stops() {
    let world = World::memory(|_| {});
    let (id, _) = turn(&world).await;
    let server = Server::start(&world).await;
    let mut one = server.open(&format!("/v1/conversations/{id}/events?after=1"), None).await;
    let mut all = server.open("/v1/events", None).await;
    all.take(1).await;
    world.gateway.stopping().cancel();
    ends_with(&mut one, "SHUTTING_DOWN").await;
    ends_with(&mut all, "SHUTTING_DOWN").await;
}

#[tokio::test]
async fn a_stream_ends_with_a_reason_when_its_conversation_is_deleted() {
    for world in World::all().await {
        let id = world.conversation().await;
        world.message(&id, "hi").await;
        let server = Server::start(&world).await;
        let mut stream = server.open(&format!("/v1/conversations/{id}/events"), None).await;
        stream.take(1).await;
        let deleted = world.call(Method::DELETE, &format!("/v1/conversations/{id}"), Value::Null).await;
        assert_eq!(deleted.status, StatusCode::NO_CONTENT);
        ends_with(&mut stream, "NOT_FOUND").await;
        assert_eq!(server.send(&format!("/v1/conversations/{id}/events"), None).await.status(), 404);
    }
}

#[tokio::test]
async fn deleted_events_are_a_problem_with_the_oldest_number() {
    for world in World::all().await {
        let (id, lease) = turn(&world).await;
        world.append(lease, &[text(0), text(1)], true).await;
        world.finish(lease, Ok("bye")).await;
        let policy = RetentionPolicy { events_before: None, max_events: Some(2), ended_before: None, batch: 100 };
        world.store.prune(policy, world.gateway.now()).await.unwrap();
        let path = format!("/v1/conversations/{id}/events");
        let problem = world.get(&format!("{path}?after=1")).await.problem(410, "EVENTS_PRUNED");
        assert_eq!(problem["oldestSeq"], 4);
        let server = Server::start(&world).await;
        let rest = server.open(&format!("{path}?after=3"), None).await.take(2).await;
        assert_eq!(rest[0].id.as_deref(), Some("4"));
        world.get(&format!("{path}?after=6")).await.problem(409, "CONFLICT");
        world.get(&format!("{path}?after=-1")).await.problem(400, "INVALID_REQUEST");
    }
}

#[tokio::test]
async fn a_subscriber_that_does_not_read_is_disconnected_with_a_reason() {
    let world = World::memory(|config| config.limits.subscribers = 1);
    let (id, lease) = turn(&world).await;
    let large = json!({ "type": "text", "text": "x".repeat(40_000), "messageId": "m" });
    world.append(lease, &vec![large; 30], true).await;
    let path = format!("/v1/conversations/{id}/events");
    let request = axum::http::Request::get(&path).body(axum::body::Body::empty()).unwrap();
    let response = tower::ServiceExt::oneshot(world.router(), request).await.unwrap();
    let refused = world.get(&path).await;
    refused.problem(503, "TOO_MANY_SUBSCRIBERS");
    assert!(refused.headers.contains_key("retry-after"));
    // Nothing is read: the permit is released after the time limit.
    let started = Instant::now();
    while world.get("/v1/status").await.json(StatusCode::OK)["subscribers"] != 0 {
        assert!(started.elapsed() < Duration::from_secs(10), "the permit is not released");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
    let text = String::from_utf8(body.to_vec()).unwrap();
    let frames: Vec<_> = text.split_terminator("\n\n").filter(|frame| !frame.starts_with(':')).map(parse).collect();
    let (last, events) = frames.split_last().unwrap();
    assert_eq!((last.event.as_str(), &last.data["code"]), ("stream_end", &json!("DEADLINE_EXCEEDED")));
    // What came before the end has no gap.
    for (index, frame) in events.iter().enumerate() {
        assert_eq!(frame.id, Some((index + 1).to_string()));
    }
    assert!(events.len() < 31);
}

#[tokio::test]
async fn a_subscriber_that_disconnects_releases_its_permit() {
    let world = World::memory(|config| config.limits.subscribers = 1);
    let (id, _) = turn(&world).await;
    let path = format!("/v1/conversations/{id}/events");
    let server = Server::start(&world).await;
    for _ in 0..5 {
        let started = Instant::now();
        let mut stream = loop {
            if server.send(&path, None).await.status() == 200 {
                // That stream is dropped at once; the next one is read.
                if let Some(stream) = try_open(&server, &path).await {
                    break stream;
                }
            }
            assert!(started.elapsed() < Duration::from_secs(10), "the permit is not released");
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        stream.take(1).await;
    }
}

async fn try_open(server: &Server, path: &str) -> Option<Stream> {
    let response = server.send(path, None).await;
    let is_open = response.status() == 200;
    is_open.then(|| Stream { chunks: response.bytes_stream().boxed(), buffer: String::new(), comments: 0 })
}

#[tokio::test]
async fn the_stream_of_all_conversations_continues_after_each_event() {
    for world in World::all().await {
        let (a, lease) = turn(&world).await;
        let (b, _) = turn(&world).await;
        world.append(lease, &[text(0), text(1)], true).await;
        let server = Server::start(&world).await;
        let all = server.open("/v1/events", None).await.take(4).await;
        let seen: Vec<_> =
            all.iter().map(|frame| (frame.data["conversationId"].clone(), frame.data["seq"].clone())).collect();
        let expected = [(&a, 1), (&b, 1), (&a, 2), (&a, 3)].map(|(id, seq)| (json!(id), json!(seq)));
        assert_eq!(seen, expected);
        for (index, frame) in all.iter().enumerate() {
            world.append(lease, &[text(9)], false).await;
            let rest = server.open("/v1/events", frame.id.as_deref()).await.take(4 - index).await;
            assert_eq!(rest[..3 - index], all[index + 1..]);
            assert_eq!(rest[3 - index].data["seq"], 4);
        }
        let end = world.get("/v1/events/end").await.json(StatusCode::OK)["cursor"].as_str().unwrap().to_owned();
        let mut live = server.open(&format!("/v1/events?after={end}"), None).await;
        let new = [text(7)];
        let (frame, ()) = tokio::join!(live.next(), world.append(lease, &new, true));
        assert_eq!(frame.unwrap().data["text"], "t7");
        world.get("/v1/events?after=x").await.problem(400, "INVALID_REQUEST");
    }
}

#[tokio::test]
async fn line_breaks_in_a_stored_event_do_not_break_a_frame() {
    let world = World::memory(|_| {});
    let (id, lease) = turn(&world).await;
    let body = "{\"type\":\"text\",\n\r\n  \"text\": \"a\\nid: 99\\n\\nevent: x\"\r}";
    let event = teamster_store::NewEvent {
        kind: "text".to_owned(),
        turn: Some(lease.turn),
        at: world.gateway.now(),
        body: teamster_store::Json::parse(body).unwrap(),
    };
    let effects = teamster_store::Effects::events(vec![event]);
    world.store.append(lease, teamster_store::Progress::Text, effects, world.gateway.now()).await.unwrap();
    let server = Server::start(&world).await;
    let frames = server.open(&format!("/v1/conversations/{id}/events"), None).await.take(2).await;
    assert_eq!((frames[1].id.as_deref(), &frames[1].data["text"]), (Some("2"), &json!("a\nid: 99\n\nevent: x")));
}

#[tokio::test]
async fn positions_of_the_streams_are_those_of_the_store() {
    let world = World::memory(|_| {});
    let (id, _) = turn(&world).await;
    let server = Server::start(&world).await;
    let frame = server.open("/v1/events", None).await.next().await.unwrap();
    let page = world.store.feed(Some(FeedCursor::new(frame.id.unwrap())), 10).await.unwrap();
    assert_eq!(page.events, []);
    let id: ConversationId = id.parse().unwrap();
    assert_eq!(world.store.conversation(id, world.gateway.now()).await.unwrap().unwrap().last_seq.get(), 1);
}
