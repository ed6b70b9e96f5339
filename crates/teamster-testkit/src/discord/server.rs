//! The server, as tests use it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;

use super::bot::{CONTENT_FLAG, TOKEN};
use super::faults::Fault;
use super::http::router;
use super::person::{Person, Post};
use super::sessions::Order;
use super::world::{Call, Shared, World};
use crate::server::LocalServer;

/// A running server. Dropping it stops the server.
#[derive(Debug)]
pub struct DiscordServer {
    shared: Arc<Shared>,
    server: LocalServer,
    /// Its end closes all connections of the gateway.
    alive: watch::Sender<()>,
}

impl DiscordServer {
    /// Starts a server on a free port.
    pub async fn start() -> io::Result<Self> {
        let (alive, watched) = watch::channel(());
        let shared = Arc::new(Shared::new(watched));
        let server = LocalServer::start(router(Arc::clone(&shared))).await?;
        shared.change(|world| world.host = server.address().to_string());
        Ok(Self { shared, server, alive })
    }

    /// Returns the URL of the REST API, with its version.
    pub fn url(&self) -> String {
        format!("http://{}/api/v10", self.server.address())
    }

    /// Returns the URL of the gateway.
    pub fn gateway_url(&self) -> String {
        format!("ws://{}/gateway", self.server.address())
    }

    /// Returns the URL of the calls for programs in other languages.
    pub fn control_url(&self) -> String {
        format!("http://{}/control", self.server.address())
    }

