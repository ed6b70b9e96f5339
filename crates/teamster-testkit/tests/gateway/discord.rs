//! A conversation over Discord, from a message to an answer: it grows, and a person permits a call with a button.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use teamster_channel::Channel;
use teamster_channel_discord::{DiscordChannel, DiscordConfig, Token};
use teamster_gateway::config::Rule;
use teamster_store::TurnState;
use teamster_testkit::discord::{BOT_ID, DiscordServer, Fault, Person, Post};

use crate::test_gateway::{LIMIT, TestGateway, write_agent};

const GUILD: u64 = 500;
const CHANNEL: u64 = 501;

const ASK: &str = "[[turns]]\nsteps = [{ say = \"First part\" }, \
                   { run = { command = \"ls\", output = \"a\\n\", ask = true } }, { say = \"The **end**\" }]\n";

struct Chat {
    server: DiscordServer,
    test: TestGateway,
    ada: Person,
}

impl Chat {
    async fn start(scenario: &str) -> Self {
        let server = DiscordServer::start().await.unwrap();
        server.create_guild(GUILD, CHANNEL);
        let mut config = DiscordConfig::new(Token::new(server.token()).unwrap());
        config.api_url = server.url();
        config.identify_interval = Duration::from_millis(50);
        config.threads = true;
        let channel: Arc<dyn Channel> = Arc::new(DiscordChannel::new(config).unwrap());
        let directory = Arc::new(tempfile::tempdir().unwrap());
        write_agent(directory.path(), scenario);
        let ada = Person::new(11, "Ada");
        let test = TestGateway::open(directory, vec![channel], |config| {
            config.rules = vec![Rule {
                channel: Some("discord".to_owned()),
                authors: Some(vec!["11".to_owned()]),
                approvers: Some(vec!["discord:11".to_owned()]),
                ..Rule::default()
            }];
        })
        .await;
        let connected = server.wait_until(LIMIT, |server| server.connections() == 1).await;
        assert!(connected, "the bot connects");
        Self { server, test, ada }
    }

    /// Returns the messages of the bot.
    fn answers(server: &DiscordServer, channel: u64) -> Vec<Value> {
        let (messages, bot) = (server.messages(channel).into_iter(), BOT_ID.to_string());
        messages.filter(|message| message["author"]["id"] == bot.as_str()).collect()
    }

    /// Waits for a message of the bot.
    async fn shows(&self, channel: u64, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let find = |server: &DiscordServer| Self::answers(server, channel).into_iter().find(|message| is_it(message));
        let in_time = self.server.wait_until(LIMIT, |server| find(server).is_some()).await;
        assert!(in_time, "{what}: {:?}", Self::answers(&self.server, channel));
        find(&self.server).unwrap()
    }

    async fn shown_to(&self, interaction: u64) -> String {
        let in_time = self.server.wait_until(LIMIT, |server| server.shown_to(interaction).is_some()).await;
        assert!(in_time, "the interaction gets an answer");
        self.server.shown_to(interaction).unwrap()
    }

    async fn end(mut self) {
        self.test.shutdown().await;
    }
}

fn text(message: &Value) -> &str {
    message["content"].as_str().unwrap_or_default()
}

