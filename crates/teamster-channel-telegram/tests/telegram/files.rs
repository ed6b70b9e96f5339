//! Files in both directions, within the limits.

use std::sync::Arc;

use teamster_channel::{Channel as _, Content, File, Operation, Outgoing, SendOutcome};
use teamster_testkit::telegram::{Fault, Person, Post};

use crate::world::{World, ada, outgoing};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n and so on";

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
async fn a_document_is_downloaded() {
    let world = World::new().await;
    let receiving = world.receive();
    world.server.write(Post::private(&ada(), "read it").document("../a b.txt", "content"));
    let message = world.messages(1).await.remove(0);
    assert_eq!(message.text, "read it");
    let attachment = &message.attachments[0];
    assert_eq!((attachment.name.as_str(), attachment.media_type.as_str()), ("../a b.txt", "text/plain"));
    assert_eq!(attachment.bytes, b"content");
    receiving.stop().await;
}

#[tokio::test]
async fn a_file_that_is_too_large_is_refused_with_the_limit() {
    let world = World::with(|config| config.max_download_bytes = 10).await;
    let receiving = world.receive();
    world.server.write(Post::private(&ada(), "").document("a.txt", "more than ten bytes"));
    world.shown(11, "19 bytes; the limit is 10").await;
    // The service states a smaller size than the file has.
    world.server.write(Post::private(&ada(), "").document("a.txt", "more than ten bytes").stated_size(3));
    world.shown(11, "more bytes than allowed").await;
    world.confirmed().await;
    assert!(world.inbox.texts().is_empty());
    receiving.stop().await;
}

#[tokio::test]
async fn a_file_of_a_stranger_is_not_downloaded() {
    let world = World::new().await;
    world.inbox.with(|contents| contents.strangers = vec!["99".to_owned()]);
    let receiving = world.receive();
    world.server.write(Post::private(&Person::new(99, "Mallory"), "").document("a.txt", "x"));
    world.server.write(Post::private(&ada(), "hello"));
    world.messages(1).await;
    assert_eq!(world.inbox.texts(), ["hello"]);
    assert!(!world.server.calls().iter().any(|call| call.method == "getFile"));
    receiving.stop().await;
}

#[tokio::test]
async fn a_file_that_the_service_does_not_give_is_refused() {
    let world = World::with(|config| config.max_download_bytes = 100 << 20).await;
    let receiving = world.receive();
    world.server.write(Post::private(&ada(), "").document("a.txt", "x").stated_size(30 << 20));
    world.shown(11, "the limit is").await;
    receiving.stop().await;
}

#[tokio::test]
async fn a_download_that_is_cut_is_repeated_and_one_that_never_works_blocks_nothing() {
    let world = World::new().await;
    let receiving = world.receive();
    world.server.fail("file", &Fault::CutBefore, 2);
    world.server.write(Post::private(&ada(), "one").document("a.txt", "x"));
    assert_eq!(world.messages(1).await[0].attachments[0].bytes, b"x");
    world.server.fail("file", &Fault::CutBefore, 3);
    world.server.write(Post::private(&ada(), "two").document("b_x.txt", "x"));
    world.server.write(Post::private(&ada(), "three"));
    let shown = world.shown(11, "cannot be downloaded").await;
    assert!(shown["text"].as_str().unwrap().contains("b_x.txt"), "{shown}");
    world.messages(2).await;
    assert_eq!(world.inbox.texts(), ["one", "three"]);
    receiving.stop().await;
}

#[tokio::test]
async fn a_file_that_is_not_for_the_bot_is_not_downloaded() {
    let world = World::new().await;
    world.server.set_privacy(false);
    world.server.create_group(-5, &[]);
    let receiving = world.receive();
    world.server.write(Post::to(-5, &ada(), "for others").document("a.txt", "x"));
    world.server.write(Post::private(&ada(), "hello"));
    world.messages(1).await;
    assert!(!world.server.calls().iter().any(|call| call.method == "getFile"));
    receiving.stop().await;
}

#[tokio::test]
async fn an_image_is_a_photo_and_any_other_file_a_document() {
    let world = World::new().await;
    world.meet();
    for (outgoing, field) in [
        (file("a.png", "image/png", "**see**", PNG), "photo"),
        (file("a.txt", "text/plain", "**see**", b"text"), "document"),
        // The service cannot process it.
        (file("b.png", "image/png", "**see**", b"no image"), "document"),
        (file("c.bin", "no media type", "**see**", b"x"), "document"),
    ] {
        assert!(matches!(world.channel.send(&outgoing).await, SendOutcome::Sent(_)), "{field}");
        let sent = world.server.messages(11).pop().unwrap();
        assert_eq!((&sent["caption"], &sent["caption_entities"][0]["type"]), (&"see".into(), &"bold".into()), "{sent}");
        let id = sent[field].pointer("/file_id").or_else(|| sent[field].pointer("/0/file_id")).unwrap();
        assert_eq!(world.server.file(id.as_str().unwrap()).unwrap(), &*outgoing.bytes);
    }
    let long = file("a.txt", "text/plain", &"word ".repeat(500), b"text");
    assert!(matches!(world.channel.send(&long).await, SendOutcome::Sent(_)), "a long caption is cut");
}
