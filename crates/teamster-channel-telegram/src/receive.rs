//! The poll: it gets updates, and confirms them after they were accepted.
//!
//! An update is confirmed by the offset of the next poll. The offset is stored after the updates below it were accepted, and
//! used to recognize them at the next start. If it cannot be stored, it is used nevertheless, and storing it is tried again.
//! The first poll of a start has no offset: the service numbers updates anew after a week without one, and an offset that is too
//! high would lose messages. What was accepted before is recognized by its id.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Value, json};
use teamster_channel::{COMMANDS, ChannelError, Inbox};
use tokio_util::sync::CancellationToken;

use crate::aliases::Aliases;
use crate::api::{Api, CALL_TIMEOUT, CallError};
use crate::config::Groups;
use crate::groups::{group, leave_last_message, may_continue};
use crate::service::{HAS_WEBHOOK, TelegramChannel, channel_error};
use crate::types::{Bot, UPDATE_KINDS, Update};

/// How long the service may hold a poll.
const POLL: Duration = Duration::from_secs(30);

/// The time limit of a poll. After it the connection counts as dead.
const POLL_TIMEOUT: Duration = Duration::from_secs(45);

/// The largest number of updates of one poll.
const MAX_UPDATES: usize = 100;

/// How long further parts of an album or a long text are awaited.
const PARTS_WAIT: Duration = Duration::from_millis(700);

/// How often they are awaited.
const MAX_PARTS_WAITS: u32 = 6;

/// The delay after the first failed poll. It doubles with each further one.
const FIRST_DELAY: Duration = Duration::from_millis(500);

/// The longest delay.
const MAX_DELAY: Duration = Duration::from_secs(30);

/// The number of conflicts in a row that are retried. The service ends an older poll of our own, after a cut, in this way.
const MAX_CONFLICTS: u32 = 3;

/// The time without an update after which the next poll has no offset. The service numbers updates anew after seven days.
const OFFSET_LASTS: Duration = Duration::from_hours(6 * 24);

/// Updates below the stored offset, but not further than this, were handled.
const HANDLED_WINDOW: i64 = 10_000;

/// The largest number of ids of texts that were joined.
const MAX_JOINED: usize = 1_000;

/// The receiving side.
pub(crate) struct Receiver<'a> {
    pub(crate) channel: &'a TelegramChannel,
    pub(crate) inbox: &'a dyn Inbox,
    pub(crate) bot: Bot,
    /// The messages that are a part of a joined text. An edit would replace the whole text by a part of it.
    pub(crate) joined: VecDeque<String>,
    /// Failures of a download, by the update.
    pub(crate) failed_download: Option<(i64, u32)>,
    stop: CancellationToken,
    api: Api,
    /// The id of the first update that is not handled.
    offset: Option<i64>,
    /// When to store the offset again. `None`: it is stored.
    store_offset_at: Option<Instant>,
    /// Failures of storing the offset in a row.
    store_failures: u32,
    /// Updates from the second number up to the first one were handled before this start.
    handled: Option<(i64, i64)>,
    last_update: Instant,
    failures: u32,
    conflicts: u32,
}

#[derive(Serialize)]
struct GetUpdates {
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<i64>,
    limit: usize,
    timeout: u64,
    allowed_updates: [&'static str; 3],
}

/// What was handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handled {
    /// The answer to a question.
    Answer,
    /// Anything else.
    Other,
}

/// What follows a failed poll.
enum AfterFailure {
    Wait(Duration),
    End(ChannelError),
}

/// Receives until `stop` is cancelled.
pub(crate) async fn receive(
    channel: &TelegramChannel,
    inbox: &dyn Inbox,
    stop: CancellationToken,
) -> Result<(), ChannelError> {
    let Some(mut receiver) = Receiver::start(channel, inbox, stop).await? else { return Ok(()) };
    while !receiver.stop.is_cancelled() {
        let Some(polled) = receiver.poll(receiver.hold()).await else { break };
        match polled {
            Ok(updates) => {
                receiver.conflicts = 0;
                if updates.is_empty() {
                    receiver.failures = 0;
                } else {
                    receiver.last_update = Instant::now();
                    receiver.take(updates).await;
                }
            }
            Err(error) => match receiver.after_failure(&error) {
                AfterFailure::Wait(delay) => receiver.wait(delay).await,
                AfterFailure::End(error) => return Err(error),
            },
        }
        if receiver.store_offset_at.is_some_and(|at| at <= Instant::now()) {
            receiver.store_offset().await;
        }
        receiver.store_aliases().await;
    }
    // What was handled last must not be handled again at the next start.
    if receiver.store_offset_at.is_some() {
        receiver.store_offset().await;
    }
    Ok(())
}

