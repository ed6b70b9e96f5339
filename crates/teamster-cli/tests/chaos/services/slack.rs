//! A server of Slack, with two direct chats and two threads of a channel.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use teamster_testkit::slack::{BOT_USER, Fault, Person, Post, SlackServer};

use super::{Chat, Service, Shown, person_of};
use crate::plan::random_index;

const CHANNEL: &str = "C0GENERAL";

pub(super) struct Slack {
    server: SlackServer,
    /// The first messages of the threads.
    threads: Mutex<BTreeMap<Chat, String>>,
}

impl Slack {
    pub(super) async fn start() -> Self {
        let server = SlackServer::start().await.expect("a server");
        server.create_channel(CHANNEL, "channel");
        Self { server, threads: Mutex::default() }
    }

    /// Returns the channel and the thread of a chat. `None`: its first message is not written.
    fn target(&self, chat: Chat) -> Option<(String, Option<String>)> {
        if chat < 2 {
            return Some((person(person_of(chat)).direct(), None));
        }
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.get(&chat).map(|thread| (CHANNEL.to_owned(), Some(thread.clone())))
    }
}

fn person(id: u32) -> Person {
    Person::new(&person_id(id), &format!("Person {id}"))
}

fn person_id(id: u32) -> String {
    format!("U0{id}")
}

impl Service for Slack {
    fn name(&self) -> &'static str {
        "slack"
    }

    fn person_id(&self, person: u32) -> String {
        person_id(person)
    }

    fn configuration(&self) -> (String, Vec<(&'static str, String)>) {
        let table = format!(
            "[serve.slack]\nbot_token_file = \"slack-bot.token\"\napp_token_file = \"slack-app.token\"\nchannels = \"all\"\n\
             api_url = \"{}\"\n",
            self.server.url()
        );
        let bot = ("slack-bot.token", self.server.bot_token().to_owned());
        (table, vec![bot, ("slack-app.token", self.server.app_token().to_owned())])
    }

    fn write(&self, chat: Chat, text: &str) {
        let person = person(person_of(chat));
        match self.target(chat) {
            Some((channel, None)) => _ = self.server.write(Post::to(&channel, &person, text)),
            Some((channel, Some(thread))) => _ = self.server.write(Post::to(&channel, &person, text).thread(&thread)),
            None => {
                let thread = self.server.write(Post::to(CHANNEL, &person, text));
                self.threads.lock().unwrap_or_else(PoisonError::into_inner).insert(chat, thread);
            }
        }
    }

    fn answers(&self, chat: Chat) -> Vec<Shown> {
        let Some((channel, thread)) = self.target(chat) else { return Vec::new() };
        let messages = self.server.messages(&channel).into_iter().filter(|message| message["user"] == BOT_USER);
        let is_here = |message: &Value| thread.as_ref().is_none_or(|thread| message["thread_ts"] == thread.as_str());
        let is_actions = |block: &Value| block["type"] == "actions";
        let shown = |message: Value| Shown {
            id: message["ts"].as_str().unwrap_or_default().to_owned(),
            text: message["text"].as_str().unwrap_or_default().to_owned(),
            has_buttons: message["blocks"].as_array().is_some_and(|blocks| blocks.iter().any(is_actions)),
        };
        messages.filter(is_here).map(shown).collect()
    }

    fn press(&self, chat: Chat, message: &Shown, label: &str, by: u32) {
        let Some((channel, _)) = self.target(chat) else { return };
        self.server.press(&channel, &message.id, label, &person(by));
    }

    fn disturb(&self) {
        let methods = ["chat.postMessage", "chat.update", "apps.connections.open", "conversations.history"];
        let internal = || "internal_error".to_owned();
        let faults = [
            Fault::RateLimit { retry_after: 1 },
            Fault::Error { error: internal() },
            Fault::ErrorAfter { error: internal() },
            Fault::BadGateway,
            Fault::CutBefore,
            Fault::CutAfter,
        ];
        match random_index(8) {
            0 => self.server.cut_connections(),
            1 => self.server.close_connections(),
            2 => self.server.announce_end("refresh_requested"),
            3 => self.server.repeat_events(),
            _ => self.server.fail(methods[random_index(methods.len())], &faults[random_index(faults.len())], 1),
        }
    }
}
