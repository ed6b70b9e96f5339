//! Files in both directions, within the limits.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use teamster_channel::{Address, Channel as _, Content, File, Operation, Outgoing, RateScope, SendError, SendOutcome};
use teamster_testkit::slack::{Fault, Person, Post};

use crate::world::{CHANNEL, World, ada, meet, mention, outgoing};

fn file(name: &str, caption: &str, bytes: &[u8]) -> Outgoing {
    let content = Content::File(File {
        name: name.to_owned(),
        media_type: "text/plain".to_owned(),
        hash: String::new(),
        caption: caption.to_owned(),
    });
    Outgoing { bytes: Arc::from(bytes), ..outgoing(Operation::New, content) }
}

#[tokio::test]
async fn a_file_is_downloaded_also_one_of_another_workspace() {
    let world = World::new().await;
    let receiving = world.receive();
    let foreign = Post::to(CHANNEL, &ada(), &mention("read it")).file("../a b.txt", "content");
    world.server.write(foreign.clone());
    world.server.write(foreign.with_file(|file| file.is_of_other_workspace = true));
    for message in world.messages(2).await {
        assert_eq!(message.text, "read it");
        let attachment = &message.attachments[0];
        assert_eq!((attachment.name.as_str(), attachment.media_type.as_str()), ("../a b.txt", "text/plain"));
        assert_eq!(attachment.bytes, b"content");
    }
    receiving.stop().await;
}

#[tokio::test]
async fn a_file_that_is_too_large_is_refused_with_the_limit() {
    let world = World::with(|config| config.max_download_bytes = 10).await;
    let receiving = world.receive();
    let post = Post::direct(&ada(), "").file("a.txt", "more than ten bytes");
    world.server.write(post.clone());
    world.shown(&ada().direct(), "19 bytes; the limit is 10").await;
    // The service states a smaller size than the file has.
    world.server.write(post.with_file(|file| file.stated_size = Some(3)));
    world.shown(&ada().direct(), "more bytes than allowed").await;
    world.acknowledged().await;
    assert!(world.inbox.texts().is_empty());
    receiving.stop().await;
}

#[tokio::test]
async fn the_token_is_not_sent_to_another_host() {
    let world = World::new().await;
    let receiving = world.receive();
    let post = Post::direct(&ada(), "").file("a_b.txt", "x");
    world.server.write(post.with_file(|file| file.foreign_url = Some("https://evil.example/x".to_owned())));
    let reply = world.shown(&ada().direct(), "cannot be downloaded").await;
    assert!(reply["text"].as_str().unwrap().contains("not one of Slack"), "{reply}");
    assert!(reply["text"].as_str().unwrap().contains("a_b.txt"), "{reply}");
    receiving.stop().await;
}

/// Answers one request after the other with these heads and the body "x". Returns its URL.
fn answering(heads: &'static [&'static str]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/file", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for head in heads {
            let (mut stream, _) = listener.accept().unwrap();
            _ = stream.read(&mut [0; 4_096]);
            let answer = format!("HTTP/1.1 {head}\r\ncontent-length: 1\r\nconnection: close\r\n\r\nx");
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    url
}

#[tokio::test]
async fn a_download_waits_as_long_as_the_service_wants_and_follows_redirects() {
    const FOUND: &str = "302 Found\r\nlocation: /next";
    let world = World::new().await;
    let receiving = world.receive();
    let url = answering(&["429 Too Many Requests\r\nretry-after: 1", FOUND, FOUND, FOUND, "200 OK"]);
    let started = Instant::now();
    world.server.write(Post::direct(&ada(), "one").file("a.txt", "x").with_file(|file| file.foreign_url = Some(url)));
    assert_eq!(world.messages(1).await[0].attachments[0].bytes, b"x");
    assert!(started.elapsed() >= Duration::from_secs(1));
    receiving.stop().await;
}

#[tokio::test]
async fn a_redirect_to_another_host_is_not_followed() {
    let world = World::new().await;
    let receiving = world.receive();
    let url = answering(&["302 Found\r\nlocation: https://evil.example/x"; 3]);
    world.server.write(Post::direct(&ada(), "").file("a.txt", "x").with_file(|file| file.foreign_url = Some(url)));
    let reply = world.shown(&ada().direct(), "cannot be downloaded").await;
    assert!(reply["text"].as_str().unwrap().contains("not one of Slack"), "{reply}");
    receiving.stop().await;
}

#[tokio::test]
async fn without_the_scope_the_page_of_a_login_is_no_file() {
    let world = World::new().await;
    world.server.remove_scope("files:read");
    let receiving = world.receive();
    world.server.write(Post::direct(&ada(), "").file("a.txt", "x"));
    let reply = world.shown(&ada().direct(), "cannot be downloaded").await;
    assert!(reply["text"].as_str().unwrap().contains("files:read"), "{reply}");
    assert!(world.inbox.texts().is_empty());
    receiving.stop().await;
}

