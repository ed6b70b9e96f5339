//! Who gets the secrets of a gateway: its token, its keys and its environment.

use std::fs;
use std::io::Read as _;

use super::Home;
use crate::command::{Running, ended};
use crate::service;

#[test]
fn a_new_token_is_shown_on_a_terminal_once() {
    let home = Home::new("{ say = 'x' }", "");
    let show = || {
        let mut command = home.command(&["serve"]);
        // Without a login, a warning would be on the terminal too.
        command.env("ANTHROPIC_API_KEY", "a-key");
        let mut terminal = rexpect::session::spawn_command(command, Some(20_000)).unwrap();
        let text = terminal.exp_string("try it:").unwrap();
        terminal.process_mut().kill(rexpect::process::Signal::SIGTERM).unwrap();
        terminal.exp_eof().unwrap();
        text
    };
    let first = show();
    let token = fs::read_to_string(home.data().join("token")).unwrap();
    assert!(first.starts_with("http://127.0.0.1:"), "the first line is the URL: {first}");
    assert!(first.contains(token.trim()), "{first}");
    assert!(!show().contains("tms_"));
}

/// A server that records the requests that it gets, and answers none.
fn recorder() -> (String, std::sync::mpsc::Receiver<String>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut head = [0; 4096];
            let count = stream.read(&mut head).unwrap_or_default();
            _ = sender.send(String::from_utf8_lossy(&head[..count]).into_owned());
        }
    });
    (address, receiver)
}

#[test]
fn the_stored_token_is_not_sent_to_another_machine() {
    let home = Home::new("", "");
    fs::create_dir_all(home.data()).unwrap();
    fs::write(home.data().join("token"), "tms_stored").unwrap();
    for (server, args, refusal) in [
        ("https://agents.example.org", &[][..], "is not sent to another machine"),
        ("http://agents.example.org", &[][..], "--insecure"),
        ("http://agents.example.org", &["--insecure"][..], "is not sent to another machine"),
    ] {
        let args = [&["conversations", "--server", server][..], args].concat();
        let refused = home.ended(&args);
        assert_eq!(refused.code, Some(2), "{args:?}: {}", refused.err);
        assert!(refused.err.contains(refusal), "{args:?}: {}", refused.err);
    }
    let mut command = home.command(&["conversations", "--server", "http://192.0.2.1"]);
    command.env("TEAMSTER_TOKEN", "tms_mine");
    let refused = ended(command);
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    assert!(refused.err.contains("clear text"), "{}", refused.err);
}

#[test]
fn a_proxy_does_not_get_the_token_of_a_gateway_on_this_machine() {
    let home = Home::new("{ say = 'x' }", "");
    let gateway = home.serve();
    let (proxy, requests) = recorder();
    let mut command = home.command(&["conversations"]);
    let proxy = format!("http://{proxy}");
    command.env("TEAMSTER_SERVER", &gateway.url).env("http_proxy", &proxy).env("ALL_PROXY", &proxy);
    let listed = ended(command);
    assert_eq!(listed.code, Some(0), "{}", listed.err);
    assert!(requests.try_recv().is_err(), "the proxy got a request");
    gateway.stop();
}

#[test]
fn an_agent_inherits_no_secret_of_the_gateway() {
    let more = "[[serve.hooks]]
name = 'notify'
events = ['turn_finished']
command = ['true']
env = ['CHAT_PASSWORD']
[[serve.hooks]]
name = 'report'
events = ['turn_finished']
url = 'http://127.0.0.1:1/'
secret_env = 'SIGNING'
[[serve.webhooks]]
name = 'ci'
url = 'https://ci.example.org'
secret_envs = ['CHANNEL']
";
    // With the variable, the bot connects to a service that is not there.
    let discord = if cfg!(feature = "discord") { "[serve.discord]\napi_url = 'http://127.0.0.1:1'\n" } else { "" };
    let home = Home::new("{ say = 'x' }", &format!("{more}{discord}"));
    let agent = fs::read_to_string(home.path().join("agent.sh")).unwrap();
    let agent = agent.replacen('\n', "\nenv >> $HOME/environment\n", 1);
    fs::write(home.path().join("agent.sh"), agent).unwrap();
    let secret = "s3cret-0123456789abcdef0123456789abcdef";
    let names =
        ["TEAMSTER_TOKEN", "DISCORD_TOKEN", "CHAT_PASSWORD", "SIGNING", "CHANNEL", "OTEL_EXPORTER_OTLP_HEADERS"];
    let mut command = home.command(&["serve"]);
    command.envs(names.map(|name| (name, secret))).env("PLAIN", "visible");
    command.env("DISCORD_TOKEN", format!("bot.part.{secret}"));
    let mut running = Running::start(&mut command);
    let url = running.out_until("try it:").lines().next().unwrap().to_owned();
    let mut client = home.command(&["send", "hi"]);
    client.env("TEAMSTER_SERVER", url).env("TEAMSTER_TOKEN", secret);
    let sent = ended(client);
    assert_eq!(sent.code, Some(0), "{}", sent.err);
    let environment = fs::read_to_string(home.path().join("environment")).unwrap();
    assert!(environment.contains("PLAIN=visible"), "{environment}");
    assert!(!environment.contains("s3cret"), "{environment}");
    running.signal(rustix::process::Signal::TERM);
    assert_eq!(running.wait_for_exit(), Some(0));
}

