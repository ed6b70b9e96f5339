//! How long runs take to start and to end.

use teamster::event::Event;
use teamster_benches::report::{Report, median, milliseconds};
use teamster_benches::scenario::{READY, exit_ns};
use teamster_benches::usage::{now_ns, wait_until_gone};

use crate::Host;

/// Runs one after the other. The first one starts the supervisor.
const ROUNDS: usize = 11;

/// From the call to the first event, and from the exit of the CLI to `done`.
pub(crate) async fn start(host: &Host) -> Report {
    let (mut firsts, mut dones, mut walls) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let began = now_ns();
        let mut run = host.run();
        let _first = run.next().await.expect("a first event");
        firsts.push(milliseconds(now_ns() - began));
        while run.next().await.is_some() {}
        let end = now_ns();
        dones.push(milliseconds(end.saturating_sub(exit_ns(&host.cli).expect("the CLI's exit"))));
        walls.push(milliseconds(end - began));
    }
    let cold = firsts.remove(0);
    Report::default()
        .with("cold_ms", cold)
        .with("warm_ms", median(firsts))
        .with("done_ms", median(dones))
        .with("wall_ms", median(walls))
}

/// From the abort of a tree that exits on SIGTERM to `done`.
pub(crate) async fn stop(host: &Host) -> Report {
    let (mut stops, mut ends) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let mut run = host.run();
        while let Some(event) = run.next().await {
            if matches!(event, Event::Text(delta) if delta.text == READY) {
                break;
            }
        }
        let began = now_ns();
        run.control().abort();
        while run.next().await.is_some() {}
        stops.push(milliseconds(now_ns() - began));
        wait_until_gone(&host.cli);
        ends.push(milliseconds(now_ns() - began));
    }
    Report::default().with("stop_ms", median(stops)).with("gone_ms", median(ends))
}

/// From the exit of a CLI whose grandchild keeps standard output open, to `done`.
pub(crate) async fn hold(host: &Host) -> Report {
    let mut run = host.run();
    while run.next().await.is_some() {}
    let late = now_ns().saturating_sub(exit_ns(&host.cli).expect("the CLI's exit"));
    Report::default().with("hold_ms", milliseconds(late))
}
