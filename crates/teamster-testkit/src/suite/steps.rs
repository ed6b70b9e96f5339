//! The inputs of a protocol.

use proptest::prelude::*;
use proptest::sample::Index;

/// An input of a protocol.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Line(Vec<u8>),
    Interrupt,
    /// The protocol's timer elapses, if it is set.
    TimerElapsed,
}

/// Generates a line of the CLI (whole, truncated or damaged), any bytes, any JSON, an interrupt, or the end of the protocol's timer.
pub(super) fn step(lines: Vec<Vec<u8>>) -> BoxedStrategy<Step> {
    let bytes = proptest::collection::vec(any::<u8>(), 0..60).prop_map(Step::Line);
    let json = r#"\{"type":"[a-z_]{1,12}","[a-z]{1,8}":("[ -~]{0,20}"|[0-9]{1,20}|null|\[\]|\{\})\}"#;
    let json = json.prop_map(|text: String| Step::Line(text.into_bytes()));
    let others = prop_oneof![Just(Step::Interrupt), Just(Step::TimerElapsed)];
    if lines.is_empty() {
        return prop_oneof![4 => bytes, 4 => json, 2 => others].boxed();
    }
    let damaged_lines = (proptest::sample::select(lines), any::<Index>(), any::<u8>(), 0_u8..4).prop_map(damaged);
    prop_oneof![8 => damaged_lines, 1 => bytes, 2 => json, 2 => others].boxed()
}

fn damaged((mut line, at, byte, how): (Vec<u8>, Index, u8, u8)) -> Step {
    if !line.is_empty() {
        let at = at.index(line.len());
        match how {
            0 => line.truncate(at),
            1 => line.insert(at, byte),
            _ => {}
        }
    }
    Step::Line(line)
}