#[test]
fn a_wrong_token_is_refused() {
    let home = Home::new("{ say = 'x' }", "");
    let gateway = home.serve();
    let mut command = home.command(&["conversations"]);
    command.env("TEAMSTER_SERVER", &gateway.url).env("TEAMSTER_TOKEN", "tms_guessed");
    let refused = ended(command);
    assert_eq!(refused.code, Some(1));
    assert!(refused.err.contains("token"), "{}", refused.err);
    gateway.stop();
}

#[test]
fn an_agent_that_uses_keys_of_any_vendor_starts_only_if_its_keys_are_known() {
    let home = Home::new("", "");
    let check = |variables: &[(&str, &str)]| {
        let mut command = home.command(&["serve", "--check"]);
        command.env("AGENT_BACKEND", "opencode").env("BACKEND_CLI_PATH", home.path().join("agent.sh"));
        command.envs(variables.iter().copied());
        ended(command)
    };
    let refused = check(&[]);
    assert_eq!((refused.code, refused.err.lines().count()), (Some(1), 1), "{}", refused.err);
    assert!(refused.err.contains("PROVIDER/MODEL") && refused.err.contains("serve.keep_keys"), "{}", refused.err);
    for variable in [("BACKEND_MODEL", "acme/large"), ("TEAMSTER_KEEP_KEY", "ACME_API_KEY")] {
        let valid = check(&[variable]);
        assert_eq!(valid.code, Some(0), "{variable:?}: {}", valid.err);
    }
}

#[test]
fn a_gateway_does_not_start_where_agents_could_read_its_token() {
    let home = Home::new("", "");
    let data = home.data().to_str().unwrap().to_owned();
    let (here, inside) = (home.path().to_owned(), home.data().join("files"));
    fs::create_dir_all(&inside).unwrap();
    for directory in [here, inside] {
        for args in [&["serve"][..], &["serve", "--check"][..]] {
            let mut command = home.command(args);
            command.current_dir(&directory);
            let refused = ended(command);
            assert_eq!(refused.code, Some(2), "{}", refused.err);
            for part in [data.as_str(), directory.to_str().unwrap(), "WORKING_DIR", "--data-dir"] {
                assert!(refused.err.contains(part), "{part}: {}", refused.err);
            }
        }
    }
    assert!(!home.data().join("token").exists());
    let mut command = home.command(&["config", "show"]);
    command.current_dir(home.path());
    assert_eq!(ended(command).code, Some(0), "only a start depends on the directory");
}

#[test]
fn the_shipped_unit_keeps_agents_out_of_the_data_directory() {
    let home = Home::new("", "");
    let state = home.path().join("lib");
    let unit = service::unit().replace("/var/lib", state.to_str().unwrap());
    // systemd creates these before the start.
    for name in service::values(&unit, "StateDirectory").iter().flat_map(|names| names.split(' ')) {
        fs::create_dir_all(state.join(name)).unwrap();
    }
    let [directory] = service::values(&unit, "WorkingDirectory")[..] else { panic!("one working directory") };
    let [check] = service::values(&unit, "ExecStartPre")[..] else { panic!("one check") };
    let config = home.path().join(".config/teamster/config.toml");
    let check = check.replace("/etc/teamster/config.toml", config.to_str().unwrap());
    let args: Vec<_> = check.split(' ').skip(1).collect();
    let mut command = home.command(&args);
    command.current_dir(directory);
    let checked = ended(command);
    assert_eq!(checked.code, Some(0), "{}", checked.err);
}
