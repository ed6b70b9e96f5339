//! Presses of buttons, dialogs and slash commands.

use std::borrow::Cow;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use teamster_channel::{Address, Author, ChatCommand, InboxError, PromptAnswer, PromptDecision, parse_command};

use crate::api::CALL_TIMEOUT;
use crate::blocks::{BUTTON, TEXT_BUTTON, rich_text, shown};
use crate::config::Replies;
use crate::envelope::Envelope;
use crate::handler::{Handler, help};
use crate::mapping::{is_direct, place};
use crate::people::name_of;
use crate::plain::escaped;
use crate::types::{Interaction, SlashCommand, User, View};

/// The texts that a person sees after a press.
const CLOSED: &str = "This request is closed.";
const NOT_ALLOWED: &str = "You must not answer this request.";

/// How long a command may take before it is acknowledged without its reply. The service waits for three seconds.
const REPLY_WITHIN: Duration = Duration::from_secs(2);

/// The dialog for an answer.
const DIALOG: &str = "teamster:answer";

/// The field of the dialog.
const FIELD: &str = "answer";

/// The longest answer of a person, in characters.
const MAX_ANSWER: u64 = 3_000;

/// How an envelope is acknowledged.
pub(crate) struct Ack<'a> {
    pub(crate) payload: Option<Value>,
    /// What remains to do after the acknowledgment.
    pub(crate) then: Option<BoxFuture<'a, ()>>,
}

/// What a dialog must know when it is sent.
#[derive(Serialize, Deserialize)]
struct DialogState {
    token: String,
    chat: String,
    #[serde(default)]
    thread: String,
}

impl<'a> Ack<'a> {
    pub(crate) const fn plain() -> Self {
        Self { payload: None, then: None }
    }

    const fn with(payload: Value) -> Self {
        Self { payload: Some(payload), then: None }
    }

    pub(crate) fn then(work: impl Future<Output = ()> + Send + 'a) -> Self {
        Self { payload: None, then: Some(Box::pin(work)) }
    }
}

impl<'a> Handler<'a> {
    /// Handles a press or a dialog that was sent.
    pub(crate) async fn interaction(&'a self, payload: &Value) -> Result<Ack<'a>, InboxError> {
        let interaction = match Interaction::deserialize(payload) {
            Ok(interaction) => interaction,
            Err(error) => {
                // The error itself can quote what a person has written.
                let (kind, problem) = (payload.get("type").and_then(Value::as_str), error.classify());
                tracing::error!(kind, ?problem, "a press in Slack cannot be read; it is skipped");
                return Ok(Ack::plain());
            }
        };
        match interaction.r#type.as_str() {
            "block_actions" => self.press(interaction).await,
            "view_submission" => self.dialog(interaction).await,
            _ => Ok(Ack::plain()),
        }
    }

