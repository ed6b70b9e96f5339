//! CLIs that cannot be started.

use std::fs;

use crate::cell_env::CellEnv;
use crate::fault::{Cli, Fault};
use crate::row::{Row, error};

/// The start of a 64-bit little-endian ELF program, up to the architecture.
const ELF: &[u8] = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0";

/// `AArch64` and x86-64, as ELF names them.
const MACHINES: [(&str, u16); 2] = [("aarch64", 0xb7), ("x86_64", 0x3e)];

pub(super) fn rows() -> Vec<Row> {
    vec![
        Row::new("missing", "the binary is missing", |cell| Fault::new(Cli::File(cell.path("nothing")), ""))
            .everywhere(error("CLI_NOT_FOUND", 5)),
        Row::new("not_executable", "the binary is not executable", |cell| {
            let path = cell.path("cli");
            _ = fs::write(&path, "#!/bin/sh\n");
            Fault::new(Cli::File(path), "")
        })
        .everywhere(error("SPAWN_FAILED", 5)),
        Row::new("wrong_architecture", "the binary is for another architecture", |cell| file(cell, &foreign()))
            .everywhere(error("SPAWN_FAILED", 5)),
        Row::new("no_shebang", "a script without a shebang", |cell| file(cell, b"echo hello\n"))
            .everywhere(error("SPAWN_FAILED", 5)),
    ]
}

fn file(cell: &CellEnv, content: &[u8]) -> Fault {
    // If the file cannot be written, it is missing, and the cell fails.
    let path = cell.program("cli", content).unwrap_or_default();
    Fault::new(Cli::File(path), "")
}

/// Returns a program for another architecture.
fn foreign() -> Vec<u8> {
    let other = MACHINES.iter().find(|(name, _)| *name != std::env::consts::ARCH).map_or(0, |(_, number)| *number);
    let mut program = ELF.to_vec();
    program.extend(other.to_le_bytes());
    program.resize(4096, 0);
    program
}