impl<'a> Receiver<'a> {
    /// Reads the stored state, and asks for the bot. `None`: the gateway stops.
    async fn start(
        channel: &'a TelegramChannel,
        inbox: &'a dyn Inbox,
        stop: CancellationToken,
    ) -> Result<Option<Self>, ChannelError> {
        let api = channel.api().clone();
        let mut receiver = Self {
            channel,
            inbox,
            bot: Bot::default(),
            joined: VecDeque::new(),
            failed_download: None,
            stop,
            api,
            offset: None,
            store_offset_at: None,
            store_failures: 0,
            handled: None,
            last_update: Instant::now(),
            failures: 0,
            conflicts: 0,
        };
        loop {
            let bot = tokio::select! {
                () = receiver.stop.cancelled() => return Ok(None),
                bot = channel.bot() => bot,
            };
            match bot {
                Ok(bot) => {
                    receiver.bot = bot;
                    break;
                }
                Err(error) => match receiver.after_failure(&error) {
                    AfterFailure::Wait(delay) => receiver.wait(delay).await,
                    AfterFailure::End(error) => return Err(error),
                },
            }
        }
        receiver.failures = 0;
        receiver.load().await.map_err(|error| ChannelError::Setting(error.to_string()))?;
        receiver.register_commands().await;
        if channel.config().groups == Groups::Mentions && !receiver.bot.can_read_all_group_messages {
            tracing::info!(
                "the Telegram bot has privacy mode: in groups it gets commands and replies for certain, and mentions \
                 perhaps not (/setprivacy at @BotFather)"
            );
        }
        Ok(Some(receiver))
    }

    async fn load(&mut self) -> Result<(), teamster_channel::InboxError> {
        let stored = self.inbox.state(&self.key("offset")).await?;
        if let Some(offset) = stored.as_ref().and_then(Value::as_i64) {
            self.handled = Some((offset, offset.saturating_sub(HANDLED_WINDOW)));
        }
        if let Some(aliases) = self.inbox.state(&self.key("chats")).await? {
            self.channel.aliases().merge(Aliases::from_value(&aliases));
        }
        Ok(())
    }

    /// Returns the key of a state. Each bot has its own: offsets and ids of one mean nothing to another one.
    fn key(&self, name: &str) -> String {
        format!("{name}:{}", self.bot.id)
    }

    /// Shows the commands in the clients. A failure has no other consequence than a log line.
    async fn register_commands(&self) {
        let command = |name: &str, description: &str| json!({"command": name, "description": description});
        let commands: Vec<_> = COMMANDS.iter().map(|spec| command(spec.name, spec.description)).collect();
        let set = self.api.call::<Value>("setMyCommands", &json!({"commands": commands}), CALL_TIMEOUT).await;
        if let Err(error) = set {
            tracing::warn!(%error, "cannot register the commands of the Telegram bot");
        }
    }

    /// Returns how long the service may hold the next poll. An offset that is not stored does not wait for the end of a long poll.
    fn hold(&self) -> Duration {
        let Some(at) = self.store_offset_at else { return POLL };
        // The service counts whole seconds.
        Duration::from_secs(at.saturating_duration_since(Instant::now()).as_secs().saturating_add(1)).min(POLL)
    }

    /// Polls once. `None`: the gateway stops.
    async fn poll(&self, hold: Duration) -> Option<Result<Vec<Update>, CallError>> {
        let offset = self.offset.filter(|_| self.last_update.elapsed() < OFFSET_LASTS);
        let parameters =
            GetUpdates { offset, limit: MAX_UPDATES, timeout: hold.as_secs(), allowed_updates: UPDATE_KINDS };
        let polled = tokio::select! {
            () = self.stop.cancelled() => return None,
            polled = self.api.call::<Vec<Value>>("getUpdates", &parameters, POLL_TIMEOUT) => polled,
        };
        Some(polled.map(|updates| updates.into_iter().filter_map(read_update).collect()))
    }

    /// Handles the updates of a poll, and confirms those that were accepted.
    async fn take(&mut self, updates: Vec<Update>) {
        let updates = self.with_further_parts(updates).await;
        let last = updates.iter().map(|update| update.update_id).max();
        let is_new =
            |update: &Update| !self.handled.is_some_and(|(before, from)| (from..before).contains(&update.update_id));
        let groups = group(updates.into_iter().filter(is_new).collect());
        for (index, updates) in groups.iter().enumerate() {
            let handled = match self.handle(updates).await {
                Ok(handled) => handled,
                Err(error) => {
                    tracing::warn!(%error, "an update of Telegram is not accepted now; it is received again");
                    let rest = groups.iter().skip(index).flatten();
                    self.confirm(rest.map(|update| update.update_id).min()).await;
                    let delay = self.next_delay();
                    return self.wait(delay).await;
                }
            };
            if handled == Handled::Answer || updates.iter().any(may_be_command) {
                // A command has an effect each time, and a repeated answer to a closed question would be a message.
                let rest = groups.iter().skip(index + 1).flatten();
                let next = rest.map(|update| update.update_id).min();
                self.confirm(next.or(last.map(|last| last.saturating_add(1)))).await;
            }
        }
        self.failures = 0;
        self.confirm(last.map(|last| last.saturating_add(1))).await;
    }

