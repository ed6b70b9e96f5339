//! A conversation over Slack, from a message to an answer: it grows, and a person permits a call with a button.

use std::sync::Arc;

use serde_json::Value;
use teamster_channel::Channel;
use teamster_channel_slack::{SlackChannel, SlackConfig, Token, TokenKind};
use teamster_gateway::channels;
use teamster_gateway::config::Rule;
use teamster_testkit::slack::{BOT_USER, Fault, Person, Post, SlackServer};

use crate::test_gateway::{LIMIT, TestGateway, write_agent};

const ASK: &str = "[[turns]]\nsteps = [{ say = \"First part\" }, \
                   { run = { command = \"ls\", output = \"a\\n\", ask = true } }, { say = \"The **end**\" }]\n";

/// A channel of several people.
const CHANNEL: &str = "C0GENERAL";

struct Chat {
    server: SlackServer,
    test: TestGateway,
    tasks: channels::ChannelTasks,
    ada: Person,
}

impl Chat {
    async fn start(scenario: &str) -> Self {
        let server = SlackServer::start().await.unwrap();
        server.create_channel(CHANNEL, "channel");
        let bot = Token::new(TokenKind::Bot, server.bot_token()).unwrap();
        let app = Token::new(TokenKind::App, server.app_token()).unwrap();
        let mut config = SlackConfig::new(bot, app);
        config.api_url = server.url();
        let channel: Arc<dyn Channel> = Arc::new(SlackChannel::new(config).unwrap());
        let directory = Arc::new(tempfile::tempdir().unwrap());
        write_agent(directory.path(), scenario);
        let ada = Person::new("U0ADA", "Ada");
        let test = TestGateway::open(directory, vec![channel], |config| {
            config.rules = vec![Rule {
                channel: Some("slack".to_owned()),
                authors: Some(vec!["U0ADA".to_owned()]),
                approvers: Some(vec!["slack:U0ADA".to_owned()]),
                ..Rule::default()
            }];
        })
        .await;
        let tasks = channels::start(&test.gateway);
        Self { server, test, tasks, ada }
    }

    /// Returns the messages of the bot.
    fn answers(server: &SlackServer) -> Vec<Value> {
        server.messages(CHANNEL).into_iter().filter(|message| message["user"] == BOT_USER).collect()
    }

    /// Waits for a message of the bot.
    async fn shows(&self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let find = |server: &SlackServer| Self::answers(server).into_iter().find(|message| is_it(message));
        let in_time = self.server.wait_until(LIMIT, |server| find(server).is_some()).await;
        assert!(in_time, "{what}: {:?}", Self::answers(&self.server));
        find(&self.server).unwrap()
    }

    fn press(&self, message: &Value, by: &Person) -> String {
        self.server.press(CHANNEL, message["ts"].as_str().unwrap(), "Allow", by)
    }

    async fn end(mut self) {
        self.test.shutdown().await;
        self.tasks.shutdown().await;
    }
}

fn text(message: &Value) -> &str {
    message["text"].as_str().unwrap_or_default()
}

fn has_buttons(message: &Value) -> bool {
    message["blocks"].as_array().is_some_and(|blocks| blocks.iter().any(|block| block["type"] == "actions"))
}

