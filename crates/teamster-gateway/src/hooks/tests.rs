//! Tests of hooks, with real processes and a real HTTP receiver.

mod configuration;
mod repeats;

use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse as _;
use serde_json::{Value, json};
use teamster_channel::signature::{SignedMessage, WebhookSecret};
use teamster_store::ConversationId;
use tokio::net::TcpListener;

use super::*;
use crate::GatewayError;
use crate::testing::{BOUND, TestGateway, chat, until};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

fn shell(script: &str) -> HookConfig {
    HookConfig {
        name: "check".to_owned(),
        events: vec![HookEventKind::MessageAccepted],
        command: ["sh", "-c", script].map(str::to_owned).to_vec(),
        ..HookConfig::default()
    }
}

fn webhook(url: &str) -> HookConfig {
    HookConfig { command: Vec::new(), url: Some(url.to_owned()), secret: Some(SecretText::new(SECRET)), ..shell("") }
}

fn closed(hook: HookConfig) -> HookConfig {
    HookConfig { on_failure: OnFailure::Closed, ..hook }
}

fn hooks(configs: Vec<HookConfig>) -> Hooks {
    Hooks::new(configs, Clock::system())
}

fn message(text: &str) -> HookEvent {
    HookEvent::MessageAccepted {
        conversation_id: None,
        channel: "test".to_owned(),
        chat: "garden".to_owned(),
        author: "ann".to_owned(),
        text: text.to_owned(),
    }
}

fn accepted(text: &str) -> Verdict {
    Verdict::Accept(text.to_owned())
}

/// Runs one hook on a message, and returns the verdict and the reason of the failure.
async fn judged(config: HookConfig) -> (Verdict, Option<String>) {
    let hooks = hooks(vec![config]);
    let verdict = hooks.judge(&message("hello")).await;
    (verdict, hooks.recent_failures().into_iter().next().map(|failure| failure.reason))
}

/// Returns whether a process exists and is not a zombie.
fn runs(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with(['Z', 'X']))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

#[tokio::test]
async fn a_command_gets_the_event_on_stdin_and_only_permitted_variables() {
    let directory = tempfile::tempdir().unwrap();
    let script = "cat > event.json; env > env.txt; pwd > pwd.txt";
    let hook = HookConfig {
        directory: Some(directory.path().to_owned()),
        env: vec!["CARGO_PKG_NAME".to_owned(), "NOT_SET".to_owned()],
        ..shell(script)
    };
    assert_eq!(judged(hook).await, (accepted("hello"), None));
    let mut event: Value = serde_json::from_str(&read(&directory.path().join("event.json"))).unwrap();
    let fields = event.as_object_mut().unwrap();
    assert!(fields.remove("id").is_some() && fields.remove("at").is_some());
    assert_eq!(
        event,
        json!({"event": "message_accepted", "channel": "test", "chat": "garden", "author": "ann", "text": "hello"})
    );
    let env = read(&directory.path().join("env.txt"));
    let mut names: Vec<_> = env.lines().filter_map(|line| line.split('=').next()).collect();
    let permitted = ["PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"];
    names.retain(|name| !permitted.contains(name) && !["PWD", "OLDPWD", "SHLVL", "_"].contains(name));
    names.retain(|name| !name.starts_with("TEAMSTER_TREE_"));
    names.sort_unstable();
    assert_eq!(names, ["CARGO_PKG_NAME", "TEAMSTER_HOOK_EVENT"]);
    assert!(env.contains("TEAMSTER_HOOK_EVENT=message_accepted"));
    assert_eq!(Path::new(read(&directory.path().join("pwd.txt")).trim()), directory.path().canonicalize().unwrap());
}

#[tokio::test]
async fn no_shell_reads_the_arguments() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a $(touch x); b");
    let command = vec!["touch".to_owned(), file.to_str().unwrap().to_owned()];
    assert_eq!(judged(HookConfig { command, ..shell("") }).await, (accepted("hello"), None));
    assert!(file.exists());
}

