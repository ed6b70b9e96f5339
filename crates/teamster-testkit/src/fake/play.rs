//! Plays a script in the current process, which must serve no other purpose.
//!
//! Reactions run on their own threads. They share stdout and stderr, whose locks keep the output of
//! each step together.

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

use super::script::{Child, Placement, Script, Signal, Step};
use super::stdin::Lines;
use super::{EXIT_SCRIPT_ERROR, SCRIPT_ENV};

/// Set in a child process. Its stdin is then a pipe on which it reports that it is ready. The value
/// is the child's placement.
const CHILD_ENV: &str = "TEAMSTER_FAKE_CHILD";

/// Bytes per write.
const WRITE_BYTES: usize = 64 * 1024;

/// The interval at which a fake agent checks for a file that it awaits.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Plays a script to its end.
///
/// # Errors
/// Fails if a step fails: nothing reads the output, or a file cannot be written.
pub fn play(script: &Script) -> io::Result<()> {
    if std::env::var_os(CHILD_ENV).is_some_and(|placement| placement == "session") {
        setsid()?;
    }
    Player::default().play(script)
}

/// One thread that plays a script.
#[derive(Clone, Debug, Default)]
struct Player {
    /// The index of the next stdin line that it has not examined.
    line: usize,
    /// The line that it found last.
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
                    thread::sleep(POLL_INTERVAL);
                }
                Ok(())
            }
            // Opening a FIFO for reading blocks until a writer opens it.
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
            Step::PlayNext { file, scripts } => match scripts.get(next_index(file)?).or(scripts.last()) {
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

    /// Waits for a line that contains this text. Returns `false` if stdin ends first.
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
        // Writes many copies at once: a loop over single lines is slower than the reader.
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
    // Starts reading now, not when the thread is scheduled.
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
        std::process::exit(EXIT_SCRIPT_ERROR);
    }
}

fn spawn(child: &Child) -> io::Result<()> {
    let (mut ready_reader, ready_writer) = io::pipe()?;
    let mut command = Command::new(std::env::current_exe()?);
    command.env(SCRIPT_ENV, child.script.to_json()).env(CHILD_ENV, "group").stdin(ready_writer);
    if !child.holds_stdout {
        command.stdout(Stdio::null());
    }
    match child.placement {
        Placement::Group => {}
        Placement::OwnGroup => _ = command.process_group(0),
        Placement::Session => _ = command.env(CHILD_ENV, "session"),
    }
    command.spawn()?;
    // The command holds the other end of the pipe, which would stay open after the child's exit.
    drop(command);
    if child.script.steps().contains(&Step::Ready) {
        // A child that exits before it is ready ends the wait as well.
        _ = ready_reader.read(&mut [0])?;
    }
    Ok(())
}

/// Returns how many times this file has been requested for the next index before.
fn next_index(file: &Path) -> io::Result<usize> {
    let mut file = OpenOptions::new().append(true).create(true).open(file)?;
    file.write_all(b".")?;
    // The position of this byte, even while other processes append to the file.
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
