//! The command on a terminal of a given size, with its screen as text.

pub(crate) use teamster_terminal::{SIZES, Size, Terminal};
