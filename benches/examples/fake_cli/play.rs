//! Plays the scenario of a turn in the form of a protocol.

use std::env;
use std::process::{Child, Command, Stdio};

use teamster_benches::scenario::{READY, Scenario};
use teamster_benches::usage::{now_ns, sleep_until};

use crate::output::Output;

/// Bytes of a burst that are made before it.
const BLOCK: usize = 256 * 1024;

/// One of so many deltas ends with a line break, which JSON writes as an escape.
const LINE: u64 = 8;

/// Returns the text of a delta, as JSON writes it.
fn text_of(scenario: &Scenario, number: u64) -> String {
    let line_break = if number % LINE == LINE - 1 { r"\n" } else { "" };
    scenario.text() + line_break
}

/// Writes what follows the last delta, with the text of all deltas.
fn end(wire: &impl Wire, out: &mut Output, scenario: &Scenario) {
    let deltas = scenario.deltas;
    // A long text is made in pieces.
    let (length, times) = if deltas.is_multiple_of(LINE) { (LINE, deltas / LINE) } else { (deltas, 1) };
    let piece: String = (0..length).map(|number| text_of(scenario, number)).collect();
    wire.end(out, &piece, times);
}

/// The lines of a protocol. Texts are valid inside JSON strings.
pub(crate) trait Wire {
    /// Writes what precedes the first delta or tool call.
    fn start(&self, out: &mut Output);
    /// Writes the start of a tool call.
    fn tool(&self, out: &mut Output, number: u64);
    /// Writes the result of a tool call: `piece`, so many times.
    fn tool_result(&self, out: &mut Output, number: u64, piece: &str, times: u64);
    /// Writes what precedes the deltas.
    fn open_text(&self, out: &mut Output);
    /// Returns the line of a delta.
    fn delta(&self, number: u64, text: &str) -> String;
    /// Writes what follows the last delta, with the whole text: `piece`, so many times.
    fn end(&self, out: &mut Output, piece: &str, times: u64);
}

/// Plays a turn. Returns the child processes, which exit when they are dropped.
pub(crate) fn turn(wire: &impl Wire, out: &mut Output, scenario: &Scenario) -> Vec<Child> {
    let children = children(scenario);
    wire.start(out);
    tools(wire, out, scenario);
    wire.open_text(out);
    out.flush();
    if scenario.rate > 0 {
        paced(wire, out, scenario);
    } else {
        burst(wire, out, scenario);
    }
    if scenario.wait {
        out.line(&wire.delta(scenario.deltas, READY));
    } else {
        end(wire, out, scenario);
    }
    out.flush();
    children
}

#[expect(clippy::zombie_processes, reason = "the holder outlives this program")]
fn children(scenario: &Scenario) -> Vec<Child> {
    let program = env::current_exe().expect("the program's file is there");
    if scenario.hold_stdout_s > 0 {
        let mut holder = Command::new(&program);
        holder.arg("--hold").arg(scenario.hold_stdout_s.to_string()).stdin(Stdio::null());
        holder.spawn().expect("a child starts");
    }
    let mut child = Command::new(program);
    child.arg("--child").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    (0..scenario.children).map(|_| child.spawn().expect("a child starts")).collect()
}

fn tools(wire: &impl Wire, out: &mut Output, scenario: &Scenario) {
    let piece = "0123456789abcdef".repeat(64);
    let times = scenario.tool_bytes.div_ceil(1024);
    for number in 0..scenario.tools {
        wire.tool(out, number);
        if !scenario.tools_overlap {
            wire.tool_result(out, number, &piece, times);
        }
    }
    if scenario.tools_overlap {
        for number in 0..scenario.tools {
            wire.tool_result(out, number, &piece, times);
        }
    }
}

/// Writes the deltas as fast as they are read. Their lines are made before the first is written.
fn burst(wire: &impl Wire, out: &mut Output, scenario: &Scenario) {
    let (mut block, mut ends) = (Vec::new(), Vec::new());
    for number in 0..scenario.deltas {
        block.extend_from_slice(wire.delta(number, &text_of(scenario, number)).as_bytes());
        block.push(b'\n');
        ends.push(block.len());
        if block.len() >= BLOCK && (number + 1).is_multiple_of(LINE) {
            break;
        }
    }
    let mut left = usize::try_from(scenario.deltas).expect("so many deltas");
    while left > 0 {
        let lines = left.min(ends.len());
        let end = ends.get(lines - 1).copied().unwrap_or_default();
        out.write(block.get(..end).unwrap_or_default());
        left -= lines;
    }
}

/// Writes deltas at a rate, each with the time of its write.
fn paced(wire: &impl Wire, out: &mut Output, scenario: &Scenario) {
    let interval = 1_000_000_000 / scenario.rate;
    let mut due = now_ns();
    for number in 0..scenario.deltas {
        due += interval;
        sleep_until(due);
        out.line(&wire.delta(number, &now_ns().to_string()));
        out.flush();
    }
}
