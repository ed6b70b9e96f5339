//! Links the command at a fixed address on Linux with glibc.
//!
//! A position-independent program of this size has about 60,000 relative relocations. The loader applies all of them at
//! each start, before `main`, and a run starts the program twice: as the command and as its supervisor. At a fixed
//! address the linker has applied them, and the pages are read from the file when they are used. The addresses of
//! the stack, the heap and all libraries stay random (docs/security.md).

#![expect(clippy::disallowed_macros, reason = "Cargo reads the instructions of a build script from its output")]

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = |name: &str| std::env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    if target("OS") == "linux" && target("ENV") == "gnu" {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
