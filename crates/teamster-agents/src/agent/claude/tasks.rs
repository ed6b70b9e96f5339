//! Background tasks in a run. A run ends with its answer, so the tasks that still work then end with it.
//!
//! Runs disable background tasks, but an agent may have one anyway. The CLI names its tasks in `task_started`, in the foreground
//! too. A task works in the background if the CLI reports so (2.1.332), or if its call has a result before it has ended.

use super::notices;
use super::wire::SystemLine;
use crate::bounded::Bounded;
use teamster_types::event::{ToolId, Warning, WarningCode};

/// The tasks that work.
#[derive(Debug, Default)]
pub(super) struct Tasks(Bounded<String, Task>);

#[derive(Debug)]
struct Task {
    tool_id: Option<String>,
    description: Option<String>,
    is_background: bool,
}

impl Tasks {
    /// Reads a `task_started`.
    pub(super) fn started(&mut self, line: &SystemLine) {
        let Some(id) = &line.task_id else { return };
        let (tool_id, description) = (line.tool_use_id.clone(), line.description.clone());
        let bytes = [&tool_id, &description].into_iter().flatten().map(String::len).sum();
        self.0.insert(id.clone(), Task { tool_id, description, is_background: line.is_backgrounded }, bytes);
    }

    /// Reads a `task_updated`.
    pub(super) fn updated(&mut self, line: &SystemLine) {
        let task = line.task_id.as_ref().and_then(|id| self.0.get_mut(id));
        if let Some(task) = task.filter(|_| line.patch.is_backgrounded) {
            task.is_background = true;
        }
    }

    /// Notes that a call has its result.
    pub(super) fn call_ended(&mut self, tool_id: &ToolId) {
        let id = self.0.iter().find(|(_, task)| task.tool_id.as_deref() == Some(tool_id.as_str()));
        let id = id.map(|(id, _)| id.clone());
        if let Some(task) = id.and_then(|id| self.0.get_mut(&id)) {
            task.is_background = true;
        }
    }

    /// Reads a `task_notification`. Returns the warning that the task has ended, and whether it worked in the background.
    pub(super) fn ended(&mut self, line: &SystemLine) -> (Warning, bool) {
        let task = line.task_id.as_ref().and_then(|id| self.0.remove(id));
        let name = task.as_ref().and_then(|task| task.description.as_deref());
        (notices::task(line, name), task.as_ref().is_some_and(|task| task.is_background))
    }

    /// Takes the background tasks that have not ended. Returns their warnings.
    pub(super) fn take(&mut self) -> impl Iterator<Item = Warning> + use<> {
        let tasks = self.0.take().into_iter().filter(|(_, task)| task.is_background);
        tasks.map(|(id, task)| {
            let ended = "a background task ended with the run";
            let named = task.description.filter(|text| !text.is_empty());
            let text = named.map_or_else(|| ended.to_owned(), |name| format!("{ended}: {name}"));
            let warning = Warning::new(WarningCode::BackgroundTask, text).with("taskId", id).with("status", "killed");
            match task.tool_id {
                Some(tool_id) => warning.with("toolId", tool_id),
                None => warning,
            }
        })
    }
}
