//! A bot of discord.py talks to the testkit's server: the server is not merely our idea of Discord's gateway and API.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use teamster_conformance::PythonProgram;
use teamster_testkit::discord::{BOT_NAME, DiscordServer, Fault, Person, Post};

const GUILD: u64 = 500;
const CHANNEL: u64 = 501;

/// The server and the bot.
struct Echo {
    server: DiscordServer,
    bot: PythonProgram,
    ada: Person,
}

impl Echo {
    /// `None` if tests of Python programs are skipped.
    async fn start() -> Result<Option<Self>> {
        let server = DiscordServer::start().await?;
        server.create_guild(GUILD, CHANNEL);
        let (url, gateway) = (server.url(), server.gateway_url());
        let variables =
            [("DISCORD_URL", url.as_str()), ("DISCORD_GATEWAY_URL", &gateway), ("DISCORD_TOKEN", server.token())];
        let Some(mut bot) = PythonProgram::start("discord.py", "discord_client.py", &variables)? else {
            return Ok(None);
        };
        let started = bot.read().await?;
        assert_eq!(started, json!({"bot": BOT_NAME, "commands": 1, "guilds": ["Server 500"]}));
        Ok(Some(Self { server, bot, ada: Person::new(11, "Ada") }))
    }

    /// Ada writes in the channel. Returns the message and its echo.
    async fn write(&mut self, text: &str) -> Result<(u64, u64)> {
        let message = self.server.write(Post::to(CHANNEL, &self.ada, text));
        assert_eq!(self.bot.read().await?["text"], text);
        Ok((message, self.echo().await?))
    }

    /// Returns the id of a line with an echo.
    async fn echo(&mut self) -> Result<u64> {
        let line = self.bot.read().await?;
        line["echo"].as_u64().with_context(|| format!("no echo: {line}"))
    }

    fn message(&self, channel: u64, id: u64) -> Value {
        let (mut messages, id) = (self.server.messages(channel).into_iter(), id.to_string());
        messages.find(|message| message["id"] == id.as_str()).unwrap_or_default()
    }
}

#[tokio::test]
async fn the_client_receives_sends_edits_and_opens_threads() -> Result<()> {
    let Some(mut test) = Echo::start().await? else { return Ok(()) };
    let message = test.server.write(Post::mention(CHANNEL, &test.ada, "hello 😀"));
    let line = test.bot.read().await?;
    assert_eq!(line, json!({"text": "<@4242> hello 😀", "sender": "Ada", "mention": true, "thread": null}));
    let echo = test.echo().await?;
    assert_eq!(test.message(CHANNEL, echo)["content"], "**<@4242> hello 😀**");
    test.server.edit(CHANNEL, message, "changed");
    assert_eq!(test.bot.read().await?["edited"], "changed");
    assert_eq!(test.message(CHANNEL, echo)["content"], "changed");

    let starter = test.server.write(Post::to(CHANNEL, &test.ada, "please open a thread"));
    test.bot.read().await?;
    assert_eq!(test.bot.read().await?["channel"], starter, "a thread has the id of its message");
    assert_eq!(test.server.channel(starter)["name"], "A thread");
    test.server.write(Post::to(starter, &test.ada, "in it"));
    assert_eq!(test.bot.read().await?["thread"], starter);
    test.echo().await?;

    test.server.write(Post::to(CHANNEL, &test.ada, "history"));
    test.bot.read().await?;
    let history = test.bot.read().await?;
    assert_eq!(history["history"], json!(["changed", "changed", "please open a thread", "history"]));
    Ok(())
}

#[tokio::test]
async fn the_client_answers_commands_buttons_and_forms() -> Result<()> {
    let Some(mut test) = Echo::start().await? else { return Ok(()) };
    let (_, echo) = test.write("hello").await?;
    let asked = test.server.press(CHANNEL, echo, "Ask", &test.ada);
    assert_eq!(test.bot.read().await?, json!({"asked": "Ada"}));
    let submitted = test.server.submit(asked, "blue", &test.ada).context("a form")?;
    assert_eq!(test.bot.read().await?, json!({"form": "blue", "by": "Ada"}));
    assert_eq!(test.server.shown_to(submitted).as_deref(), Some("You wrote blue"));

    let pressed = test.server.press(CHANNEL, echo, "Press", &test.ada);
    assert_eq!(test.bot.read().await?, json!({"press": "pressed", "by": "Ada"}));
    assert_eq!(test.server.shown_to(pressed).as_deref(), Some("You pressed pressed"));
    assert_eq!(test.message(CHANNEL, echo)["components"], json!([]));

    let command = test.server.slash(CHANNEL, "status", Some("x"), &test.ada);
    assert_eq!(test.bot.read().await?, json!({"command": "x", "channel": CHANNEL, "thread": false}));
    assert_eq!(test.server.shown_to(command).as_deref(), Some("Status of x"));
    Ok(())
}

#[tokio::test]
async fn the_client_downloads_and_sends_files() -> Result<()> {
    let Some(mut test) = Echo::start().await? else { return Ok(()) };
    test.server.write(Post::to(CHANNEL, &test.ada, "").file("a.txt", "content"));
    test.bot.read().await?;
    assert_eq!(test.bot.read().await?, json!({"file": "a.txt", "size": 7}));
    let messages = test.server.messages(CHANNEL);
    assert_eq!(messages.len(), 1, "the first message is deleted: {messages:?}");
    let attachment = &messages[0]["attachments"][0];
    assert_eq!((&attachment["filename"], &messages[0]["content"]), (&json!("upper-a.txt"), &json!("done")));
    let id = attachment["id"].as_str().context("an id")?.parse()?;
    assert_eq!(test.server.file(id).as_deref(), Some(&b"CONTENT"[..]));
    Ok(())
}

#[tokio::test]
async fn the_client_resumes_and_gets_what_it_has_missed() -> Result<()> {
    let Some(mut test) = Echo::start().await? else { return Ok(()) };
    test.server.cut_connections();
    test.server.write(Post::to(CHANNEL, &test.ada, "meanwhile"));
    assert_eq!(test.bot.read().await?["text"], "meanwhile");
    // Its answer and the end of the resume come in any order.
    let lines = [test.bot.read().await?, test.bot.read().await?];
    assert!(lines.contains(&json!({"resumed": true})), "{lines:?}");
    test.server.request_reconnect();
    assert_eq!(test.bot.read().await?, json!({"resumed": true}));
    test.server.send_invalid_session(false);
    assert_eq!(test.bot.read().await?, json!({"ready": "again"}));
    test.write("after").await?;
    Ok(())
}

#[tokio::test]
async fn the_client_waits_for_rate_limits_and_understands_the_errors() -> Result<()> {
    let Some(mut test) = Echo::start().await? else { return Ok(()) };
    test.server.fail("createMessage", &Fault::RateLimit { after_ms: 300, is_global: false }, 1);
    test.server.limit("typing", 1, std::time::Duration::from_secs(1));
    test.write("one").await?;
    test.write("two").await?;
    assert_eq!(test.server.count("createMessage"), 3);
    assert_eq!(test.server.count("typing"), 2, "it keeps to what the headers state");

    let refused = Fault::Error { status: 403, code: 50_013, message: "Missing Permissions".to_owned() };
    test.server.fail("createMessage", &refused, 1);
    test.server.write(Post::private(&test.ada, "three"));
    test.bot.read().await?;
    assert_eq!(test.bot.read().await?, json!({"error": "Forbidden", "status": 403, "code": 50013}));
    Ok(())
}
