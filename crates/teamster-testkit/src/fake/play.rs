//! Plays a script, in a process that is there for nothing else.
//!
//! Reactions run in threads of their own. They share stdout and stderr, whose locks keep the output of a step together.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Read as _, Seek as _, Write};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustix::process::{getpid, kill_process, setsid};
use serde_json::{Map, Value};
use signal_hook::iterator::Signals;

use super::script::{Child, Home, Script, Signal, Step};
use super::stdin::Lines;
use super::{EXIT_BROKEN, SCRIPT_ENV};

/// Set in a child: its stdin is a pipe on which it tells its parent that it is ready, and its home may be a session.
const CHILD_ENV: &str = "TEAMSTER_FAKE_CHILD";

/// How much is written at a time.
const WRITE_BYTES: usize = 64 * 1024;

/// How often a fake looks for a file that it waits for.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Plays a script to its end.
///
/// # Errors
/// When a step cannot be done: nobody reads the output, or a file cannot be written.
pub fn play(script: &Script) -> io::Result<()> {
    if std::env::var_os(CHILD_ENV).is_some_and(|home| home == "session") {
        setsid()?;
    }
    Player::default().play(script)
}

/// One thread of the play.
#[derive(Clone, Debug, Default)]
struct Player {
    /// The next line of stdin that it has not looked at.
    line: usize,
    /// The one that it found last.
    found: Arc<str>,
}

impl Player {
    fn play(&mut self, script: &Script) -> io::Result<()> {
        script.steps().iter().try_for_each(|step| self.step(step))
    }

    fn step(&mut self, step: &Step) -> io::Result<()> {
        match step {
            Step::Line(line) => write_whole(io::stdout().lock(), format!("{line}\n").as_bytes()),
            Step::Text(text) => write_whole(io::stdout().lock(), text.as_bytes()),
            Step::Bytes(bytes) => write_whole(io::stdout().lock(), bytes),
            Step::Burst { count, line } => write_copies(io::stdout().lock(), *count, &line.to_string()),
            Step::LongLine(bytes) => write_long_line(*bytes),
            Step::Stderr(text) => write_whole(io::stderr().lock(), text.as_bytes()),
            Step::StderrLines { count, line } => write_copies(io::stderr().lock(), *count, line),
            Step::SleepMs(milliseconds) => {
                thread::sleep(Duration::from_millis(*milliseconds));
                Ok(())
            }
            Step::AwaitFile(file) => {
                while !file.exists() {
                    thread::sleep(LOOK_EVERY);
                }
                Ok(())
            }
            // The system lets a reader in when there is a writer.
            Step::AwaitWriter(fifo) => File::open(fifo).map(drop),
            Step::AwaitLine(containing) => {
                self.find_line(containing);
                Ok(())
            }
            Step::Echo(members) => {
                let mut line: Map<String, Value> = serde_json::from_str(&self.found)?;
                line.extend(members.clone());
                write_whole(io::stdout().lock(), format!("{}\n", Value::Object(line)).as_bytes())
            }
            Step::ReadToEnd => {
                Lines::of_stdin().wait_for_end();
                Ok(())
            }
            Step::CloseStdin => Ok(rustix::stdio::dup2_stdin(File::open("/dev/null")?)?),
            Step::CloseStdout => Ok(rustix::stdio::dup2_stdout(OpenOptions::new().write(true).open("/dev/null")?)?),
            Step::OnSignal { signal, play } => on_signal(*signal, play.clone()),
            Step::OnLine { containing, play } => {
                on_line(self.clone(), containing.clone(), play.clone());
                Ok(())
            }
            Step::InTurn { file, scripts } => match scripts.get(turn(file)?).or(scripts.last()) {
                Some(script) => self.play(script),
                None => Ok(()),
            },
            Step::Spawn(child) => spawn(child),
            Step::Ready => {
                if std::env::var_os(CHILD_ENV).is_some() {
                    rustix::io::write(io::stdin(), b"r")?;
                }
                Ok(())
            }
            Step::WritePid { file, name } => write_pid(file, name),
            Step::Exit(code) => std::process::exit(*code),
            Step::Raise(signal) => Ok(kill_process(getpid(), raw(*signal))?),
            Step::Hang => loop {
                thread::park();
            },
        }
    }

