//! What an event means. Pure: the bot and the settings are arguments. Everything in an event is untrusted.

#[cfg(test)]
mod tests;

use teamster_channel::{Address, parse_command};

use crate::config::{Channels, Replies};
use crate::plain::{mentioned, plain};
use crate::threads::Threads;
use crate::types::{Bot, Event, FileObject};

/// The longest name of a file, in characters.
const MAX_FILE_NAME: usize = 200;

/// What the mapping needs to know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'a> {
    pub(crate) bot: &'a Bot,
    pub(crate) channels: Channels,
    pub(crate) replies: Replies,
    pub(crate) threads: &'a Threads,
}

/// What an event means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Incoming {
    /// A message of a person or a program.
    Message(Received),
    /// A command of the gateway, as a text.
    Command { name: &'static str, argument: String, message: Received },
    /// A question for help, or a mention without a text.
    Help(Received),
    /// A changed message.
    Edit { id: String, text: String },
    /// A message that was removed.
    Delete { id: String },
    /// Nothing for the gateway.
    Nothing,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) id: String,
    pub(crate) author: String,
    pub(crate) is_bot: bool,
    pub(crate) place: Location,
    pub(crate) text: String,
    pub(crate) files: Vec<IncomingFile>,
    pub(crate) is_addressed: bool,
}

/// Where something was written or pressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    pub(crate) address: Address,
    pub(crate) is_direct: bool,
}

/// A file that is not downloaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IncomingFile {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) media_type: String,
    pub(crate) size: Option<u64>,
    /// Where it is. `None`: the service must be asked, or has no content.
    pub(crate) url: Option<String>,
    /// Whether the service has the content, and not another one such as a drive.
    pub(crate) is_hosted: bool,
}

/// Returns what an event means.
pub(crate) fn incoming(event: &Event, context: Context<'_>) -> Incoming {
    if event.channel.is_empty() || !is_used(event, context) {
        return Incoming::Nothing;
    }
    match (event.r#type.as_str(), event.subtype.as_deref()) {
        ("message" | "app_mention", None | Some("file_share" | "thread_broadcast" | "me_message" | "bot_message")) => {
            message(event, context)
        }
        // The first message of a thread is replaced when it is deleted.
        ("message", Some("message_changed")) if tombstone(event).is_some() => delete(event, context),
        ("message", Some("message_changed")) => edit(event, context),
        ("message", Some("message_deleted")) => delete(event, context),
        _ => Incoming::Nothing,
    }
}

/// Returns the id of a message: unique among all workspaces. A mention arrives as two events with the same id.
pub(crate) fn message_id(bot: &Bot, channel: &str, ts: &str) -> String {
    format!("{}:{channel}:{ts}", bot.team_id)
}

/// Returns what the service knows about a file.
pub(crate) fn file(object: &FileObject) -> IncomingFile {
    let name = object.name.as_deref().filter(|name| !name.is_empty()).unwrap_or("file");
    let url = object.url_private_download.as_ref().or(object.url_private.as_ref());
    let needs_info = object.file_access.as_deref() == Some("check_file_info");
    IncomingFile {
        id: object.id.clone(),
        name: name.chars().take(MAX_FILE_NAME).collect(),
        media_type: object.mimetype.clone().unwrap_or_else(|| "application/octet-stream".to_owned()),
        size: object.size,
        url: url.filter(|url| !url.is_empty() && !needs_info).cloned(),
        is_hosted: !matches!(object.mode.as_deref(), Some("external" | "tombstone" | "hidden_by_limit")),
    }
}

/// Returns the place of something in a channel. `thread_ts` is that of a message in a thread; the first message of a thread has its
/// own time as `thread_ts`, and is in no thread.
pub(crate) fn place(channel: &str, ts: &str, thread_ts: Option<&str>, replies: Replies) -> Location {
    let is_direct = is_direct(channel);
    let thread = match thread_ts.filter(|thread| *thread != ts && !thread.is_empty()) {
        Some(thread) => thread,
        None if replies == Replies::Thread && !is_direct => ts,
        None => "",
    };
    Location { address: Address { chat: channel.to_owned(), thread: thread.to_owned() }, is_direct }
}

/// Returns whether a conversation is a direct message of one person.
pub(crate) fn is_direct(channel: &str) -> bool {
    channel.starts_with('D')
}