#[tokio::test]
async fn a_hook_accepts_rewrites_or_rejects_a_message_and_the_next_one_gets_the_new_text() {
    let rewrite = shell(r#"sed 's/.*"text":"\([^"]*\)".*/{"text": "\1!"}/'"#);
    let both = hooks(vec![HookConfig { name: "first".to_owned(), ..rewrite.clone() }, rewrite.clone()]);
    assert_eq!(both.judge(&message("hello")).await, accepted("hello!!"));
    let reject = shell(r#"echo '{"decision": "reject", "reason": "spam"}'"#);
    let hooks = hooks(vec![rewrite, reject]);
    assert_eq!(hooks.judge(&message("hello")).await, Verdict::Reject("spam".to_owned()));
    assert_eq!(hooks.recent_failures(), []);
    assert_eq!(judged(shell("echo '{}'")).await, (accepted("hello"), None));
}

#[tokio::test]
async fn each_failure_of_a_command_is_open_or_closed_by_its_configuration() {
    let huge = "head -c 20000000 /dev/zero";
    for (script, reason) in [
        ("exit 3", "exited with code 3"),
        ("kill -9 $$", "was ended by SIGKILL"),
        ("echo '{\"decision\": \"perhaps\"}'", "answered with invalid JSON"),
        ("echo nonsense", "answered with invalid JSON"),
        (huge, "answered with more than"),
        ("while true; do echo x; done", "answered with more than"),
    ] {
        let (verdict, failure) = judged(shell(script)).await;
        assert_eq!(verdict, accepted("hello"), "{script}");
        let failure = failure.unwrap();
        assert!(failure.starts_with(reason), "{script}: {failure}");
        let (verdict, _) = judged(closed(shell(script))).await;
        assert!(matches!(verdict, Verdict::Unavailable(_)), "{script}");
    }
    let missing = HookConfig { command: vec!["no-such-program".to_owned()], ..shell("") };
    let (verdict, failure) = judged(closed(missing)).await;
    assert!(matches!(verdict, Verdict::Unavailable(_)));
    assert!(failure.unwrap().contains("no-such-program"));
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("data");
    fs::write(&file, "\0").unwrap();
    let broken = HookConfig { command: vec![file.to_str().unwrap().to_owned()], ..shell("") };
    assert!(judged(broken).await.1.is_some());
}

#[tokio::test]
async fn the_last_output_of_a_command_is_for_the_operator_only() {
    let hooks = hooks(vec![shell("echo s3cret >&2; exit 1")]);
    hooks.judge(&message("hello")).await;
    let failure = hooks.recent_failures().remove(0);
    assert_eq!((failure.hook.as_str(), failure.event), ("check", HookEventKind::MessageAccepted));
    assert_eq!(failure.reason, "exited with code 1");
    assert_eq!(failure.output.as_deref().map(str::trim), Some("s3cret"));
}

#[tokio::test]
async fn a_command_that_hangs_is_killed_at_its_limit_with_its_descendants() {
    let directory = tempfile::tempdir().unwrap();
    let script = "trap '' TERM; (setsid sleep 300 & echo $! > child) ; echo $$ > leader; sleep 300";
    let hook =
        HookConfig { timeout: Duration::from_secs(1), directory: Some(directory.path().to_owned()), ..shell(script) };
    let started = Instant::now();
    let (verdict, failure) = judged(hook).await;
    assert_eq!((verdict, failure.unwrap().as_str()), (accepted("hello"), "did not answer within 1s"));
    assert!(started.elapsed() < BOUND);
    for name in ["leader", "child"] {
        let pid = read(&directory.path().join(name));
        assert!(!pid.is_empty() && !runs(&pid), "{name} {pid} still runs");
    }
}

#[tokio::test]
async fn a_descendant_in_the_background_delays_no_answer_and_is_killed() {
    let directory = tempfile::tempdir().unwrap();
    let hook = HookConfig {
        directory: Some(directory.path().to_owned()),
        ..shell("sleep 300 & echo $! > child; echo '{\"text\": \"new\"}'")
    };
    let started = Instant::now();
    assert_eq!(judged(hook).await, (accepted("new"), None));
    assert!(started.elapsed() < Duration::from_secs(9), "the hook waited for its time limit");
    assert!(!runs(&read(&directory.path().join("child"))));
}

#[tokio::test]
async fn a_dropped_call_leaves_no_process() {
    let directory = tempfile::tempdir().unwrap();
    let hook = HookConfig { directory: Some(directory.path().to_owned()), ..shell("echo $$ > leader; sleep 300") };
    let leader = directory.path().join("leader");
    let hooks = Arc::new(hooks(vec![hook]));
    let judges = Arc::clone(&hooks);
    let call = tokio::spawn(async move { judges.judge(&message("hello")).await });
    until(|| async { !read(&leader).is_empty() }).await;
    call.abort();
    until(|| async { !runs(&read(&leader)) }).await;
}

type Received = Arc<Mutex<Vec<(HeaderMap, Bytes)>>>;

/// Starts a receiver of webhooks that answers with a status and a body.
async fn receiver(status: StatusCode, body: impl Into<Bytes>) -> (String, Received) {
    let (received, body) = (Received::default(), body.into());
    let requests = Arc::clone(&received);
    let answer = move |headers: HeaderMap, bytes: Bytes| {
        requests.lock().unwrap().push((headers, bytes));
        std::future::ready((status, [("location", "http://127.0.0.1:9/")], body.clone()).into_response())
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook?key=s3cret", listener.local_addr().unwrap());
    let router = Router::new().fallback(axum::routing::any(answer));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (url, received)
}

#[tokio::test]
async fn a_webhook_is_signed_and_may_rewrite() {
    let (url, received) = receiver(StatusCode::OK, r#"{"text": "new"}"#).await;
    assert_eq!(judged(webhook(&url)).await, (accepted("new"), None));
    let (headers, body) = received.lock().unwrap().remove(0);
    let header = |name: &str| headers[name].to_str().unwrap();
    let signed = SignedMessage {
        id: header("webhook-id"),
        timestamp: header("webhook-timestamp"),
        signatures: header("webhook-signature"),
        body: &body,
    };
    let now = Clock::system().now().as_millis() / 1000;
    let checked = WebhookSecret::parse(SECRET).unwrap().verify(&signed, now, BOUND, BOUND);
    assert_eq!(checked, Ok(()));
    let event: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(event["id"], header("webhook-id"));
    assert_eq!(event["text"], "hello");
}

#[tokio::test]
async fn each_failure_of_a_webhook_is_open_or_closed_and_shows_no_url() {
    let huge = vec![b' '; 1 << 20];
    let mut urls = Vec::new();
    for (status, body, reason) in [
        (StatusCode::INTERNAL_SERVER_ERROR, Vec::new(), "answered with the status 500"),
        (StatusCode::FOUND, Vec::new(), "answered with the status 302"),
        (StatusCode::OK, b"nonsense".to_vec(), "answered with invalid JSON"),
        (StatusCode::OK, huge, "answered with more than"),
    ] {
        urls.push((receiver(status, body).await.0, reason));
    }
    urls.push(("http://127.0.0.1:1/?key=s3cret".to_owned(), "cannot be reached"));
    for (url, reason) in urls {
        let (verdict, failure) = judged(webhook(&url)).await;
        assert_eq!(verdict, accepted("hello"), "{url}");
        let failure = failure.unwrap();
        assert!(failure.starts_with(reason) && !failure.contains("s3cret"), "{url}: {failure}");
        assert!(matches!(judged(closed(webhook(&url))).await.0, Verdict::Unavailable(_)), "{url}");
    }
}

#[tokio::test]
async fn a_webhook_that_hangs_ends_at_its_limit() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let hook = HookConfig { timeout: Duration::from_millis(200), ..webhook(&url) };
    let (_, failure) = judged(hook).await;
    assert_eq!(failure.unwrap(), "did not answer within 200ms");
}

#[tokio::test]
async fn a_secret_is_read_for_each_call_so_that_it_can_be_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("secret");
    let (url, received) = receiver(StatusCode::OK, "").await;
    let hook = HookConfig { secret: None, secret_file: Some(file.clone()), ..webhook(&url) };
    let hooks = hooks(vec![hook]);
    assert!(hooks.check().unwrap_err().to_string().contains("cannot be read"));
    hooks.judge(&message("hello")).await;
    assert_eq!(received.lock().unwrap().len(), 0, "an unsigned event was sent");
    fs::write(&file, "a secret of sixteen bytes\n").unwrap();
    assert_eq!(hooks.check(), Ok(()));
    hooks.judge(&message("hello")).await;
    assert_eq!(received.lock().unwrap().len(), 1);
}

fn started(conversation: ConversationId, attempt: u32) -> HookEvent {
    HookEvent::TurnStarted { conversation_id: conversation.to_string(), turn_id: "turn".to_owned(), attempt }
}

fn on_start(script: &str, directory: &Path) -> HookConfig {
    HookConfig { events: vec![HookEventKind::TurnStarted], directory: Some(directory.to_owned()), ..shell(script) }
}

const NOTE_ATTEMPT: &str = r#"sed 's/.*"attempt":\([0-9]*\).*/\1/' >> attempts"#;

#[tokio::test]
async fn queued_events_reach_their_hooks_in_order_and_a_shutdown_waits_for_them() {
    let directory = tempfile::tempdir().unwrap();
    let hook = on_start(NOTE_ATTEMPT, directory.path());
    let test = TestGateway::new(|config| config.hooks = vec![hook]);
    let conversation = test.conversation(chat("garden")).await;
    let hooks = test.gateway.hooks();
    // Events before the start are not lost.
    hooks.notify(started(conversation, 1));
    let tasks = hooks.start(Arc::new(test.gateway.clone()));
    for attempt in 2..=5 {
        hooks.notify(started(conversation, attempt));
    }
    hooks.notify(HookEvent::DeliveryFailed { delivery_id: "x".to_owned(), reason: "y".to_owned() });
    tasks.shutdown(BOUND).await;
    assert_eq!(read(&directory.path().join("attempts")), "1\n2\n3\n4\n5\n");
    assert_eq!(hooks.recent_failures(), []);
}

#[tokio::test]
async fn a_failure_is_in_the_log_of_its_conversation_without_the_hooks_output() {
    let directory = tempfile::tempdir().unwrap();
    let hook = on_start("echo s3cret >&2; exit 7", directory.path());
    let test = TestGateway::new(|config| config.hooks = vec![hook]);
    let conversation = test.conversation(chat("garden")).await;
    let tasks = test.gateway.hooks().start(Arc::new(test.gateway.clone()));
    test.gateway.hooks().notify(started(conversation, 1));
    tasks.shutdown(BOUND).await;
    let failed = test.events(conversation, "hook_failed").await;
    assert_eq!(failed, [json!({"type": "hook_failed", "hook": "check", "reason": "exited with code 7"})]);
    assert_eq!(test.gateway.hooks().recent_failures().len(), 1);
}

#[tokio::test]
async fn a_slow_hook_delays_no_other_and_no_shutdown() {
    let (slow, fast) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let slow_hook = on_start("echo $$ > leader; sleep 300", slow.path());
    let fast_hook = HookConfig { name: "fast".to_owned(), ..on_start(NOTE_ATTEMPT, fast.path()) };
    let test = TestGateway::new(|config| {
        config.hooks = vec![HookConfig { timeout: Duration::from_mins(5), ..slow_hook }, fast_hook];
    });
    let conversation = test.conversation(chat("garden")).await;
    let tasks = test.gateway.hooks().start(Arc::new(test.gateway.clone()));
    for attempt in 1..=3 {
        test.gateway.hooks().notify(started(conversation, attempt));
    }
    until(|| async { read(&fast.path().join("attempts")) == "1\n2\n3\n" }).await;
    let leader = slow.path().join("leader");
    until(|| async { !read(&leader).is_empty() }).await;
    tokio::time::timeout(BOUND, tasks.shutdown(Duration::from_millis(50))).await.unwrap();
    until(|| async { !runs(&read(&leader)) }).await;
}

#[tokio::test]
async fn a_full_queue_loses_events_visibly() {
    let directory = tempfile::tempdir().unwrap();
    let hooks = hooks(vec![on_start("exit 0", directory.path())]);
    let conversation = ConversationId::new(uuid::Uuid::from_u128(1));
    for attempt in 0..1001 {
        hooks.notify(started(conversation, attempt));
    }
    let failures = hooks.recent_failures();
    assert_eq!(failures.len(), 1);
    assert!(failures[0].reason.contains("this one is lost"));
    for attempt in 0..500 {
        hooks.notify(started(conversation, attempt));
    }
    assert_eq!(hooks.recent_failures().len(), 100, "the list is bounded");
}

#[tokio::test]
async fn a_gateway_refuses_and_rewrites_messages_by_its_hooks() {
    let script =
        r#"if grep -q spam; then echo '{"decision": "reject", "reason": "spam"}'; else echo '{"text": "clean"}'; fi"#;
    let test = TestGateway::new(|config| config.hooks = vec![shell(script)]);
    let conversation = test.conversation(chat("garden")).await;
    let error = test.accept(conversation, "spam").await.unwrap_err();
    assert!(matches!(error, GatewayError::Rejected { reason } if reason == "spam"));
    test.turn(conversation, "dirty").await;
    let queued = test.events(conversation, "turn_queued").await;
    assert_eq!(queued.len(), 1);
    assert_eq!(queued[0]["text"], "clean");
}

#[tokio::test]
async fn a_webhook_follows_no_redirect() {
    let (target, received) = receiver(StatusCode::OK, "{}").await;
    let redirect = move || async move { (StatusCode::TEMPORARY_REDIRECT, [("location", target)]) };
    let app = Router::new().route("/", axum::routing::post(redirect));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    let (verdict, reason) = judged(closed(webhook(&url))).await;
    assert!(matches!(verdict, Verdict::Unavailable(_)), "{verdict:?}");
    assert_eq!(reason.as_deref(), Some("answered with the status 307"));
    assert!(received.lock().unwrap().is_empty(), "the target of the redirect got the event");
}
