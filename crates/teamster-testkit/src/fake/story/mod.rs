//! Stories: what an agent does turn by turn, in words that are no agent's own, told in the form of the CLI that is asked for.
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
mod calls;
mod claude;
mod claude_output;
mod codex;
mod codex_exec;
mod gemini;
mod opencode;
mod perform;
#[cfg(feature = "servers")]
mod serve;
mod version;

use std::ffi::OsString;
use std::io;

use serde::Deserialize;
use serde_json::{Map, Value};

use self::perform::{Tongue, perform};
pub use self::version::answer_version;

/// What an agent does, turn by turn. Each process begins with the first turn; after the last one, that is played again.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Story {
    turns: Vec<Turn>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Turn {
    steps: Vec<Beat>,
}

/// One thing that the agent does in a turn.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Beat {
    /// The model thinks, where its agent shows that.
    Think(String),
    /// A message of the model; `{prompt}` in it becomes the turn's prompt.
    Say(String),
    /// A command, by the agent's own tool for that.
    Run(Run),
    /// Another tool, by the agent's own name for it; of an MCP server: `mcp__SERVER__TOOL`.
    Tool(Use),
    WaitMs(u64),
    /// The turn fails with this status of the provider's.
    Fail(Fault),
    /// The process exits in mid-turn.
    Exit(i32),
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    command: String,
    #[serde(default)]
    output: String,
    /// The command's exit code.
    #[serde(default)]
    exit: i32,
    /// Whether the agent asks for leave first.
    #[serde(default)]
    ask: bool,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Use {
    name: String,
    #[serde(default)]
    input: Map<String, Value>,
    #[serde(default)]
    output: String,
    #[serde(default)]
    failed: bool,
    #[serde(default)]
    ask: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fault {
    status: u16,
    message: String,
}

/// Why a story cannot be told.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoryError {
    /// It is no TOML, or not of the form that is documented.
    #[error("it is no story: {0}")]
    Toml(#[from] toml::de::Error),
    /// It is no JSON, or not of the form that is documented.
    #[error("it is no story: {0}")]
    Json(#[from] serde_json::Error),
    /// It has no turn.
    #[error("it has no turn: [[turns]] with steps is needed")]
    Empty,
    /// No CLI of this agent's can be played.
    #[error("no agent {0:?} can be played: claude, codex, gemini or opencode")]
    Agent(String),
    /// The CLI has no form by these arguments that is played.
    #[error("{agent} is not played with these arguments: {known}")]
    Form {
        /// The agent.
        agent: &'static str,
        /// What is played.
        known: &'static str,
    },
    /// The agent has no such tool.
    #[error("turn {turn}: {agent} tells of no tool {name:?}: run, or a tool named {known}")]
    Tool {
        /// The turn, counted from 1.
        turn: usize,
        /// The agent.
        agent: &'static str,
        /// The tool.
        name: String,
        /// What it tells of.
        known: &'static str,
    },
}

impl Story {
    /// Reads a story in TOML, or in JSON, where it begins with a brace.
    ///
    /// # Errors
    /// When it is none.
    pub fn read(text: &str) -> Result<Self, StoryError> {
        let story: Self =
            if text.trim_start().starts_with('{') { serde_json::from_str(text)? } else { toml::from_str(text)? };
        if story.turns.is_empty() { Err(StoryError::Empty) } else { Ok(story) }
    }

    /// Finds the form of this agent's CLI that its arguments ask for.
    ///
    /// # Errors
    /// When that is not played, or cannot say what the story tells.
    pub fn told_by(self, agent: &str, arguments: &[OsString]) -> Result<Play, StoryError> {
        let arguments: Vec<_> = arguments.iter().map(|argument| argument.to_string_lossy().into_owned()).collect();
        let arguments = Arguments(arguments);
        let form = Form::of(agent, &arguments)?;
        form.check(&self)?;
        Ok(Play { story: self, form, arguments })
    }
}

/// A story and the form in which it is told.
#[derive(Clone, Debug)]
pub struct Play {
    story: Story,
    form: Form,
    arguments: Arguments,
}

impl Play {
    /// Plays it, and gives the process's exit code.
    ///
    /// # Errors
    /// When nobody reads what it says, or no server can be started.
    pub fn play(self) -> io::Result<i32> {
        let Self { story, form, arguments } = self;
        let mut tongue: Box<dyn Tongue> = match form {
            Form::Version(agent) => return version::print(agent),
            Form::Claude => Box::new(claude::Claude::live(&arguments)),
            Form::ClaudeOnce => Box::new(claude::Claude::one_shot(&arguments)),
            Form::CodexExec => Box::new(codex_exec::Exec::new(&arguments)),
            Form::CodexAppServer => Box::new(codex::AppServer::default()),
            Form::Gemini => Box::new(gemini::Gemini::new(&arguments)),
            Form::GeminiAcp => Box::new(acp::Acp::default()),
            Form::OpenCode => Box::new(opencode::OpenCode::new(&arguments)),
            #[cfg(feature = "servers")]
            Form::OpenCodeServe => Box::new(serve::Serve::start()?),
        };
        perform(&story.turns, tongue.as_mut())
    }
}

/// The forms of CLIs that are played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// The version, and nothing else.
    Version(version::Cli),
    Claude,
    ClaudeOnce,
    CodexExec,
    CodexAppServer,
    Gemini,
    GeminiAcp,
    OpenCode,
    #[cfg(feature = "servers")]
    OpenCodeServe,
}

impl Form {
    fn of(agent: &str, arguments: &Arguments) -> Result<Self, StoryError> {
        let cli = version::Cli::of(agent).ok_or_else(|| StoryError::Agent(agent.to_owned()))?;
        if version::is_asked(arguments.0.iter()) {
            return Ok(Self::Version(cli));
        }
        let has = |word: &str| arguments.has(word);
        let first = arguments.0.first().map(String::as_str);
        let wrong = |agent, known| Err(StoryError::Form { agent, known });
        match cli {
            version::Cli::Claude => {
                claude_output::check(arguments)?;
                match arguments.value("--input-format") {
                    Some("stream-json") => Ok(Self::Claude),
                    _ if has("-p") || has("--print") => Ok(Self::ClaudeOnce),
                    _ => wrong("claude", "-p (--print), or --input-format stream-json is needed"),
                }
            }
            version::Cli::Codex if first == Some("exec") => Ok(Self::CodexExec),
            version::Cli::Codex if first == Some("app-server") => Ok(Self::CodexAppServer),
            version::Cli::Codex => wrong("codex", "exec or app-server comes first"),
            version::Cli::Gemini if has("--acp") => Ok(Self::GeminiAcp),
            version::Cli::Gemini => {
                gemini::check(arguments)?;
                Ok(Self::Gemini)
            }
            version::Cli::OpenCode if first == Some("run") => Ok(Self::OpenCode),
            #[cfg(feature = "servers")]
            version::Cli::OpenCode if first == Some("serve") => Ok(Self::OpenCodeServe),
            version::Cli::OpenCode => wrong("opencode", "run or serve comes first"),
        }
    }

    /// Whether it can say all that the story tells: Codex has a form for each kind of tool.
    fn check(self, story: &Story) -> Result<(), StoryError> {
        if !matches!(self, Self::CodexExec | Self::CodexAppServer) {
            return Ok(());
        }
        for (at, turn) in story.turns.iter().enumerate() {
            for beat in &turn.steps {
                if let Beat::Tool(Use { name, .. }) = beat
                    && mcp(name).is_none()
                {
                    let (agent, known) = ("codex", "mcp__SERVER__TOOL");
                    return Err(StoryError::Tool { turn: at + 1, agent, name: name.clone(), known });
                }
            }
        }
        Ok(())
    }
}

/// The server and the tool of `mcp__SERVER__TOOL`.
fn mcp(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix("mcp__")?.split_once("__")
}

/// What the CLI was started with.
#[derive(Clone, Debug)]
struct Arguments(Vec<String>);

impl Arguments {
    /// The value of a flag, given beside it or with an equals sign.
    fn value(&self, flag: &str) -> Option<&str> {
        let mut arguments = self.0.iter().map(String::as_str);
        while let Some(argument) = arguments.next() {
            match argument.strip_prefix(flag) {
                Some("") => return arguments.next(),
                Some(rest) if rest.starts_with('=') => return rest.get(1..),
                _ => {}
            }
        }
        None
    }

    fn has(&self, word: &str) -> bool {
        self.0.iter().any(|argument| argument == word)
    }

    /// The first argument that is no flag and belongs to none, given the flags without a value, and those with any number
    /// of values. Every other flag has one value.
    fn positional(&self, alone: &[&str], many: &[&str]) -> Option<&str> {
        let mut arguments = self.0.iter().map(String::as_str).peekable();
        while let Some(argument) = arguments.next() {
            if argument == "--" {
                return arguments.next();
            }
            if argument == "-" || !argument.starts_with('-') {
                return Some(argument);
            }
            let mut take = || arguments.next_if(|next| !next.starts_with('-')).is_some();
            if many.contains(&argument) {
                while take() {}
            } else if !alone.contains(&argument) && !argument.contains('=') {
                take();
            }
        }
        None
    }

    /// The argument after this one.
    fn after(&self, word: &str) -> Option<&str> {
        let at = self.0.iter().position(|argument| argument == word)?;
        self.0.get(at + 1).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_story_is_toml_or_json_and_what_is_none_is_named() {
        let toml =
            "[[turns]]\nsteps = [{ say = \"Hi\" }, { waitMs = 5 }, { fail = { status = 500, message = \"no\" } }]\n";
        let json =
            r#"{"turns": [{"steps": [{"say": "Hi"}, {"waitMs": 5}, {"fail": {"status": 500, "message": "no"}}]}]}"#;
        assert_eq!(Story::read(toml).unwrap(), Story::read(json).unwrap());
        for (text, said) in [
            ("turns = []", "[[turns]]"),
            ("[[turns]]\nsteps = [{ sing = \"la\" }]", "sing"),
            ("[[turns]]\nsteps = [{ run = { comand = \"ls\" } }]", "comand"),
            ("{\"turns\": 3}", "3"),
        ] {
            let error = Story::read(text).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn a_prompt_is_found_between_flags_and_their_values() {
        let words = |words: &[&str]| Arguments(words.iter().map(|word| (*word).to_owned()).collect());
        for (arguments, prompt) in [
            (&["-p", "hi"][..], Some("hi")),
            (&["--model", "opus", "-p", "hi"], Some("hi")),
            (&["--model=opus", "hi", "there"], Some("hi")),
            (&["--tools", "Bash", "Read", "-p", "hi"], Some("hi")),
            (&["-p", "--", "--help"], Some("--help")),
            (&["-p", "--tools", "Bash", "hi"], None),
            (&["-p", "--model", "opus"], None),
        ] {
            assert_eq!(words(arguments).positional(&["-p"], &["--tools"]), prompt, "{arguments:?}");
        }
    }

    #[test]
    fn arguments_choose_the_form_and_what_is_not_played_is_refused() {
        let story = || Story::read("[[turns]]\nsteps = [{ tool = { name = \"Read\" } }]").unwrap();
        let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        assert_eq!(story().told_by("gemini", &words(&["--acp"])).unwrap().form, Form::GeminiAcp);
        for (agent, arguments, said) in [
            ("codex", &["exec"][..], "\"Read\""),
            ("codex", &["login"], "exec or app-server"),
            ("claude", &["--resume"], "--input-format"),
            ("claude", &["-p", "--output-format", "xml"], "text, json or stream-json"),
            ("gemini", &[], "--acp"),
            ("gemini", &["-o", "xml"], "text, json or stream-json"),
            ("opencode", &["models"], "run or serve"),
            ("acp", &[], "\"acp\""),
        ] {
            let error = story().told_by(agent, &words(arguments)).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
