//! `teamster serve` and the shell clients of its API, with a fake agent.

mod clients;
#[cfg(feature = "discord")]
mod discord;
mod joined_chat;
mod lacks;
mod secrets;
mod shutdown;
#[cfg(feature = "slack")]
mod slack;
#[cfg(feature = "telegram")]
mod telegram;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::command::{Ended, Running, ended};

const TEAMSTER: &str = env!("CARGO_BIN_EXE_teamster");

/// A home with a configuration and an agent.
pub(crate) struct Home {
    directory: tempfile::TempDir,
}

impl Home {
    /// Creates a home. The agent plays these steps in each turn.
    pub(crate) fn new(steps: &str, more: &str) -> Self {
        let home = Self { directory: tempfile::tempdir().unwrap() };
        let path = home.path();
        fs::write(path.join("scenario.toml"), format!("[[turns]]\nsteps = [{steps}]\n")).unwrap();
        let agent = path.join("agent.sh");
        let script = format!(
            "#!/bin/sh\nexec {TEAMSTER} fake --agent claude --script {} -- \"$@\"\n",
            path.join("scenario.toml").to_str().unwrap()
        );
        fs::write(&agent, script).unwrap();
        fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
        let config = format!("[serve]\nlisten = '127.0.0.1:0'\nagent = 'claude'\ncli_path = './agent.sh'\n{more}");
        fs::create_dir_all(path.join(".config/teamster")).unwrap();
        fs::create_dir(path.join("work")).unwrap();
        fs::write(path.join(".config/teamster/config.toml"), config.replace("./agent", "~/agent")).unwrap();
        home
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    fn data(&self) -> PathBuf {
        self.path().join(".local/share/teamster")
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(TEAMSTER);
        command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", self.path());
        command.args(args).stdin(Stdio::null()).current_dir(self.path().join("work"));
        command
    }

    fn ended(&self, args: &[&str]) -> Ended {
        ended(self.command(args))
    }

    fn serve(&self) -> Gateway<'_> {
        self.serve_with(&["serve"])
    }

    /// Starts a gateway at this address.
    fn serve_at(&self, address: &str) -> Gateway<'_> {
        self.serve_with(&["serve", "--listen", address])
    }

    fn serve_with(&self, args: &[&str]) -> Gateway<'_> {
        let mut running = Running::start(&mut self.command(args));
        let text = running.out_until("try it:");
        let url = text.lines().next().unwrap().to_owned();
        assert!(url.starts_with("http://127.0.0.1:"), "the first line is the URL: {text}");
        Gateway { home: self, running, url, text }
    }
}

/// A gateway that runs.
struct Gateway<'a> {
    home: &'a Home,
    running: Running,
    url: String,
    /// The lines of its start.
    text: String,
}

impl Gateway<'_> {
    /// Runs a client.
    fn client(&self, args: &[&str]) -> Ended {
        let mut command = self.home.command(args);
        command.env("TEAMSTER_SERVER", &self.url);
        ended(command)
    }

    /// Returns the id of the newest conversation.
    fn conversation(&self) -> String {
        let list = self.client(&["conversations", "--json"]);
        let list: serde_json::Value = serde_json::from_str(&list.out).unwrap();
        list["items"][0]["id"].as_str().unwrap().to_owned()
    }

    /// Kills it. Returns its URL.
    fn kill(mut self) -> String {
        self.running.signal(rustix::process::Signal::KILL);
        assert_eq!(self.running.wait_for_exit(), None);
        self.url
    }

    /// Stops it with SIGTERM.
    fn stop(mut self) {
        self.running.signal(rustix::process::Signal::TERM);
        assert_eq!(self.running.wait_for_exit(), Some(0));
    }
}

