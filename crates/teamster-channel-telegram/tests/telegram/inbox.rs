//! An inbox in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use async_trait::async_trait;
use serde_json::Value;
use teamster_channel::{
    ChatCommand, CommandReply, Edit, EditOutcome, Inbox, InboxError, Message, PromptAnswer, PromptDecision, Receipt,
};
use tokio::sync::watch;

/// What the inbox has received, and how it answers.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    pub(crate) messages: Vec<Message>,
    pub(crate) duplicates: usize,
    pub(crate) edits: Vec<Edit>,
    pub(crate) commands: Vec<ChatCommand>,
    pub(crate) answers: Vec<PromptAnswer>,
    pub(crate) states: BTreeMap<String, Value>,
    accepted: BTreeSet<String>,
    /// The number of calls that fail.
    pub(crate) failures: u32,
    /// Whether each accept ends like a crash: it is durable, and never returns.
    pub(crate) hangs_after_accept: bool,
    /// The receipt of each new message.
    pub(crate) receipt: Option<Receipt>,
    /// The authors who may answer prompts.
    pub(crate) approvers: Vec<String>,
    /// The tokens of open prompts.
    pub(crate) open: Vec<String>,
}

/// An inbox in memory.
#[derive(Debug, Default)]
pub(crate) struct MemoryInbox {
    contents: Mutex<Contents>,
    changes: watch::Sender<u64>,
}

impl MemoryInbox {
    pub(crate) fn with<T>(&self, change: impl FnOnce(&mut Contents) -> T) -> T {
        let changed = change(&mut self.contents.lock().unwrap());
        self.changes.send_modify(|count| *count += 1);
        changed
    }

    /// Waits for a condition.
    pub(crate) async fn until(&self, what: &str, is_true: impl Fn(&Contents) -> bool) {
        let mut changes = self.changes.subscribe();
        let wait = async {
            while !is_true(&self.contents.lock().unwrap()) {
                changes.changed().await.unwrap();
            }
        };
        let in_time = tokio::time::timeout(crate::world::LIMIT, wait).await;
        assert!(in_time.is_ok(), "{what}: {:?}", self.contents.lock().unwrap());
    }

    pub(crate) fn texts(&self) -> Vec<String> {
        self.with(|contents| contents.messages.iter().map(|message| message.text.clone()).collect())
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
    async fn message(&self, message: Message) -> Result<Receipt, InboxError> {
        if !message.is_addressed {
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
        self.with(|contents| contents.states.insert(key.to_owned(), state));
        Ok(())
    }
}
