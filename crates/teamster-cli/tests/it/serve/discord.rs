//! `teamster serve` with a Discord bot, from its table of the configuration to an answer.

use std::fs;
use std::time::Duration;

use teamster_testkit::discord::{DiscordServer, Person, Post};
use tokio::runtime::Runtime;

use super::Home;
use crate::command::ended;

const GUILD: u64 = 500;
const CHANNEL: u64 = 501;

const RULE: &str = "[[serve.rules]]\nchannel = 'discord'\nauthors = ['11']\n";

fn server(runtime: &Runtime) -> DiscordServer {
    let server = runtime.block_on(DiscordServer::start()).unwrap();
    server.create_guild(GUILD, CHANNEL);
    server
}

/// Returns a home whose bot uses this server.
fn home(server: &DiscordServer, more: &str) -> Home {
    let url = server.url();
    let table = format!("[serve.discord]\ntoken_file = 'discord.token'\napi_url = '{url}'\n{more}\n{RULE}");
    let home = Home::new("{ say = 'Hello from **here**' }", &table);
    fs::write(home.path().join(".config/teamster/discord.token"), format!("{}\n", server.token())).unwrap();
    home
}

#[test]
fn check_names_what_a_discord_bot_lacks() {
    let missing = Home::new("", "[serve.discord]\nservers = 'off'\n").ended(&["serve", "--check"]);
    assert_eq!(missing.code, Some(2), "{}", missing.err);
    assert!(missing.err.contains("serve.discord.token_file") && missing.err.contains("portal"), "{}", missing.err);

    let runtime = Runtime::new().unwrap();
    let server = server(&runtime);
    let valid = home(&server, "").ended(&["serve", "--check"]);
    assert_eq!(valid.code, Some(0), "{}", valid.err);
    assert!(valid.out.contains("channel      discord"), "{}", valid.out);

    server.set_permissions(GUILD, 1 << 10);
    let permissions = home(&server, "threads = true").ended(&["serve", "--check"]);
    assert_eq!(permissions.code, Some(1), "{}", permissions.err);
    assert!(permissions.err.contains("Create Public Threads") && permissions.err.contains("oauth2/authorize"));

    server.set_content_intent(false);
    let intent = home(&server, "").ended(&["serve", "--check"]);
    assert!(intent.err.contains("the channel discord cannot be used") && intent.err.contains("Message Content Intent"));

    let home = home(&server, "");
    server.revoke_token();
    let rejected = home.ended(&["serve", "--check"]);
    assert!(
        rejected.err.contains("rejects the credentials") && rejected.err.contains("Reset Token"),
        "{}",
        rejected.err
    );
    assert!(!rejected.err.contains("secret_of"), "{}", rejected.err);
}

#[test]
fn a_message_in_discord_gets_its_answer_by_the_variable_of_existing_deployments_and_the_agent_does_not_get_it() {
    let runtime = Runtime::new().unwrap();
    let server = server(&runtime);
    let table = format!("[serve.discord]\napi_url = '{}'\n{RULE}", server.url());
    let home = Home::new("{ say = 'Hello from **here**' }", &table);
    let agent = fs::read_to_string(home.path().join("agent.sh")).unwrap();
    let agent = agent.replacen('\n', "\nenv >> $HOME/environment\n", 1);
    fs::write(home.path().join("agent.sh"), agent).unwrap();
    let refused = ended(home.command(&["serve"]));
    assert!(refused.err.contains("DISCORD_TOKEN"), "{}", refused.err);

    let mut command = home.command(&["serve"]);
    command.env("DISCORD_TOKEN", server.token());
    let mut running = crate::command::Running::start(&mut command);
    running.out_until("try it:");
    let is_connected = runtime.block_on(server.wait_until(Duration::from_secs(30), |server| server.connections() == 1));
    assert!(is_connected);
    server.write(Post::mention(CHANNEL, &Person::new(11, "Ada"), "hello"));
    let is_answered = |server: &DiscordServer| {
        server.messages(CHANNEL).iter().any(|message| message["content"] == "Hello from **here**")
    };
    let in_time = runtime.block_on(server.wait_until(Duration::from_secs(30), is_answered));
    assert!(in_time, "{:?}", server.messages(CHANNEL));
    assert!(!fs::read_to_string(home.path().join("environment")).unwrap().contains("secret_of"));
    running.signal(rustix::process::Signal::TERM);
    assert_eq!(running.wait_for_exit(), Some(0));
}
