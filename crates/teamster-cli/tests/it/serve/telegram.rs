//! `teamster serve` with a Telegram bot, from its table of the configuration to an answer.

use std::fs;
use std::time::Duration;

use teamster_testkit::telegram::{Person, Post, TelegramServer};
use tokio::runtime::Runtime;

use super::Home;
use crate::command::ended;

const RULE: &str = "[[serve.rules]]\nchannel = 'telegram'\nauthors = ['11']\n";

/// Returns a home whose bot uses this server.
fn home(server: &TelegramServer, more: &str) -> Home {
    let url = server.url();
    let table = format!("[serve.telegram]\ntoken_file = 'telegram.token'\napi_url = '{url}'\n{more}\n{RULE}");
    let home = Home::new("{ say = 'Hello from **here**' }", &table);
    fs::write(home.path().join(".config/teamster/telegram.token"), format!("{}\n", server.token())).unwrap();
    home
}

#[test]
fn check_names_what_a_telegram_bot_lacks() {
    let missing = Home::new("", "[serve.telegram]\ngroups = 'off'\n").ended(&["serve", "--check"]);
    assert_eq!(missing.code, Some(2), "{}", missing.err);
    assert!(missing.err.contains("serve.telegram.token_file") && missing.err.contains("@BotFather"), "{}", missing.err);

    let runtime = Runtime::new().unwrap();
    let server = runtime.block_on(TelegramServer::start()).unwrap();
    let valid = home(&server, "").ended(&["serve", "--check"]);
    assert_eq!(valid.code, Some(0), "{}", valid.err);
    assert!(valid.out.contains("channel      telegram"), "{}", valid.out);

    let privacy = home(&server, "groups = 'all'").ended(&["serve", "--check"]);
    assert_eq!(privacy.code, Some(1), "{}", privacy.err);
    assert!(privacy.err.contains("the channel telegram cannot be used") && privacy.err.contains("/setprivacy"));

    let home = home(&server, "");
    server.revoke_token();
    let rejected = home.ended(&["serve", "--check"]);
    assert!(rejected.err.contains("rejects the credentials"), "{}", rejected.err);
    assert!(!rejected.err.contains("AAtest"), "{}", rejected.err);
}

#[test]
fn a_message_in_telegram_gets_its_answer_and_the_agent_does_not_get_the_token() {
    let runtime = Runtime::new().unwrap();
    let server = runtime.block_on(TelegramServer::start()).unwrap();
    let table = format!("[serve.telegram]\ntoken_env = 'BOT_TOKEN'\napi_url = '{}'\n{RULE}", server.url());
    let home = Home::new("{ say = 'Hello from **here**' }", &table);
    let agent = fs::read_to_string(home.path().join("agent.sh")).unwrap();
    let agent = agent.replacen('\n', "\nenv >> $HOME/environment\n", 1);
    fs::write(home.path().join("agent.sh"), agent).unwrap();
    let refused = ended(home.command(&["serve"]));
    assert!(refused.err.contains("BOT_TOKEN is not set"), "{}", refused.err);

    let mut command = home.command(&["serve"]);
    command.env("BOT_TOKEN", server.token());
    let mut running = crate::command::Running::start(&mut command);
    running.out_until("try it:");
    server.write(Post::private(&Person::new(11, "Ada"), "hello"));
    let is_answered = |server: &TelegramServer| {
        let mut messages = server.messages(11).into_iter();
        messages.any(|message| message["text"] == "Hello from here" && message["entities"][0]["type"] == "bold")
    };
    let in_time = runtime.block_on(server.wait_until(Duration::from_secs(30), is_answered));
    assert!(in_time, "{:?}", server.messages(11));
    assert!(!fs::read_to_string(home.path().join("environment")).unwrap().contains("AAtest"));
    running.signal(rustix::process::Signal::TERM);
    assert_eq!(running.wait_for_exit(), Some(0));
}
