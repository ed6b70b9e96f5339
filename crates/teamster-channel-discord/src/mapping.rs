//! What an event means. Pure: the bot, the settings and the origin are arguments. Everything in an event is untrusted.

mod interactions;
#[cfg(test)]
mod tests;

pub(crate) use interactions::{Ack, Pressed, ack, author_of_interaction, pressed};
use teamster_channel::{Address, Author, parse_command};

use crate::config::Servers;
use crate::types::{Channel, File, Member, Message, User};

/// The longest name of an author, in characters.
const MAX_NAME: usize = 200;

/// The longest name of a file, in characters.
const MAX_FILE_NAME: usize = 200;

/// What the mapping needs to know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'a> {
    pub(crate) bot: &'a str,
    pub(crate) servers: Servers,
    /// Whether a message to the bot opens a thread.
    pub(crate) threads: bool,
    /// The roles of the bot in the server of the message.
    pub(crate) roles: &'a [String],
    /// The channel of the message. `None`: a direct message.
    pub(crate) channel: Option<&'a Channel>,
}

/// What a message means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Incoming {
    /// A message of a person or a program.
    Message(Received),
    /// A command of the gateway, written as a text.
    Command { name: &'static str, argument: String, author: Author, origin: Origin },
    /// A message without text or files, such as a sticker or a forwarded message.
    Unreadable { author: Author, origin: Origin },
    /// Nothing for the gateway.
    Nothing,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) author: Author,
    pub(crate) origin: Origin,
    pub(crate) text: String,
    pub(crate) files: Vec<IncomingFile>,
    pub(crate) is_addressed: bool,
    /// Whether the thread of the address is opened by this message.
    pub(crate) opens_thread: bool,
}

/// Where something was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The conversation.
    pub(crate) address: Address,
    /// The channel with the message.
    pub(crate) channel: String,
    pub(crate) message: String,
}

/// A file that is not downloaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IncomingFile {
    pub(crate) url: String,
    pub(crate) name: String,
    pub(crate) media_type: String,
    pub(crate) size: u64,
}

/// Returns what a message means.
pub(crate) fn incoming(message: &Message, context: Context<'_>) -> Incoming {
    if message.author.id == context.bot || !message.is_written() || !is_used(context) {
        return Incoming::Nothing;
    }
    let author = author_of(&message.author, message.member.as_ref(), message.webhook_id.is_some());
    let text = text_of(message, context);
    let files: Vec<_> = message.attachments.iter().map(file).collect();
    let is_addressed = is_addressed(message, context);
    let (channel, message_id) = (message.channel_id.clone(), message.id.clone());
    let plain = Origin { address: address(&message.channel_id, context.channel), channel, message: message_id };
    if text.is_empty() && files.is_empty() {
        let is_other =
            !message.sticker_items.is_empty() || message.poll.is_some() || !message.message_snapshots.is_empty();
        return if is_other && is_addressed {
            Incoming::Unreadable { author, origin: plain }
        } else {
            Incoming::Nothing
        };
    }
    if let (true, true, Some((name, argument))) = (is_addressed, files.is_empty(), parse_command(&text)) {
        return Incoming::Command { name, argument: argument.to_owned(), author, origin: plain };
    }
    let opens_thread = is_addressed && context.threads && context.channel.is_some_and(Channel::has_threads);
    let origin = if opens_thread {
        // The thread of a message has the id of the message.
        let address = Address { thread: message.id.clone(), ..plain.address };
        Origin { address, ..plain }
    } else {
        plain
    };
    Incoming::Message(Received { author, origin, text, files, is_addressed, opens_thread })
}

/// Returns the id and the new text of a message that its author has changed.
pub(crate) fn edited(message: &Message, context: Context<'_>) -> Option<(String, String)> {
    // Without a time, the service has added a preview of a link.
    let is_edit = message.edited_timestamp.is_some() && message.author.id != context.bot;
    let is_meant = is_edit && message.is_written() && is_used(context);
    let text = text_of(message, context);
    (is_meant && !text.is_empty()).then(|| (message.id.clone(), text))
}

/// Returns the address of a channel: a thread has the chat of its parent.
pub(crate) fn address(id: &str, channel: Option<&Channel>) -> Address {
    let parent = channel.filter(|channel| channel.is_thread()).and_then(|channel| channel.parent_id.clone());
    match parent {
        Some(chat) => Address { chat, thread: id.to_owned() },
        None => Address { chat: id.to_owned(), thread: String::new() },
    }
}

pub(crate) fn author_of(user: &User, member: Option<&Member>, is_webhook: bool) -> Author {
    let nick = member.and_then(|member| member.nick.as_deref());
    let name = nick.or(user.global_name.as_deref()).unwrap_or(&user.username);
    Author { id: user.id.clone(), name: name.chars().take(MAX_NAME).collect(), is_bot: user.bot || is_webhook }
}

/// Returns whether messages of this kind of channel are used at all.
fn is_used(context: Context<'_>) -> bool {
    context.channel.is_none() || context.servers != Servers::Off
}

fn is_addressed(message: &Message, context: Context<'_>) -> bool {
    let Some(channel) = context.channel else { return true };
    let is_reply = message.referenced_message.as_deref().is_some_and(|replied| replied.author.id == context.bot);
    let is_own_thread = channel.is_thread() && channel.owner_id.as_deref() == Some(context.bot);
    context.servers == Servers::All || is_reply || is_own_thread || names_bot(message, context)
}

/// Returns whether a message mentions the bot, or a role of it. `@everyone` is no mention of the bot.
pub(crate) fn names_bot(message: &Message, context: Context<'_>) -> bool {
    let is_mentioned = message.mentions.iter().any(|user| user.id == context.bot);
    is_mentioned || message.mention_roles.iter().any(|role| context.roles.contains(role))
}

/// Returns the text without mentions of the bot. Mentions of other people become their names.
fn text_of(message: &Message, context: Context<'_>) -> String {
    let mut text = message.content.clone();
    for own in [format!("<@{}>", context.bot), format!("<@!{}>", context.bot)] {
        text = text.replace(&own, "");
    }
    for role in context.roles {
        text = text.replace(&format!("<@&{role}>"), "");
    }
    for user in &message.mentions {
        let name = format!("@{}", user.username);
        text = text.replace(&format!("<@{}>", user.id), &name).replace(&format!("<@!{}>", user.id), &name);
    }
    text.trim().to_owned()
}

fn file(file: &File) -> IncomingFile {
    let media_type = file.content_type.as_deref().unwrap_or("application/octet-stream");
    let short = |text: &str| text.chars().take(MAX_FILE_NAME).collect();
    IncomingFile { url: file.url.clone(), name: short(&file.filename), media_type: short(media_type), size: file.size }
}