#[tokio::test]
async fn a_download_that_is_cut_is_repeated_and_one_that_never_works_blocks_nothing() {
    let world = World::new().await;
    let receiving = world.receive();
    world.server.fail("download", &Fault::CutBefore, 2);
    world.server.write(Post::direct(&ada(), "one").file("a.txt", "x"));
    assert_eq!(world.messages(1).await[0].attachments[0].bytes, b"x");
    world.server.fail("download", &Fault::BadGateway, 3);
    world.server.write(Post::direct(&ada(), "two").file("b_x.txt", "x"));
    world.server.write(Post::direct(&ada(), "three"));
    world.shown(&ada().direct(), "b_x.txt cannot be downloaded").await;
    world.messages(2).await;
    assert_eq!(world.inbox.texts(), ["one", "three"]);
    receiving.stop().await;
}

#[tokio::test]
async fn a_file_that_is_not_for_the_bot_is_not_downloaded() {
    let world = World::new().await;
    let receiving = world.receive();
    let post = Post::to(CHANNEL, &ada(), "for others").file("a.txt", "x");
    world.server.write(post.with_file(|file| file.is_of_other_workspace = true));
    world.server.write(Post::direct(&ada(), "hello"));
    world.messages(1).await;
    world.acknowledged().await;
    assert!(!world.server.calls().iter().any(|call| call.method == "files.info"));
    receiving.stop().await;
}

#[tokio::test]
async fn a_file_of_a_stranger_is_not_downloaded_and_gets_no_reply() {
    let world = World::with(|config| config.max_download_bytes = 10).await;
    world.inbox.with(|contents| contents.strangers = vec!["U0MALLORY".to_owned()]);
    let receiving = world.receive();
    let mallory = Person::new("U0MALLORY", "Mallory");
    let post = Post::direct(&mallory, "").file("a.txt", "x");
    world.server.write(post.with_file(|file| file.is_of_other_workspace = true));
    world.server.write(Post::direct(&mallory, "").file("large.txt", "more than ten bytes"));
    world.acknowledged().await;
    world.server.write(Post::direct(&ada(), "hello"));
    world.messages(1).await;
    let is_of_stranger = |method: &str| matches!(method, "files.info" | "chat.postMessage");
    let calls = world.server.calls();
    assert!(!calls.iter().any(|call| is_of_stranger(&call.method)), "{calls:?}");
    assert_eq!(calls.iter().filter(|call| call.method == "users.info").count(), 1, "only for Ada");
    assert_eq!(world.server.messages(&mallory.direct()).len(), 2, "no reply");
    receiving.stop().await;
}

#[tokio::test]
async fn a_file_is_sent_to_its_thread_with_a_caption_that_mentions_no_person() {
    let world = World::new().await;
    let thread = world.server.write(Post::to(CHANNEL, &ada(), "topic"));
    let address = Address { chat: CHANNEL.to_owned(), thread: thread.clone() };
    let sent = world.channel.send(&Outgoing { address, ..file("a.txt", "see <!channel>", b"text") }).await;
    assert!(matches!(sent, SendOutcome::Sent(_)), "{sent:?}");
    let shown = world.shown(CHANNEL, "see &lt;!channel&gt;").await;
    assert_eq!((&shown["thread_ts"], &shown["files"][0]["name"]), (&thread.into(), &"a.txt".into()));
    assert_eq!(world.server.file(shown["files"][0]["id"].as_str().unwrap()).unwrap(), b"text");
}

#[tokio::test]
async fn a_file_is_unknown_only_after_the_call_that_shows_it() {
    let world = World::new().await;
    meet(&world);
    for (step, fault) in [
        ("files.getUploadURLExternal", Fault::CutAfter),
        ("files.getUploadURLExternal", Fault::BadGateway),
        ("upload", Fault::CutAfter),
        ("upload", Fault::BadGateway),
    ] {
        world.server.fail(step, &fault, 1);
        let outcome = world.channel.send(&file("a.txt", "", b"text")).await;
        let SendOutcome::NotSent(SendError::Later { scope, .. }) = outcome else { panic!("{step}: {outcome:?}") };
        assert_eq!(scope, RateScope::Chat, "messages do not wait for the methods and the host of the files");
    }
    assert_eq!(world.server.messages(&ada().direct()).len(), 1, "nothing is shown");
    world.server.fail("files.completeUploadExternal", &Fault::CutAfter, 1);
    let outcome = world.channel.send(&file("a.txt", "", b"text")).await;
    assert!(matches!(outcome, SendOutcome::Unknown(_)), "{outcome:?}");
}
