//! What an update means. Pure: the bot and the settings are arguments. Everything in an update is untrusted.

#[cfg(test)]
mod tests;

use teamster_channel::{Address, Author, parse_command};

use crate::aliases::Aliases;
use crate::config::Groups;
use crate::send::{BUTTON, TEXT_BUTTON};
use crate::types::{Bot, CallbackQuery, FileRef, Message, MessageEntity, Update, User};

/// The longest name of an author, in characters.
const MAX_NAME: usize = 200;

/// The longest name of a file, in characters.
const MAX_FILE_NAME: usize = 200;

/// What the mapping needs to know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'a> {
    pub(crate) bot: &'a Bot,
    pub(crate) groups: Groups,
    pub(crate) aliases: &'a Aliases,
}

/// What an update, or several that are one message, mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Incoming {
    /// A message of a person or a program.
    Message(Received),
    /// A command of the gateway.
    Command { name: &'static str, argument: String, author: Author, origin: Origin },
    /// The first message to a bot, or a question for help.
    Help { author: Author, origin: Origin },
    /// The text of a reply to a prompt with a button that takes a text. It is a message if the prompt is closed.
    Reply { token: String, message: Received },
    /// A changed message.
    Edit { id: String, text: String },
    /// A pressed button.
    Press { callback: String, token: Option<Token>, author: Author, origin: Option<Origin> },
    /// A group has another id now.
    Migrated { from: i64, to: i64 },
    /// A message without text or files, such as a location.
    Unreadable { author: Author, origin: Origin },
    /// Nothing for the gateway.
    Nothing,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) ids: Vec<String>,
    pub(crate) author: Author,
    pub(crate) origin: Origin,
    pub(crate) text: String,
    pub(crate) files: Vec<IncomingFile>,
    pub(crate) is_addressed: bool,
}

/// Where something was written or pressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) address: Address,
    /// The id of the message in its chat.
    pub(crate) message_id: i64,
    /// Whether it is a chat of one person with the bot.
    pub(crate) is_private: bool,
}

/// A file that is not downloaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IncomingFile {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) media_type: String,
    pub(crate) size: Option<u64>,
}

/// The token of a button.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Token {
    /// The press is the answer.
    Decides(String),
    /// The answer is a text that the author writes.
    TakesText,
}

/// Without the token: a log must not enable its reader to answer.
impl std::fmt::Debug for Token {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Decides(_) => "Decides",
            Self::TakesText => "TakesText",
        })
    }
}

/// Returns what updates mean: one, or several messages that are one.
pub(crate) fn incoming(updates: &[Update], context: Context<'_>) -> Incoming {
    let Some(first) = updates.first() else { return Incoming::Nothing };
    if let Some(query) = &first.callback_query {
        return press(query, context);
    }
    if let Some(edited) = &first.edited_message {
        return edit(edited, context);
    }
    let messages: Vec<_> = updates.iter().filter_map(|update| update.message.as_ref()).collect();
    let Some(first) = messages.first() else { return Incoming::Nothing };
    let chat = first.chat.id;
    match (first.migrate_to_chat_id, first.migrate_from_chat_id) {
        (Some(to), _) => return Incoming::Migrated { from: chat, to },
        (None, Some(from)) => return Incoming::Migrated { from, to: chat },
        (None, None) => {}
    }
    let (Some(author), true) =
        (first.from.as_ref().and_then(|user| author(user, first, context)), is_used(first, context))
    else {
        return Incoming::Nothing;
    };
    message(&messages, author, context)
}

/// Returns the id of a message: unique among all bots of the channel's past and future, because each has its own ids in direct
/// messages.
pub(crate) fn message_id(bot: &Bot, message: &Message) -> String {
    format!("{}:{}:{}", bot.id, message.chat.id, message.message_id)
}

fn message(messages: &[&Message], author: Author, context: Context<'_>) -> Incoming {
    let Some(first) = messages.first() else { return Incoming::Nothing };
    let origin = origin(first, context);
    let files: Vec<_> = messages.iter().flat_map(|message| files(message)).collect();
    let texts = messages.iter().map(|message| text_of(message, context)).filter(|text| !text.is_empty());
    let text = if first.media_group_id.is_some() {
        texts.collect::<Vec<_>>().join("\n")
    } else {
        // The client has split one text.
        texts.collect::<Vec<_>>().concat()
    };
    let text = text.trim().to_owned();
    let is_addressed = messages.iter().any(|message| is_addressed(message, context));
    if text.is_empty() && files.is_empty() {
        let is_unreadable = messages.iter().any(|message| has_other_content(message));
        return if is_unreadable && is_addressed { Incoming::Unreadable { author, origin } } else { Incoming::Nothing };
    }
    if files.is_empty()
        && let Some(command) = command(&text, is_addressed, &author, &origin, context)
    {
        return command;
    }
    let ids = messages.iter().map(|message| message_id(context.bot, message)).collect();
    let received = Received { ids, author, origin, text, files, is_addressed };
    match first.reply_to_message.as_deref().and_then(|replied| prompt_token(replied, context)) {
        Some(token) if !received.text.is_empty() => Incoming::Reply { token, message: received },
        _ => Incoming::Message(received),
    }
}

