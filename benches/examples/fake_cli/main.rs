//! A fake agent CLI for measurements. It writes the lines of a real CLI, without work of its own: bytes are made before they
//! are written, and a burst is written in large pieces. Its scenario lies beside it (`teamster_benches::scenario`).

#![expect(clippy::expect_used, clippy::print_stdout, reason = "a measurement")]

mod acp;
mod app_server;
mod claude;
mod exec;
mod output;
mod play;
mod rpc;

use std::io::{self, Read as _};
use std::sync::OnceLock;
use std::time::Duration;
use std::{env, fs, process, thread};

use teamster_benches::scenario::{Scenario, exit_file, main_file};
use teamster_benches::usage::now_ns;

/// When `main` began.
static BEGAN: OnceLock<u64> = OnceLock::new();

fn main() {
    BEGAN.get_or_init(now_ns);
    let args: Vec<String> = env::args().skip(1).collect();
    let has = |arg: &str| args.iter().any(|other| other == arg);
    match args.first().map(String::as_str) {
        Some("--version" | "-v" | "-V") => return version(),
        Some("--child") => return wait_for_the_parent(),
        Some("--hold") => return hold(args.get(1).and_then(|seconds| seconds.parse().ok()).unwrap_or(1)),
        _ => {}
    }
    let scenario = Scenario::of_this_program().expect("a scenario lies beside the program");
    match scenario.agent.as_str() {
        "claude" if has("--input-format") => claude::session(&scenario, has("--replay-user-messages")),
        "claude" => claude::one_shot(&scenario),
        "codex" if has("app-server") => app_server::run(&scenario),
        "codex" => exec::run(&scenario),
        "acp" => acp::run(&scenario),
        other => panic_free(other),
    }
    leave();
}

/// Exits. Writes the times of the start and of the exit first.
fn leave() -> ! {
    let written = env::current_exe().and_then(|program| {
        fs::write(main_file(&program), BEGAN.get_or_init(now_ns).to_string())?;
        fs::write(exit_file(&program), now_ns().to_string())
    });
    process::exit(i32::from(written.is_err()));
}

fn panic_free(agent: &str) {
    println!("unknown agent {agent:?}");
    process::exit(2);
}

fn version() {
    let agent = Scenario::of_this_program().map(|scenario| scenario.agent).unwrap_or_default();
    println!("{}", if agent == "codex" { "codex-cli 0.169.0" } else { "2.1.197 (Claude Code)" });
}

fn wait_for_the_parent() {
    let _end = io::copy(&mut io::stdin(), &mut io::sink());
}

fn hold(seconds: u64) {
    thread::sleep(Duration::from_secs(seconds));
}

/// Reads standard input to its end.
fn read_prompt() -> String {
    let mut prompt = Vec::new();
    let _end = io::stdin().lock().read_to_end(&mut prompt);
    String::from_utf8_lossy(&prompt).into_owned()
}

/// Waits for a signal.
fn wait_forever() {
    loop {
        thread::park();
    }
}
