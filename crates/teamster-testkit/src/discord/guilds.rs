//! Servers of Discord, their channels, and the private channels with people.

use serde_json::{Value, json};

use super::bot::{APPLICATION_ID, BOT_ID, bot};
use super::clock::{now_ms, timestamp};
use super::error::ApiError;
use super::person::Person;
use super::world::{Channel, Guild, World};

/// The kinds of channels.
pub(super) const TEXT: u8 = 0;
pub(super) const DIRECT: u8 = 1;
pub(super) const PUBLIC_THREAD: u8 = 11;

/// All permissions that a bot usually has.
const PERMISSIONS: u64 = (1 << 10) | (1 << 11) | (1 << 15) | (1 << 16) | (1 << 35) | (1 << 38);

/// The permission to open threads.
const OPEN_THREADS: u64 = 1 << 35;

/// The largest number of commands of an application.
const MAX_COMMANDS: usize = 100;

impl World {
    /// Creates a server with one text channel. The bot has a role of its own, whose id is that of the server and one.
    pub(super) fn create_guild(&mut self, id: u64, channel: u64) {
        let guild = Guild { name: format!("Server {id}"), permissions: PERMISSIONS, roles: vec![id + 1] };
        self.guilds.insert(id, guild);
        self.create_channel(id, channel);
        let guild = self.guild_created(id);
        self.dispatch("GUILD_CREATE", &guild);
    }

    pub(super) fn create_channel(&mut self, guild: u64, id: u64) {
        let channel = Channel { kind: TEXT, guild: Some(guild), name: format!("channel-{id}"), ..Channel::default() };
        self.channels.insert(id, channel);
        let object = self.channel_object(id);
        self.dispatch("CHANNEL_CREATE", &object);
    }

    /// Opens a thread below a channel.
    pub(super) fn create_thread(&mut self, parent: u64, id: u64, owner: u64, name: &str) -> Value {
        let guild = self.channels.get(&parent).and_then(|channel| channel.guild);
        let thread = Channel {
            kind: PUBLIC_THREAD,
            guild,
            parent: Some(parent),
            owner: Some(owner),
            name: name.to_owned(),
            ..Channel::default()
        };
        self.channels.insert(id, thread);
        let object = self.channel_object(id);
        self.dispatch("THREAD_CREATE", &object);
        object
    }

    /// Returns the private channel with a person.
    pub(super) fn direct(&mut self, person: &Person) -> u64 {
        let id = person.direct();
        let direct = || Channel { kind: DIRECT, recipient: Some(person.clone()), ..Channel::default() };
        self.channels.entry(id).or_insert_with(direct);
        id
    }

    /// Returns a channel as an object of the API.
    pub(super) fn channel_object(&self, id: u64) -> Value {
        let Some(channel) = self.channels.get(&id) else { return Value::Null };
        let text = |id: Option<u64>| id.map(|id| id.to_string());
        let mut object = json!({"id": id.to_string(), "type": channel.kind, "name": channel.name,
            "guild_id": text(channel.guild), "parent_id": text(channel.parent), "position": 0, "flags": 0, "nsfw": false,
            "topic": null, "permission_overwrites": [], "rate_limit_per_user": 0, "last_message_id": null});
        if let Some(object) = object.as_object_mut() {
            if channel.kind == PUBLIC_THREAD {
                object.insert("owner_id".to_owned(), json!(text(channel.owner)));
                object.insert("message_count".to_owned(), json!(channel.messages.len()));
                object.insert("member_count".to_owned(), json!(1));
                let metadata = json!({"archived": false, "auto_archive_duration": 1_440, "locked": false,
                    "archive_timestamp": timestamp(now_ms()), "create_timestamp": timestamp(now_ms())});
                object.insert("thread_metadata".to_owned(), metadata);
            }
            if let Some(person) = &channel.recipient {
                object.insert("recipients".to_owned(), json!([person.object()]));
                object.remove("guild_id");
            }
        }
        object
    }

    /// Returns the event of a server that the bot sees.
    pub(super) fn guild_created(&self, id: u64) -> Value {
        let mut object = self.guild_object(id);
        let of_kind = |is_thread: bool| -> Vec<_> {
            let mine = self.channels.iter().filter(|(_, channel)| channel.guild == Some(id));
            mine.filter(|(_, channel)| (channel.kind == PUBLIC_THREAD) == is_thread)
                .map(|(id, _)| self.channel_object(*id))
                .collect()
        };
        let more = json!({"channels": of_kind(false), "threads": of_kind(true), "members": [self.own_member(id)],
            "member_count": 1, "joined_at": timestamp(now_ms()), "large": false, "unavailable": false,
            "voice_states": [], "presences": [], "stage_instances": [], "guild_scheduled_events": [],
            "soundboard_sounds": []});
        if let (Value::Object(object), Value::Object(more)) = (&mut object, more) {
            object.extend(more);
        }
        object
    }