#[tokio::test]
async fn an_answer_grows_in_one_slack_message_and_only_an_approver_permits_a_call() {
    let chat = Chat::start(ASK).await;
    let mallory = Person::new("U0MALLORY", "Mallory");
    let mention = |text: &str| format!("<@{BOT_USER}> {text}");
    chat.server.write(Post::to(CHANNEL, &mallory, &mention("let me in")));
    let thread = chat.server.write(Post::to(CHANNEL, &chat.ada, &mention("hello")));
    let growing = chat.shows("the answer grows", |message| text(message).starts_with("First part")).await;
    assert_eq!(growing["thread_ts"], thread, "it is in the thread of the message");
    let prompt = chat.shows("a prompt with buttons", has_buttons).await;
    assert!(text(&prompt).contains("asks for permission"), "{prompt}");
    let refused = chat.press(&prompt, &mallory);
    let is_shown = |server: &SlackServer| {
        server
            .responses(&refused)
            .is_some_and(|all| all.iter().any(|one| one["text"] == "You must not answer this request."))
    };
    assert!(chat.server.wait_until(LIMIT, is_shown).await, "a stranger learns it");
    chat.press(&prompt, &chat.ada);
    let last = chat.shows("the answer", |message| text(message).ends_with("The end")).await;
    assert_eq!(last["ts"], growing["ts"], "the answer replaces what was shown");
    assert!(last["blocks"].to_string().contains("\"bold\":true"), "{last}");
    let closed = chat.shows("the prompt is closed", |message| text(message).starts_with("Allowed by")).await;
    assert_eq!(closed["ts"], prompt["ts"]);
    assert!(!has_buttons(&closed), "{closed}");
    assert_eq!(Chat::answers(&chat.server).len(), 2, "a stranger gets nothing");
    chat.end().await;
}

#[tokio::test]
async fn an_answer_whose_send_was_cut_is_found_in_slack_and_not_repeated() {
    let chat = Chat::start("[[turns]]\nsteps = [{ say = \"Hello\" }]\n").await;
    chat.server.fail("chat.postMessage", &Fault::CutAfter, 1);
    chat.server.write(Post::to(CHANNEL, &chat.ada, &format!("<@{BOT_USER}> hello")));
    chat.shows("the answer", |message| text(message) == "Hello").await;
    let is_asked = |server: &SlackServer| server.calls().iter().any(|call| call.method == "conversations.replies");
    assert!(chat.server.wait_until(LIMIT, is_asked).await, "the service is asked");
    chat.server.write(Post::to(CHANNEL, &chat.ada, &format!("<@{BOT_USER}> again")));
    let hellos = |server: &SlackServer| Chat::answers(server).iter().filter(|message| text(message) == "Hello").count();
    assert!(chat.server.wait_until(LIMIT, |server| hellos(server) == 2).await, "{:?}", Chat::answers(&chat.server));
    assert_eq!(Chat::answers(&chat.server).len(), 2, "nothing is repeated");
    chat.end().await;
}

#[tokio::test]
async fn a_message_that_its_author_removes_while_it_waits_is_not_answered() {
    let chat = Chat::start(ASK).await;
    let direct = chat.ada.direct();
    chat.server.write(Post::direct(&chat.ada, "first"));
    let is_asked = |server: &SlackServer| server.messages(&direct).iter().any(has_buttons);
    assert!(chat.server.wait_until(LIMIT, is_asked).await, "the first turn waits for a person");
    let second = chat.server.write(Post::direct(&chat.ada, "second"));
    assert!(chat.server.wait_until(LIMIT, |server| server.unacknowledged() == 0).await, "it is stored");
    chat.server.delete(&direct, &second);
    assert!(chat.server.wait_until(LIMIT, |server| server.unacknowledged() == 0).await, "it is withdrawn");
    let prompt = chat.server.messages(&direct).into_iter().find(has_buttons).unwrap();
    chat.server.press(&direct, prompt["ts"].as_str().unwrap(), "Allow", &chat.ada);
    let is_answered = |server: &SlackServer| server.messages(&direct).iter().any(|one| text(one).ends_with("The end"));
    assert!(chat.server.wait_until(LIMIT, is_answered).await, "{:?}", chat.server.messages(&direct));
    let status = chat.server.command(&direct, &chat.ada, "status");
    assert!(chat.server.wait_until(LIMIT, |server| server.responses(&status).is_some()).await);
    assert!(!chat.server.messages(&direct).iter().any(has_buttons), "the second turn has not started");
    chat.end().await;
}
