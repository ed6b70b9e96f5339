//! The figures, each with a gateway of its own.

use std::time::{Duration, Instant};

use teamster_benches::scenario::Scenario;

use crate::client::Client;
use crate::process::{GatewayProcess, Programs};

/// The clients that send messages at the same time.
const SENDERS: usize = 16;

/// The messages whose time to the first event is measured.
const MESSAGES: usize = 500;

/// The clients that read one conversation at the same time.
const READERS: usize = 20;

/// The tool calls of the turn that they read. Each makes two events.
const TOOLS: u64 = 20_000;

/// The messages and the deltas of an answer of a day of chat.
const DAY: (usize, u64) = (1_000, 60);

fn claude() -> Scenario {
    Scenario { agent: "claude".to_owned(), deltas: 1, ..Scenario::default() }
}

fn row(figure: &str, measured: &str) {
    println!("| {figure} | {measured} |");
}

/// Accepted messages a second. The agents never end their turns, so that nothing else writes.
pub(crate) async fn accepted(programs: &Programs) {
    let scenario = Scenario { wait: true, ..claude() };
    for senders in [1, SENDERS] {
        let gateway = GatewayProcess::start(programs, &scenario, &[("max_running", "1")]);
        let client = Client::new(&gateway);
        let conversations = Client::each(SENDERS, (0..senders).map(|_| client.conversation())).await;
        let began = Instant::now();
        let counts = conversations.iter().map(|conversation| send_for(&client, conversation, Duration::from_secs(5)));
        let total: u32 = Client::each(senders, counts).await.into_iter().sum();
        let rate = f64::from(total) / began.elapsed().as_secs_f64();
        row(&format!("accepted messages/s, each fsynced, {senders} clients"), &format!("{rate:.0}"));
    }
}

async fn send_for(client: &Client, conversation: &str, time: Duration) -> u32 {
    let end = Instant::now() + time;
    let mut count = 0;
    while Instant::now() < end {
        client.send(conversation, "hello").await;
        count += 1;
    }
    count
}

/// The time from the acceptance of a message to its first event, and to the agent's first text.
pub(crate) async fn first_event(programs: &Programs) {
    let gateway = GatewayProcess::start(programs, &claude(), &[]);
    let client = Client::new(&gateway);
    let conversation = client.conversation().await;
    let mut events = client.events(&conversation, 0).await;
    let (mut to_event, mut to_text) = (Vec::new(), Vec::new());
    for number in 0..MESSAGES {
        let sending = Instant::now();
        client.send(&conversation, &format!("message {number}")).await;
        let accepted = Instant::now();
        // The events of the acceptance itself were committed with it.
        let mut event = events.next().await;
        while event.kind != "turn_started" {
            event = events.next().await;
        }
        to_event.push(accepted.elapsed());
        while event.kind != "text" {
            event = events.next().await;
        }
        to_text.push(sending.elapsed());
        while event.kind != "turn_finished" {
            event = events.next().await;
        }
    }
    percentiles("from `202` to `turn_started`, warm session", to_event);
    percentiles("from the request to the agent's first text, warm session", to_text);
}

fn percentiles(figure: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)].as_secs_f64() * 1_000.0;
    row(&format!("{figure}: p50, p99"), &format!("{:.1} ms, {:.1} ms", at(50), at(99)));
}

