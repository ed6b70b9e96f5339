//! The routes of the REST API.

use axum::http::Method;
use serde_json::{Value, json};

use super::body::Sent;
use super::bot::{APPLICATION_ID, bot};
use super::error::ApiError;
use super::world::World;

/// A call: its route, the id that divides its limits, and what it does.
pub(super) struct Route {
    /// The name, which faults and limits use.
    pub(super) name: &'static str,
    pub(super) major: String,
    pub(super) action: Action,
}

/// What a call does.
pub(super) enum Action {
    Me,
    Application,
    Gateway(bool),
    OwnGuilds,
    Guild(u64),
    Member(u64, String),
    Channel(u64),
    History(u64),
    Create(u64),
    Message(u64, u64),
    Edit(u64, u64),
    Delete(u64, u64),
    OpenThread(u64, u64),
    Typing(u64),
    Direct,
    Commands,
    SetCommands,
    Callback(u64, String),
    Reply(String),
    EditReply(String),
    DeleteReply(String),
    FollowUp(String),
}

/// Returns the route of a call.
pub(super) fn route(method: &Method, path: &str) -> Option<Route> {
    let segments: Vec<_> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let id = |text: &str| text.parse::<u64>().ok();
    let (name, major, action) = match (method.as_str(), segments.as_slice()) {
        ("GET", ["users", "@me"]) => ("me", "", Action::Me),
        ("GET", ["applications", "@me"] | ["oauth2", "applications", "@me"]) => {
            ("application", "", Action::Application)
        }
        ("GET", ["gateway"]) => ("gateway", "", Action::Gateway(false)),
        ("GET", ["gateway", "bot"]) => ("gateway", "", Action::Gateway(true)),
        ("GET", ["users", "@me", "guilds"]) => ("guilds", "", Action::OwnGuilds),
        ("POST", ["users", "@me", "channels"]) => ("openDirect", "", Action::Direct),
        ("GET", ["guilds", guild]) => ("guild", *guild, Action::Guild(id(guild)?)),
        ("GET", ["guilds", guild, "members", user]) => {
            ("member", *guild, Action::Member(id(guild)?, (*user).to_owned()))
        }
        ("GET", ["channels", channel]) => ("channel", *channel, Action::Channel(id(channel)?)),
        ("GET", ["channels", channel, "messages"]) => ("history", *channel, Action::History(id(channel)?)),
        ("POST", ["channels", channel, "messages"]) => ("createMessage", *channel, Action::Create(id(channel)?)),
        ("POST", ["channels", channel, "typing"]) => ("typing", *channel, Action::Typing(id(channel)?)),
        ("GET", ["channels", channel, "messages", message]) => {
            ("message", *channel, Action::Message(id(channel)?, id(message)?))
        }
        ("PATCH", ["channels", channel, "messages", message]) => {
            ("editMessage", *channel, Action::Edit(id(channel)?, id(message)?))
        }
        ("DELETE", ["channels", channel, "messages", message]) => {
            ("deleteMessage", *channel, Action::Delete(id(channel)?, id(message)?))
        }
        ("POST", ["channels", channel, "messages", message, "threads"]) => {
            ("openThread", *channel, Action::OpenThread(id(channel)?, id(message)?))
        }
        ("GET", ["applications", application, "commands"]) if id(application)? == APPLICATION_ID => {
            ("commands", "", Action::Commands)
        }
        ("PUT", ["applications", application, "commands"]) if id(application)? == APPLICATION_ID => {
            ("setCommands", "", Action::SetCommands)
        }
        ("POST", ["interactions", interaction, token, "callback"]) => {
            ("acknowledge", *interaction, Action::Callback(id(interaction)?, (*token).to_owned()))
        }
        ("GET", ["webhooks", _, token, "messages", "@original"]) => {
            ("reply", *token, Action::Reply((*token).to_owned()))
        }
        ("PATCH", ["webhooks", _, token, "messages", "@original"]) => {
            ("editReply", *token, Action::EditReply((*token).to_owned()))
        }
        ("DELETE", ["webhooks", _, token, "messages", "@original"]) => {
            ("deleteReply", *token, Action::DeleteReply((*token).to_owned()))
        }
        ("POST", ["webhooks", _, token]) => ("followUp", *token, Action::FollowUp((*token).to_owned())),
        _ => return None,
    };
    Some(Route { name, major: major.to_owned(), action })
}

/// Returns whether a call needs no token of the bot: the path has one.
pub(super) fn has_own_token(action: &Action) -> bool {
    matches!(
        action,
        Action::Gateway(false)
            | Action::Callback(..)
            | Action::Reply(_)
            | Action::EditReply(_)
            | Action::DeleteReply(_)
            | Action::FollowUp(_)
    )
}

/// Makes a call. `None`: it has no result.
pub(super) fn run(world: &mut World, action: &Action, sent: &Sent) -> Result<Option<Value>, ApiError> {
    let result = match action {
        Action::Me => bot(),
        Action::Application => world.application(),
        Action::Gateway(is_bot) => gateway(world, *is_bot),
        Action::OwnGuilds => world.own_guilds(),
        Action::Guild(id) => world.guild_object(*id),
        Action::Member(guild, user) => world.member(*guild, user)?,
        Action::Channel(id) => {
            let found = world.channel_object(*id);
            if found.is_null() {
                return Err(ApiError::unknown_channel());
            }
            found
        }
        Action::History(channel) => world.history(*channel, sent)?,
        Action::Create(channel) => world.create_message(*channel, sent)?,
        Action::Message(channel, message) => world.message(*channel, *message)?,
        Action::Edit(channel, message) => world.edit_message(*channel, *message, sent)?,
        Action::Delete(channel, message) => {
            world.remove_message(*channel, *message)?;
            return Ok(None);
        }
        Action::OpenThread(channel, message) => {
            world.open_thread(*channel, *message, sent.text("name").unwrap_or_default())?
        }
        Action::Typing(channel) if world.channels.contains_key(channel) => return Ok(None),
        Action::Typing(_) => return Err(ApiError::unknown_channel()),
        Action::Direct => {
            let recipient = sent.text("recipient_id").and_then(|id| id.parse::<u64>().ok());
            let known = recipient.map(|id| id + 1_000_000).map(|id| world.channel_object(id));
            known.filter(|found| !found.is_null()).ok_or_else(|| ApiError::new(400, 50_033, "Invalid Recipient(s)"))?
        }
        Action::Commands => json!(world.commands),
        Action::SetCommands => world.set_commands(&sent.json)?,
        Action::Callback(interaction, token) => return world.callback(*interaction, token, sent),
        Action::Reply(token) => world.reply_of(token)?,
        Action::EditReply(token) => world.edit_reply(token, sent)?,
        Action::DeleteReply(token) => {
            world.reply_of(token)?;
            return Ok(None);
        }
        Action::FollowUp(token) => world.follow_up(token, sent)?,
    };
    Ok(Some(result))
}

fn gateway(world: &World, is_bot: bool) -> Value {
    let url = format!("ws://{}/gateway", world.host);
    if !is_bot {
        return json!({"url": url});
    }
    json!({"url": url, "shards": 1, "session_start_limit": {"total": 1_000, "remaining": world.starts_left,
        "reset_after": 3_600_000, "max_concurrency": 1}})
}