#[test]
fn a_fresh_gateway_prints_how_to_connect_and_its_curl_line_works() {
    let home = Home::new("{ say = 'You said: {prompt}' }", "");
    let gateway = home.serve();
    let token = fs::read_to_string(home.data().join("token")).unwrap();
    assert!(!gateway.text.contains("tms_"), "a log has no token: {}", gateway.text);
    assert!(gateway.text.contains("token        in ~/.local/share/teamster/token"), "{}", gateway.text);
    assert!(gateway.text.contains("permission   ask"), "{}", gateway.text);
    assert_eq!(fs::metadata(home.data().join("token")).unwrap().permissions().mode() & 0o777, 0o600);
    let line = gateway.text.lines().find_map(|line| line.strip_prefix("try it:")).unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", line.trim()]);
    let answer = ended(shell).out;
    assert!(answer.contains("You said: Hello"), "{answer}");
    let second = home.ended(&["serve"]);
    assert_eq!(second.code, Some(1));
    assert!(second.err.contains("the gateway with process id"), "{}", second.err);
    gateway.stop();
    let again = home.serve();
    assert!(!again.text.contains(token.trim()), "an old token is not shown: {}", again.text);
    again.stop();
}

#[test]
fn send_prints_in_the_formats_of_run_and_keeps_the_conversation() {
    let home = Home::new("{ say = 'You said: {prompt}' }", "");
    let gateway = home.serve();
    let first = gateway.client(&["send", "--output", "text", "Hello"]);
    assert_eq!((first.code, first.out.trim()), (Some(0), "You said: Hello"), "{}", first.err);
    let id = gateway.conversation();
    let json = gateway.client(&["send", "--conversation", &id, "--output", "json", "again"]);
    let result: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(result["finalText"], "You said: again");
    let lines = gateway.client(&["send", "--conversation", &id, "--output", "ndjson", "more"]);
    let last: serde_json::Value = serde_json::from_str(lines.out.lines().last().unwrap()).unwrap();
    assert_eq!((last["type"].as_str(), last["state"].as_str()), (Some("turn_finished"), Some("done")));
    let tail = gateway.client(&["tail", &id, "--no-follow"]);
    assert!(tail.out.contains("> operator: Hello") && tail.out.contains("You said: more"), "{}", tail.out);
    let after = last["seq"].as_u64().unwrap() - 1;
    let rest = gateway.client(&["tail", &id, "--no-follow", "--after", &after.to_string(), "--output", "ndjson"]);
    assert_eq!(rest.out.lines().count(), 1, "{}", rest.out);
    let shown = gateway.client(&["conversations", "show", &id]);
    assert!(shown.out.contains(&id) && shown.out.contains("idle"), "{}", shown.out);
    gateway.stop();
}

#[test]
fn a_failed_turn_has_the_exit_code_of_run() {
    let home = Home::new("{ fail = { status = 401, message = 'No key.' } }", "[serve.retries]\nmax = 0\n");
    let gateway = home.serve();
    let failed = gateway.client(&["send", "Hello"]);
    assert_eq!(failed.code, Some(1), "{}", failed.err);
    assert!(failed.err.contains("error:"), "{}", failed.err);
    gateway.stop();
}

#[test]
fn a_permission_request_is_listed_and_answered_in_the_shell() {
    let steps = "{ run = { command = 'make', output = 'made', ask = true } }, { say = 'Done.' }";
    let home = Home::new(steps, "");
    let gateway = home.serve();
    let mut send = home.command(&["send", "Build it"]);
    let mut send = Running::start(send.env("TEAMSTER_SERVER", &gateway.url));
    let notice = send.err_until("teamster approve");
    let id = notice.split("teamster approve ").nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
    let list = gateway.client(&["approve"]);
    assert!(list.out.contains(&id) && list.out.contains("make"), "{}", list.out);
    assert_eq!(gateway.client(&["approve", &id, "allow"]).code, Some(0));
    let again = gateway.client(&["approve", &id, "deny"]);
    assert_eq!(again.code, Some(1), "a second answer is refused: {}", again.out);
    assert_eq!(send.wait_for_exit(), Some(0));
    gateway.stop();
}

#[test]
fn a_client_without_a_gateway_or_a_token_prints_what_to_do() {
    let home = Home::new("", "");
    let without_token = home.ended(&["send", "Hello"]);
    assert_eq!(without_token.code, Some(2));
    assert!(without_token.err.contains("TEAMSTER_TOKEN"), "{}", without_token.err);
    let mut command = home.command(&["conversations"]);
    let unreachable = ended({
        command.env("TEAMSTER_TOKEN", "a-token-of-some-length").env("TEAMSTER_SERVER", "http://127.0.0.1:1");
        command
    });
    assert_eq!(unreachable.code, Some(1));
    assert!(unreachable.err.contains("teamster serve"), "{}", unreachable.err);
}

