//! Hooks of the user that end a turn: they stop the agent, put a call off, or refuse the prompt (2.1.197 and 2.1.332).
//!
//! The CLI reports all of this as a success. Its result reports that a hook did it; the reason is in the output of the hook, which
//! the CLI prints with `--include-hook-events`, or in the result's text.

use serde::Deserialize;

use super::wire::{ResultLine, SystemLine};
use crate::agent::line::if_readable;
use teamster_types::event::{Warning, WarningCode};

/// The starts of a result's text if a hook refused the prompt. The model was not called then.
const REFUSALS: [&str; 2] = ["UserPromptSubmit operation blocked by hook:", "Operation stopped by hook"];

/// What follows the hook's reason in such a text.
const PROMPT: &str = "\n\nOriginal prompt:";

/// What the hooks of a turn have decided.
#[derive(Debug, Default)]
pub(super) struct Hooks {
    /// The last hook that stopped the agent or put a call off.
    last: Option<Stop>,
}

#[derive(Debug)]
struct Stop {
    /// The event, with the tool (`PreToolUse:Bash`).
    hook: Option<String>,
    reason: Option<String>,
}

/// The output of a hook, as far as it ends a turn.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct HookOutput {
    #[serde(rename = "continue", deserialize_with = "if_readable")]
    continues: Option<bool>,
    #[serde(deserialize_with = "if_readable")]
    stop_reason: Option<String>,
    #[serde(deserialize_with = "if_readable")]
    hook_specific_output: Specific,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Specific {
    #[serde(deserialize_with = "if_readable")]
    permission_decision: Option<String>,
    #[serde(deserialize_with = "if_readable")]
    permission_decision_reason: Option<String>,
}

impl Hooks {
    /// Reads the output of a hook.
    pub(super) fn response(&mut self, line: &SystemLine) {
        let stdout = line.stdout.as_deref().unwrap_or_default();
        let Ok(output) = serde_json::from_str::<HookOutput>(stdout) else { return };
        let specific = output.hook_specific_output;
        let reason = match (output.continues, specific.permission_decision.as_deref()) {
            (Some(false), _) => output.stop_reason,
            (_, Some("defer")) => specific.permission_decision_reason,
            _ => return,
        };
        self.last = Some(Stop { hook: line.hook_name.clone(), reason });
    }

    /// Returns why a hook ended the turn before the model's answer was complete; `None` if none did.
    pub(super) fn end(&self, line: &ResultLine<'_>) -> Option<String> {
        let tool = line.deferred_tool_use.as_ref().map_or("a tool", |tool| tool.name.as_str());
        match line.terminal_reason.as_deref() {
            Some("hook_stopped") => Some(self.describe("stopped the agent")),
            Some("tool_deferred") => Some(self.describe(&format!("deferred the call of {tool}"))),
            _ => refusal(line).map(|reason| with_reason("a hook refused the prompt".to_owned(), Some(&reason))),
        }
    }

    /// Returns the warning that a hook ended the turn after the model's answer.
    pub(super) fn warning(&self, line: &ResultLine<'_>) -> Option<Warning> {
        let ended = line.terminal_reason.as_deref() == Some("stop_hook_prevented");
        ended.then(|| Warning::new(WarningCode::HookStopped, self.describe("ended the turn after the answer")))
    }

    fn describe(&self, what: &str) -> String {
        let Some(Stop { hook, reason }) = &self.last else { return format!("a hook {what}") };
        let hook = hook.as_deref().map_or_else(|| "a hook".to_owned(), |hook| format!("the hook {hook}"));
        with_reason(format!("{hook} {what}"), reason.as_deref())
    }
}

fn with_reason(what: String, reason: Option<&str>) -> String {
    match reason.map(str::trim).filter(|reason| !reason.is_empty()) {
        Some(reason) => format!("{what}: {reason}"),
        None => what,
    }
}

/// Returns the reason of a hook that refused the prompt, maybe empty; `None` if none did.
fn refusal(line: &ResultLine<'_>) -> Option<String> {
    if line.is_error || line.num_turns != Some(0) {
        return None;
    }
    let text = line.result?.to_text();
    let rest = REFUSALS.iter().find_map(|start| text.strip_prefix(start))?;
    let reason = rest.split_once(PROMPT).map_or(rest, |(reason, _)| reason);
    Some(reason.trim_start_matches(':').trim().to_owned())
}
