//! The to-do list of Claude Code 2.1.197: the tools `TaskCreate`, `TaskUpdate` and `TaskList`, and `TodoWrite` of earlier
//! versions.
//!
//! A call changes the list when its result arrives. Tasks of an earlier process of the session are unknown until the agent lists
//! them.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::wire::{Block, MessageLine};
use crate::agent::line::if_readable;
use crate::bounded::Bounded;
use teamster_types::event::{Plan, PlanEntry, PlanStatus};
use teamster_types::json::RawJson;

/// The maximum number of tasks, and of calls without a result.
const MAX_TASKS: usize = 1000;

/// A call that changes or shows the list.
#[derive(Debug)]
enum Call {
    Create { subject: String },
    Update { id: String, subject: Option<String>, status: Option<String> },
    List,
    Write(Vec<PlanEntry>),
}

/// The agent's tasks, by their ids, and the calls without a result.
#[derive(Debug)]
pub(super) struct TaskList {
    calls: Bounded<String, Call>,
    tasks: Bounded<String, PlanEntry>,
    emitted: Plan,
}

impl Default for TaskList {
    fn default() -> Self {
        Self { calls: Bounded::of(MAX_TASKS), tasks: Bounded::of(MAX_TASKS), emitted: Plan::default() }
    }
}

/// The arguments of a call.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Arguments {
    #[serde(deserialize_with = "if_readable")]
    task_id: String,
    #[serde(deserialize_with = "if_readable")]
    subject: Option<String>,
    #[serde(deserialize_with = "if_readable")]
    status: Option<String>,
    #[serde(deserialize_with = "if_readable")]
    todos: Vec<Todo>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Todo {
    content: String,
    status: String,
}

/// The field `tool_use_result` of a result.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Details {
    #[serde(deserialize_with = "if_readable")]
    success: Option<bool>,
    #[serde(deserialize_with = "if_readable")]
    task: Option<Task>,
    #[serde(deserialize_with = "if_readable")]
    tasks: Option<Vec<Task>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Task {
    id: String,
    subject: String,
    status: String,
}

impl TaskList {
    /// Records a call of a tool, if it is one of the list. A subagent shares the tasks, but has a list of its own for
    /// `TodoWrite`.
    pub(super) fn called(&mut self, id: &str, name: &str, input: &RawJson, is_subagent: bool) {
        if !matches!(name, "TaskCreate" | "TaskUpdate" | "TaskList" | "TodoWrite") {
            return;
        }
        let input = input.as_str();
        let arguments: Arguments = serde_json::from_str(input).unwrap_or_default();
        let call = match name {
            "TaskCreate" => Call::Create { subject: arguments.subject.unwrap_or_default() },
            "TaskUpdate" => {
                let Arguments { task_id: id, subject, status, .. } = arguments;
                Call::Update { id, subject, status }
            }
            "TodoWrite" if is_subagent => return,
            "TodoWrite" => {
                let entries = arguments.todos.into_iter().take(MAX_TASKS);
                Call::Write(entries.map(|todo| PlanEntry::new(todo.content, status_of(&todo.status))).collect())
            }
            _ => Call::List,
        };
        self.calls.insert(id.to_owned(), call, input.len());
    }

    /// Applies the results in a `user` line. Returns the list if it has changed.
    pub(super) fn answered(&mut self, line: &MessageLine<'_>) -> Option<Plan> {
        if self.calls.is_empty() {
            return None;
        }
        let blocks = line.message.content.and_then(|raw| serde_json::from_str::<Vec<Block<'_>>>(raw.get()).ok());
        let mut written = None;
        for block in blocks.unwrap_or_default() {
            let Some(call) = block.tool_use_id.as_deref().and_then(|id| self.calls.remove(id)) else { continue };
            if block.is_error != Some(true) {
                written = self.apply(call, &block, line.tool_use_result).or(written);
            }
        }
        let plan = written.unwrap_or_else(|| Plan::new(self.tasks.values().cloned().collect()));
        (plan != self.emitted).then(|| {
            self.emitted.clone_from(&plan);
            plan
        })
    }

    /// Applies a successful call. Returns the list that `TodoWrite` has replaced.
    fn apply(&mut self, call: Call, block: &Block<'_>, details: Option<&RawValue>) -> Option<Plan> {
        let details: Details = details.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        match call {
            Call::Write(entries) => return Some(Plan::new(entries)),
            Call::Create { subject } => {
                let id = details.task.map(|task| task.id).or_else(|| created_id(block))?;
                self.set(id, subject, PlanStatus::Pending);
            }
            Call::Update { id, .. } if details.success == Some(false) || id.is_empty() || is_unknown(block) => {}
            Call::Update { id, status: Some(status), .. } if status == "deleted" => {
                self.tasks.remove(&id);
            }
            Call::Update { id, subject, status } => {
                let known = self.tasks.get(&id);
                let subject = subject.or_else(|| Some(known?.content.as_str().to_owned()));
                let status = status.map(|status| status_of(&status)).or_else(|| Some(known?.status.clone()));
                let subject = subject.unwrap_or_else(|| format!("task #{id}"));
                self.set(id, subject, status.unwrap_or(PlanStatus::Pending));
            }
            Call::List => {
                let tasks = details.tasks?;
                self.tasks.take();
                for task in tasks {
                    self.set(task.id, task.subject, status_of(&task.status));
                }
            }
        }
        None
    }

    /// Adds a task, or changes it and keeps its place.
    fn set(&mut self, id: String, subject: String, status: PlanStatus) {
        let bytes = subject.len();
        let entry = PlanEntry::new(subject, status);
        match self.tasks.get_mut(&id) {
            Some(task) => {
                *task = entry;
                self.tasks.resize(&id, bytes);
            }
            None => _ = self.tasks.insert(id, entry, bytes),
        }
    }
}

fn status_of(status: &str) -> PlanStatus {
    if status.is_empty() { PlanStatus::Pending } else { PlanStatus::from(status) }
}

fn text_of(block: &Block<'_>) -> Option<String> {
    serde_json::from_str(block.content?.get()).ok()
}

/// Returns the id in the text of a result, `Task #1 created successfully: ...`.
fn created_id(block: &Block<'_>) -> Option<String> {
    let text = text_of(block)?;
    let (id, _) = text.strip_prefix("Task #")?.split_once(" created")?;
    Some(id.to_owned())
}

/// Whether a result is that of a task that does not exist. It is not marked as an error.
fn is_unknown(block: &Block<'_>) -> bool {
    text_of(block).is_some_and(|text| text == "Task not found")
}