fn message(event: &Event, context: Context<'_>) -> Incoming {
    let is_own = event.user.as_deref() == Some(&context.bot.user_id)
        || (event.bot_id.is_some() && event.bot_id.as_deref() == Some(&context.bot.bot_id));
    let Some(author) = event.user.as_ref().or(event.bot_id.as_ref()).filter(|_| !is_own && !event.ts.is_empty()) else {
        return Incoming::Nothing;
    };
    let text = plain(&event.text, &context.bot.user_id);
    let received = Received {
        id: message_id(context.bot, &event.channel, &event.ts),
        author: author.clone(),
        is_bot: event.bot_id.is_some() || event.subtype.as_deref() == Some("bot_message"),
        place: place(&event.channel, &event.ts, event.thread_ts.as_deref(), context.replies),
        text,
        files: event.files.iter().map(file).collect(),
        is_addressed: is_addressed(event, context),
    };
    if received.text.is_empty() && received.files.is_empty() {
        let is_mention = received.is_addressed && names_bot(&event.text, context);
        return if is_mention { Incoming::Help(received) } else { Incoming::Nothing };
    }
    if !received.is_addressed || !received.files.is_empty() {
        return Incoming::Message(received);
    }
    let word = received.text.strip_prefix('/').and_then(|rest| rest.split_whitespace().next());
    if word.is_some_and(|word| word.eq_ignore_ascii_case("help")) {
        return Incoming::Help(received);
    }
    match parse_command(&received.text) {
        Some((name, argument)) => Incoming::Command { name, argument: argument.to_owned(), message: received },
        None => Incoming::Message(received),
    }
}

/// A change is one of the author's text. The service also reports previews of links and the bot's own edits.
fn edit(event: &Event, context: Context<'_>) -> Incoming {
    let Some(message) = event.message.as_deref() else { return Incoming::Nothing };
    let before = event.previous_message.as_deref().map_or("", |before| &before.text);
    let is_by_author = message.user.is_some()
        && message.bot_id.is_none()
        && message.edited.as_ref().is_some_and(|edited| Some(&edited.user) == message.user.as_ref())
        && message.user.as_deref() != Some(&context.bot.user_id);
    let text = plain(&message.text, &context.bot.user_id);
    if !is_by_author || text.is_empty() || message.text == before || message.ts.is_empty() {
        return Incoming::Nothing;
    }
    Incoming::Edit { id: message_id(context.bot, &event.channel, &message.ts), text }
}

fn delete(event: &Event, context: Context<'_>) -> Incoming {
    let is_of_person = |message: &Event| {
        message.user.as_deref().is_some_and(|user| user != context.bot.user_id) && message.bot_id.is_none()
    };
    let ts = match event.previous_message.as_deref() {
        Some(before) => is_of_person(before).then_some(before.ts.as_str()),
        // Its author is not known; the id of a message that was not accepted has no effect.
        None => tombstone(event).map(|message| message.ts.as_str()),
    };
    let Some(ts) = ts.filter(|ts| !ts.is_empty()) else { return Incoming::Nothing };
    Incoming::Delete { id: message_id(context.bot, &event.channel, ts) }
}

/// Returns what replaces the first message of a thread after its deletion.
fn tombstone(event: &Event) -> Option<&Event> {
    event.message.as_deref().filter(|message| message.subtype.as_deref() == Some("tombstone"))
}

/// Returns whether messages of this kind of conversation are used at all.
fn is_used(event: &Event, context: Context<'_>) -> bool {
    is_direct(&event.channel) || context.channels != Channels::Off
}

fn is_addressed(event: &Event, context: Context<'_>) -> bool {
    if is_direct(&event.channel) || context.channels == Channels::All || names_bot(&event.text, context) {
        return true;
    }
    // In a thread of the bot, a person who mentions another one speaks to that one.
    let is_to_another = mentioned(&event.text).next().is_some();
    let thread = event.thread_ts.as_deref().filter(|thread| *thread != event.ts);
    thread.is_some_and(|thread| context.threads.contains(&event.channel, thread)) && !is_to_another
}

fn names_bot(text: &str, context: Context<'_>) -> bool {
    mentioned(text).any(|user| user == context.bot.user_id)
}
