//! CLIs that cannot be started.

use std::fs;

use crate::fault::{Cli, Fault};
use crate::place::Place;
use crate::row::{Row, error};

/// The beginning of a 64-bit little-endian ELF program, up to the architecture.
const ELF: &[u8] = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0";

/// `AArch64` and x86-64, as ELF names them.
const MACHINES: [(&str, u16); 2] = [("aarch64", 0xb7), ("x86_64", 0x3e)];

pub(super) fn rows() -> Vec<Row> {
    vec![
        Row::new("missing", "the binary is missing", |place| Fault::new(Cli::File(place.path("nothing")), ""))
            .everywhere(error("CLI_NOT_FOUND", 5)),
        Row::new("not_executable", "the binary is not executable", |place| {
            let path = place.path("cli");
            _ = fs::write(&path, "#!/bin/sh\n");
            Fault::new(Cli::File(path), "")
        })
        .everywhere(error("SPAWN_FAILED", 5)),
        Row::new("wrong_architecture", "the binary is for another architecture", |place| file(place, &foreign()))
            .everywhere(error("SPAWN_FAILED", 5)),
        Row::new("no_shebang", "a script without a shebang", |place| file(place, b"echo hello\n"))
            .everywhere(error("SPAWN_FAILED", 5)),
    ]
}

fn file(place: &Place, content: &[u8]) -> Fault {
    // A file that cannot be written is missing, which the cell finds.
    let path = place.program("cli", content).unwrap_or_default();
    Fault::new(Cli::File(path), "")
}

/// A program of the machine that this is not.
fn foreign() -> Vec<u8> {
    let other = MACHINES.iter().find(|(name, _)| *name != std::env::consts::ARCH).map_or(0, |(_, number)| *number);
    let mut program = ELF.to_vec();
    program.extend(other.to_le_bytes());
    program.resize(4096, 0);
    program
}