fn id(message: &Value) -> u64 {
    message["id"].as_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn an_answer_grows_in_a_thread_and_only_an_approver_permits_a_call() {
    let chat = Chat::start(ASK).await;
    let mallory = Person::new(99, "Mallory");
    chat.server.write(Post::mention(CHANNEL, &mallory, "let me in"));
    let thread = chat.server.write(Post::mention(CHANNEL, &chat.ada, "hello"));
    let growing = chat.shows(thread, "the answer grows", |message| text(message).starts_with("First part")).await;
    let has_buttons = |message: &Value| message["components"] != json!([]);
    let prompt = chat.shows(thread, "a prompt with buttons", has_buttons).await;
    assert!(text(&prompt).contains("asks for permission"), "{prompt}");
    let refused = chat.server.press(thread, id(&prompt), "Allow", &mallory);
    assert_eq!(chat.shown_to(refused).await, "You must not answer this request.");
    let allowed = chat.server.press(thread, id(&prompt), "Allow", &chat.ada);
    let last = chat.shows(thread, "the answer", |message| text(message).ends_with("The **end**")).await;
    assert_eq!(last["id"], growing["id"], "the answer replaces what was shown");
    let closed = chat.shows(thread, "the prompt is closed", |message| text(message).starts_with("Allowed by")).await;
    assert_eq!((&closed["id"], &closed["components"]), (&prompt["id"], &json!([])));
    assert_eq!(chat.server.acknowledged(allowed), Some(6));
    assert!(chat.server.count("typing") > 0, "it shows that the agent works");
    assert_eq!(Chat::answers(&chat.server, thread).len(), 2);
    assert!(Chat::answers(&chat.server, CHANNEL).is_empty(), "a stranger gets nothing");
    assert_eq!(chat.server.count("openThread"), 1);
    chat.end().await;
}

#[tokio::test]
async fn a_message_that_is_deleted_while_it_waits_gets_no_answer() {
    let chat = Chat::start(ASK).await;
    let direct = chat.ada.direct();
    chat.server.write(Post::private(&chat.ada, "first"));
    let prompt = chat.shows(direct, "a prompt", |message| message["components"] != json!([])).await;
    let waits = chat.server.write(Post::private(&chat.ada, "second"));
    // Events are handled in order: when the command is answered, the message waits.
    let command = chat.server.slash(direct, "status", None, &chat.ada);
    chat.shown_to(command).await;
    chat.server.delete(direct, waits);
    let command = chat.server.slash(direct, "usage", None, &chat.ada);
    chat.shown_to(command).await;
    chat.server.press(direct, id(&prompt), "Allow", &chat.ada);
    chat.shows(direct, "the answer", |message| text(message).ends_with("The **end**")).await;
    let turn = chat.test.gateway.store().turn_of_message("discord".to_owned(), waits.to_string()).await.unwrap();
    assert_eq!(turn.unwrap().state, TurnState::Aborted);
    chat.end().await;
}

#[tokio::test]
async fn a_slash_command_is_answered_by_the_engine_and_a_stranger_may_not_use_it() {
    let chat = Chat::start("[[turns]]\nsteps = [{ say = \"Hello\" }]\n").await;
    chat.server.write(Post::private(&chat.ada, "hello"));
    chat.shows(chat.ada.direct(), "the answer", |message| text(message) == "Hello").await;
    let status = chat.server.slash(chat.ada.direct(), "status", None, &chat.ada);
    let shown = chat.shown_to(status).await;
    assert!(!shown.is_empty() && shown != "You may not use this gateway.", "{shown}");
    let refused = chat.server.slash(CHANNEL, "new", None, &Person::new(99, "Mallory"));
    assert_eq!(chat.shown_to(refused).await, "You may not use this gateway.");
    chat.end().await;
}

#[tokio::test]
async fn an_answer_whose_sends_were_cut_is_shown_once_without_a_mark() {
    let chat = Chat::start("[[turns]]\nsteps = [{ say = \"Hello\" }]\n").await;
    // All attempts of the first call have their effect, and none gets an answer.
    chat.server.fail("createMessage", &Fault::CutAfter, 3);
    chat.server.write(Post::private(&chat.ada, "hello"));
    let direct = chat.ada.direct();
    chat.shows(direct, "the answer", |message| text(message) == "Hello").await;
    chat.server.write(Post::private(&chat.ada, "again"));
    let in_time = chat.server.wait_until(LIMIT, |server| Chat::answers(server, direct).len() == 2).await;
    assert!(in_time, "{:?}", Chat::answers(&chat.server, direct));
    assert!(Chat::answers(&chat.server, direct).iter().all(|message| !text(message).contains("repeat")));
    chat.end().await;
}
