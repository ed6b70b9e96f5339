//! A server of Slack, with two direct chats and two threads of a channel.

use std::time::Duration;

use teamster_testkit::slack::{BOT_USER, Fault, Person, Post, SlackServer};

use super::{Chat, Service, Shown, person_of};
use crate::plan::{one_in, random_index};

/// The channel with the threads.
const CHANNEL: &str = "C0CHAOS";

pub(super) struct Slack {
    server: SlackServer,
    /// The first messages of the threads.
    threads: Vec<String>,
}

impl Slack {
    pub(super) async fn start() -> Self {
        let server = SlackServer::start().await.expect("a server");
        server.create_channel(CHANNEL, "channel");
        // They mention no person, so they are not for the bot.
        let threads =
            (2..super::CHATS).map(|chat| server.write(Post::to(CHANNEL, &person(person_of(chat)), "A topic")));
        let threads = threads.collect();
        // The service permits less, so that the test is short; beyond that it is as strict.
        server.limit_channels(20, Duration::from_secs(1));
        // It sends an event 4 times within 6 minutes. The kills follow each other so fast that each of 4 attempts within 12 seconds
        // can meet a gateway that is killed.
        server.set_attempts(u32::MAX);
        Self { server, threads }
    }

    /// Returns the channel and the thread.
    fn target(&self, chat: Chat) -> (String, Option<&String>) {
        match chat.checked_sub(2).and_then(|number| self.threads.get(number)) {
            Some(thread) => (CHANNEL.to_owned(), Some(thread)),
            None => (person(person_of(chat)).direct(), None),
        }
    }
}

fn person(id: u32) -> Person {
    Person::new(&id.to_string(), &format!("Person {id}"))
}

impl Service for Slack {
    fn name(&self) -> &'static str {
        "slack"
    }

    fn configuration(&self) -> (String, Vec<(&'static str, String)>) {
        let table = format!(
            "[serve.slack]\nbot_token_file = \"slack-bot.token\"\napp_token_file = \"slack-app.token\"\napi_url = \"{}\"\n",
            self.server.url()
        );
        let bot = ("slack-bot.token", self.server.bot_token().to_owned());
        (table, vec![bot, ("slack-app.token", self.server.app_token().to_owned())])
    }

    /// An event that was not acknowledged comes again after later ones.
    fn keeps_order(&self) -> bool {
        false
    }

    fn write(&self, chat: Chat, text: &str) {
        let (channel, thread) = self.target(chat);
        let post = Post::to(&channel, &person(person_of(chat)), &format!("<@{BOT_USER}> {text}"));
        self.server.write(match thread {
            Some(thread) => post.thread(thread),
            None => post,
        });
    }

    fn answers(&self, chat: Chat) -> Vec<Shown> {
        let (channel, thread) = self.target(chat);
        let messages = self.server.messages(&channel).into_iter();
        let messages = messages.filter(|message| message["user"] == BOT_USER);
        let messages = messages.filter(|message| message["thread_ts"].as_str() == thread.map(String::as_str));
        let shown = |message: serde_json::Value| Shown {
            id: message["ts"].as_str().unwrap_or_default().to_owned(),
            text: message["text"].as_str().unwrap_or_default().to_owned(),
            has_buttons: message["blocks"].to_string().contains("\"actions\""),
        };
        messages.map(shown).collect()
    }

    fn press(&self, chat: Chat, message: &Shown, label: &str, by: u32) {
        self.server.press(&self.target(chat).0, &message.id, label, &person(by));
    }

    fn disturb(&self) {
        let methods = [
            "chat.postMessage",
            "chat.update",
            "apps.connections.open",
            "conversations.history",
            "conversations.replies",
        ];
        let faults = [
            Fault::RateLimit { retry_after: 1 },
            Fault::Error { error: "internal_error".to_owned() },
            Fault::ErrorAfter { error: "fatal_error".to_owned() },
            Fault::BadGateway,
            Fault::CutBefore,
            Fault::CutAfter,
        ];
        self.server.fail(methods[random_index(methods.len())], &faults[random_index(faults.len())], 1);
        match random_index(8) {
            0 => self.server.repeat_events(),
            1 => self.server.cut_connections(),
            2 | 3 => self.server.announce_end("refresh_requested"),
            _ => {}
        }
        if one_in(8) {
            self.server.close_connections();
        }
    }
}
