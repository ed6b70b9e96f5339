//! The testkit's fake agent as a process; see the library's module `fake`.

use std::env;
use std::io::{self, Write as _};
use std::process::exit;

use teamster_testkit::fake::{EXIT_SCRIPT_ERROR, SCRIPT_ENV, play, read_script};

fn main() {
    if let Err(error) = run() {
        _ = writeln!(io::stderr(), "the fake agent cannot play its script ({SCRIPT_ENV}): {error}");
        exit(EXIT_SCRIPT_ERROR);
    }
}

fn run() -> io::Result<()> {
    let script = env::var(SCRIPT_ENV).map_err(io::Error::other)?;
    play(&read_script(&script)?)
}
