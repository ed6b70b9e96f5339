//! The log has nothing that people write.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use serde_json::json;
use teamster_testkit::discord::Post;

use crate::world::{World, ada};

/// What was logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn an_event_that_cannot_be_read_is_logged_without_its_contents() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber =
        tracing_subscriber::fmt().with_max_level(tracing::Level::DEBUG).with_writer(move || writer.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let world = World::new().await;
    let receiving = world.receive().await;
    world.server.raw_event("MESSAGE_CREATE", &json!({"id": "7", "type": "the-secret", "content": "the-secret"}));
    world.server.raw_event("INTERACTION_CREATE", &json!({"id": "7", "type": 5, "data": "the-secret"}));
    world.server.write(Post::private(&ada(), "hello"));
    world.messages(1).await;
    receiving.stop().await;
    let logged = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert_eq!(logged.matches("an event of Discord cannot be read").count(), 2, "{logged}");
    assert!(logged.contains("MESSAGE_CREATE") && !logged.contains("the-secret"), "{logged}");
}
