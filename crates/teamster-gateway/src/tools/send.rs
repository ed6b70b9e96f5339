//! The tools that send messages and files.

use serde::Deserialize;
use teamster::tools::{JsonSchema, Reply, schemars};
use teamster_channel::{Content, File};
use teamster_store::ChatAddress;

use super::call::Call;
use super::files;
use super::turn::EffectId;
use crate::attachments::StoredAttachment;
use crate::channels::deliveries;
use crate::config::separation::private_paths;
use crate::event::GatewayEvent;

/// The longest text of a message, in bytes.
const MAX_TEXT: usize = 100_000;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MessageInput {
    /// The text in Markdown.
    text: String,
    /// Another channel. Leave it out for the chat of this conversation.
    channel: Option<String>,
    /// Another chat. Leave it out for the chat of this conversation.
    chat: Option<String>,
    /// Another thread of the chat.
    thread: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FileInput {
    /// The path of the file, absolute or relative to the working directory.
    path: String,
    /// A caption in Markdown.
    caption: Option<String>,
}

/// Sends a message to the own chat, or to another one that the configuration permits.
pub(super) async fn message(call: &Call, input: MessageInput) -> Result<Reply, String> {
    let MessageInput { text, channel, chat, thread } = input;
    if text.trim().is_empty() {
        return Err("the text must not be empty".to_owned());
    }
    if text.len() > MAX_TEXT {
        return Err(format!("the text must have at most {MAX_TEXT} bytes: send a file instead"));
    }
    let to = recipient(call, channel, chat, thread)?;
    let parts = [to.channel.as_bytes(), to.chat.as_bytes(), to.thread.as_bytes(), text.as_bytes()];
    let effect = call.current.effect("message", &parts, &call.id);
    let event = GatewayEvent::MessageSent {
        channel: to.channel.clone(),
        chat: to.chat.clone(),
        thread: to.thread.clone(),
        text: text.clone(),
        file: None,
    };
    // The agent's session is for programs that read its answers.
    send(call, &effect, &to, Content::Answer { text, session_id: None }, &event).await?;
    Ok("sent".into())
}

/// Sends a file to the own chat.
pub(super) async fn file(call: &Call, input: FileInput) -> Result<Reply, String> {
    let FileInput { path, caption } = input;
    let caption = caption.unwrap_or_default();
    if caption.len() > MAX_TEXT {
        return Err(format!("the caption must have at most {MAX_TEXT} bytes"));
    }
    let turn = &call.current.turn;
    let limit = call.gateway.config().tools.max_file_bytes;
    let private = private_paths(call.gateway.config());
    let found = files::read(turn.directory.clone(), path.into(), private, limit).await;
    let found = found.map_err(|error| error.to_string())?;
    let size = u64::try_from(found.bytes.len()).unwrap_or(u64::MAX);
    let channel = call.gateway.channels().iter().find(|known| known.name() == turn.address.channel);
    if let Some(limit) = channel.map(|channel| channel.capabilities().max_file_bytes).filter(|limit| size > *limit) {
        return Err(format!("the chat takes files of at most {limit} bytes"));
    }
    let hash = call.gateway.attachments().put(found.bytes).await;
    let hash = hash.map_err(|error| format!("the gateway cannot store the file: {error}"))?;
    let effect = call.current.effect("file", &[hash.as_bytes(), found.name.as_bytes(), caption.as_bytes()], &call.id);
    let file = StoredAttachment { name: found.name, media_type: found.media_type, hash, size };
    let content = Content::File(File {
        name: file.name.clone(),
        media_type: file.media_type.clone(),
        hash: file.hash.clone(),
        caption: caption.clone(),
    });
    let ChatAddress { channel, chat, thread } = turn.address.clone();
    let event = GatewayEvent::MessageSent { channel, chat, thread, text: caption, file: Some(file) };
    send(call, &effect, &turn.address, content, &event).await?;
    Ok("sent".into())
}

/// Returns the address of a message. Other chats need a permission of the configuration.
fn recipient(
    call: &Call,
    channel: Option<String>,
    chat: Option<String>,
    thread: Option<String>,
) -> Result<ChatAddress, String> {
    let own = &call.current.turn.address;
    let is_whole_address = channel.is_none() && chat.is_none() && thread.is_none();
    if is_whole_address {
        return Ok(own.clone());
    }
    let to = ChatAddress {
        channel: channel.unwrap_or_else(|| own.channel.clone()),
        chat: chat.unwrap_or_else(|| own.chat.clone()),
        thread: thread.unwrap_or_default(),
    };
    let channel = call.gateway.channels().iter().find(|known| known.name() == to.channel);
    if channel.is_some_and(|channel| !to.thread.is_empty() && !channel.capabilities().threads) {
        return Err(format!("the channel {:?} has no threads: leave out thread", to.channel));
    }
    if (&to.channel, &to.chat) == (&own.channel, &own.chat) {
        return Ok(to);
    }
    if !call.gateway.config().tools.permits(&to) {
        return Err(format!(
            "the configuration does not permit messages to the chat {:?} of {:?}",
            to.chat, to.channel
        ));
    }
    if channel.is_none() {
        return Err(format!("there is no channel {:?}", to.channel));
    }
    Ok(to)
}

/// Stores an effect once: the delivery by its key, and its event if this is not a repeated call.
async fn send(
    call: &Call,
    effect: &EffectId,
    to: &ChatAddress,
    content: Content,
    event: &GatewayEvent,
) -> Result<(), String> {
    if effect.is_repeated {
        return Ok(());
    }
    let (gateway, turn) = (&call.gateway, &call.current.turn);
    let store = async {
        let limit = gateway.config().tools.sends_per_turn;
        if !call.current.may_send(limit) {
            return Err(format!("a turn can send at most {limit} messages and files"));
        }
        let key = effect.key();
        let stored = match deliveries::of_tool(turn.conversation, turn.turn, to, key, content, gateway.now()) {
            Ok(deliveries) => gateway.record_effect(turn.lease(), event, deliveries).await,
            Err(error) => Err(error),
        };
        stored.map_err(|error| {
            call.current.was_not_sent();
            format!("the gateway cannot store the message: {error}")
        })
    };
    let stored = store.await;
    if stored.is_err() {
        call.current.failed(effect);
    }
    stored
}
