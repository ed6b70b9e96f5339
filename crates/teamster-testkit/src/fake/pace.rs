//! The speed of a playback.

use std::time::Duration;

/// The speed at which a recording is played.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// Without pauses.
    Immediate,
    /// This many times as fast as recorded. The factor must be greater than zero.
    Factor(f64),
}

impl Pace {
    /// Returns the pause between two times of the recording, in milliseconds since its start.
    pub(super) fn since(self, last: f64, now: f64) -> Duration {
        match self {
            Self::Immediate => Duration::ZERO,
            Self::Factor(times) => Duration::try_from_secs_f64((now - last) / 1000.0 / times).unwrap_or_default(),
        }
    }
}