/// Returns what a command means. `None`: the text is no command to this bot.
fn command(text: &str, is_addressed: bool, author: &Author, origin: &Origin, context: Context<'_>) -> Option<Incoming> {
    let word = text.strip_prefix('/')?.split(char::is_whitespace).next()?;
    let (name, bot) = word.split_once('@').map_or((word, None), |(name, bot)| (name, Some(bot)));
    if bot.is_some_and(|bot| !bot.eq_ignore_ascii_case(&context.bot.username)) {
        return Some(Incoming::Nothing);
    }
    if bot.is_none() && !is_addressed {
        return None;
    }
    if name.eq_ignore_ascii_case("start") || name.eq_ignore_ascii_case("help") {
        return Some(Incoming::Help { author: author.clone(), origin: origin.clone() });
    }
    let (name, argument) = parse_command(text)?;
    Some(Incoming::Command { name, argument: argument.to_owned(), author: author.clone(), origin: origin.clone() })
}

fn edit(edited: &Message, context: Context<'_>) -> Incoming {
    let is_used = is_used(edited, context) && edited.from.as_ref().is_some_and(|user| user.id != context.bot.id);
    let text = text_of(edited, context).trim().to_owned();
    if !is_used || text.is_empty() {
        return Incoming::Nothing;
    }
    Incoming::Edit { id: message_id(context.bot, edited), text }
}

fn press(query: &CallbackQuery, context: Context<'_>) -> Incoming {
    let data = query.data.as_deref().unwrap_or_default();
    let token = match (data.strip_prefix(BUTTON), data.strip_prefix(TEXT_BUTTON)) {
        (Some(token), _) => Some(Token::Decides(token.to_owned())),
        (None, Some(_)) => Some(Token::TakesText),
        (None, None) => None,
    };
    let origin = query.message.as_ref().map(|message| origin(message, context));
    Incoming::Press { callback: query.id.clone(), token, author: author_of(&query.from, false), origin }
}

/// Returns the token of the prompt's button that takes a text. The service includes the buttons in each reply.
fn prompt_token(replied: &Message, context: Context<'_>) -> Option<String> {
    let is_own = replied.from.as_ref().is_some_and(|user| user.id == context.bot.id);
    let buttons = replied.reply_markup.as_ref().filter(|_| is_own)?.inline_keyboard.iter().flatten();
    let mut data = buttons.filter_map(|button| button.callback_data.as_deref());
    data.find_map(|data| data.strip_prefix(TEXT_BUTTON)).map(str::to_owned)
}

/// Returns the author. `None`: it is the bot itself.
fn author(user: &User, message: &Message, context: Context<'_>) -> Option<Author> {
    // A message in the name of a chat cannot be attributed to a person.
    let has_no_person = message.sender_chat.is_some();
    (user.id != context.bot.id).then(|| author_of(user, has_no_person))
}

fn author_of(user: &User, has_no_person: bool) -> Author {
    let name = match &user.last_name {
        Some(last) => format!("{} {last}", user.first_name),
        None => user.first_name.clone(),
    };
    let name = name.chars().take(MAX_NAME).collect();
    Author { id: user.id.to_string(), name, is_bot: user.is_bot || has_no_person }
}

fn origin(message: &Message, context: Context<'_>) -> Origin {
    let thread = message.message_thread_id.filter(|_| message.is_topic_message);
    let chat = context.aliases.first(message.chat.id).to_string();
    let thread = thread.map(|thread| thread.to_string()).unwrap_or_default();
    Origin { address: Address { chat, thread }, message_id: message.message_id, is_private: is_private(message) }
}

fn is_private(message: &Message) -> bool {
    message.chat.r#type == "private"
}

/// Returns whether messages of this kind of chat are used at all.
fn is_used(message: &Message, context: Context<'_>) -> bool {
    match message.chat.r#type.as_str() {
        "private" => true,
        "group" | "supergroup" => context.groups != Groups::Off,
        _ => false,
    }
}

