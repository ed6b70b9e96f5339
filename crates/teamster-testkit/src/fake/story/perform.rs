//! Plays a story in any form: one loop over what the host wants and what the story tells.
//!
//! What a host orders in mid-turn is heard between two steps and while one waits.

use std::io::{self, Write as _};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use super::{Beat, Fault, Run, Turn, Use};
use crate::fake::stdin::{Lines, Next};

/// What the host wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// A turn.
    Prompt(String),
    /// The end of the turn.
    Interrupt,
    /// The call that was asked for is allowed, or it is not.
    Answer(bool),
    /// Nothing until then.
    Nothing,
    /// Nothing any more.
    End,
}

/// How a form of a CLI speaks and hears.
pub(super) trait Tongue {
    /// Waits for what the host wants, until then at most. What else it says is answered meanwhile.
    fn hear(&mut self, until: Option<Instant>) -> io::Result<Heard>;

    /// The tool that runs commands.
    fn shell(&self) -> &'static str;

    fn begin(&mut self, prompt: &str) -> io::Result<()>;

    fn think(&mut self, text: &str) -> io::Result<()>;

    fn say(&mut self, text: &str) -> io::Result<()>;

    /// A call of a tool begins.
    fn call(&mut self, call: &Call) -> io::Result<()>;

    /// Asks for leave, if there is anybody who could give it.
    fn ask(&mut self, call: &Call) -> io::Result<Asked>;

    /// What came of the call.
    fn result(&mut self, call: &Call, outcome: Outcome<'_>) -> io::Result<()>;

    /// The turn is over.
    fn end(&mut self, end: &End) -> io::Result<()>;

    /// The exit code, when the host wants nothing any more.
    fn exit_code(&self) -> i32;
}

/// A call of a tool.
#[derive(Clone, Debug)]
pub(super) struct Call {
    /// Another one for each call of the process.
    pub(super) id: String,
    /// The agent's own name for the tool.
    pub(super) name: String,
    pub(super) input: Map<String, Value>,
    /// Whether it is of a command.
    pub(super) is_command: bool,
}

impl Call {
    /// The command that it runs.
    pub(super) fn command(&self) -> &str {
        self.input.get("command").and_then(Value::as_str).unwrap_or_default()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Waiting,
    Nobody,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome<'a> {
    /// It gave this; with the exit code of a command, or 1 if it failed.
    Done {
        output: &'a str,
        exit: i32,
    },
    Denied,
}

/// How a turn ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    Well,
    Interrupted,
    Failed { status: u16, message: String },
}

/// Plays the turns, each when its prompt comes. Gives the exit code.
pub(super) fn perform(turns: &[Turn], tongue: &mut dyn Tongue) -> io::Result<i32> {
    let mut upcoming = turns.iter();
    let mut turn = upcoming.next();
    let mut calls = 0;
    loop {
        match tongue.hear(None)? {
            Heard::Prompt(prompt) => {
                let steps = turn.map(|turn| turn.steps.as_slice()).unwrap_or_default();
                tongue.begin(&prompt)?;
                match play(steps, &prompt, &mut calls, tongue)? {
                    Played::Exit(code) => return Ok(code),
                    Played::Turn(end) => tongue.end(&end)?,
                }
                turn = upcoming.next().or(turn);
            }
            Heard::End => return Ok(tongue.exit_code()),
            Heard::Interrupt | Heard::Answer(_) | Heard::Nothing => {}
        }
    }
}

enum Played {
    Turn(End),
    Exit(i32),
}

fn play(steps: &[Beat], prompt: &str, calls: &mut u32, tongue: &mut dyn Tongue) -> io::Result<Played> {
    for step in steps {
        if is_interrupted(tongue, Instant::now())? {
            return Ok(Played::Turn(End::Interrupted));
        }
        match step {
            Beat::Think(text) => tongue.think(text)?,
            Beat::Say(text) => tongue.say(&text.replace("{prompt}", prompt))?,
            Beat::WaitMs(milliseconds) => {
                let until = Instant::now() + Duration::from_millis(*milliseconds);
                if is_interrupted(tongue, until)? {
                    return Ok(Played::Turn(End::Interrupted));
                }
            }
            Beat::Run(_) | Beat::Tool(_) => {
                *calls += 1;
                if !uses(step, *calls, tongue)? {
                    return Ok(Played::Turn(End::Interrupted));
                }
            }
            Beat::Fail(Fault { status, message }) => {
                return Ok(Played::Turn(End::Failed { status: *status, message: message.clone() }));
            }
            Beat::Exit(code) => return Ok(Played::Exit(*code)),
        }
    }
    Ok(Played::Turn(End::Well))
}

/// Uses a tool; `false` if the turn was interrupted meanwhile.
fn uses(step: &Beat, number: u32, tongue: &mut dyn Tongue) -> io::Result<bool> {
    let id = format!("call_{number}");
    let (call, output, exit, ask) = match step {
        Beat::Run(Run { command, output, exit, ask }) => {
            let input = Map::from_iter([("command".to_owned(), command.as_str().into())]);
            (Call { id, name: tongue.shell().to_owned(), input, is_command: true }, output, *exit, *ask)
        }
        Beat::Tool(Use { name, input, output, failed, ask }) => {
            let call = Call { id, name: name.clone(), input: input.clone(), is_command: false };
            (call, output, i32::from(*failed), *ask)
        }
        _ => return Ok(true),
    };
    tongue.call(&call)?;
    let allowed = match ask.then(|| tongue.ask(&call)).transpose()? {
        None => true,
        Some(Asked::Nobody) => false,
        Some(Asked::Waiting) => loop {
            match tongue.hear(None)? {
                Heard::Answer(allowed) => break allowed,
                Heard::Interrupt => return Ok(false),
                // Nobody can answer any more.
                Heard::End => break false,
                Heard::Prompt(_) | Heard::Nothing => {}
            }
        },
    };
    let outcome = if allowed { Outcome::Done { output, exit } } else { Outcome::Denied };
    tongue.result(&call, outcome)?;
    Ok(true)
}

/// Listens for so long; tells whether the host wants the turn to end.
fn is_interrupted(tongue: &mut dyn Tongue, until: Instant) -> io::Result<bool> {
    loop {
        match tongue.hear(Some(until))? {
            Heard::Interrupt => return Ok(true),
            Heard::Nothing => return Ok(false),
            Heard::End => {
                std::thread::sleep(until.saturating_duration_since(Instant::now()));
                return Ok(false);
            }
            Heard::Prompt(_) | Heard::Answer(_) => {}
        }
    }
}

/// The lines of JSON that come on standard input, one after the other.
#[derive(Debug, Default)]
pub(super) struct Ear {
    line: usize,
}

/// A line that came, or why none did.
enum Line {
    Json(Value),
    Late,
    End,
}

impl Ear {
    /// The next line that is JSON.
    fn next(&mut self, until: Option<Instant>) -> Line {
        loop {
            match Lines::of_stdin().next(self.line, until) {
                Next::Line(line) => {
                    self.line += 1;
                    if let Ok(value) = serde_json::from_str(&line) {
                        return Line::Json(value);
                    }
                }
                Next::Late => return Line::Late,
                Next::End => return Line::End,
            }
        }
    }
}

/// What the next line of JSON means to a tongue that has this ear; a line that means nothing is passed over.
pub(super) fn hear_line<T>(
    tongue: &mut T,
    until: Option<Instant>,
    ear: fn(&mut T) -> &mut Ear,
    meaning: fn(&mut T, &Value) -> io::Result<Option<Heard>>,
) -> io::Result<Heard> {
    loop {
        match ear(tongue).next(until) {
            Line::Late => return Ok(Heard::Nothing),
            Line::End => return Ok(Heard::End),
            Line::Json(line) => {
                if let Some(heard) = meaning(tongue, &line)? {
                    return Ok(heard);
                }
            }
        }
    }
}

/// What a one-shot form hears: all of standard input is its prompt, or an argument is.
#[derive(Debug, Default)]
pub(super) struct Once {
    pub(super) argument: Option<String>,
    heard: bool,
}

impl Once {
    pub(super) fn of(argument: Option<&str>) -> Self {
        Self { argument: argument.map(str::to_owned), heard: false }
    }