/// Events a second to many clients of one conversation, none of which misses one.
pub(crate) async fn streaming(programs: &Programs) {
    let scenario = Scenario { tools: TOOLS, tool_bytes: 100, ..claude() };
    let gateway = GatewayProcess::start(programs, &scenario, &[]);
    let client = Client::new(&gateway);
    let conversation = client.conversation().await;
    let mut readers = Client::each(READERS, (0..READERS).map(|_| client.events(&conversation, 0))).await;
    let began = Instant::now();
    client.send(&conversation, "work").await;
    let reads = readers.iter_mut().map(|reader| reader.until("turn_finished", 0));
    let counts = Client::each(READERS, reads).await;
    let took = began.elapsed().as_secs_f64();
    assert!(counts.iter().all(|count| *count >= TOOLS * 2 && Some(count) == counts.first()), "{counts:?}");
    let total: u64 = counts.iter().sum();
    row(&format!("events/s to {READERS} clients, live, none lost"), &format!("{:.0}", total as f64 / took));
    let last = counts.first().copied().unwrap_or_default();
    let began = Instant::now();
    let mut again = Client::each(READERS, (0..READERS).map(|_| client.events(&conversation, 0))).await;
    let reads = again.iter_mut().map(|reader| reader.until("turn_finished", 0));
    let counts = Client::each(READERS, reads).await;
    assert!(counts.iter().all(|count| *count == last), "{counts:?}");
    let rate = total as f64 / began.elapsed().as_secs_f64();
    row(&format!("events/s to {READERS} clients, from the log"), &format!("{rate:.0}"));
}

/// The memory of a gateway that does nothing, and of one with many conversations.
pub(crate) async fn memory(programs: &Programs) {
    let mib = |kib: u64| kib as f64 / 1_024.0;
    let gateway = GatewayProcess::start(programs, &claude(), &[]);
    let client = Client::new(&gateway);
    client.conversation().await;
    row("memory of an idle gateway", &format!("{:.1} MiB", mib(gateway.memory_kib())));
    let conversations = Client::each(SENDERS, (0..1_000).map(|_| client.conversation())).await;
    let turns = conversations.iter().map(|conversation| client.send(conversation, "hello"));
    let turns = Client::each(SENDERS, turns).await;
    Client::each(SENDERS, turns.iter().map(|turn| client.wait(turn))).await;
    let figure = "memory with 1,000 idle conversations, 32 of them with a warm agent: gateway, helper processes";
    row(figure, &format!("{:.1} MiB, {:.1} MiB", mib(gateway.memory_kib()), mib(gateway.helpers_kib())));
    drop(gateway);
    let scenario = Scenario { wait: true, ..claude() };
    let gateway = GatewayProcess::start(programs, &scenario, &[]);
    let client = Client::new(&gateway);
    let conversations = Client::each(SENDERS, (0..1_100).map(|_| client.conversation())).await;
    let running = conversations.iter().take(100);
    Client::each(SENDERS, running.clone().map(|conversation| client.send(conversation, "hello"))).await;
    Client::each(100, running.map(|conversation| first_text(&client, conversation))).await;
    let figure = "memory with 1,000 idle and 100 running conversations: gateway, helper processes";
    row(figure, &format!("{:.1} MiB, {:.1} MiB", mib(gateway.memory_kib()), mib(gateway.helpers_kib())));
}

async fn first_text(client: &Client, conversation: &str) {
    let mut events = client.events(conversation, 0).await;
    while events.next().await.kind != "text" {}
}

/// The size of the store after a day of chat.
pub(crate) async fn log_size(programs: &Programs) {
    let (messages, deltas) = DAY;
    let scenario = Scenario { deltas, rate: 200, tools: 2, tool_bytes: 1_000, ..claude() };
    let mut gateway = GatewayProcess::start(programs, &scenario, &[("max_running_per_chat", "100")]);
    let client = Client::new(&gateway);
    let conversations = Client::each(SENDERS, (0..20).map(|_| client.conversation())).await;
    let targets = conversations.iter().cycle().take(messages);
    let turns = Client::each(SENDERS, targets.map(|conversation| client.send(conversation, "hello"))).await;
    Client::each(SENDERS, turns.iter().map(|turn| client.wait(turn))).await;
    gateway.stop();
    let mib = gateway.store_bytes() as f64 / f64::from(1 << 20);
    let figure =
        format!("size of the store after {messages} messages with answers of {deltas} deltas and 2 tool calls");
    row(&figure, &format!("{mib:.1} MiB"));
}
