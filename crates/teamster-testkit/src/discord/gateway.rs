//! The gateway: what clients send, and the numbered events that they receive.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::bot::{APPLICATION_ID, BOT_ID, CONTENT_FLAG, bot};
use super::sessions::{Connection, Order, Session};
use super::values::id_of;
use super::world::{Shared, World};

/// The flag of an application that is in many servers and may have the contents of messages.
const CONTENT_FLAG_LARGE: u64 = 1 << 18;

/// Intents.
const GUILDS: u64 = 1;
const GUILD_MESSAGES: u64 = 1 << 9;
const DIRECT_MESSAGES: u64 = 1 << 12;
const MESSAGE_CONTENT: u64 = 1 << 15;

/// What a connection sends.
enum Output {
    Text(String),
    Close(u16),
    Cut,
}

impl World {
    /// Adds an event to all sessions that get it.
    pub(super) fn dispatch(&mut self, name: &str, data: &Value) {
        for session in self.sessions.by_id.values_mut().filter(|session| session.is_valid) {
            if let Some(data) = visible(session.intents, name, data) {
                session.log.push((name.to_owned(), data));
            }
        }
    }

    /// Adds each message so far once more.
    pub(super) fn repeat_events(&mut self) {
        for session in self.sessions.by_id.values_mut() {
            let again: Vec<_> = session.log.iter().filter(|(name, _)| name == "MESSAGE_CREATE").cloned().collect();
            session.log.extend(again);
        }
    }

    /// Ends all sessions: a resume is refused.
    pub(super) fn invalidate_sessions(&mut self) {
        self.sessions.by_id.values_mut().for_each(|session| session.is_valid = false);
    }

    /// Orders something for all connections.
    pub(super) fn order(&mut self, order: &Order) {
        self.connections.open.values_mut().for_each(|connection| connection.orders.push_back(order.clone()));
    }

    pub(super) fn has_connections(&self) -> bool {
        !self.connections.open.is_empty()
    }

    pub(super) fn open_connections(&self) -> usize {
        self.connections.open.values().filter(|connection| connection.session.is_some()).count()
    }

    fn output(&mut self, number: u64) -> Vec<Output> {
        let Some(connection) = self.connections.open.get_mut(&number) else { return Vec::new() };
        let mut output = Vec::new();
        if let Some(session) = connection.session.as_ref().and_then(|id| self.sessions.by_id.get(id)) {
            for (name, data) in session.log.iter().skip(connection.sent) {
                connection.sent += 1;
                output.push(text(&json!({"op": 0, "s": connection.sent, "t": name, "d": data})));
            }
        }
        for order in connection.orders.drain(..) {
            output.push(match order {
                Order::Reconnect => text(&json!({"op": 7, "d": null, "s": null, "t": null})),
                Order::Invalid(can_resume) => text(&json!({"op": 9, "d": can_resume, "s": null, "t": null})),
                Order::Heartbeat => text(&json!({"op": 1, "d": null, "s": null, "t": null})),
                Order::Close(code) => Output::Close(code),
                Order::Cut => Output::Cut,
                Order::Raw(raw) => Output::Text(raw),
            });
        }
        output
    }

    /// Handles a message of a client. `Err` has the order for it.
    fn input(&mut self, number: u64, input: &str) -> Result<(), Order> {
        let input: Value = serde_json::from_str(input).map_err(|_| Order::Close(4_002))?;
        let data = input.get("d").cloned().unwrap_or_default();
        let has_session = self.connections.open.get(&number).is_some_and(|connection| connection.session.is_some());
        match input.get("op").and_then(Value::as_u64) {
            Some(1) => {
                self.connections.heartbeats += 1;
                if !self.connections.is_mute {
                    self.order_one(number, Order::Raw(json!({"op": 11, "d": null, "s": null, "t": null}).to_string()));
                }
                Ok(())
            }
            Some(2 | 6) if has_session => Err(Order::Close(4_005)),
            Some(2) => self.identify(number, &data),
            Some(6) => self.resume(number, &data),
            Some(3 | 4 | 8) if has_session => Ok(()),
            Some(3 | 4 | 8) => Err(Order::Close(4_003)),
            _ => Err(Order::Close(4_001)),
        }
    }

    fn order_one(&mut self, number: u64, order: Order) {
        if let Some(connection) = self.connections.open.get_mut(&number) {
            connection.orders.push_back(order);
        }
    }

    fn has_token(&self, data: &Value) -> bool {
        let token = data.get("token").and_then(Value::as_str).unwrap_or_default();
        token.strip_prefix("Bot ").unwrap_or(token) == self.token
    }

    fn identify(&mut self, number: u64, data: &Value) -> Result<(), Order> {
        self.connections.identified += 1;
        if !self.has_token(data) {
            return Err(Order::Close(4_004));
        }
        let intents = data.get("intents").and_then(Value::as_u64).ok_or(Order::Close(4_013))?;
        if intents & MESSAGE_CONTENT != 0 && self.flags & (CONTENT_FLAG | CONTENT_FLAG_LARGE) == 0 {
            return Err(Order::Close(4_014));
        }
        if let Some(order) = self.connections.on_identify.pop_front() {
            return Err(order);
        }
        self.starts_left = self.starts_left.saturating_sub(1);
        self.sessions.started += 1;
        let id = format!("session-{}", self.sessions.started);
        let guilds: Vec<_> = self.guilds.keys().map(|id| json!({"id": id.to_string(), "unavailable": true})).collect();
        let ready = json!({"v": 10, "user": bot(), "guilds": guilds, "session_id": id, "session_type": "normal",
            "resume_gateway_url": format!("ws://{}/resume", self.host), "shard": [0, 1],
            "application": {"id": APPLICATION_ID.to_string(), "flags": self.flags}, "user_settings": {},
            "private_channels": [], "relationships": [], "presences": []});
        let mut log = vec![("READY".to_owned(), ready)];
        for guild in self.guilds.keys() {
            let data = self.guild_created(*guild);
            log.extend(visible(intents, "GUILD_CREATE", &data).map(|data| ("GUILD_CREATE".to_owned(), data)));
        }
        self.sessions.by_id.insert(id.clone(), Session { intents, is_valid: true, log });
        if let Some(connection) = self.connections.open.get_mut(&number) {
            (connection.session, connection.sent) = (Some(id), 0);
        }
        Ok(())
    }

