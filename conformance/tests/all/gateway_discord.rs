//! The real CLIs in Discord: a person writes, presses buttons and reads answers at the testkit's server.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use teamster_conformance::{Agent, DEADLINE, TIMEOUT, TestGateway, agent_tests};
use teamster_testkit::discord::{BOT_ID, DiscordServer, Person, Post};
use teamster_testkit::provider::Scenario;

use crate::gateway_turns::{assert_context, creates};

agent_tests! {
    a_message_in_discord_gets_its_answer_and_its_button_allows_or_denies_a_command: all,
}

/// The server, and the person who writes to the bot.
struct Chat {
    server: DiscordServer,
    ada: Person,
}

impl Chat {
    /// Waits for a message of the bot, and returns it.
    async fn shows(&self, what: &str, is_it: impl Fn(&Value) -> bool) -> Result<Value> {
        let answers = |server: &DiscordServer| {
            let (messages, bot) = (server.messages(self.ada.direct()).into_iter(), BOT_ID.to_string());
            messages.filter(|message| message["author"]["id"] == bot.as_str()).collect::<Vec<_>>()
        };
        let in_time = self.server.wait_until(DEADLINE, |server| answers(server).iter().any(&is_it)).await;
        let all = answers(&self.server);
        ensure!(in_time, "{what} is not there: {all:#?}");
        all.into_iter().find(|message| is_it(message)).context("it is gone")
    }

    /// Writes a message, presses a button of the request that follows, and waits for the answer.
    async fn decide(&self, message: &str, button: &str, answer: &str) -> Result<()> {
        self.server.write(Post::private(&self.ada, message));
        let prompt = self.shows("a request with buttons", |message| message["components"] != json!([])).await?;
        let id = prompt["id"].as_str().context("no id")?.parse()?;
        let press = self.server.press(self.ada.direct(), id, button, &self.ada);
        let is_closed = |message: &Value| message["id"] == prompt["id"] && message["components"] == json!([]);
        self.shows("the closed request", is_closed).await?;
        ensure!(self.server.acknowledged(press).is_some(), "the press is acknowledged");
        self.shows(answer, |message| message["content"].as_str().is_some_and(|text| text.ends_with(answer))).await?;
        Ok(())
    }
}

async fn a_message_in_discord_gets_its_answer_and_its_button_allows_or_denies_a_command(agent: &Agent) -> Result<()> {
    let scenario = Scenario::new().branch("good", creates(agent, "good")).branch("bad", creates(agent, "bad"));
    let env = agent.test_env(scenario).await?;
    let chat = Chat { server: DiscordServer::start().await?, ada: Person::new(11, "Ada") };
    let token = env.create_directory("secrets")?.join("discord.token");
    std::fs::write(&token, chat.server.token())?;
    let table = format!(
        "[serve.discord]\ntoken_file = {}\napi_url = \"{}\"\ngateway_url = \"{}\"\n\
         [[serve.rules]]\nchannel = \"discord\"\nauthors = [\"11\"]\napprovers = [\"discord:11\"]\n",
        json!(token),
        chat.server.url(),
        chat.server.gateway_url()
    );
    let gateway = TestGateway::start(agent, &env, &table).await?;
    let is_there = chat.server.wait_until(TIMEOUT, |server| server.connections() > 0).await;
    ensure!(is_there, "the bot connects");
    chat.decide("Make the first one. SCN:good", "Allow", "About good.").await?;
    ensure!(env.project().join("good").exists(), "the command has run");
    chat.decide("Make the second one. SCN:bad", "Deny", "About bad.").await?;
    ensure!(!env.project().join("bad").exists(), "the command has not run");
    assert_context(&env, "Make the first one.")?;
    gateway.stop().await
}
