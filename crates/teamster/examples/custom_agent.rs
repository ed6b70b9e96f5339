//! An agent of one's own: a program that reads a prompt on stdin and answers line by line, as lines of JSON.
//!
//! `cargo run -p teamster --example custom_agent -- "Say hello"` runs it: its CLI is a shell one-liner here.

use std::io::Write as _;

use teamster::agent::launch::{Launch, Stdin};
use teamster::agent::protocol::{Action, Input, Outcome, ProcessAction, Protocol};
use teamster::agent::{Agent, Plan};
use teamster::event::{Delta, ErrorCode, Event, Failure, Init, Warning, WarningCode};
use teamster::request::{RequestError, RunRequest};
use teamster::{Registry, Runtime};

/// Prints the prompt, in the format that [`Parrot`] reads.
const CLI: &str = r#"read -r prompt; printf '{"text":"%s"}\n{"end":true}\n' "$prompt""#;

/// The agent: how its CLI is started, and the protocol that reads its output.
#[derive(Debug)]
pub(crate) struct Parrot;

impl Agent for Parrot {
    fn name(&self) -> &'static str {
        "parrot"
    }

    fn plan(&self, request: &RunRequest) -> Result<Plan, RequestError> {
        // Options that the agent does not support are rejected, and not ignored.
        if request.schema.is_some() || !request.permissions.deny.is_empty() || !request.mcp_servers.is_empty() {
            return Err(RequestError::Unsupported {
                agent: "parrot".to_owned(),
                option: "a schema, denied tools or MCP servers",
                why: "it only repeats its prompt".to_owned(),
            });
        }
        let mut launch = Launch::new(request.cli_path.clone().unwrap_or_else(|| "sh".into()));
        launch.cwd.clone_from(&request.cwd);
        launch.arg("-c").arg(CLI);
        // On stdin the prompt cannot become a flag, and is not in the list of processes.
        launch.stdin = Stdin::Write(format!("{}\n", request.prompt).into_bytes());
        Ok(Plan { launch, protocol: Box::new(Lines::default()) })
    }
}

/// Reads the CLI's lines: `{"text": TEXT}`, and `{"end": true}` at the end.
#[derive(Debug, Default)]
struct Lines {
    started: bool,
    ended: bool,
}

impl Protocol for Lines {
    fn handle(&mut self, input: Input<'_>, actions: &mut Vec<Action>) {
        match input {
            Input::Line(line) => self.line(line, actions),
            Input::Interrupt => actions.push(Action::Process(ProcessAction::Interrupt)),
            // An exit without the last line is a failure. The transcript reports it.
            _ => {}
        }
    }
}

impl Lines {
    fn line(&mut self, line: &[u8], actions: &mut Vec<Action>) {
        let Ok(line) = serde_json::from_slice::<serde_json::Value>(line) else {
            let warning = Warning::new(WarningCode::MalformedLine, "skipped a line that is not JSON");
            return actions.push(Action::Emit(warning.into()));
        };
        if !self.started {
            self.started = true;
            actions.push(Action::Emit(Event::Init(Box::new(Init::new("parrot", "the-only-one".into())))));
        }
        if let Some(text) = line.get("text").and_then(|text| text.as_str()) {
            let delta = Delta::new("answer", text);
            actions.push(Action::Emit(Event::Text(delta)));
        }
        if let Some(error) = line.get("error").and_then(|error| error.as_str()) {
            let mut outcome = Outcome::default();
            outcome.failure = Some(Failure::new(ErrorCode::Provider, error));
            actions.push(Action::Outcome(Box::new(outcome)));
        } else if line.get("end").is_some() && !self.ended {
            self.ended = true;
            actions.push(Action::Outcome(Box::default()));
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let prompt = std::env::args().nth(1).unwrap_or_else(|| "Say hello".to_owned());
    let mut registry = Registry::default();
    registry.register(Parrot);
    let mut run = Runtime::builder().registry(registry).build().run("parrot", RunRequest::new(prompt))?;
    while let Some(event) = run.next().await {
        let mut stdout = std::io::stdout().lock();
        serde_json::to_writer(&mut stdout, &event)?;
        writeln!(stdout)?;
        if let Event::Done(done) = event {
            done.result.into_result()?;
        }
    }
    Ok(())
}
