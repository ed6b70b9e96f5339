//! Tests of the tools over HTTP, as an agent calls them.

use std::fs;

use serde_json::{Value, json};
use teamster_store::{ChatAddress, Lease, PageRequest, ScheduleFilter};

use super::turn::Current;
use super::*;
use crate::config::Config;
use crate::testing::{TestGateway, chat};

/// The tools of a session, and a client with its token.
struct Client {
    tools: SessionTools,
    request: RunRequest,
    http: reqwest::Client,
    next_id: std::cell::Cell<u64>,
}

async fn started(change: impl FnOnce(&mut Config)) -> TestGateway {
    let test = TestGateway::new(change);
    start(test.gateway.tools(), &test.gateway).await.unwrap();
    test
}

impl Client {
    fn new(test: &TestGateway, conversation: ConversationId) -> Self {
        _ = rustls::crypto::ring::default_provider().install_default();
        let mut request = RunRequest::session();
        let tools = test.gateway.tools().offer(conversation, &mut request);
        Self { tools, request, http: reqwest::Client::new(), next_id: std::cell::Cell::new(0) }
    }

    /// Sends a request, and returns the status and the message.
    async fn post(&self, id: u64, tool: &str, arguments: &Value) -> (u16, Value) {
        let endpoint = self.request.mcp_servers["teamster"].endpoint().unwrap();
        let params = json!({"name": tool, "arguments": arguments});
        let body = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        let mut request = self.http.post(&endpoint.url).header("accept", "application/json, text/event-stream");
        for (name, value) in endpoint.all_headers() {
            request = request.header(name, value);
        }
        let response = request.header("content-type", "application/json").header("mcp-protocol-version", "2025-06-18");
        let response = response.body(body.to_string()).send().await.unwrap();
        let status = response.status().as_u16();
        let text = response.text().await.unwrap();
        let events = text.lines().filter_map(|line| line.strip_prefix("data:"));
        let message = events.filter_map(|data| serde_json::from_str(data).ok()).find(|value: &Value| value["id"] == id);
        (status, message.unwrap_or_default())
    }

    /// Calls a tool with an id, and returns its text; an error if the call failed.
    async fn call_with_id(&self, id: u64, tool: &str, arguments: Value) -> Result<Value, String> {
        let (status, message) = self.post(id, tool, &arguments).await;
        assert_eq!(status, 200, "{message}");
        let result = &message["result"];
        let text = result["content"][0]["text"].as_str().unwrap_or_default().to_owned();
        match result["isError"].as_bool() {
            Some(true) => Err(text),
            _ => Ok(serde_json::from_str(&text).unwrap_or(Value::String(text))),
        }
    }

    async fn call(&self, tool: &str, arguments: Value) -> Result<Value, String> {
        self.next_id.set(self.next_id.get() + 1);
        self.call_with_id(self.next_id.get(), tool, arguments).await
    }
}

fn tool_turn(test: &TestGateway, lease: Lease, address: ChatAddress) -> ToolTurn {
    let Lease { conversation, turn, epoch } = lease;
    let directory = test.directory.path().to_owned();
    ToolTurn { conversation, turn, epoch, address, author: "ann".to_owned(), directory }
}

/// Starts a turn in a new conversation.
async fn in_turn(test: &TestGateway, address: ChatAddress) -> (Client, ToolTurn) {
    let conversation = test.conversation(address.clone()).await;
    test.turn(conversation, "hello").await;
    let client = Client::new(test, conversation);
    let turn = tool_turn(test, test.claim("worker").await, address);
    client.tools.begin_turn(turn.clone());
    (client, turn)
}

/// Returns the texts of all deliveries, with their chats.
async fn sent(test: &TestGateway) -> Vec<(String, String)> {
    let deliveries = test.deliveries().await;
    let shown = |body: Value| body["content"]["text"].as_str().unwrap_or_default().to_owned();
    deliveries.into_iter().map(|delivery| (delivery.address.chat, shown(delivery.body.to().unwrap()))).collect()
}