    fn resume(&mut self, number: u64, data: &Value) -> Result<(), Order> {
        self.connections.resumed += 1;
        if !self.has_token(data) {
            return Err(Order::Close(4_004));
        }
        if let Some(order) = self.connections.on_resume.pop_front() {
            return Err(order);
        }
        let id = data.get("session_id").and_then(Value::as_str).unwrap_or_default();
        let Some(session) = self.sessions.by_id.get_mut(id).filter(|session| session.is_valid) else {
            return Err(Order::Invalid(false));
        };
        let sequence = data.get("seq").and_then(Value::as_u64).and_then(|number| usize::try_from(number).ok());
        let sequence = sequence.filter(|sequence| *sequence <= session.log.len()).ok_or(Order::Close(4_007))?;
        session.log.push(("RESUMED".to_owned(), json!({})));
        if let Some(connection) = self.connections.open.get_mut(&number) {
            (connection.session, connection.sent) = (Some(id.to_owned()), sequence);
        }
        Ok(())
    }

    /// A connection has ended. A normal close ends its session too.
    fn closed(&mut self, number: u64, code: Option<u16>) {
        let connection = self.connections.open.remove(&number);
        if code.is_some() {
            self.connections.closed_with = code;
        }
        if let (Some(1_000 | 1_001), Some(id)) = (code, connection.and_then(|connection| connection.session))
            && let Some(session) = self.sessions.by_id.get_mut(&id)
        {
            session.is_valid = false;
        }
    }
}

/// Returns an event as a session with these intents gets it.
fn visible(intents: u64, name: &str, data: &Value) -> Option<Value> {
    let is_direct = data.get("guild_id").is_none_or(Value::is_null);
    let needed = match name {
        _ if name.starts_with("MESSAGE_") && is_direct => DIRECT_MESSAGES,
        _ if name.starts_with("MESSAGE_") => GUILD_MESSAGES,
        _ if name.starts_with("GUILD_") || name.starts_with("CHANNEL_") || name.starts_with("THREAD_") => GUILDS,
        _ => 0,
    };
    if intents & needed != needed {
        return None;
    }
    let mut data = data.clone();
    let mentions = data.get("mentions").and_then(Value::as_array).into_iter().flatten();
    let names_bot = mentions.into_iter().filter_map(|user| user.get("id")).filter_map(id_of).any(|id| id == BOT_ID);
    let is_own = data.pointer("/author/id").and_then(id_of) == Some(BOT_ID);
    let is_hidden = needed == GUILD_MESSAGES && intents & MESSAGE_CONTENT == 0 && !names_bot && !is_own;
    if let (true, Some(data)) = (is_hidden, data.as_object_mut()) {
        data.insert("content".to_owned(), "".into());
        for name in ["attachments", "embeds", "components", "sticker_items"] {
            data.insert(name.to_owned(), json!([]));
        }
    }
    Some(data)
}

fn text(value: &Value) -> Output {
    Output::Text(value.to_string())
}

/// Opens a connection.
pub(super) async fn connect(State(shared): State<Arc<Shared>>, upgrade: WebSocketUpgrade) -> Response {
    upgrade.on_upgrade(move |socket| async move { serve(&shared, socket).await })
}

async fn serve(shared: &Arc<Shared>, mut socket: WebSocket) {
    let mut changes = shared.changes();
    let (number, heartbeat) = shared.change(|world| {
        world.connections.opened += 1;
        let number = world.connections.opened;
        world.connections.open.insert(number, Connection::default());
        (number, world.heartbeat)
    });
    let hello = json!({"op": 10, "d": {"heartbeat_interval": millis(heartbeat), "_trace": []}, "s": null, "t": null});
    let mut code = None;
    if socket.send(Message::text(hello.to_string())).await.is_ok() {
        code = tokio::select! {
            () = shared.ended() => None,
            code = exchange(shared, &mut socket, number, &mut changes) => code,
        };
    }
    shared.change(|world| world.closed(number, code));
}

/// Sends and receives until the connection ends. Returns the code of the client's close.
async fn exchange(
    shared: &Arc<Shared>,
    socket: &mut WebSocket,
    number: u64,
    changes: &mut watch::Receiver<u64>,
) -> Option<u16> {
    loop {
        let output = shared.world().output(number);
        for output in output {
            match output {
                Output::Text(text) => socket.send(Message::text(text)).await.ok()?,
                Output::Close(code) => {
                    let frame = CloseFrame { code, reason: "".into() };
                    socket.send(Message::Close(Some(frame))).await.ok()?;
                    return None;
                }
                Output::Cut => return None,
            }
        }
        let received = tokio::select! {
            change = changes.changed() => {
                change.ok()?;
                continue;
            }
            received = socket.recv() => received?.ok()?,
        };
        match received {
            Message::Text(text) => shared.change(|world| {
                if let Err(order) = world.input(number, text.as_str()) {
                    world.order_one(number, order);
                }
            }),
            Message::Close(frame) => return Some(frame.map_or(1_005, |frame| frame.code)),
            _ => {}
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
