//! A conversation over Telegram, from a message to an answer: it grows, and a person permits a call with a button.

use std::sync::Arc;

use serde_json::Value;
use teamster_channel::Channel;
use teamster_channel_telegram::{TelegramChannel, TelegramConfig, Token};
use teamster_gateway::channels;
use teamster_gateway::config::Rule;
use teamster_testkit::telegram::{Fault, Person, Post, TelegramServer};

use crate::test_gateway::{LIMIT, TestGateway, write_agent};

const ASK: &str = "[[turns]]\nsteps = [{ say = \"First part\" }, \
                   { run = { command = \"ls\", output = \"a\\n\", ask = true } }, { say = \"The **end**\" }]\n";

struct Chat {
    server: TelegramServer,
    test: TestGateway,
    tasks: channels::ChannelTasks,
    ada: Person,
}

impl Chat {
    async fn start(scenario: &str) -> Self {
        let server = TelegramServer::start().await.unwrap();
        let mut config = TelegramConfig::new(Token::new(server.token()).unwrap());
        config.api_url = server.url();
        let channel: Arc<dyn Channel> = Arc::new(TelegramChannel::new(config).unwrap());
        let directory = Arc::new(tempfile::tempdir().unwrap());
        write_agent(directory.path(), scenario);
        let ada = Person::new(11, "Ada");
        let test = TestGateway::open(directory, vec![channel], |config| {
            config.rules = vec![Rule {
                channel: Some("telegram".to_owned()),
                authors: Some(vec!["11".to_owned()]),
                approvers: Some(vec!["telegram:11".to_owned()]),
                ..Rule::default()
            }];
        })
        .await;
        let tasks = channels::start(&test.gateway);
        Self { server, test, tasks, ada }
    }

    /// Returns the messages of the bot.
    fn answers(server: &TelegramServer) -> Vec<Value> {
        server.messages(11).into_iter().filter(|message| message["from"]["is_bot"] == true).collect()
    }

    /// Waits for a message of the bot.
    async fn shows(&self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let find = |server: &TelegramServer| Self::answers(server).into_iter().find(|message| is_it(message));
        let in_time = self.server.wait_until(LIMIT, |server| find(server).is_some()).await;
        assert!(in_time, "{what}: {:?}", Self::answers(&self.server));
        find(&self.server).unwrap()
    }

    async fn press(&self, message: &Value, by: &Person) -> String {
        let query = self.server.press(11, message["message_id"].as_i64().unwrap(), "Allow", by);
        let in_time = self.server.wait_until(LIMIT, |server| server.answer_to(&query).is_some()).await;
        assert!(in_time, "the press gets an answer");
        self.server.answer_to(&query).unwrap()
    }

    async fn end(mut self) {
        self.test.shutdown().await;
        self.tasks.shutdown().await;
    }
}

fn text(message: &Value) -> &str {
    message["text"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn an_answer_grows_in_one_telegram_message_and_only_an_approver_permits_a_call() {
    let chat = Chat::start(ASK).await;
    chat.server.write(Post::private(&Person::new(99, "Mallory"), "let me in"));
    chat.server.write(Post::private(&chat.ada, "hello"));
    let growing = chat.shows("the answer grows", |message| text(message).starts_with("First part")).await;
    let prompt = chat.shows("a prompt with buttons", |message| message["reply_markup"].is_object()).await;
    assert!(text(&prompt).contains("asks for permission"), "{prompt}");
    assert_eq!(chat.press(&prompt, &Person::new(99, "Mallory")).await, "You must not answer this request.");
    assert_eq!(chat.press(&prompt, &chat.ada).await, "Done.");
    let last = chat.shows("the answer", |message| text(message).ends_with("The end")).await;
    assert_eq!(last["message_id"], growing["message_id"], "the answer replaces what was shown");
    let is_bold = |entity: &Value| entity["type"] == "bold";
    assert!(last["entities"].as_array().unwrap().iter().any(is_bold), "{last}");
    let closed = chat.shows("the prompt is closed", |message| text(message).starts_with("Allowed by")).await;
    assert_eq!((&closed["message_id"], &closed["reply_markup"]), (&prompt["message_id"], &Value::Null));
    assert!(chat.server.calls().iter().any(|call| call.method == "sendChatAction"), "it shows that the agent works");
    assert_eq!(Chat::answers(&chat.server).len(), 2);
    assert!(chat.server.messages(99).len() == 1, "a stranger gets nothing");
    chat.end().await;
}

#[tokio::test]
async fn an_answer_whose_send_was_cut_is_shown_again_with_a_mark() {
    let chat = Chat::start("[[turns]]\nsteps = [{ say = \"Hello\" }]\n").await;
    // The first message is that of the growing answer. Its edit is not repeated with a mark, since that is harmless.
    chat.server.fail("sendMessage", &Fault::CutAfter, 1);
    chat.server.write(Post::private(&chat.ada, "hello"));
    chat.shows("the answer", |message| text(message).ends_with("Hello")).await;
    let in_time = chat.server.wait_until(LIMIT, |server| Chat::answers(server).len() == 2).await;
    assert!(in_time, "{:?}", Chat::answers(&chat.server));
    chat.end().await;
}