fn to_garden(text: &str) -> (String, String) {
    ("garden".to_owned(), text.to_owned())
}

#[tokio::test]
async fn a_message_is_delivered_to_the_own_chat_and_logged() {
    let test = started(|_| {}).await;
    let (client, turn) = in_turn(&test, chat("garden")).await;
    assert_eq!(client.call("send_message", json!({"text": "half done"})).await, Ok(json!("sent")));
    let deliveries = test.deliveries().await;
    assert_eq!(deliveries.len(), 1);
    assert_eq!((deliveries[0].conversation, deliveries[0].turn), (Some(turn.conversation), Some(turn.turn)));
    assert_eq!(sent(&test).await, [to_garden("half done")]);
    let logged = test.events(turn.conversation, "message_sent").await;
    let expected = json!({"type": "message_sent", "channel": "test", "chat": "garden", "text": "half done"});
    assert_eq!(logged, [expected]);
}

#[tokio::test]
async fn the_clients_of_the_api_get_a_message_by_the_log_alone() {
    let test = started(|_| {}).await;
    let web = ChatAddress { channel: "web".to_owned(), ..chat("page") };
    let (client, turn) = in_turn(&test, web).await;
    client.call("send_message", json!({"text": "half done"})).await.unwrap();
    assert_eq!(test.deliveries().await.len(), 0);
    assert_eq!(test.events(turn.conversation, "message_sent").await.len(), 1);
}

#[tokio::test]
async fn a_repeated_call_and_a_retried_attempt_send_a_message_once() {
    let test = started(|_| {}).await;
    let (client, turn) = in_turn(&test, chat("garden")).await;
    let send =
        async |id: u64, text: &str| client.call_with_id(id, "send_message", json!({"text": text})).await.unwrap();
    send(1, "one").await;
    send(1, "one").await;
    assert_eq!(sent(&test).await, [to_garden("one")], "the call was repeated");
    assert_eq!(test.events(turn.conversation, "message_sent").await.len(), 1);
    send(2, "one").await;
    assert_eq!(sent(&test).await.len(), 2, "the agent sends the same twice");
    // The attempt is retried: the agent does the same again, and sends something else.
    client.tools.end_turn();
    client.tools.begin_turn(turn.clone());
    send(1, "one").await;
    send(2, "one").await;
    assert_eq!(sent(&test).await.len(), 2);
    send(3, "two").await;
    assert_eq!(sent(&test).await, [to_garden("one"), to_garden("one"), to_garden("two")]);
    // A later turn may send the same again.
    test.turn(turn.conversation, "again").await;
    test.finish(turn.lease()).await;
    let next = test.claim("worker").await;
    client.tools.begin_turn(ToolTurn { turn: next.turn, epoch: next.epoch, ..turn });
    send(1, "one").await;
    assert_eq!(sent(&test).await.len(), 4);
}

#[tokio::test]
async fn a_repeated_call_whose_effect_was_not_stored_is_made_again() {
    let test = started(|_| {}).await;
    let (_, turn) = in_turn(&test, chat("garden")).await;
    let current = Current::new(turn);
    let first = current.effect("message", &[b"one"], "call-1");
    assert!(!first.is_repeated);
    assert!(current.effect("message", &[b"one"], "call-1").is_repeated);
    current.failed(&first);
    assert_eq!(current.effect("message", &[b"one"], "call-1"), first);
    assert!(current.effect("message", &[b"one"], "call-1").is_repeated, "it is made once more");
    assert!(current.may_send(1) && !current.may_send(1));
    current.was_not_sent();
    assert!(current.may_send(1), "only what was stored counts");
}

