//! The testkit's fake agent as a process; see the library's module `fake`.

use std::env;
use std::io::{self, Write as _};
use std::process::exit;

use teamster_testkit::fake::{CLI_ENV, EXIT_SCRIPT_ERROR, SCENARIO_ENV, SCRIPT_ENV, Scenario, play, read_script};

fn main() {
    match run() {
        Ok(code) => exit(code),
        Err(error) => {
            _ = writeln!(io::stderr(), "the fake agent cannot play {SCRIPT_ENV} or {SCENARIO_ENV}: {error}");
            exit(EXIT_SCRIPT_ERROR);
        }
    }
}

fn run() -> io::Result<i32> {
    if let Ok(file) = env::var(SCENARIO_ENV) {
        let cli = env::var(CLI_ENV).map_err(io::Error::other)?;
        let scenario = Scenario::read(&std::fs::read_to_string(file)?).map_err(io::Error::other)?;
        let arguments: Vec<_> = env::args_os().skip(1).collect();
        return scenario.for_cli(&cli, &arguments).map_err(io::Error::other)?.run();
    }
    let script = env::var(SCRIPT_ENV).map_err(io::Error::other)?;
    play(&read_script(&script)?).map(|()| 0)
}
