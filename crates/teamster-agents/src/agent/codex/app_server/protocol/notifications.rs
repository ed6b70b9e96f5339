//! Notifications of the app-server: turns, items, tokens, MCP servers and rate limits.

use serde_json::value::RawValue;

use super::super::super::{failure, notices};
use super::super::rate_limits;
use super::super::turn::ContentKind;
use super::super::wire::{
    DeltaLine, ErrorLine, HookLine, HookRun, ItemLine, LimitsLine, NoticeLine, Origin, PlanLine, ReroutedLine,
    ServerLine, TurnLine, UsageLine,
};
use super::delta_shape::DeltaShape;
use super::{Actions, AppServer, parse};
use crate::protocol::{Action, Outcome, ProcessAction};
use teamster_types::event::{Event, ToolOutput, UsageScope, UsageSoFar, Warning, WarningCode};

impl AppServer {
    /// Handles a line that differs from an earlier delta only in its text and its time. Returns whether it is one.
    pub(super) fn repeated_delta(&mut self, line: &[u8], actions: &mut Actions) -> bool {
        let Some(last) = &self.last_delta else { return false };
        let Some(text) = last.shape.text(line) else { return false };
        let is_ours = self.is_of_thread(&last.thread_id);
        match self.turn.as_mut().filter(|turn| is_ours && turn.id() == Some(&last.turn_id)) {
            Some(turn) => turn.delta(last.kind, &last.item_id, text, last.summary_index, actions),
            None => actions.push(Action::Alive),
        }
        true
    }

    pub(super) fn notification(
        &mut self,
        line: &str,
        method: &str,
        params: &RawValue,
        actions: &mut Actions,
    ) -> serde_json::Result<()> {
        match method {
            "turn/started" | "turn/completed" => {
                let origin: Origin<'_> = parse(params)?;
                let turn = parse::<TurnLine>(params)?.turn;
                let is_ours = self.is_from_thread(&origin)
                    && self.turn_end.read.as_ref() != Some(&turn.id)
                    && self.turn.as_ref().is_some_and(|ours| ours.id().is_none_or(|id| id == turn.id));
                match method {
                    _ if !is_ours => actions.push(Action::Alive),
                    "turn/started" => self.turn_started(turn.id, actions),
                    _ => self.turn_completed(turn, actions),
                }
            }
            "error" => self.error(parse(params)?, &parse(params)?, actions),
            "thread/tokenUsage/updated" => self.token_usage(params, actions)?,
            "mcpServer/startupStatus/updated" => self.server(&parse(params)?, actions),
            "warning" | "guardianWarning" | "configWarning" | "deprecationNotice" => {
                self.notice(parse(params)?, actions);
            }
            "hook/completed" => self.hook(&parse(params)?, &parse::<HookLine>(params)?.run, actions),
            "model/rerouted" => {
                let line: ReroutedLine = parse(params)?;
                let text = format!("{} answers instead of {}", line.to_model, line.from_model);
                actions.push(Action::Emit(Warning::new(WarningCode::ModelFallback, text).into()));
            }
            "account/rateLimits/updated" => {
                let limit = rate_limits::event(&parse::<LimitsLine>(params)?.rate_limits);
                actions.push(limit.map_or(Action::Alive, |limit| Action::Emit(Event::RateLimit(Box::new(limit)))));
            }
            "thread/status/changed" => self.status_changed(params, actions)?,
            "serverRequest/resolved" => self.resolved(&parse(params)?, actions),
            _ if method.starts_with("item/") || method == "turn/plan/updated" => {
                return self.in_turn(line, method, params, actions);
            }
            _ => actions.push(Action::Alive),
        }
        Ok(())
    }

    fn token_usage(&mut self, params: &RawValue, actions: &mut Actions) -> serde_json::Result<()> {
        let origin: Origin<'_> = parse(params)?;
        let line = self.is_from_thread(&origin).then(|| parse::<UsageLine>(params)).transpose()?;
        let is_of_turn = self.turn.as_ref().is_some_and(|turn| turn.id() == origin.turn_id.as_deref());
        let usage = match line {
            Some(line) if is_of_turn => {
                let before = self.usage.turn();
                let usage = self.usage.count(&line.token_usage);
                let is_new_call = usage != before;
                if let Some(turn) = self.turn.as_mut().filter(|_| is_new_call) {
                    turn.model_calls += 1;
                }
                usage
            }
            Some(line) => {
                self.usage.recall(&line.token_usage);
                None
            }
            None => None,
        };
        actions.push(usage.map_or(Action::Alive, |usage| {
            Action::Emit(Event::Usage(Box::new(UsageSoFar::new(usage, UsageScope::Run))))
        }));
        self.stop_at_limit(actions);
        Ok(())
    }

