//! Finds the end of a turn that the app-server does not report.
//!
//! `turn/completed` may be lost (observed with 0.169.0: the answer is complete, the thread is idle, nothing follows). So when a turn
//! seems to have ended, and nothing follows for a moment, the record of the thread is read. Only the record ends the turn: a thread
//! may be idle between two steps, and a message may be followed by more work.

use serde_json::json;
use serde_json::value::RawValue;

use super::super::turn::{Stage, Turn};
use super::super::turn_end::Record;
use super::super::wire::{ReadTurns, StatusLine, TurnInfo, TurnList};
use super::{Actions, AppServer, Call, ThreadState, parse};
use crate::agent::rpc::RpcError;
use crate::protocol::Action;
use teamster_types::event::{Warning, WarningCode};

impl AppServer {
    /// Handles `thread/status/changed`.
    pub(super) fn status_changed(&mut self, params: &RawValue, actions: &mut Actions) -> serde_json::Result<()> {
        let line: StatusLine<'_> = parse(params)?;
        if self.is_of_thread(&line.thread_id) {
            self.turn_end.is_idle = &*line.status.kind != "active";
        }
        actions.push(Action::Alive);
        Ok(())
    }

    /// Sets the timer if the turn seems to have ended, and clears it otherwise.
    pub(super) fn watch_turn_end(&mut self, actions: &mut Actions) {
        let is_idle = self.turn_end.is_idle;
        let seems_ended = |turn: &Turn| {
            let is_running = matches!(turn.stage, Stage::Running(_)) && turn.has_started && !turn.is_stopping;
            is_running && (is_idle || turn.ends_with_answer)
        };
        if !self.turn_end.is_reading && self.pending.is_empty() && self.turn.as_ref().is_some_and(seems_ended) {
            self.turn_end.has_timer = true;
            actions.push(Action::SetTimer(self.turn_end.interval()));
        } else if std::mem::take(&mut self.turn_end.has_timer) {
            actions.push(Action::ClearTimer);
        }
    }

    /// Reads the record, because a turn that seems to have ended was silent.
    pub(super) fn read_record(&mut self, record: Record, actions: &mut Actions) {
        let ThreadState::Open(thread) = &self.thread_state else { return };
        self.turn_end.has_timer = false;
        self.turn_end.is_reading = true;
        let (method, params) = match record {
            Record::LastTurn => {
                ("thread/turns/list", json!({ "threadId": thread.id, "limit": 1, "itemsView": "notLoaded" }))
            }
            Record::Thread => ("thread/read", json!({ "threadId": thread.id, "includeTurns": true })),
        };
        self.call(Call::ReadRecord(record), method, &params, actions);
    }

    /// Handles the record. It is no sign of life of the turn.
    pub(super) fn record_read(
        &mut self,
        record: Record,
        answer: Result<&RawValue, RpcError>,
        actions: &mut Actions,
    ) -> serde_json::Result<()> {
        self.turn_end.is_reading = false;
        let turns = match (record, answer) {
            (Record::LastTurn, Err(_)) if self.turn.is_some() => {
                self.read_record(Record::Thread, actions);
                return Ok(());
            }
            (_, Err(_)) => Vec::new(),
            (Record::LastTurn, Ok(answer)) => parse::<TurnList>(answer)?.data,
            (Record::Thread, Ok(answer)) => parse::<ReadTurns>(answer)?.thread.turns,
        };
        self.turn_end.readings += 1;
        let ours = self.turn.as_ref().filter(|turn| !turn.is_stopping).and_then(Turn::id);
        let Some(info) = turns.into_iter().find(|turn| Some(turn.id.as_str()) == ours) else { return Ok(()) };
        if ["completed", "failed", "interrupted"].contains(&info.status.as_str()) {
            self.end_by_record(info, actions);
        }
        Ok(())
    }

    fn end_by_record(&mut self, info: TurnInfo, actions: &mut Actions) {
        let text = "the agent did not report the end of its turn; its record shows that the turn has ended";
        actions.push(Action::Emit(Warning::new(WarningCode::TurnEndMissing, text).into()));
        self.turn_end.read = Some(info.id.clone());
        self.turn_completed(info, actions);
    }
}
