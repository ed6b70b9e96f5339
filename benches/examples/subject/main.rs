//! Teamster's library as a host would use it.
//!
//! `subject current|multi TASK FORM CLI RUNS` prints one line of JSON.

#![expect(clippy::expect_used, clippy::print_stdout, clippy::panic, reason = "a measurement")]

mod ends;
mod helpers;
mod steps;
mod streams;

use std::path::PathBuf;

use teamster::agent::acp::Acp;
use teamster::request::AgentInterface;
use teamster::{Registry, Run, RunRequest, Runtime};
use teamster_benches::forms::Form;

/// What is measured.
struct Host {
    runtime: Runtime,
    form: Form,
    cli: PathBuf,
}

impl Host {
    fn run(&self) -> Run {
        let mut request = RunRequest::new("hello");
        request.cli_path = Some(self.cli.clone());
        if self.form == Form::CodexExec {
            request.interface = AgentInterface::Exec;
        }
        self.runtime.run(self.form.agent(), request).expect("a run")
    }
}

fn main() {
    let mut args = std::env::args().skip(1);
    let mut next = || args.next().expect("subject current|multi TASK FORM CLI RUNS");
    let (threads, task, form, cli) = (next(), next(), next(), PathBuf::from(next()));
    let runs: usize = next().parse().expect("a number of runs");
    let form = Form::named(&form).expect("a form");
    let mut builder = match threads.as_str() {
        "current" => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    let tokio = builder.enable_all().build().expect("a runtime");
    let mut registry = Registry::default();
    registry.register(Acp::any());
    let host = Host { runtime: Runtime::builder().registry(registry).build(), form, cli };
    let report = tokio.block_on(async {
        match task.as_str() {
            "burst" => streams::burst(&host).await,
            "latency" => streams::latency(&host, runs).await,
            "live" => streams::live(&host, runs).await,
            "start" => ends::start(&host).await,
            "steps" => steps::measure(&host, false).await,
            "steps-warmed-up" => steps::measure(&host, true).await,
            "turns" => streams::turns(&host, runs).await,
            "unread" => streams::unread(&host).await,
            "stop" => ends::stop(&host).await,
            "hold" => ends::hold(&host).await,
            task => panic!("the library does not measure {task}"),
        }
    });
    println!("{}", report.line());
}
