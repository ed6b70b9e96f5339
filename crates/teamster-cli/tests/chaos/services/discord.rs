//! A server of Discord, with two direct chats and two threads of a channel.

use std::time::Duration;

use serde_json::{Value, json};
use teamster_testkit::discord::{BOT_ID, DiscordServer, Fault, Person, Post};

use super::{Chat, Service, Shown, person_of};
use crate::plan::random_index;

const GUILD: u64 = 500;
const CHANNEL: u64 = 501;
const THREADS: [u64; 2] = [601, 602];

pub(super) struct Discord {
    server: DiscordServer,
}

impl Discord {
    pub(super) async fn start() -> Self {
        let server = DiscordServer::start().await.expect("a server");
        server.create_guild(GUILD, CHANNEL);
        for thread in THREADS {
            server.create_thread(CHANNEL, thread, &person(person_of(2)));
        }
        server.set_heartbeat(Duration::from_secs(2));
        Self { server }
    }
}

fn person(id: u32) -> Person {
    Person::new(u64::from(id), &format!("Person {id}"))
}

/// Returns the channel of a chat.
fn channel(chat: Chat) -> u64 {
    match chat.checked_sub(2).and_then(|thread| THREADS.get(thread)) {
        Some(thread) => *thread,
        None => person(person_of(chat)).direct(),
    }
}

impl Service for Discord {
    fn name(&self) -> &'static str {
        "discord"
    }

    fn configuration(&self) -> (String, Vec<(&'static str, String)>) {
        let table = format!(
            "[serve.discord]\ntoken_file = \"discord.token\"\nservers = \"all\"\napi_url = \"{}\"\ngateway_url = \"{}\"\n",
            self.server.url(),
            self.server.gateway_url()
        );
        (table, vec![("discord.token", self.server.token().to_owned())])
    }

    /// Before its first session the bot knows no chat, so it gets no message that was written before.
    fn has_bot(&self) -> bool {
        self.server.connections() > 0
    }

    fn write(&self, chat: Chat, text: &str) {
        let person = person(person_of(chat));
        let is_direct = channel(chat) == person.direct();
        self.server.write(if is_direct {
            Post::private(&person, text)
        } else {
            Post::to(channel(chat), &person, text)
        });
    }

    fn answers(&self, chat: Chat) -> Vec<Shown> {
        let messages = self.server.messages(channel(chat)).into_iter();
        let messages = messages.filter(|message| message["author"]["id"] == BOT_ID.to_string().as_str());
        let shown = |message: Value| Shown {
            id: message["id"].as_str().unwrap_or_default().to_owned(),
            text: message["content"].as_str().unwrap_or_default().to_owned(),
            has_buttons: message["components"] != json!([]),
        };
        messages.map(shown).collect()
    }

    fn press(&self, chat: Chat, message: &Shown, label: &str, by: u32) {
        let id = message.id.parse().expect("the id of a message");
        self.server.press(channel(chat), id, label, &person(by));
    }

    fn disturb(&self) {
        let routes = ["createMessage", "editMessage", "history", "acknowledge"];
        let faults = [
            Fault::RateLimit { after_ms: 500, is_global: false },
            Fault::RateLimit { after_ms: 500, is_global: true },
            Fault::BadGateway,
            Fault::BadGatewayAfter,
            Fault::CutBefore,
            Fault::CutAfter,
        ];
        match random_index(8) {
            0 => self.server.cut_connections(),
            1 => self.server.request_reconnect(),
            2 => self.server.send_invalid_session(true),
            3 => self.server.repeat_events(),
            _ => self.server.fail(routes[random_index(routes.len())], &faults[random_index(faults.len())], 1),
        }
    }
}