#[tokio::test]
async fn a_token_is_valid_only_while_a_turn_of_its_conversation_runs() {
    let test = started(|_| {}).await;
    let (client, turn) = in_turn(&test, chat("garden")).await;
    let other = test.conversation(chat("kitchen")).await;
    let message = || json!({"text": "hello"});
    client.tools.end_turn();
    let refused = client.call("send_message", message()).await.unwrap_err();
    assert!(refused.contains("no turn of this conversation is running"), "{refused}");
    // A turn of another conversation does not make it valid.
    let elsewhere = Lease { conversation: other, ..turn.lease() };
    client.tools.begin_turn(tool_turn(&test, elsewhere, chat("kitchen")));
    assert!(client.call("send_message", message()).await.is_err());
    assert_eq!(sent(&test).await, []);
    client.tools.begin_turn(turn);
    assert!(client.call("send_message", message()).await.is_ok());
    // The token of a closed session is not valid.
    let Client { tools, request, http, next_id } = client;
    drop(tools);
    let leaked = Client { tools: SessionTools::default(), request, http, next_id };
    assert_eq!(leaked.post(9, "send_message", &message()).await.0, 401);
    assert_eq!(sent(&test).await.len(), 1);
}

#[tokio::test]
async fn an_agent_whose_turn_another_worker_has_claimed_sends_nothing() {
    let test = started(|_| {}).await;
    let (client, turn) = in_turn(&test, chat("garden")).await;
    client.call("send_message", json!({"text": "one"})).await.unwrap();
    assert!(test.gateway.store().turn(turn.turn).await.unwrap().unwrap().ran_tools, "it must not run again");
    test.advance(std::time::Duration::from_mins(2));
    assert_eq!(test.claim("other").await.turn, turn.turn);
    let plan = json!({"text": "later", "at": "2026-02-01T09:00:00Z"});
    for (tool, input) in [("send_message", json!({"text": "two"})), ("schedule_create", plan)] {
        let refused = client.call(tool, input).await.unwrap_err();
        assert!(refused.contains("lease"), "{refused}");
    }
    assert_eq!(sent(&test).await, [to_garden("one")]);
    assert_eq!(test.events(turn.conversation, "message_sent").await.len(), 1);
}

#[tokio::test]
async fn no_argument_selects_a_conversation_or_an_author() {
    let test = started(|_| {}).await;
    let (client, turn) = in_turn(&test, chat("garden")).await;
    for (tool, arguments) in [
        ("send_message", json!({"text": "x", "conversation": turn.conversation.to_string()})),
        ("schedule_create", json!({"text": "x", "cron": "0 9 * * *", "author": "eve"})),
        ("read_history", json!({"conversation": turn.conversation.to_string()})),
        ("schedule_list", json!({"conversation": turn.conversation.to_string()})),
    ] {
        assert!(client.call(tool, arguments).await.unwrap_err().contains("unknown field"), "{tool}");
    }
}

#[tokio::test]
async fn other_chats_need_a_permission_of_the_configuration() {
    let to = |channel: &str, chat: &str| json!({"text": "hi", "channel": channel, "chat": chat});
    let test = started(|_| {}).await;
    let (client, _) = in_turn(&test, chat("garden")).await;
    let refused = client.call("send_message", to("test", "kitchen")).await.unwrap_err();
    assert!(refused.contains("does not permit"), "{refused}");
    assert!(client.call("send_message", to("other", "garden")).await.is_err());
    client.call("send_message", json!({"text": "hi", "thread": "7"})).await.unwrap();
    assert_eq!(test.deliveries().await[0].address.thread, "7");

    let list = ["test:kitchen", "elsewhere:*", "flat:*"].map(str::to_owned).to_vec();
    let test = started(|config| config.tools.other_chats = list).await;
    let (client, turn) = in_turn(&test, chat("garden")).await;
    client.call("send_message", to("test", "kitchen")).await.unwrap();
    assert_eq!(sent(&test).await, [("kitchen".to_owned(), "hi".to_owned())]);
    assert_eq!(test.events(turn.conversation, "message_sent").await[0]["chat"], "kitchen");
    assert!(client.call("send_message", to("test", "attic")).await.is_err());
    assert!(client.call("send_message", to("elsewhere", "x")).await.unwrap_err().contains("there is no channel"));
    client.call("send_message", to("flat", "x")).await.unwrap();
    let in_thread = json!({"text": "hi", "channel": "flat", "chat": "x", "thread": "7"});
    assert!(client.call("send_message", in_thread).await.unwrap_err().contains("has no threads"));
}

