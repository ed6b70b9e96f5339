//! The log names what went wrong, and quotes no person.

use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use serde_json::json;
use teamster_testkit::telegram::Post;

use crate::world::{World, ada};

/// The fields of all events of the log.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

impl Visit for Log {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        writeln!(self.0.lock().unwrap(), "{field}={value:?}").unwrap();
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("teamster")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[tokio::test]
async fn an_update_that_cannot_be_read_is_named_in_the_log_without_what_it_contains() {
    let log = Log::default();
    let _logged = tracing::subscriber::set_default(log.clone());
    let world = World::new().await;
    let receiving = world.receive();
    world.server.raw_update("message", json!({"message_id": 1, "date": "secret"}));
    world.server.write(Post::private(&ada(), "hello"));
    world.messages(1).await;
    receiving.stop().await;
    let text = log.0.lock().unwrap().clone();
    assert!(text.contains("cannot be read") && text.contains("problem=Data"), "{text}");
    assert!(!text.contains("secret"), "{text}");
}
