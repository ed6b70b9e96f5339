//! The `system/*` lines other than `init`: notices of the CLI, its tasks, and the user's hooks.

use super::{Actions, Phase, StreamJson};
use crate::agent::claude::notices;
use crate::agent::claude::wire::SystemLine;
use crate::protocol::Action;
use teamster_types::event::Warning;

impl StreamJson {
    pub(super) fn system(&mut self, subtype: &str, line: &SystemLine, actions: &mut Actions) {
        if subtype == "api_retry" && self.is_key_rejected(line) {
            return self.key_rejected(actions);
        }
        let warning = match subtype {
            "task_notification" => return self.task_ended(line, actions),
            "task_started" => {
                self.tasks.started(line);
                None
            }
            "task_updated" => {
                self.tasks.updated(line);
                None
            }
            "hook_response" => {
                self.hooks.response(line);
                None
            }
            // The result repeats the reason for which a hook refused the prompt.
            "informational" if line.prevent_continuation => None,
            "model_fallback" | "model_refusal_fallback" => {
                for uuid in &line.retracted_message_uuids {
                    self.retract_line(uuid, actions);
                }
                self.is_model_change_known = true;
                notices::of_system(subtype, line)
            }
            _ => notices::of_system(subtype, line),
        };
        actions.push(warning.map_or(Action::Alive, |warning| Action::Emit(warning.into())));
    }

    /// Reports the end of a background task: in a session in the turn to which it belongs, in a run if the run has not ended.
    fn task_ended(&mut self, line: &SystemLine, actions: &mut Actions) {
        let (warning, is_background) = self.tasks.ended(line);
        let warning = Action::Emit(warning.into());
        if let Some(background) = self.background() {
            return background.note(warning, actions);
        }
        let is_in_turn = self.session.is_none() || self.phase == Phase::Open;
        actions.push(if is_background && is_in_turn { warning } else { Action::Alive });
    }

    /// Notes the model of a message of the main thread. If it changes within a turn, this is reported once.
    pub(super) fn note_model(&mut self, model: Option<&str>, actions: &mut Actions) {
        let Some((from, to)) = model.and_then(|model| Some((self.totals.set_model(model)?, model))) else { return };
        if !std::mem::replace(&mut self.is_model_change_known, true) {
            let warning: Warning = notices::model_changed(&from, to);
            actions.push(Action::Emit(warning.into()));
        }
    }
}