#[test]
fn check_starts_nothing_and_its_exit_code_is_0_only_if_a_start_would_succeed() {
    let home = Home::new("", "");
    let valid = home.ended(&["serve", "--check"]);
    assert_eq!(valid.code, Some(0), "{}", valid.err);
    assert!(!home.data().exists());
    let mut command = home.command(&["serve", "--check"]);
    command.env("AGENT_BACKEND", "claud");
    let unknown = ended(command);
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.err.contains("did you mean \"claude\"?; valid are: acp, claude, codex"), "{}", unknown.err);
    let mut command = home.command(&["serve"]);
    command.env("BACKEND_CLI_PATH", "/no/such/cli");
    let missing = ended(command);
    assert_eq!((missing.code, missing.err.lines().count()), (Some(1), 1), "{}", missing.err);
    assert!(missing.err.contains("claude") && missing.err.contains("/no/such/cli"), "{}", missing.err);
}

#[test]
fn a_backup_of_a_running_gateway_can_be_restored() {
    let home = Home::new("{ say = 'You said: {prompt}' }", "");
    let gateway = home.serve();
    assert_eq!(gateway.client(&["send", "--output", "text", "before"]).code, Some(0));
    let id = gateway.conversation();
    let copy = home.path().join("copy.db");
    let copy = copy.to_str().unwrap();
    let backup = home.ended(&["store", "backup", copy]);
    assert_eq!(backup.code, Some(0), "{}", backup.err);
    assert_eq!(home.ended(&["store", "backup", copy]).code, Some(1), "a copy is not overwritten");
    assert_eq!(gateway.client(&["send", "--conversation", &id, "--output", "text", "after"]).code, Some(0));
    assert_eq!(home.ended(&["store", "restore", copy]).code, Some(1), "not while a gateway runs");
    gateway.stop();
    let restored = home.ended(&["store", "restore", copy]);
    assert_eq!(restored.code, Some(0), "{}", restored.err);
    let gateway = home.serve();
    let tail = gateway.client(&["tail", &id, "--no-follow"]);
    assert!(tail.out.contains("before") && !tail.out.contains("after"), "{}", tail.out);
    gateway.stop();
    fs::write(home.path().join("work/other.db"), "no store").unwrap();
    let kept = fs::read(home.data().join("gateway.db")).unwrap();
    fs::remove_file(home.data().join("gateway.db.before-restore")).unwrap();
    let refused = home.ended(&["store", "restore", "other.db"]);
    assert_eq!(refused.code, Some(1), "{}", refused.out);
    assert!(refused.err.contains("\"other.db\" is not a store of Teamster"), "{}", refused.err);
    assert_eq!(fs::read(home.data().join("gateway.db")).unwrap(), kept, "the store is not changed");
}

#[test]
fn a_failed_restore_leaves_no_data_directory_and_a_failed_backup_names_its_file() {
    let home = Home::new("", "");
    fs::write(home.path().join("work/other.db"), "no store").unwrap();
    let refused = home.ended(&["store", "restore", "other.db", "--data-dir", "new"]);
    assert_eq!(refused.code, Some(1), "{}", refused.out);
    assert!(!home.path().join("work/new").exists());
    home.serve().stop();
    let refused = home.ended(&["store", "backup", "/nope/x.db"]);
    assert_eq!(refused.code, Some(1), "{}", refused.out);
    assert!(refused.err.contains("/nope/x.db: No such file"), "{}", refused.err);
}

#[test]
fn log_lines_can_be_json() {
    let home = Home::new("{ say = 'x' }", "");
    let mut command = home.command(&["serve", "--log-format", "json"]);
    let mut running = Running::start(command.env("RUST_LOG", "info"));
    let url = running.out_until("try it:").lines().next().unwrap().to_owned();
    let mut send = home.command(&["send", "hi"]);
    send.env("TEAMSTER_SERVER", url);
    assert_eq!(ended(send).code, Some(0));
    let log = running.err_until("\"level\":\"INFO\"");
    let line = log.lines().find(|line| line.starts_with('{')).unwrap();
    assert!(serde_json::from_str::<serde_json::Value>(line).is_ok(), "{line}");
    running.signal(rustix::process::Signal::TERM);
    assert_eq!(running.wait_for_exit(), Some(0));
}