fn is_addressed(message: &Message, context: Context<'_>) -> bool {
    if is_private(message) || context.groups == Groups::All {
        return true;
    }
    // The first message of a topic counts as the one that each message of the topic replies to.
    let is_reply = message.reply_to_message.as_deref().is_some_and(|replied| {
        replied.forum_topic_created.is_none() && replied.from.as_ref().is_some_and(|user| user.id == context.bot.id)
    });
    let (text, entities) = text_and_entities(message);
    is_reply || entities.iter().any(|entity| names_bot(text, entity, context))
}

/// Returns whether an entity is a mention of the bot, or a command to it.
fn names_bot(text: &str, entity: &MessageEntity, context: Context<'_>) -> bool {
    let name = || part_of(text, entity).unwrap_or_default();
    let is_name = |name: &str| !context.bot.username.is_empty() && name.eq_ignore_ascii_case(&context.bot.username);
    match entity.r#type.as_str() {
        "mention" => name().strip_prefix('@').is_some_and(is_name),
        "bot_command" => name().split_once('@').is_some_and(|(_, name)| is_name(name)),
        "text_mention" => entity.user.as_ref().is_some_and(|user| user.id == context.bot.id),
        _ => false,
    }
}

fn text_and_entities(message: &Message) -> (&str, &[MessageEntity]) {
    match (&message.text, &message.caption) {
        (Some(text), _) => (text, &message.entities),
        (None, Some(caption)) => (caption, &message.caption_entities),
        (None, None) => ("", &[]),
    }
}

/// Returns the text without mentions of the bot.
fn text_of(message: &Message, context: Context<'_>) -> String {
    let (text, entities) = text_and_entities(message);
    let is_mention = |entity: &&MessageEntity| entity.r#type != "bot_command" && names_bot(text, entity, context);
    let ranges: Vec<_> = entities.iter().filter(is_mention).filter_map(|entity| range_of(text, entity)).collect();
    let is_kept = |at: &usize| !ranges.iter().any(|range| range.contains(at));
    text.char_indices().filter(|(at, _)| is_kept(at)).map(|(_, character)| character).collect()
}

fn part_of<'a>(text: &'a str, entity: &MessageEntity) -> Option<&'a str> {
    text.get(range_of(text, entity)?)
}

/// Returns the range of an entity in bytes.
fn range_of(text: &str, entity: &MessageEntity) -> Option<std::ops::Range<usize>> {
    let start = usize::try_from(entity.offset).ok()?;
    let end = start.checked_add(usize::try_from(entity.length).ok()?)?;
    let (mut from, mut to, mut units) = (None, None, 0);
    for (at, character) in text.char_indices().chain([(text.len(), '\0')]) {
        if units == start {
            from = Some(at);
        }
        if units == end {
            to = Some(at);
        }
        units += character.len_utf16();
    }
    Some(from?..to?)
}

/// Returns the files of a message.
fn files(message: &Message) -> Vec<IncomingFile> {
    let Message { document, audio, voice, video, video_note, animation, sticker, photo, .. } = message;
    // An animation is a document as well, for older clients.
    let document = if animation.is_some() { None } else { document.as_ref() };
    // A photo is offered in several sizes. The last one is the largest.
    let photo = photo.iter().max_by_key(|size| size.file_size.unwrap_or_default());
    let known = [
        (photo, "photo.jpg", "image/jpeg"),
        (document, "file", "application/octet-stream"),
        (audio.as_ref(), "audio.mp3", "audio/mpeg"),
        (voice.as_ref(), "voice.ogg", "audio/ogg"),
        (video.as_ref(), "video.mp4", "video/mp4"),
        (video_note.as_ref(), "video.mp4", "video/mp4"),
        (animation.as_ref(), "animation.mp4", "video/mp4"),
        (sticker.as_ref(), "sticker.webp", "image/webp"),
    ];
    let file = |(file, name, media_type): (Option<&FileRef>, &str, &str)| {
        let FileRef { file_id, file_name, mime_type, file_size } = file?.clone();
        let name = file_name.map_or_else(|| name.to_owned(), |name| name.chars().take(MAX_FILE_NAME).collect());
        let media_type = mime_type.unwrap_or_else(|| media_type.to_owned()).chars().take(MAX_FILE_NAME).collect();
        Some(IncomingFile { id: file_id, name, media_type, size: file_size })
    };
    known.into_iter().filter_map(file).collect()
}

/// Returns whether a person has sent something that is neither a text nor a file.
fn has_other_content(message: &Message) -> bool {
    let Message { location, contact, poll, dice, story, .. } = message;
    [location, contact, poll, dice, story].iter().any(|content| content.is_some())
}