    /// Waits for a line with this text; `false` when stdin ended before it.
    fn find_line(&mut self, containing: &str) -> bool {
        while let Some(line) = Lines::of_stdin().wait_for(self.line) {
            self.line += 1;
            if line.contains(containing) {
                self.found = line;
                return true;
            }
        }
        false
    }
}

fn write_whole(mut stream: impl Write, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes)?;
    stream.flush()
}

fn write_copies(stream: impl Write, count: u64, line: &str) -> io::Result<()> {
    let mut stream = BufWriter::with_capacity(WRITE_BYTES, stream);
    if !line.contains("{n}") {
        let copy = format!("{line}\n");
        // As many as fit at a time: a loop over single lines is slower than whoever reads them.
        let at_once = (WRITE_BYTES / copy.len()).max(1) as u64;
        let copies = copy.repeat((WRITE_BYTES / copy.len()).max(1));
        for _ in 0..count / at_once {
            stream.write_all(copies.as_bytes())?;
        }
        for _ in 0..count % at_once {
            stream.write_all(copy.as_bytes())?;
        }
        return stream.flush();
    }
    for number in 0..count {
        writeln!(stream, "{}", line.replace("{n}", &number.to_string()))?;
    }
    stream.flush()
}

fn write_long_line(bytes: u64) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    io::copy(&mut io::repeat(b'x').take(bytes), &mut stdout)?;
    write_whole(stdout, b"\n")
}

fn on_signal(signal: Signal, play: Script) -> io::Result<()> {
    let mut signals = Signals::new([raw(signal).as_raw()])?;
    thread::spawn(move || {
        for _ in signals.forever() {
            or_exit(Player::default().play(&play));
        }
    });
    Ok(())
}

fn on_line(mut player: Player, containing: String, play: Script) {
    // It begins to read now, not when the thread comes to it.
    Lines::of_stdin();
    thread::spawn(move || {
        while player.find_line(&containing) {
            or_exit(player.play(&play));
        }
    });
}

fn or_exit(played: io::Result<()>) {
    if let Err(error) = played {
        _ = writeln!(io::stderr(), "a reaction of the fake agent failed: {error}");
        std::process::exit(EXIT_BROKEN);
    }
}

fn spawn(child: &Child) -> io::Result<()> {
    let (mut told, tells) = io::pipe()?;
    let mut command = Command::new(std::env::current_exe()?);
    command.env(SCRIPT_ENV, child.script.to_json()).env(CHILD_ENV, "group").stdin(tells);
    if !child.holds_stdout {
        command.stdout(Stdio::null());
    }
    match child.home {
        Home::Group => {}
        Home::OwnGroup => _ = command.process_group(0),
        Home::Session => _ = command.env(CHILD_ENV, "session"),
    }
    command.spawn()?;
    // It holds the other end of the pipe, which would keep it from ending with the child.
    drop(command);
    if child.script.steps().contains(&Step::Ready) {
        // A child that ends before it is ready is as ready as it gets.
        _ = told.read(&mut [0])?;
    }
    Ok(())
}

/// How often a file has been asked for its turn before.
fn turn(file: &Path) -> io::Result<usize> {
    let mut file = OpenOptions::new().append(true).create(true).open(file)?;
    file.write_all(b".")?;
    // Where this byte came to stand, however many others write at the same time.
    let end = file.stream_position()?;
    Ok(usize::try_from(end.saturating_sub(1)).unwrap_or(usize::MAX))
}

fn write_pid(file: &Path, name: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).create(true).open(file)?;
    file.write_all(format!("{name} {}\n", std::process::id()).as_bytes())
}

fn raw(signal: Signal) -> rustix::process::Signal {
    use rustix::process::Signal as Raw;
    match signal {
        Signal::Hup => Raw::HUP,
        Signal::Int => Raw::INT,
        Signal::Term => Raw::TERM,
        Signal::Abrt => Raw::ABORT,
        Signal::Kill => Raw::KILL,
        Signal::Stop => Raw::STOP,
    }
}
