//! An inbox in memory, for the tests of channels.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::watch;

use crate::inbound::{
    Author, ChatCommand, CommandReply, Edit, EditOutcome, Inbox, InboxError, Message, PromptAnswer, PromptDecision,
    Receipt,
};
use crate::outbound::Address;

/// The time limit of a condition.
const LIMIT: Duration = Duration::from_secs(20);

/// What the inbox has received, and how it answers.
#[derive(Debug, Default)]
pub struct Contents {
    /// The accepted messages.
    pub messages: Vec<Message>,
    /// The number of messages that were accepted before.
    pub duplicates: usize,
    /// The edits.
    pub edits: Vec<Edit>,
    /// The ids of the withdrawn messages.
    pub deletions: Vec<String>,
    /// The commands.
    pub commands: Vec<ChatCommand>,
    /// The answers to prompts.
    pub answers: Vec<PromptAnswer>,
    /// The stored states.
    pub states: BTreeMap<String, Value>,
    accepted: BTreeSet<String>,
    /// The number of calls that fail.
    pub failures: u32,
    /// The number of states that are not stored.
    pub state_failures: u32,
    /// Whether each accept ends like a crash: it is durable, and never returns.
    pub hangs_after_accept: bool,
    /// The receipt of each new message.
    pub receipt: Option<Receipt>,
    /// The authors who are not admitted.
    pub strangers: Vec<String>,
    /// The authors who may answer prompts.
    pub approvers: Vec<String>,
    /// The tokens of open prompts.
    pub open: Vec<String>,
}

/// An inbox in memory.
#[derive(Debug, Default)]
pub struct MemoryInbox {
    contents: Mutex<Contents>,
    changes: watch::Sender<u64>,
}

impl MemoryInbox {
    /// Reads or changes the contents.
    pub fn with<T>(&self, change: impl FnOnce(&mut Contents) -> T) -> T {
        let changed = change(&mut self.contents());
        self.changes.send_modify(|count| *count += 1);
        changed
    }

    /// Waits for a condition.
    ///
    /// # Panics
    /// It does not become true within 20 seconds.
    pub async fn until(&self, what: &str, is_true: impl Fn(&Contents) -> bool) {
        let mut changes = self.changes.subscribe();
        let wait = async { while !is_true(&self.contents()) && changes.changed().await.is_ok() {} };
        let in_time = tokio::time::timeout(LIMIT, wait).await;
        assert!(in_time.is_ok(), "{what}: {:?}", self.contents());
    }

    /// Returns the texts of the accepted messages.
    pub fn texts(&self) -> Vec<String> {
        self.with(|contents| contents.messages.iter().map(|message| message.text.clone()).collect())
    }

    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fails(&self) -> Result<(), InboxError> {
        self.with(|contents| {
            let fails = contents.failures > 0;
            contents.failures = contents.failures.saturating_sub(1);
            if fails { Err(InboxError("the store is busy".to_owned())) } else { Ok(()) }
        })
    }
}

#[async_trait]
impl Inbox for MemoryInbox {
    fn is_admitted(&self, _address: &Address, author: &Author) -> bool {
        !self.contents().strangers.contains(&author.id)
    }

    async fn message(&self, message: Message) -> Result<Receipt, InboxError> {
        if !message.is_addressed || !self.is_admitted(&message.address, &message.author) {
            return Ok(Receipt::Ignored);
        }
        self.fails()?;
        let (receipt, hangs) = self.with(|contents| {
            if message.ids.iter().any(|id| contents.accepted.contains(id)) {
                contents.duplicates += 1;
                return (Receipt::Duplicate, false);
            }
            if let Some(receipt) = &contents.receipt {
                return (receipt.clone(), false);
            }
            contents.accepted.extend(message.ids.iter().cloned());
            contents.messages.push(message);
            (Receipt::Accepted { turn: "turn".to_owned() }, contents.hangs_after_accept)
        });
        if hangs {
            std::future::pending::<()>().await;
        }
        Ok(receipt)
    }

    async fn edit(&self, edit: Edit) -> Result<EditOutcome, InboxError> {
        self.with(|contents| contents.edits.push(edit));
        Ok(EditOutcome::Edited)
    }

    async fn delete(&self, id: &str) -> Result<(), InboxError> {
        self.with(|contents| contents.deletions.push(id.to_owned()));
        Ok(())
    }

    async fn answer(&self, answer: PromptAnswer) -> Result<PromptDecision, InboxError> {
        Ok(self.with(|contents| {
            let is_open = contents.open.contains(&answer.token);
            let may_answer = contents.approvers.contains(&answer.author.id);
            contents.answers.push(answer);
            match (is_open, may_answer) {
                (false, _) => PromptDecision::Closed,
                (true, false) => PromptDecision::NotAllowed,
                (true, true) => {
                    contents.open.clear();
                    PromptDecision::Applied
                }
            }
        }))
    }

    async fn command(&self, command: ChatCommand) -> Result<CommandReply, InboxError> {
        let text = format!("**{}** done", command.name);
        self.with(|contents| contents.commands.push(command));
        Ok(CommandReply { text })
    }

    async fn state(&self, key: &str) -> Result<Option<Value>, InboxError> {
        Ok(self.with(|contents| contents.states.get(key).cloned()))
    }

    async fn set_state(&self, key: &str, state: Value) -> Result<(), InboxError> {
        self.with(|contents| {
            if let Some(left) = contents.state_failures.checked_sub(1) {
                contents.state_failures = left;
                return Err(InboxError("the store is busy".to_owned()));
            }
            contents.states.insert(key.to_owned(), state);
            Ok(())
        })
    }
}