    async fn press(&'a self, interaction: Interaction) -> Result<Ack<'a>, InboxError> {
        let Some(action) = interaction.actions.first() else { return Ok(Ack::plain()) };
        let token = action.value.clone().unwrap_or_default();
        let address = address_of(&interaction, self.channel.config().replies);
        if action.action_id.starts_with(TEXT_BUTTON) {
            return Ok(Ack::then(async move { self.open_dialog(&interaction, token, &address).await }));
        }
        if !action.action_id.starts_with(BUTTON) {
            return Ok(Ack::plain());
        }
        let author = author_of(&interaction.user);
        let answer = PromptAnswer { token, message: None, author, address };
        let text = match self.inbox.answer(answer).await? {
            // The message itself shows it.
            PromptDecision::Applied => return Ok(Ack::plain()),
            PromptDecision::NotAllowed => NOT_ALLOWED,
            PromptDecision::Closed => CLOSED,
        };
        // The buttons of a closed request disappear with the delivery of its decision. The message of the press may be older than it.
        Ok(Ack::then(async move { self.show(&interaction, text).await }))
    }

    /// Opens the dialog of a button that takes a text. The service accepts it for three seconds after the press.
    async fn open_dialog(&self, interaction: &Interaction, token: String, address: &Address) {
        let state = DialogState { token, chat: address.chat.clone(), thread: address.thread.clone() };
        let Ok(state) = serde_json::to_string(&state) else { return };
        let plain = |text: &str| json!({"type": "plain_text", "text": text});
        let view = json!({
            "type": "modal", "callback_id": DIALOG, "private_metadata": state, "title": plain("Answer"),
            "submit": plain("Send"), "close": plain("Cancel"),
            "blocks": [{"type": "input", "block_id": FIELD, "label": plain("Your answer"),
                "element": {"type": "plain_text_input", "action_id": FIELD, "multiline": true,
                    "max_length": MAX_ANSWER}}],
        });
        let parameters =
            vec![("trigger_id", Cow::Borrowed(interaction.trigger_id.as_str())), ("view", view.to_string().into())];
        let opened = self.channel.api().call::<Value>("views.open", &parameters, CALL_TIMEOUT).await;
        if let Err(error) = opened {
            tracing::warn!(%error, "a dialog in Slack cannot be opened");
            self.show(interaction, "The dialog cannot be opened. Press the button again.").await;
        }
    }

    async fn dialog(&'a self, interaction: Interaction) -> Result<Ack<'a>, InboxError> {
        let Some(view) = interaction.view.as_ref().filter(|view| view.callback_id == DIALOG) else {
            return Ok(Ack::plain());
        };
        let Ok(DialogState { token, chat, thread }) = serde_json::from_str(&view.private_metadata) else {
            return Ok(Ack::plain());
        };
        let (author, address) = (author_of(&interaction.user), Address { chat, thread });
        let answer = PromptAnswer { token, message: Some(answer_of(view)), author, address };
        let problem = match self.inbox.answer(answer).await? {
            PromptDecision::Applied => return Ok(Ack::plain()),
            PromptDecision::NotAllowed => NOT_ALLOWED,
            PromptDecision::Closed => CLOSED,
        };
        Ok(Ack::with(json!({"response_action": "errors", "errors": {FIELD: problem}})))
    }

    /// Shows a text to the person who has pressed a button only.
    async fn show(&self, interaction: &Interaction, text: &str) {
        let mut body = json!({"response_type": "ephemeral", "replace_original": false, "text": escaped(text)});
        let thread = interaction.message.as_ref().and_then(|message| message.thread_ts.as_ref());
        if let (Some(body), Some(thread)) = (body.as_object_mut(), thread) {
            body.insert("thread_ts".to_owned(), thread.as_str().into());
        }
        if let Err(error) = self.channel.api().respond(&interaction.response_url, &body).await {
            tracing::debug!(%error, "a press of a button in Slack got no answer");
        }
    }

    /// Runs a slash command. The reply is for its sender only.
    pub(crate) async fn slash_command(&'a self, envelope: &Envelope) -> Ack<'a> {
        let command = match SlashCommand::deserialize(&envelope.payload) {
            Ok(command) => command,
            Err(error) => {
                // The error itself can quote what a person has written.
                let problem = error.classify();
                tracing::error!(?problem, "a command in Slack cannot be read; it is skipped");
                return Ack::plain();
            }
        };
        let url = command.response_url.clone();
        let mut reply = Box::pin(self.command_reply(command));
        match tokio::time::timeout(REPLY_WITHIN, &mut reply).await {
            Ok(text) if envelope.accepts_response_payload => Ack::with(ephemeral(&text)),
            Ok(text) => Ack::then(async move { self.respond(&url, &text).await }),
            Err(_) => Ack::then(async move { self.respond(&url, &reply.await).await }),
        }
    }

    async fn command_reply(&self, command: SlashCommand) -> String {
        let replies = self.channel.config().replies;
        let text = format!("/{}", command.text.trim().trim_start_matches('/'));
        let Some((name, argument)) = parse_command(&text) else {
            return help(&command.user_id, &command.channel_id, replies);
        };
        let is_thread_needed = replies == Replies::Thread && !is_direct(&command.channel_id);
        if is_thread_needed && command.channel_name != "directmessage" {
            return format!(
                "In this channel each thread is a conversation, and Slack has no commands in threads. Write in the thread: mention \
                 me, then `/{name}`."
            );
        }
        let user = User { username: command.user_name, ..User::default() };
        let author = Author { name: name_of(&user, &command.user_id), id: command.user_id, is_bot: false };
        let address = Address { chat: command.channel_id, thread: String::new() };
        let command = ChatCommand { name: name.to_owned(), argument: argument.to_owned(), author, address };
        match self.inbox.command(command).await {
            Ok(reply) => reply.text,
            Err(error) => {
                tracing::warn!(%error, "a command in Slack has failed");
                "The gateway cannot do this now. Try again later.".to_owned()
            }
        }
    }

    async fn respond(&self, url: &str, markdown: &str) {
        if let Err(error) = self.channel.api().respond(url, &ephemeral(markdown)).await {
            tracing::warn!(%error, "a reply to a command in Slack was not sent");
        }
    }
}

/// Returns a message for one person.
fn ephemeral(markdown: &str) -> Value {
    let formatted = shown(markdown);
    let (text, block) = rich_text(&formatted);
    json!({"response_type": "ephemeral", "text": text, "blocks": [block]})
}

fn author_of(user: &User) -> Author {
    Author { id: user.id.clone(), name: name_of(user, &user.id), is_bot: user.is_bot }
}

/// Returns the conversation of a pressed button.
fn address_of(interaction: &Interaction, replies: Replies) -> Address {
    let chat = interaction.channel.as_ref().map(|channel| channel.id.as_str()).unwrap_or_default();
    let message = interaction.message.as_ref();
    let (ts, thread) = message.map_or(("", None), |message| (message.ts.as_str(), message.thread_ts.as_deref()));
    place(chat, ts, thread, replies).address
}

/// Returns the text of the dialog's field.
fn answer_of(view: &View) -> String {
    let text = view.state.pointer(&format!("/values/{FIELD}/{FIELD}/value")).and_then(Value::as_str);
    text.unwrap_or_default().trim().to_owned()
}
