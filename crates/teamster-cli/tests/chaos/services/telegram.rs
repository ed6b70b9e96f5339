//! A server of Telegram, with two direct chats and two topics of a group.

use std::time::Duration;

use teamster_testkit::telegram::{Fault, Person, Post, TelegramServer};

use super::{Chat, Service, Shown, person_of};
use crate::plan::{one_in, random_index};

/// The group with the topics.
const GROUP: i64 = -100;

/// The topics of the group.
const TOPICS: [i64; 2] = [5, 6];

pub(super) struct Telegram {
    server: TelegramServer,
}

impl Telegram {
    pub(super) async fn start() -> Self {
        let server = TelegramServer::start().await.expect("a server");
        server.create_group(GROUP, &TOPICS);
        server.set_privacy(false);
        // The service permits more, so that the test is short; beyond that it is as strict.
        server.limit_chats(20, Duration::from_secs(1));
        Self { server }
    }
}

fn person(id: u32) -> Person {
    Person::new(i64::from(id), &format!("Person {id}"))
}

/// Returns the chat and the topic.
fn target(chat: Chat) -> (i64, Option<i64>) {
    match chat.checked_sub(2).and_then(|topic| TOPICS.get(topic)) {
        Some(topic) => (GROUP, Some(*topic)),
        None => (i64::from(person_of(chat)), None),
    }
}

impl Service for Telegram {
    fn name(&self) -> &'static str {
        "telegram"
    }

    fn configuration(&self) -> (String, Vec<(&'static str, String)>) {
        let table = format!(
            "[serve.telegram]\ntoken_file = \"telegram.token\"\ngroups = \"all\"\napi_url = \"{}\"\n",
            self.server.url()
        );
        (table, vec![("telegram.token", self.server.token().to_owned())])
    }

    fn write(&self, chat: Chat, text: &str) {
        let person = person(person_of(chat));
        let (chat, topic) = target(chat);
        let post = Post::to(chat, &person, text);
        self.server.write(match topic {
            Some(topic) => post.thread(topic),
            None => post,
        });
    }

    fn answers(&self, chat: Chat) -> Vec<Shown> {
        let (chat, topic) = target(chat);
        let messages = self.server.messages(chat).into_iter();
        let messages = messages.filter(|message| message["from"]["is_bot"] == true);
        let messages = messages.filter(|message| message["message_thread_id"].as_i64() == topic);
        let shown = |message: serde_json::Value| Shown {
            id: message["message_id"].to_string(),
            text: message["text"].as_str().unwrap_or_default().to_owned(),
            has_buttons: message["reply_markup"].is_object(),
        };
        messages.map(shown).collect()
    }

    fn press(&self, chat: Chat, message: &Shown, label: &str, by: u32) {
        let id = message.id.parse().expect("the id of a message");
        self.server.press(target(chat).0, id, label, &person(by));
    }

    fn disturb(&self) {
        let methods = ["sendMessage", "editMessageText", "getUpdates", "answerCallbackQuery"];
        let faults = [
            Fault::RateLimit { retry_after: 1 },
            Fault::Error { code: 500, description: "Internal Server Error".to_owned() },
            Fault::BadGateway,
            Fault::CutBefore,
            Fault::CutAfter,
        ];
        self.server.fail(methods[random_index(methods.len())], &faults[random_index(faults.len())], 1);
        if one_in(4) {
            self.server.repeat_updates();
        }
    }

    fn unconfirmed(&self) -> usize {
        self.server.unconfirmed()
    }
}
