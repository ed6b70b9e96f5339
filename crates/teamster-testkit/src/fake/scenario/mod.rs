//! Scenarios: what an agent does turn by turn, in terms that are the same for all agents, played in
//! the dialect of the requested CLI.
//!
//! ```toml
//! [[turns]]
//! steps = [
//!   { say = "Let me look." },
//!   { run = { command = "ls", output = "a.txt\n", ask = true } },
//!   { say = "There is one file." },
//! ]
//!
//! [[turns]]
//! steps = [{ fail = { status = 429, message = "Slow down." } }]
//! ```

mod acp;
mod arguments;
mod calls;
mod claude;
mod claude_output;
mod codex;
mod codex_exec;
mod dialect;
mod error;
mod gemini;
mod input;
mod interface;
mod json;
mod opencode;
mod run;
#[cfg(feature = "servers")]
mod serve;
mod steps;
mod version;

use std::ffi::OsString;
use std::io;

use serde::Deserialize;

use self::arguments::Arguments;
use self::dialect::CliDialect;
pub use self::error::ScenarioError;
use self::interface::CliInterface;
use self::run::run;
use self::steps::Turn;
pub use self::version::answer_version;

/// What an agent does, turn by turn. Each process starts with the first turn. The last turn is
/// repeated.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    turns: Vec<Turn>,
}

impl Scenario {
    /// Reads a scenario from TOML, or from JSON if the text starts with a brace.
    ///
    /// # Errors
    /// Fails if the text is not a scenario.
    pub fn read(text: &str) -> Result<Self, ScenarioError> {
        let scenario: Self =
            if text.trim_start().starts_with('{') { serde_json::from_str(text)? } else { toml::from_str(text)? };
        if scenario.turns.is_empty() { Err(ScenarioError::Empty) } else { Ok(scenario) }
    }

    /// Selects the dialect of this agent's CLI that its arguments request.
    ///
    /// # Errors
    /// Fails if there is no such dialect, or if it cannot represent a step of the scenario.
    pub fn for_cli(self, agent: &str, arguments: &[OsString]) -> Result<ScenarioRun, ScenarioError> {
        let arguments: Vec<_> = arguments.iter().map(|argument| argument.to_string_lossy().into_owned()).collect();
        let arguments = Arguments(arguments);
        let interface = CliInterface::of(agent, &arguments)?;
        interface.check(&self.turns)?;
        Ok(ScenarioRun { scenario: self, interface, arguments })
    }
}

/// A scenario and the dialect in which it is played.
#[derive(Clone, Debug)]
pub struct ScenarioRun {
    scenario: Scenario,
    interface: CliInterface,
    arguments: Arguments,
}

impl ScenarioRun {
    /// Plays the scenario and returns the process's exit code.
    ///
    /// # Errors
    /// Fails if nothing reads the output, or if no server can be started.
    pub fn run(self) -> io::Result<i32> {
        let Self { scenario, interface, arguments } = self;
        let mut dialect: Box<dyn CliDialect> = match interface {
            CliInterface::Version(agent) => return version::print(agent),
            CliInterface::Claude => Box::new(claude::Claude::live(&arguments)),
            CliInterface::ClaudeOneShot => Box::new(claude::Claude::one_shot(&arguments)),
            CliInterface::CodexExec => Box::new(codex_exec::Exec::new(&arguments)),
            CliInterface::CodexAppServer => Box::new(codex::AppServer::default()),
            CliInterface::Gemini => Box::new(gemini::Gemini::new(&arguments)),
            CliInterface::GeminiAcp => Box::new(acp::Acp::default()),
            CliInterface::OpenCode => Box::new(opencode::OpenCode::new(&arguments)),
            #[cfg(feature = "servers")]
            CliInterface::OpenCodeServe => Box::new(serve::Serve::start()?),
        };
        run(&scenario.turns, dialect.as_mut())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_is_toml_or_json_and_an_error_names_the_invalid_part() {
        let toml =
            "[[turns]]\nsteps = [{ say = \"Hi\" }, { waitMs = 5 }, { fail = { status = 500, message = \"no\" } }]\n";
        let json =
            r#"{"turns": [{"steps": [{"say": "Hi"}, {"waitMs": 5}, {"fail": {"status": 500, "message": "no"}}]}]}"#;
        assert_eq!(Scenario::read(toml).unwrap(), Scenario::read(json).unwrap());
        for (text, reason) in [
            ("turns = []", "[[turns]]"),
            ("[[turns]]\nsteps = [{ sing = \"la\" }]", "sing"),
            ("[[turns]]\nsteps = [{ run = { comand = \"ls\" } }]", "comand"),
            ("{\"turns\": 3}", "3"),
        ] {
            let error = Scenario::read(text).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn the_arguments_select_the_interface_and_unsupported_ones_are_rejected() {
        let scenario = || Scenario::read("[[turns]]\nsteps = [{ tool = { name = \"Read\" } }]").unwrap();
        let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        assert_eq!(scenario().for_cli("gemini", &words(&["--acp"])).unwrap().interface, CliInterface::GeminiAcp);
        for (agent, arguments, reason) in [
            ("codex", &["exec"][..], "\"Read\""),
            ("codex", &["login"], "exec or app-server"),
            ("claude", &["--resume"], "--input-format"),
            ("claude", &["-p", "--output-format", "xml"], "text, json or stream-json"),
            ("gemini", &[], "--acp"),
            ("gemini", &["-o", "xml"], "text, json or stream-json"),
            ("opencode", &["models"], "run or serve"),
            ("acp", &[], "\"acp\""),
        ] {
            let error = scenario().for_cli(agent, &words(arguments)).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
