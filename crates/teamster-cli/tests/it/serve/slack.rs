//! `teamster serve` with a Slack app, from its table of the configuration to an answer.

use std::fs;
use std::time::Duration;

use teamster_testkit::slack::{Person, Post, SlackServer};
use tokio::runtime::Runtime;

use super::Home;

const RULE: &str = "[[serve.rules]]\nchannel = 'slack'\nauthors = ['U0ADA']\n";

/// Returns a home whose app uses this server.
fn home(server: &SlackServer, bot_token: &str) -> Home {
    let url = server.url();
    let table =
        format!("[serve.slack]\nbot_token_file = 'bot.token'\napp_token_file = 'app.token'\napi_url = '{url}'\n{RULE}");
    let home = Home::new("{ say = 'Hello from **here**' }", &table);
    for (name, token) in [("bot", bot_token), ("app", server.app_token())] {
        fs::write(home.path().join(format!(".config/teamster/{name}.token")), format!("{token}\n")).unwrap();
    }
    home
}

#[test]
fn check_names_what_a_slack_app_lacks() {
    let missing = Home::new("", "[serve.slack]\nchannels = 'off'\n").ended(&["serve", "--check"]);
    assert_eq!(missing.code, Some(2), "{}", missing.err);
    assert!(missing.err.contains("serve.slack.bot_token_file") && missing.err.contains("xoxb-"), "{}", missing.err);

    let runtime = Runtime::new().unwrap();
    let server = runtime.block_on(SlackServer::start()).unwrap();
    let swapped = home(&server, server.app_token()).ended(&["serve", "--check"]);
    assert_eq!(swapped.code, Some(2), "{}", swapped.err);
    assert!(swapped.err.contains("this is the app-level token"), "{}", swapped.err);

    let home = home(&server, server.bot_token());
    let valid = home.ended(&["serve", "--check"]);
    assert_eq!(valid.code, Some(0), "{}", valid.err);
    assert!(valid.out.contains("channel      slack"), "{}", valid.out);

    server.remove_scope("files:write");
    let scope = home.ended(&["serve", "--check"]);
    assert_eq!(scope.code, Some(1), "{}", scope.err);
    assert!(
        scope.err.contains("the channel slack cannot be used") && scope.err.contains("files:write"),
        "{}",
        scope.err
    );

    server.revoke_bot_token();
    let rejected = home.ended(&["serve", "--check"]);
    assert!(rejected.err.contains("rejects the credentials"), "{}", rejected.err);
    assert!(!rejected.err.contains(server.bot_token()), "{}", rejected.err);
}

#[test]
fn a_message_in_slack_gets_its_answer_and_the_agent_does_not_get_the_tokens() {
    let runtime = Runtime::new().unwrap();
    let server = runtime.block_on(SlackServer::start()).unwrap();
    let url = server.url();
    let table =
        format!("[serve.slack]\nbot_token_env = 'BOT_TOKEN'\napp_token_env = 'APP_TOKEN'\napi_url = '{url}'\n{RULE}");
    let home = Home::new("{ say = 'Hello from **here**' }", &table);
    let agent = fs::read_to_string(home.path().join("agent.sh")).unwrap();
    let agent = agent.replacen('\n', "\nenv >> $HOME/environment\n", 1);
    fs::write(home.path().join("agent.sh"), agent).unwrap();

    let mut command = home.command(&["serve"]);
    command.env("BOT_TOKEN", server.bot_token()).env("APP_TOKEN", server.app_token());
    let mut running = crate::command::Running::start(&mut command);
    running.out_until("try it:");
    let ada = Person::new("U0ADA", "Ada");
    server.write(Post::direct(&ada, "hello"));
    let is_answered = |server: &SlackServer| {
        let mut messages = server.messages(&ada.direct()).into_iter();
        messages.any(|message| message["text"] == "Hello from here" && message["blocks"][0]["type"] == "rich_text")
    };
    let in_time = runtime.block_on(server.wait_until(Duration::from_secs(30), is_answered));
    assert!(in_time, "{:?}", server.messages(&ada.direct()));
    let environment = fs::read_to_string(home.path().join("environment")).unwrap();
    assert!(!environment.contains("xoxb-") && !environment.contains("xapp-"));
    running.signal(rustix::process::Signal::TERM);
    assert_eq!(running.wait_for_exit(), Some(0));
}
