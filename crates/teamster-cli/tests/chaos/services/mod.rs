//! Chat services with people who write to the gateway's bots, and press the buttons of permission requests.

mod checker;
mod discord;
mod people;
mod slack;
mod telegram;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub(crate) use checker::check;
pub(crate) use people::press_buttons;

use crate::client::Client;
use crate::plan::{one_in, random_index};

/// The number of chats of a service.
pub(crate) const CHATS: usize = 4;

/// The id of a person who must not answer permission requests.
pub(crate) const STRANGER: u32 = 99;

/// A chat of a service, by its number.
pub(crate) type Chat = usize;

/// Returns the id of the person who writes in a chat and may answer permission requests there. The first two chats are direct
/// ones, the others are threads.
pub(crate) fn person_of(chat: Chat) -> u32 {
    if chat == 1 { 12 } else { 11 }
}

/// A message of the bot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) id: String,
    pub(crate) text: String,
    pub(crate) has_buttons: bool,
}

/// The server of a chat service, as the people see it.
pub(crate) trait Service: Send + Sync {
    /// The name of the channel.
    fn name(&self) -> &'static str;

    /// Returns the table of the configuration, and the files with secrets that it names.
    fn configuration(&self) -> (String, Vec<(&'static str, String)>);

    /// Returns whether the messages of a chat arrive in the order in which they were written.
    fn keeps_order(&self) -> bool {
        true
    }

    /// Returns whether the bot gets what people write now, also after a crash.
    fn has_bot(&self) -> bool {
        true
    }

    /// A person writes a message to the bot.
    fn write(&self, chat: Chat, text: &str);

    /// Returns the messages of the bot, in the order in which they were created.
    fn answers(&self, chat: Chat) -> Vec<Shown>;

    /// A person presses the button of a message with this label. Without effect if the message has no such button now.
    fn press(&self, chat: Chat, message: &Shown, label: &str, by: u32);

    /// Makes the service do one of the things that services do: limits, errors, lost connections, repeated events.
    fn disturb(&self);
}

/// The texts that people have written, by service and chat.
pub(crate) type Written = BTreeMap<(&'static str, Chat), Vec<String>>;

/// The services, and what people have written there.
#[derive(Clone)]
pub(crate) struct Services {
    all: Arc<Vec<Box<dyn Service>>>,
    written: Arc<Mutex<Written>>,
}

impl Services {
    /// Starts all of them.
    pub(crate) async fn start() -> Self {
        let all: Vec<Box<dyn Service>> = vec![
            Box::new(telegram::Telegram::start().await),
            Box::new(discord::Discord::start().await),
            Box::new(slack::Slack::start().await),
        ];
        Self { all: Arc::new(all), written: Arc::default() }
    }

    pub(crate) fn all(&self) -> &[Box<dyn Service>] {
        &self.all
    }

    /// Returns the configuration, and the files that it names.
    pub(crate) fn configuration(&self) -> (String, Vec<(&'static str, String)>) {
        let (mut tables, mut files) = (String::new(), Vec::new());
        for service in self.all.iter() {
            let name = service.name();
            let (table, secrets) = service.configuration();
            tables.push_str(&table);
            let [ada, bob] = [0, 1].map(person_of);
            let approvers = format!("\"{name}:{ada}\", \"{name}:{bob}\"");
            let rule = format!("channel = \"{name}\"\nauthors = [\"{ada}\", \"{bob}\"]\napprovers = [{approvers}]\n");
            writeln!(tables, "[[serve.rules]]\n{rule}").expect("text");
            files.extend(secrets);
        }
        (tables, files)
    }

    /// Waits until each service has its bot.
    pub(crate) async fn wait_for_bots(&self, limit: Duration) {
        let limit = Instant::now() + limit;
        while let Some(missing) = self.all.iter().find(|service| !service.has_bot()) {
            assert!(Instant::now() < limit, "{} has no bot", missing.name());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until the gateway has accepted all messages.
    pub(crate) async fn wait_until_accepted(&self, client: &Client, limit: Duration) {
        let limit = Instant::now() + limit;
        let all: usize = self.written().values().map(Vec::len).sum();
        loop {
            let mut accepted = 0;
            for conversation in client.list("/v1/conversations").await {
                let log = client.log(conversation["id"].as_str().expect("an id")).await;
                accepted += log.iter().filter(|event| event["type"] == "turn_queued").count();
            }
            if accepted >= all {
                return;
            }
            assert!(Instant::now() < limit, "{accepted} of {all} messages are accepted:\n{}", client.gateway.log());
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// A person writes in a random chat. Some services fail now and then.
    pub(crate) fn write_somewhere(&self) {
        let service = &self.all[random_index(self.all.len())];
        if one_in(4) {
            service.disturb();
        }
        let chat = random_index(CHATS);
        let mut written = self.written();
        let texts = written.entry((service.name(), chat)).or_default();
        let text = format!("{} {chat} message {}.", service.name(), texts.len());
        texts.push(text.clone());
        service.write(chat, &text);
    }

    pub(crate) fn written(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
