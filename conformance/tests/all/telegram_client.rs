//! A bot of python-telegram-bot talks to the testkit's server: the server is not merely our idea of the Bot API.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use teamster_conformance::PythonProgram;
use teamster_testkit::telegram::{BOT_NAME, Fault, Person, Post, TelegramServer};

/// The server and the bot.
struct Echo {
    server: TelegramServer,
    bot: PythonProgram,
    ada: Person,
}

impl Echo {
    /// `None` if tests of Python programs are skipped.
    async fn start() -> Result<Option<Self>> {
        let server = TelegramServer::start().await?;
        let url = server.url();
        let variables = [("TELEGRAM_URL", url.as_str()), ("TELEGRAM_TOKEN", server.token())];
        let Some(mut bot) = PythonProgram::start("python-telegram-bot", "telegram_client.py", &variables)? else {
            return Ok(None);
        };
        let started = bot.read().await?;
        assert_eq!(started, json!({"bot": BOT_NAME, "commands": 1, "webhook": ""}));
        Ok(Some(Self { server, bot, ada: Person::new(11, "Ada") }))
    }

    /// Returns the id of a line with an echo.
    async fn echo(&mut self) -> Result<i64> {
        let line = self.bot.read().await?;
        line["echo"].as_i64().with_context(|| format!("no echo: {line}"))
    }

    fn message(&self, chat: i64, id: i64) -> Value {
        self.server.messages(chat).into_iter().find(|message| message["message_id"] == id).unwrap_or_default()
    }
}

#[tokio::test]
async fn the_client_receives_sends_edits_and_answers_buttons() -> Result<()> {
    let Some(mut test) = Echo::start().await? else { return Ok(()) };
    let message = test.server.write(Post::private(&test.ada, "hello 😀"));
    assert_eq!(test.bot.read().await?, json!({"text": "hello 😀", "sender": "Ada", "thread": null}));
    let echo = test.echo().await?;
    let shown = test.message(11, echo);
    assert_eq!((&shown["text"], &shown["entities"][0]["length"]), (&json!("hello 😀"), &json!(8)));

    let query = test.server.press(11, echo, "Press", &test.ada);
    assert_eq!(test.bot.read().await?, json!({"press": "pressed", "by": "Ada"}));
    assert_eq!(test.server.answer_to(&query).as_deref(), Some("You pressed pressed"));
    assert!(test.message(11, echo)["reply_markup"].is_null());

    test.server.edit(11, message, "changed");
    assert_eq!(test.bot.read().await?["edited"], "changed");
    let again = test.bot.read().await?;
    assert!(again["message"].as_str().is_some_and(|text| text.contains("is not modified")), "{again}");
    assert_eq!(test.message(11, echo)["text"], "changed");

    test.server.create_group(-5, &[7]);
    test.server.set_privacy(false);
    test.server.write(Post::to(-5, &test.ada, "in a topic").thread(7));
    assert_eq!(test.bot.read().await?["thread"], 7);
    let echo = test.echo().await?;
    assert_eq!(test.message(-5, echo)["message_thread_id"], 7);
    Ok(())
}

#[tokio::test]
async fn the_client_downloads_and_sends_files() -> Result<()> {
    let Some(mut test) = Echo::start().await? else { return Ok(()) };
    test.server.write(Post::private(&test.ada, "").document("a.txt", "content"));
    assert_eq!(test.bot.read().await?, json!({"document": "a.txt", "size": 7}));
    let messages = test.server.messages(11);
    assert_eq!(messages.len(), 1, "the first message is deleted: {messages:?}");
    let document = &messages[0]["document"];
    assert_eq!((&document["file_name"], &messages[0]["caption"]), (&json!("upper-a.txt"), &json!("done")));
    let content = test.server.file(document["file_id"].as_str().context("an id")?);
    assert_eq!(content.as_deref(), Some(&b"CONTENT"[..]));
    Ok(())
}

#[tokio::test]
async fn the_client_understands_the_errors() -> Result<()> {
    let Some(mut test) = Echo::start().await? else { return Ok(()) };
    test.server.fail("sendMessage", &Fault::RateLimit { retry_after: 3 }, 1);
    test.server.write(Post::private(&test.ada, "one"));
    test.bot.read().await?;
    assert_eq!(test.bot.read().await?, json!({"error": "RetryAfter", "seconds": 3}));

    let refused = Fault::Error { code: 400, description: "Bad Request: message is too long".to_owned() };
    test.server.fail("sendMessage", &refused, 1);
    test.server.write(Post::private(&test.ada, "two"));
    test.bot.read().await?;
    let error = test.bot.read().await?;
    assert_eq!((&error["error"], &error["message"]), (&json!("BadRequest"), &json!("Message is too long")), "{error}");
    Ok(())
}
