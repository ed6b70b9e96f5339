//! Files in both directions, within the limits.

use std::sync::Arc;

use teamster_channel::{Channel as _, Content, File, Operation, Outgoing, SendError, SendOutcome};
use teamster_testkit::discord::{Fault, Post};

use crate::world::{CHANNEL, DIRECT, World, ada, is_own, mallory, outgoing};

fn file(name: &str, media_type: &str, caption: &str, bytes: &[u8]) -> Outgoing {
    let content = Content::File(File {
        name: name.to_owned(),
        media_type: media_type.to_owned(),
        hash: String::new(),
        caption: caption.to_owned(),
    });
    Outgoing { bytes: Arc::from(bytes), ..outgoing(Operation::New, content) }
}

#[tokio::test]
async fn several_files_of_a_message_are_downloaded() {
    let world = World::new().await;
    let receiving = world.receive().await;
    world.server.write(Post::private(&ada(), "read them").file("a b.txt", "one").file("b.txt", "two"));
    let message = world.messages(1).await.remove(0);
    assert_eq!(message.text, "read them");
    let files: Vec<_> = message.attachments.iter().map(|file| (file.name.as_str(), file.bytes.as_slice())).collect();
    assert_eq!(files, [("a_b.txt", &b"one"[..]), ("b.txt", b"two")]);
    assert_eq!(message.attachments[0].media_type, "text/plain");
    receiving.stop().await;
}

#[tokio::test]
async fn files_that_are_too_large_are_refused_with_the_limit() {
    let world = World::with(|config| config.max_download_bytes = 10).await;
    let receiving = world.receive().await;
    world.server.write(Post::private(&ada(), "").file("a.txt", "more than ten bytes"));
    world.shown(DIRECT, "19 bytes; the limit is 10").await;
    // The service states a smaller size than the file has.
    world.server.write(Post::private(&ada(), "").file("a.txt", "more than ten bytes").stated_size(3));
    world.shown(DIRECT, "more bytes than allowed").await;
    assert!(world.inbox.texts().is_empty());
    receiving.stop().await;
}

#[tokio::test]
async fn a_download_that_is_cut_is_repeated_and_one_that_never_works_blocks_nothing() {
    let world = World::new().await;
    let receiving = world.receive().await;
    world.server.fail("file", &Fault::CutBefore, 2);
    world.server.write(Post::private(&ada(), "one").file("a.txt", "x"));
    assert_eq!(world.messages(1).await[0].attachments[0].bytes, b"x");
    let gone = Fault::Error { status: 404, code: 0, message: "expired".to_owned() };
    world.server.fail("file", &gone, 1);
    world.server.write(Post::private(&ada(), "two").file("b_x.txt", "x"));
    world.server.write(Post::private(&ada(), "three"));
    world.shown(DIRECT, "cannot be downloaded").await;
    world.messages(2).await;
    assert_eq!(world.inbox.texts(), ["one", "three"]);
    receiving.stop().await;
}

#[tokio::test]
async fn a_file_that_is_not_for_the_bot_is_not_downloaded() {
    let world = World::new().await;
    let receiving = world.receive().await;
    world.server.write(Post::to(CHANNEL, &ada(), "for others").file("a.txt", "x"));
    world.server.write(Post::private(&ada(), "hello"));
    world.messages(1).await;
    assert_eq!(world.server.count("file"), 0);
    receiving.stop().await;
}

#[tokio::test]
async fn a_file_of_a_stranger_is_not_downloaded_and_gets_no_reply() {
    let world = World::with(|config| config.max_download_bytes = 10).await;
    world.inbox.with(|contents| contents.strangers = vec![mallory().id.to_string()]);
    let receiving = world.receive().await;
    world.server.write(Post::mention(CHANNEL, &mallory(), "small").file("a.txt", "x"));
    world.server.write(Post::mention(CHANNEL, &mallory(), "large").file("a.txt", "more than ten bytes"));
    let sticker = serde_json::json!({"id": "7", "channel_id": DIRECT.to_string(), "type": 0, "content": "",
        "author": {"id": "99", "username": "mallory"}, "sticker_items": [{"id": "1"}]});
    world.server.raw_event("MESSAGE_CREATE", &sticker);
    world.server.write(Post::private(&ada(), "hello"));
    world.messages(1).await;
    assert_eq!((world.inbox.texts(), world.server.count("file")), (vec!["hello".to_owned()], 0));
    let replies =
        [CHANNEL, DIRECT].map(|channel| world.server.messages(channel).iter().filter(|sent| is_own(sent)).count());
    assert_eq!(replies, [0, 0]);
    receiving.stop().await;
}

#[tokio::test]
async fn a_url_of_another_host_is_not_read() {
    let world = World::new().await;
    let receiving = world.receive().await;
    world.meet();
    for url in [
        "http://127.0.0.1:1/secret",
        "http://cdn.discordapp.com/x",
        "https://cdn.discordapp.com.evil.org/x",
        "file:///etc/passwd",
    ] {
        let data = serde_json::json!({"id": "7", "channel_id": DIRECT.to_string(), "type": 0, "content": "read it",
            "author": {"id": "11", "username": "ada"}, "attachments": [{"filename": "a", "size": 1, "url": url}]});
        world.server.raw_event("MESSAGE_CREATE", &data);
    }
    let is_refused = |server: &teamster_testkit::discord::DiscordServer| {
        server.messages(DIRECT).iter().any(|message| crate::world::text_of(message).contains("not one of Discord"))
    };
    world.until("a refusal", is_refused).await;
    world.server.write(Post::private(&ada(), "last"));
    world.messages(2).await;
    assert_eq!(world.inbox.texts(), ["hi", "last"]);
    receiving.stop().await;
}

#[tokio::test]
async fn a_file_is_sent_with_its_caption_once() {
    let world = World::new().await;
    world.server.fail("createMessage", &Fault::CutAfter, 1);
    let id = world.sent(&file("a.png", "image/png", "**see**", b"content")).await;
    let messages = world.server.messages(CHANNEL);
    assert_eq!(messages.len(), 1, "the repeat is recognized");
    assert_eq!((&messages[0]["id"], &messages[0]["content"]), (&id.to_string().into(), &"**see**".into()));
    let attachment = &messages[0]["attachments"][0];
    assert_eq!((&attachment["filename"], &attachment["content_type"]), (&"a.png".into(), &"image/png".into()));
    let content = world.server.file(attachment["id"].as_str().unwrap().parse().unwrap());
    assert_eq!(content.unwrap(), b"content");
}

#[tokio::test]
async fn a_file_without_caption_or_with_an_invalid_media_type_is_sent() {
    let world = World::new().await;
    world.sent(&file("c.bin", "no media type", "", b"x")).await;
    let shown = world.server.messages(CHANNEL).pop().unwrap();
    assert_eq!((&shown["content"], &shown["attachments"][0]["filename"]), (&"".into(), &"c.bin".into()));
}

#[tokio::test]
async fn a_file_that_is_too_large_for_the_service_is_never_sent_again() {
    let world = World::new().await;
    let outcome = world.channel.send(&file("c.bin", "", "", &vec![0; 11 << 20])).await;
    assert!(
        matches!(&outcome, SendOutcome::NotSent(SendError::Never(text)) if text.contains("too large")),
        "{outcome:?}"
    );
}