    /// Returns the token of the bot.
    pub fn token(&self) -> &'static str {
        TOKEN
    }

    /// Creates a server of Discord with one text channel. The bot has a role of its own, whose id is that of the server and one.
    pub fn create_guild(&self, id: u64, channel: u64) {
        self.shared.change(|world| world.create_guild(id, channel));
    }

    /// Creates a text channel.
    pub fn create_channel(&self, guild: u64, id: u64) {
        self.shared.change(|world| world.create_channel(guild, id));
    }

    /// A person opens a thread.
    pub fn create_thread(&self, parent: u64, id: u64, by: &Person) {
        self.shared.change(|world| world.create_thread(parent, id, by.id, "A thread"));
    }

    /// Sets what the bot may do in a server, as a number of permissions.
    pub fn set_permissions(&self, guild: u64, permissions: u64) {
        self.shared.change(|world| {
            if let Some(guild) = world.guilds.get_mut(&guild) {
                guild.permissions = permissions;
            }
        });
    }

    /// Sets whether the application may have the contents of messages.
    pub fn set_content_intent(&self, is_granted: bool) {
        self.shared.change(|world| world.flags = if is_granted { CONTENT_FLAG } else { 0 });
    }

    /// Sets how many sessions the bot may still start.
    pub fn set_starts_left(&self, starts: u64) {
        self.shared.change(|world| world.starts_left = starts);
    }

    /// Sets the interval of heartbeats of new connections.
    pub fn set_heartbeat(&self, interval: Duration) {
        self.shared.change(|world| world.heartbeat = interval);
    }

    /// Sets whether heartbeats get no answer, as on a dead connection.
    pub fn set_mute(&self, is_mute: bool) {
        self.shared.change(|world| world.connections.is_mute = is_mute);
    }

    /// Makes another token the valid one.
    pub fn revoke_token(&self) {
        self.shared.change(|world| "another.token.here".clone_into(&mut world.token));
    }

    /// A person writes. Returns the id of the message.
    pub fn write(&self, post: Post) -> u64 {
        self.shared.change(|world| world.write(post))
    }

    /// A person changes a text.
    pub fn edit(&self, channel: u64, message: u64, text: &str) {
        self.shared.change(|world| world.edit(channel, message, text));
    }

    /// The service changes a message of a person, for example with a preview of a link. Bots get an event.
    pub fn unfurl(&self, channel: u64, message: u64) {
        let changes = serde_json::json!({"embeds": [{"type": "link", "url": "https://e.org"}]});
        self.shared.change(|world| world.change_message(channel, message, changes));
    }

    /// A message is deleted.
    pub fn delete(&self, channel: u64, message: u64) {
        // A message that is not there has no event.
        _ = self.shared.change(|world| world.remove_message(channel, message));
    }

    /// A person presses the button with this id, or the first one whose label contains it. Returns the interaction.
    pub fn press(&self, channel: u64, message: u64, button: &str, by: &Person) -> u64 {
        self.shared.change(|world| world.press(channel, message, button, by))
    }

    /// A person uses a slash command. Returns the interaction.
    pub fn slash(&self, channel: u64, name: &str, argument: Option<&str>, by: &Person) -> u64 {
        self.shared.change(|world| {
            if channel == by.direct() {
                world.direct(by);
            }
            world.slash(channel, name, argument, by)
        })
    }

    /// A person submits the form that an interaction has opened. Returns the new interaction; `None` if there is no form.
    pub fn submit(&self, interaction: u64, text: &str, by: &Person) -> Option<u64> {
        self.shared.change(|world| world.submit(interaction, text, by))
    }

    /// A person uses a slash command whose time is over when the bot gets it. Returns the interaction.
    pub fn slash_late(&self, channel: u64, name: &str, by: &Person) -> u64 {
        self.shared.change(|world| {
            let interaction = world.slash(channel, name, None, by);
            world.let_expire(interaction);
            interaction
        })
    }

    /// Sends all messages so far again.
    pub fn repeat_events(&self) {
        self.shared.change(World::repeat_events);
    }

    /// Sends an event of any form, such as one that the documentation does not have.
    pub fn raw_event(&self, name: &str, data: &Value) {
        self.shared.change(|world| world.dispatch(name, data));
    }

    /// Sends a text of any form to all connections.
    pub fn raw_text(&self, text: &str) {
        self.shared.change(|world| world.order(&Order::Raw(text.to_owned())));
    }

    /// Asks all connections for a heartbeat.
    pub fn request_heartbeat(&self) {
        self.shared.change(|world| world.order(&Order::Heartbeat));
    }

    /// Asks all connections to connect again.
    pub fn request_reconnect(&self) {
        self.shared.change(|world| world.order(&Order::Reconnect));
    }

    /// Ends all sessions: a resume is refused, and what happens until the next session is not sent.
    pub fn invalidate_sessions(&self) {
        self.shared.change(World::invalidate_sessions);
    }

    /// Sends all connections that their session is invalid.
    pub fn send_invalid_session(&self, can_resume: bool) {
        self.shared.change(|world| world.order(&Order::Invalid(can_resume)));
    }

    /// Closes all connections with a code.
    pub fn close_connections(&self, code: u16) {
        self.shared.change(|world| world.order(&Order::Close(code)));
    }

    /// Cuts all connections.
    pub fn cut_connections(&self) {
        self.shared.change(|world| world.order(&Order::Cut));
    }

    /// Closes the next connections that resume, with this code.
    pub fn refuse_resumes(&self, code: u16, times: usize) {
        self.shared.change(|world| world.connections.on_resume.extend((0..times).map(|_| Order::Close(code))));
    }

    /// Answers the next identifications with an invalid session.
    pub fn refuse_identifies(&self, times: usize) {
        self.shared.change(|world| world.connections.on_identify.extend((0..times).map(|_| Order::Invalid(false))));
    }

    /// Makes the next `times` calls of a route fail, such as `createMessage`. The route `file` is a download.
    pub fn fail(&self, route: &str, fault: &Fault, times: u32) {
        self.shared.change(|world| world.faults.add(route, fault, times));
    }

    /// Permits this number of calls of a route in a channel within a time. More are answered with 429.
    pub fn limit(&self, route: &str, calls: usize, within: Duration) {
        self.shared.change(|world| world.limits.insert(route.to_owned(), (calls, within)));
    }

    /// Returns the messages of a channel, as objects of the API.
    pub fn messages(&self, channel: u64) -> Vec<Value> {
        self.shared.world().messages(channel)
    }

    /// Returns the content of a file.
    pub fn file(&self, id: u64) -> Option<Vec<u8>> {
        self.shared.world().files.content(id)
    }

    /// Returns the last text of an interaction that only its person sees.
    pub fn shown_to(&self, interaction: u64) -> Option<String> {
        self.shared.world().shown_to(interaction)
    }

    /// Returns the kind of the first answer to an interaction.
    pub fn acknowledged(&self, interaction: u64) -> Option<u64> {
        self.shared.world().interactions.get(&interaction)?.answered
    }

    /// Returns a channel or a thread as an object of the API; null if there is none.
    pub fn channel(&self, id: u64) -> Value {
        self.shared.world().channel_object(id)
    }

    /// Returns the calls of the bot, in order.
    pub fn calls(&self) -> Vec<Call> {
        self.shared.world().calls.clone()
    }

    /// Returns the number of calls of a route.
    pub fn count(&self, route: &str) -> usize {
        self.shared.world().calls.iter().filter(|call| call.route == route).count()
    }

    /// Returns the commands that the bot has registered.
    pub fn commands(&self) -> Vec<Value> {
        self.shared.world().commands.clone()
    }

    /// Returns the number of connections with a session.
    pub fn connections(&self) -> usize {
        self.shared.world().open_connections()
    }

    /// Returns the numbers of identifications, resumes and heartbeats so far.
    pub fn gateway_counts(&self) -> (usize, usize, usize) {
        let world = self.shared.world();
        (world.connections.identified, world.connections.resumed, world.connections.heartbeats)
    }

    /// Returns the code with which the bot has closed a connection last.
    pub fn closed_with(&self) -> Option<u16> {
        self.shared.world().connections.closed_with
    }

    /// Waits until a condition is true. Returns whether that was in time.
    pub async fn wait_until(&self, limit: Duration, is_true: impl Fn(&Self) -> bool) -> bool {
        let mut changes = self.shared.changes();
        let wait = async {
            while !is_true(self) {
                if changes.changed().await.is_err() {
                    return;
                }
            }
        };
        tokio::time::timeout(limit, wait).await.is_ok()
    }

    /// Stops the server. Returns once every connection is closed.
    pub async fn shutdown(mut self) {
        self.server.stop().await;
        let Self { alive, shared, .. } = self;
        drop(alive);
        // The connections of the gateway end by themselves.
        let mut changes = shared.changes();
        while shared.world().has_connections() && changes.changed().await.is_ok() {}
    }
}

impl World {
    /// Returns the messages of a channel, in order.
    pub(super) fn messages(&self, channel: u64) -> Vec<Value> {
        let channel = self.channels.get(&channel);
        channel.into_iter().flat_map(|channel| channel.messages.values().cloned()).collect()
    }
}