#[tokio::test]
async fn a_file_below_the_working_directory_is_stored_and_delivered() {
    let test = started(|_| {}).await;
    let (client, turn) = in_turn(&test, chat("garden")).await;
    fs::write(test.directory.path().join("plan.png"), b"\x89PNG").unwrap();
    fs::write(test.directory.path().join("large"), vec![b'x'; 1001]).unwrap();
    let send = async |path: &str| client.call("send_file", json!({"path": path, "caption": "the plan"})).await;
    assert_eq!(send("plan.png").await, Ok(json!("sent")));
    let body: Value = test.deliveries().await[0].body.to().unwrap();
    let content = &body["content"];
    assert_eq!((&content["name"], &content["mediaType"]), (&json!("plan.png"), &json!("image/png")));
    let hash = content["hash"].as_str().unwrap();
    assert_eq!(test.gateway.attachments().get(hash).await.unwrap(), b"\x89PNG");
    let logged = &test.events(turn.conversation, "message_sent").await[0];
    assert_eq!(
        (&logged["text"], &logged["file"]["hash"], &logged["file"]["size"]),
        (&json!("the plan"), &json!(hash), &json!(4))
    );
    assert!(send("/etc/hostname").await.unwrap_err().contains("below the working directory"));
    assert!(send("large").await.unwrap_err().contains("at most 1000 bytes"));
    assert_eq!(test.deliveries().await.len(), 1);
}

#[tokio::test]
async fn no_file_of_the_gateway_is_sent_even_below_the_working_directory() {
    let test = started(|config| config.file = Some(config.turn.directory.join("config.toml"))).await;
    let (client, _) = in_turn(&test, chat("garden")).await;
    let directory = test.directory.path();
    fs::create_dir_all(directory.join("data")).unwrap();
    fs::write(directory.join("data/token"), "tms_secret").unwrap();
    fs::write(directory.join("config.toml"), "[serve]").unwrap();
    std::os::unix::fs::symlink("data/token", directory.join("plan.txt")).unwrap();
    for path in ["data/token", "./data/../data/token", "plan.txt", "config.toml"] {
        let refused = client.call("send_file", json!({"path": path})).await.unwrap_err();
        assert!(refused.contains("belongs to the gateway"), "{path}: {refused}");
    }
    assert_eq!(test.deliveries().await.len(), 0);
}

#[tokio::test]
async fn a_turn_sends_a_limited_number_of_messages() {
    let test = started(|config| config.tools.sends_per_turn = 2).await;
    let (client, _) = in_turn(&test, chat("garden")).await;
    for text in ["one", "two"] {
        client.call("send_message", json!({"text": text})).await.unwrap();
    }
    assert!(client.call("send_message", json!({"text": "three"})).await.unwrap_err().contains("at most 2"));
    assert!(client.call("send_message", json!({"text": " "})).await.unwrap_err().contains("must not be empty"));
    assert!(client.call("send_message", json!({"text": "x".repeat(100_001)})).await.is_err());
    assert_eq!(sent(&test).await.len(), 2);
}