    pub(super) fn hear(&mut self, until: Option<Instant>) -> Heard {
        if std::mem::replace(&mut self.heard, true) {
            return match until {
                Some(until) => {
                    std::thread::sleep(until.saturating_duration_since(Instant::now()));
                    Heard::Nothing
                }
                None => Heard::End,
            };
        }
        Heard::Prompt(self.argument.take().unwrap_or_else(|| Lines::of_stdin().all()))
    }
}

/// Writes a line of JSON.
pub(super) fn write(line: &Value) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}")?;
    stdout.flush()
}

/// Pieces in which a model says a text.
pub(super) fn pieces(text: &str) -> impl Iterator<Item = String> {
    let characters: Vec<char> = text.chars().collect();
    let pieces: Vec<_> = characters.chunks(8).map(|piece| piece.iter().collect()).collect();
    pieces.into_iter()
}

/// What a text of the user's in one of the protocols' lists of blocks says.
pub(super) fn text_of(blocks: &Value) -> String {
    let blocks = blocks.as_array().into_iter().flatten();
    let mut texts = blocks.filter_map(|block| block.get("text")?.as_str());
    texts.rfind(|text| !text.is_empty()).unwrap_or_default().to_owned()
}

/// What stands at this place; null where nothing does.
pub(super) fn at<'a>(value: &'a Value, pointer: &str) -> &'a Value {
    value.pointer(pointer).unwrap_or(&Value::Null)
}

/// Sets a member of an object.
pub(super) fn put(value: &mut Value, name: &str, new: Value) {
    if let Some(fields) = value.as_object_mut() {
        fields.insert(name.to_owned(), new);
    }
}
