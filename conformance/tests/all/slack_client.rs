//! A bot of `slack_sdk` talks to the testkit's server: the server is not merely our idea of Slack.

use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use teamster_conformance::PythonProgram;
use teamster_testkit::slack::{BOT_USER, Fault, Person, Post, SlackServer, TEAM};

/// The time limit of a condition.
const LIMIT: Duration = Duration::from_secs(20);

/// The server and the bot.
struct Echo {
    server: SlackServer,
    bot: PythonProgram,
    ada: Person,
}

impl Echo {
    /// `None` if tests of Python programs are skipped.
    async fn start() -> Result<Option<Self>> {
        let server = SlackServer::start().await?;
        let url = server.url();
        let variables = [
            ("SLACK_URL", url.as_str()),
            ("SLACK_BOT_TOKEN", server.bot_token()),
            ("SLACK_APP_TOKEN", server.app_token()),
        ];
        let Some(mut bot) = PythonProgram::start("slack_sdk", "slack_client.py", &variables)? else {
            return Ok(None);
        };
        let started = bot.read().await?;
        assert_eq!(started, json!({"bot": BOT_USER, "team": TEAM, "scopes": true}));
        Ok(Some(Self { server, bot, ada: Person::new("U0ADA", "Ada") }))
    }

    /// Returns the time of a message with an echo.
    async fn echo(&mut self) -> Result<String> {
        let line = self.bot.read().await?;
        assert_eq!((&line["name"], &line["found"]), (&json!("Ada"), &json!(true)), "{line}");
        line["echo"].as_str().map(str::to_owned).with_context(|| format!("no echo: {line}"))
    }

    fn message(&self, channel: &str, ts: &str) -> Value {
        self.server.messages(channel).into_iter().find(|message| message["ts"] == ts).unwrap_or_default()
    }

    async fn until(&self, what: &str, is_true: impl Fn(&SlackServer) -> bool) {
        assert!(self.server.wait_until(LIMIT, is_true).await, "{what}");
    }
}

#[tokio::test]
async fn the_slack_client_receives_sends_and_edits() -> Result<()> {
    let Some(mut test) = Echo::start().await? else { return Ok(()) };
    let direct = test.ada.direct();
    let ts = test.server.write(Post::direct(&test.ada, "hello 😀"));
    assert_eq!(test.bot.read().await?, json!({"text": "hello 😀", "sender": "U0ADA", "thread": null}));
    let echo = test.echo().await?;
    assert_eq!(test.message(&direct, &echo)["blocks"][0]["text"]["text"], "hello 😀");
    test.server.edit(&direct, &ts, "changed");
    assert_eq!(test.bot.read().await?, json!({"edited": "changed"}));
    assert_eq!(test.bot.read().await?, json!({"error": "message_not_found"}));

    test.server.create_channel("C0GENERAL", "channel");
    let first = test.server.write(Post::to("C0GENERAL", &test.ada, &format!("<@{BOT_USER}> topic")));
    test.bot.read().await?;
    test.echo().await?;
    test.server.write(Post::to("C0GENERAL", &test.ada, "in a thread").thread(&first));
    assert_eq!(test.bot.read().await?["thread"], first);
    let echo = test.echo().await?;
    assert_eq!(test.message("C0GENERAL", &echo)["thread_ts"], first);
    test.until("all is acknowledged", |server| server.unacknowledged() == 0).await;
    Ok(())
}

#[tokio::test]
async fn the_slack_client_answers_buttons_dialogs_and_commands() -> Result<()> {
    let Some(mut test) = Echo::start().await? else { return Ok(()) };
    let direct = test.ada.direct();
    test.server.write(Post::direct(&test.ada, "hello"));
    test.bot.read().await?;
    let echo = test.echo().await?;
    let press = test.server.press(&direct, &echo, "Ask", &test.ada);
    assert_eq!(test.bot.read().await?, json!({"opened": true}));
    let sent = test.server.submit(&press, "blue", &test.ada);
    assert_eq!(test.bot.read().await?, json!({"dialog": "blue", "by": "U0ADA"}));
    test.until("the dialog is answered", |server| server.responses(&sent).is_some()).await;
    assert_eq!(test.server.responses(&sent).unwrap_or_default()[0]["response_action"], "errors");

    let press = test.server.press(&direct, &echo, "Press", &test.ada);
    assert_eq!(test.bot.read().await?, json!({"press": "pressed", "by": "U0ADA"}));
    assert_eq!(test.server.responses(&press).unwrap_or_default()[0]["text"], "You pressed pressed");
    let shown = test.message(&direct, &echo);
    assert_eq!((&shown["text"], &shown["blocks"]), (&json!("pressed"), &Value::Null));

    let command = test.server.command(&direct, &test.ada, "status");
    assert_eq!(test.bot.read().await?, json!({"command": "/teamster", "argument": "status"}));
    test.until("the command is answered", |server| server.responses(&command).is_some()).await;
    assert_eq!(test.server.responses(&command).unwrap_or_default()[0]["text"], "You sent status");
    Ok(())
}

#[tokio::test]
async fn the_slack_client_downloads_and_sends_files() -> Result<()> {
    let Some(mut test) = Echo::start().await? else { return Ok(()) };
    test.server.write(Post::direct(&test.ada, "").file("a.txt", "content"));
    assert_eq!(test.bot.read().await?, json!({"file": "a.txt", "size": 7}));
    let sent = test.server.messages(&test.ada.direct()).pop().context("a message")?;
    assert_eq!((&sent["text"], &sent["files"][0]["name"]), (&json!("done"), &json!("upper-a.txt")));
    let content = test.server.file(sent["files"][0]["id"].as_str().context("an id")?);
    assert_eq!(content.as_deref(), Some(&b"CONTENT"[..]));
    Ok(())
}

#[tokio::test]
async fn the_slack_client_understands_errors_and_reconnects() -> Result<()> {
    let Some(mut test) = Echo::start().await? else { return Ok(()) };
    test.server.fail("chat.postMessage", &Fault::RateLimit { retry_after: 3 }, 1);
    test.server.write(Post::direct(&test.ada, "one"));
    test.bot.read().await?;
    assert_eq!(test.bot.read().await?, json!({"error": "ratelimited", "seconds": "3"}));
    test.server.write(Post::direct(&test.ada, &"x".repeat(3_001)));
    test.bot.read().await?;
    let refused = test.bot.read().await?;
    assert_eq!(refused["error"], "SlackObjectFormationError", "the client checks the length of a section: {refused}");

    let opened =
        |server: &SlackServer| server.calls().iter().filter(|call| call.method == "apps.connections.open").count();
    let before = opened(&test.server);
    test.server.announce_end("refresh_requested");
    test.until("another connection", |server| opened(server) > before && server.connections() > 0).await;
    test.server.write(Post::direct(&test.ada, "two"));
    assert_eq!(test.bot.read().await?["text"], "two");
    test.echo().await?;
    Ok(())
}