#[tokio::test]
async fn an_agent_creates_lists_and_deletes_the_schedules_of_its_conversation() {
    let test = started(|_| {}).await;
    let (client, turn) = in_turn(&test, chat("garden")).await;
    let plan = json!({"text": "water", "cron": "0 9 * * *", "timeZone": "Europe/London", "missed": "skip"});
    let created = client.call_with_id(1, "schedule_create", plan.clone()).await.unwrap();
    assert_eq!(created["nextAt"], "2026-01-01T09:00:00.000Z");
    let stored = &created["schedule"];
    assert_eq!((&stored["author"], &stored["missed"]), (&json!("ann"), &json!("skip")));
    assert_eq!(stored["createdBy"], format!("turn {}", turn.turn));
    // The attempt is retried.
    client.tools.begin_turn(turn.clone());
    assert_eq!(client.call_with_id(1, "schedule_create", plan).await.unwrap()["id"], created["id"]);
    assert_eq!(client.call("schedule_list", json!({})).await, Ok(json!([created])));

    let (stranger, _) = in_turn(&test, chat("kitchen")).await;
    assert_eq!(stranger.call("schedule_list", json!({})).await, Ok(json!([])));
    let delete = json!({"id": created["id"]});
    assert!(stranger.call("schedule_delete", delete.clone()).await.is_err());
    assert_eq!(client.call("schedule_delete", delete.clone()).await, Ok(json!("deleted")));
    assert!(client.call("schedule_delete", delete).await.is_err());
    let page = test.gateway.store().schedules(ScheduleFilter::default(), PageRequest::first(9)).await.unwrap();
    assert_eq!(page.items, []);

    let error = client.call("schedule_create", json!({"text": "x", "cron": "0 25 * * *"})).await.unwrap_err();
    assert!(error.contains("invalid hour \"25\""), "{error}");
    assert!(client.call("schedule_delete", json!({"id": "x"})).await.unwrap_err().contains("not the id"));
}

#[tokio::test]
async fn an_agent_reads_the_earlier_messages_of_its_conversation_only() {
    let test = started(|_| {}).await;
    let (client, turn) = in_turn(&test, chat("garden")).await;
    let (other, _) = in_turn(&test, chat("kitchen")).await;
    let second = test.turn(turn.conversation, "second").await;
    let third = test.turn(turn.conversation, "third").await;
    assert_eq!(client.call("read_history", json!({})).await, Ok(json!([])), "the first turn has no history");
    client.tools.begin_turn(ToolTurn { turn: third, ..turn.clone() });
    let history = client.call("read_history", json!({})).await.unwrap();
    let texts: Vec<_> = history.as_array().unwrap().iter().map(|item| item["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["hello", "second"]);
    let last = client.call("read_history", json!({"limit": 1})).await.unwrap();
    assert_eq!(last[0]["text"], "second");
    assert_eq!(other.call("read_history", json!({})).await, Ok(json!([])));
    _ = second;
}

#[tokio::test]
async fn the_tools_are_permitted_where_they_are_offered_and_can_be_disabled() {
    let test = started(|_| {}).await;
    let conversation = test.conversation(chat("garden")).await;
    let client = Client::new(&test, conversation);
    let allowed = &client.request.permissions.allow;
    assert!(allowed.iter().all(|rule| rule.starts_with("mcp__teamster")), "{allowed:?}");
    assert!(allowed.contains(&"mcp__teamster__send_message".to_owned()), "{allowed:?}");
    let disabled = started(|config| config.tools.enabled = false).await;
    let mut request = RunRequest::session();
    let tools = disabled.gateway.tools().offer(conversation, &mut request);
    assert!(request.mcp_servers.is_empty() && request.permissions.allow.is_empty());
    tools.end_turn();
    let invalid = TestGateway::new(|config| config.tools.other_chats = vec!["kitchen".to_owned()]);
    let error = start(invalid.gateway.tools(), &invalid.gateway).await.unwrap_err();
    assert!(error.to_string().contains("\"kitchen\" must be CHANNEL:CHAT"), "{error}");
}

#[tokio::test]
async fn a_gateway_that_is_dropped_serves_no_tools() {
    let test = started(|_| {}).await;
    let weak = test.gateway.downgrade();
    drop(test);
    assert!(weak.upgrade().is_none(), "the server of the tools must not keep the gateway alive");
}