    /// Waits until an album or a long text is complete. The updates are received again, since they are not confirmed.
    async fn with_further_parts(&self, mut updates: Vec<Update>) -> Vec<Update> {
        for _ in 0..MAX_PARTS_WAITS {
            if !may_continue(&updates) || updates.len() >= MAX_UPDATES {
                break;
            }
            tokio::select! {
                () = self.stop.cancelled() => return Vec::new(),
                () = tokio::time::sleep(PARTS_WAIT) => {}
            }
            let Some(Ok(again)) = self.poll(Duration::ZERO).await else { break };
            let has_grown = again.len() > updates.len();
            if again.len() >= updates.len() {
                updates = again;
            }
            if !has_grown {
                break;
            }
        }
        if updates.len() >= MAX_UPDATES {
            leave_last_message(&mut updates);
        }
        updates
    }

    /// Uses the offset for the next poll, and stores it. All updates below it are durable or done, so the next poll may confirm them
    /// in any case: otherwise the service would send them again at once, and commands would run again.
    async fn confirm(&mut self, offset: Option<i64>) {
        let Some(offset) = offset.filter(|offset| Some(*offset) != self.offset) else { return };
        self.offset = Some(offset);
        self.store_offset().await;
    }

    /// Stores the offset. After a failure, it is tried again after a delay.
    async fn store_offset(&mut self) {
        match self.inbox.set_state(&self.key("offset"), json!(self.offset)).await {
            Ok(()) => (self.store_offset_at, self.store_failures) = (None, 0),
            Err(error) => {
                let delay = delay_after(self.store_failures);
                self.store_failures = self.store_failures.saturating_add(1);
                self.store_offset_at = Instant::now().checked_add(delay);
                tracing::warn!(%error, ?delay, "cannot store the offset of Telegram's updates; it is tried again");
            }
        }
    }

    async fn store_aliases(&self) {
        let aliases = {
            let mut aliases = self.channel.aliases();
            if !aliases.take_change() {
                return;
            }
            aliases.to_value()
        };
        if let Err(error) = self.inbox.set_state(&self.key("chats"), aliases).await {
            tracing::warn!(%error, "cannot store the new id of a Telegram group");
            self.channel.aliases().keep_change();
        }
    }

    /// Remembers messages that are one text.
    pub(crate) fn remember_joined(&mut self, ids: &[String]) {
        self.joined.extend(ids.iter().cloned());
        while self.joined.len() > MAX_JOINED {
            self.joined.pop_front();
        }
    }

    fn after_failure(&mut self, error: &CallError) -> AfterFailure {
        match error {
            CallError::Refused { code: 409, .. } if error.mentions("webhook") => {
                return AfterFailure::End(ChannelError::Setting(HAS_WEBHOOK.to_owned()));
            }
            CallError::Refused { code: 409, .. } => {
                self.conflicts += 1;
                if self.conflicts > MAX_CONFLICTS {
                    let problem =
                        "another program polls with the token of this Telegram bot: stop it, or give it another bot";
                    return AfterFailure::End(ChannelError::Setting(problem.to_owned()));
                }
            }
            CallError::Refused { retry_after: Some(wait), .. } => return AfterFailure::Wait(*wait),
            _ if matches!(error.code(), Some(401 | 404)) => return AfterFailure::End(channel_error(error)),
            // A pool may keep connections that are dead.
            CallError::Unknown(_) | CallError::NotSent(_) => match Api::new(self.channel.config()) {
                Ok(api) => self.api = api,
                Err(error) => tracing::warn!(%error, "cannot create another HTTP client for Telegram"),
            },
            _ => {}
        }
        let delay = self.next_delay();
        tracing::warn!(%error, ?delay, "a poll of Telegram has failed; it is repeated");
        AfterFailure::Wait(delay)
    }

    fn next_delay(&mut self) -> Duration {
        let delay = delay_after(self.failures);
        self.failures = self.failures.saturating_add(1);
        delay
    }

    async fn wait(&self, delay: Duration) {
        tokio::select! {
            () = self.stop.cancelled() => {}
            () = tokio::time::sleep(delay) => {}
        }
    }
}

/// Returns the delay after this number of failures in a row.
fn delay_after(failures: u32) -> Duration {
    FIRST_DELAY.saturating_mul(2_u32.saturating_pow(failures.min(16))).min(MAX_DELAY)
}

/// Reads an update. One that has not the documented form is skipped, since it would block all that follow.
fn read_update(value: Value) -> Option<Update> {
    let id = value.get("update_id").and_then(Value::as_i64)?;
    match serde_json::from_value(value) {
        Ok(update) => Some(update),
        Err(error) => {
            // The error itself can quote what a person has written.
            let problem = error.classify();
            tracing::error!(update = id, ?problem, "an update of Telegram cannot be read; it is skipped");
            Some(Update { update_id: id, ..Update::default() })
        }
    }
}

/// Returns whether an update may be a command: its text starts with `/`, or with a mention.
fn may_be_command(update: &Update) -> bool {
    let text = update.message.as_ref().and_then(|message| message.text.as_deref());
    text.is_some_and(|text| text.trim_start().starts_with('/') || text.trim_start().starts_with('@'))
}