    /// Handles a notification of a turn.
    fn in_turn(
        &mut self,
        line: &str,
        method: &str,
        params: &RawValue,
        actions: &mut Actions,
    ) -> serde_json::Result<()> {
        let origin: Origin<'_> = parse(params)?;
        let is_ours = self.is_from_thread(&origin);
        let names = &self.servers.names;
        let turn = self.turn.as_mut().filter(|turn| is_ours && turn.id() == origin.turn_id.as_deref());
        let Some(turn) = turn else {
            actions.push(Action::Alive);
            return Ok(());
        };
        self.turn_end.is_working();
        match method {
            "item/started" => {
                turn.item_started(parse::<ItemLine<'_>>(params)?.item, names, actions)?;
                self.stop_at_limit(actions);
            }
            "item/completed" => return turn.item_completed(parse::<ItemLine<'_>>(params)?.item, names, actions),
            // Only summaries of reasoning are emitted, as in `exec`.
            "item/agentMessage/delta" | "item/reasoning/summaryTextDelta" if !self.whole_messages => {
                let is_answer = method == "item/agentMessage/delta";
                let kind = if is_answer { ContentKind::Text } else { ContentKind::Thinking };
                let delta: DeltaLine<'_> = parse(params)?;
                turn.delta(kind, &delta.item_id, &delta.delta, delta.summary_index, actions);
                self.last_delta = DeltaShape::of(line, kind, &origin, &delta).or(self.last_delta.take());
            }
            // The first output of a command may be missing. Its completed item has all of it.
            "item/commandExecution/outputDelta" => {
                let DeltaLine { item_id, delta, .. } = parse(params)?;
                actions.push(Action::Emit(Event::ToolOutput(ToolOutput::new(&*item_id, &*delta))));
            }
            "turn/plan/updated" => turn.plan(parse::<PlanLine>(params)?, actions),
            _ => actions.push(Action::Alive),
        }
        Ok(())
    }

    /// Handles the end of a hook. Codex 0.169.0 ends a turn whose prompt a hook has refused like one that succeeded.
    fn hook(&mut self, origin: &Origin<'_>, run: &HookRun, actions: &mut Actions) {
        let is_ours = self.is_from_thread(origin);
        let turn = self.turn.as_mut().filter(|turn| is_ours && turn.id() == origin.turn_id.as_deref());
        actions.push(match turn.filter(|_| run.has_stopped()) {
            Some(_) if run.event_name == "stop" && run.status == "stopped" => {
                let text = run.describe("ended the turn after the answer");
                Action::Emit(Warning::new(WarningCode::HookStopped, text).into())
            }
            Some(turn) => {
                turn.stopped_by_hook = Some(run.describe("stopped the agent"));
                Action::Alive
            }
            None => Action::Alive,
        });
    }

    /// Handles an `error` notification. It does not end the turn: `turn/completed` repeats a fatal error.
    fn error(&mut self, line: ErrorLine, origin: &Origin<'_>, actions: &mut Actions) {
        let is_ours = self.is_from_thread(origin);
        let turn = self.turn.as_mut().filter(|turn| is_ours && turn.id() == origin.turn_id.as_deref());
        let Some(turn) = turn else { return actions.push(Action::Alive) };
        if line.will_retry {
            turn.retract(actions);
        }
        let message = match line.error.additional_details {
            Some(details) if line.will_retry => format!("{} ({details})", line.error.message),
            _ => line.error.message,
        };
        if let Some(classification) = failure::rejected_credentials(&message).filter(|_| line.will_retry) {
            let outcome = Outcome { permission_denials: turn.denials.clone(), ..classification.into() };
            self.end_turn(outcome, actions);
            // It would repeat the request.
            return actions.push(Action::Process(ProcessAction::Stop));
        }
        match notices::reconnecting(&message).filter(|_| line.will_retry) {
            Some(warning) => actions.push(Action::Emit(warning.into())),
            None => actions.push(Action::Alive),
        }
        turn.error = Some(message);
    }

    fn server(&mut self, line: &ServerLine, actions: &mut Actions) {
        if line.status != "failed" {
            return actions.push(Action::Alive);
        }
        let reason = format!("did not start: {}", line.error.as_deref().unwrap_or("the agent reports no reason"));
        if let Some(failure) = self.servers.failed(&line.name, "failed", &reason, actions) {
            self.lose(Outcome { failure: Some(failure), ..Outcome::default() }, actions);
        }
    }

    fn notice(&mut self, line: NoticeLine, actions: &mut Actions) {
        let mut message = line.message.or(line.summary).unwrap_or_default();
        if let Some(details) = line.details {
            message.extend(["\n", &details]);
        }
        // Many notices are repeated in each turn, and some twice in a turn.
        actions.push(if notices::is_app_server_only(&message) || !self.notices.add(message.clone()) {
            Action::Alive
        } else {
            Action::Emit(notices::warning_for(&message).into())
        });
    }
}
