//! `gateway TEAMSTER FAKE_CLI`: what `teamster serve` costs, seen from its clients. `cargo xtask bench gateway` starts it.

#![expect(
    clippy::cast_precision_loss,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "a measurement"
)]

mod client;
mod figures;
mod process;

use std::path::PathBuf;

use process::Programs;

fn main() {
    let mut args = std::env::args_os().skip(1).map(PathBuf::from);
    let programs =
        Programs { teamster: args.next().expect("the program teamster"), fake_cli: args.next().expect("the fake CLI") };
    // The client of HTTP needs it, although no call here uses TLS.
    rustls::crypto::ring::default_provider().install_default().expect("no other one is installed");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        println!("| figure | measured |\n| --- | --: |");
        figures::accepted(&programs).await;
        figures::first_event(&programs).await;
        figures::streaming(&programs).await;
        figures::memory(&programs).await;
        figures::log_size(&programs).await;
    });
}