    pub(super) fn guild_object(&self, id: u64) -> Value {
        let Some(guild) = self.guilds.get(&id) else { return Value::Null };
        let role = |id: u64, name: &str, tags: Value| {
            json!({"id": id.to_string(), "name": name, "color": 0, "hoist": false, "position": 0, "managed": false,
                "permissions": guild.permissions.to_string(), "mentionable": true, "tags": tags, "flags": 0})
        };
        let own = guild.roles.iter().map(|id| role(*id, "Teamster", json!({"bot_id": BOT_ID.to_string()})));
        let roles: Vec<_> = std::iter::once(role(id, "@everyone", json!({}))).chain(own).collect();
        json!({"id": id.to_string(), "name": guild.name, "icon": null, "splash": null, "owner_id": "1", "roles": roles,
            "emojis": [], "stickers": [], "features": [], "mfa_level": 0, "verification_level": 0, "premium_tier": 0,
            "default_message_notifications": 0, "explicit_content_filter": 0, "preferred_locale": "en-US",
            "nsfw_level": 0, "afk_channel_id": null, "afk_timeout": 300, "system_channel_id": null,
            "system_channel_flags": 0, "premium_progress_bar_enabled": false, "vanity_url_code": null})
    }

    fn own_member(&self, guild: u64) -> Value {
        let roles = self.guilds.get(&guild).map(|guild| guild.roles.clone()).unwrap_or_default();
        let roles: Vec<_> = roles.iter().map(u64::to_string).collect();
        json!({"user": bot(), "nick": null, "roles": roles, "joined_at": timestamp(now_ms()), "deaf": false,
            "mute": false, "flags": 0})
    }

    pub(super) fn member(&self, guild: u64, user: &str) -> Result<Value, ApiError> {
        if !self.guilds.contains_key(&guild) {
            return Err(ApiError::new(404, 10_004, "Unknown Guild"));
        }
        let is_bot = user == "@me" || user == BOT_ID.to_string();
        if is_bot { Ok(self.own_member(guild)) } else { Err(ApiError::new(404, 10_007, "Unknown Member")) }
    }

    /// Returns the servers of the bot.
    pub(super) fn own_guilds(&self) -> Value {
        let guild = |(id, guild): (&u64, &Guild)| {
            json!({"id": id.to_string(), "name": guild.name, "icon": null, "owner": false, "features": [],
                "permissions": guild.permissions.to_string()})
        };
        self.guilds.iter().map(guild).collect()
    }

    /// The bot opens the thread of a message.
    pub(super) fn open_thread(&mut self, channel: u64, message: u64, name: &str) -> Result<Value, ApiError> {
        let found = self.channels.get(&channel).ok_or_else(ApiError::unknown_channel)?;
        if !found.messages.contains_key(&message) {
            return Err(ApiError::unknown_message());
        }
        let may_open = found.guild.and_then(|guild| self.guilds.get(&guild));
        if may_open.is_none_or(|guild| guild.permissions & OPEN_THREADS == 0) {
            return Err(ApiError::new(403, 50_013, "Missing Permissions"));
        }
        if found.kind != TEXT {
            return Err(ApiError::new(400, 50_024, "Cannot execute action on this channel type"));
        }
        if self.channels.contains_key(&message) {
            return Err(ApiError::new(400, 160_004, "A thread has already been created for this message"));
        }
        if !(1..=100).contains(&name.chars().count()) {
            return Err(ApiError::invalid("name", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length."));
        }
        Ok(self.create_thread(channel, message, BOT_ID, name))
    }

    pub(super) fn application(&self) -> Value {
        json!({"id": APPLICATION_ID.to_string(), "name": "Teamster", "icon": null, "description": "", "bot": bot(),
            "bot_public": false, "bot_require_code_grant": false, "flags": self.flags, "verify_key": "0",
            "owner": Person::new(1, "Owner").object(), "team": null, "summary": "", "rpc_origins": []})
    }

    /// Replaces all commands of the application.
    pub(super) fn set_commands(&mut self, commands: &Value) -> Result<Value, ApiError> {
        let wrong = |message: &str| ApiError::invalid("0", "APPLICATION_COMMAND_INVALID", message);
        let list = commands.as_array().ok_or_else(|| wrong("Only iterables may be used"))?;
        let is_name = |name: &str| {
            let is_valid = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-');
            (1..=32).contains(&name.len()) && name.bytes().all(is_valid)
        };
        let is_valid = |command: &Value| {
            let text = |name: &str| command.get(name).and_then(Value::as_str).unwrap_or_default();
            is_name(text("name")) && (1..=100).contains(&text("description").chars().count())
        };
        if list.len() > MAX_COMMANDS || !list.iter().all(is_valid) {
            return Err(wrong("Command is invalid"));
        }
        let mut stored = Vec::with_capacity(list.len());
        for command in list {
            let mut command = command.clone();
            if let Some(command) = command.as_object_mut() {
                for (name, value) in [("id", self.next_id()), ("application_id", APPLICATION_ID), ("version", 1)] {
                    command.insert(name.to_owned(), value.to_string().into());
                }
                command.insert("default_member_permissions".to_owned(), Value::Null);
                command.entry("type").or_insert_with(|| json!(1));
            }
            stored.push(command);
        }
        self.commands = stored;
        Ok(json!(self.commands))
    }
}
