//! Applies the events of a conversation's log to the chat.

use teamster::RunResult;
use teamster::event::{AnsweredBy, Done, Event, PermissionAnswered, PermissionDecision, RequestId};
use teamster_gateway::event::{GatewayEvent, TurnEnd};
use tokio::sync::OwnedSemaphorePermit;

use super::conversation::GatewayConversation;
use super::history::Shown;
use super::turns::{RunningTurn, WaitingTurn};
use crate::chat::state::{Chat, Request};
use crate::client::{LogBody, LogEvent, describe};
use crate::printable::{Printable, printable};

impl Chat<'_, GatewayConversation> {
    /// Applies an event, or keeps it until the history is complete.
    pub(super) fn on_log_event(&mut self, event: LogEvent, permit: Option<OwnedSemaphorePermit>) {
        let Some(mut history) = self.backend.history.take() else { return self.apply(event, permit) };
        history.add(event);
        if history.is_complete() {
            self.show_history(history.finish());
        } else {
            self.backend.history = Some(history);
        }
    }

    /// Shows the turns before the chat.
    pub(super) fn show_history(&mut self, Shown { events, is_cut }: Shown) {
        if is_cut {
            let (id, server) = (&self.backend.conversation.id, &self.backend.server_option);
            let all = printable!("teamster tail {} --no-follow{}", Printable::exact(id), server);
            self.message(printable!("(earlier turns are not shown here; all of them: {})", all));
            self.backend.is_partial = true;
        }
        for event in events {
            self.apply(event, None);
        }
        // Requests that are older than the part of the log that was read.
        for request in std::mem::take(&mut self.backend.earlier_requests) {
            self.agent_event(None, request, None);
        }
    }

    fn apply(&mut self, LogEvent { seq, turn, event, .. }: LogEvent, permit: Option<OwnedSemaphorePermit>) {
        let copied = self.backend.conversation.forked_from.map_or(0, |fork| fork.seq);
        if self.backend.last_seq <= copied && seq > copied {
            self.end_copy();
        }
        self.backend.last_seq = seq;
        match event {
            LogBody::Agent(event) => self.agent_event(turn, event, permit),
            LogBody::Gateway(event) => self.gateway_event(turn.unwrap_or_default(), event),
        }
    }

    /// Ends what the copied log of a fork leaves open.
    fn end_copy(&mut self) {
        self.backend.turns.forget();
        if self.backend.turns.running.is_some() {
            self.end_turn(None);
        }
    }

    fn agent_event(&mut self, turn: Option<String>, event: Event, permit: Option<OwnedSemaphorePermit>) {
        if let Some(turn) = turn.filter(|_| self.backend.turns.running.is_none()) {
            self.begin_turn(&turn);
        }
        if let Event::Init(init) = &event
            && let Some(directory) = &init.cwd
        {
            self.directory.clone_from(directory);
        }
        match (event, &mut self.backend.turns.running) {
            (event @ (Event::Error(_) | Event::Done(_)), Some(running)) => running.held.push(event),
            (Event::PermissionRequest(request), _) => self.open_request(Request::Permission(request), permit),
            (Event::Question(question), _) => self.open_request(Request::Question(question), permit),
            (event, _) => self.show_event(event, permit),
        }
    }

    /// Shows a request of the agent. A crash may repeat it.
    fn open_request(&mut self, request: Request, permit: Option<OwnedSemaphorePermit>) {
        let id = request.id().clone();
        if self.backend.open_requests.insert(id, request.clone()).is_none() {
            self.show_event(
                match request {
                    Request::Permission(request) => Event::PermissionRequest(request),
                    Request::Question(question) => Event::Question(question),
                },
                permit,
            );
        }
    }

    fn gateway_event(&mut self, turn: String, event: GatewayEvent) {
        match event {
            GatewayEvent::TurnQueued { author, text, attachments, .. } => {
                self.queue(WaitingTurn { id: turn, author, text, attachments, is_own: false });
            }
            GatewayEvent::TurnEdited { text } => self.backend.turns.edit(&turn, text),
            GatewayEvent::TurnStarted { agent, .. } => {
                self.backend.conversation.agent = agent;
                if !self.backend.turns.is_running(&turn) {
                    self.begin_turn(&turn);
                }
            }
            GatewayEvent::TurnJoined { .. } => {
                if let Some(joined) = self.backend.turns.take(&turn) {
                    self.print_message(&joined.head(), &joined.message());
                    self.record.steer(joined.text);
                }
            }
            GatewayEvent::TurnFinished { state, .. } => self.finish_turn(&turn, state, &event),
            GatewayEvent::PermissionAnswered { request_id, decision, by, .. } => {
                self.answered(&request_id.as_str().into(), &decision, by.as_deref());
            }
            event => {
                if matches!(
                    event,
                    GatewayEvent::TurnRetrying { .. }
                        | GatewayEvent::TurnPaused { .. }
                        | GatewayEvent::TurnInterrupted { .. }
                ) && let Some(running) = &mut self.backend.turns.running
                {
                    running.held.clear();
                }
                if let Some(text) = describe(event) {
                    self.message(text);
                }
            }
        }
    }

    fn queue(&mut self, turn: WaitingTurn) {
        let is_behind = self.backend.turns.running.is_some();
        // A terminal that cannot redraw lines does not show what waits.
        if is_behind && !self.page.is_live() {
            self.message(printable!("(queued: {})", Printable::message(&turn.text)));
        }
        self.backend.turns.add(turn);
    }

    /// Starts the turn in the chat. Its message is shown now, since the answer follows.
    fn begin_turn(&mut self, id: &str) {
        if self.backend.turns.running.is_some() {
            self.end_turn(None);
        }
        let waiting = self.backend.turns.take(id);
        if let Some(waiting) = &waiting {
            self.print_message(&waiting.head(), &waiting.message());
        }
        self.record.begin(waiting.map(|waiting| waiting.text));
        self.terminal.set_echo(false);
        self.page.start_turn(Printable::exact(&self.backend.conversation.agent));
        self.backend.turns.running = Some(RunningTurn { id: id.to_owned(), is_stopping: false, held: Vec::new() });
    }

    fn finish_turn(&mut self, id: &str, state: TurnEnd, event: &GatewayEvent) {
        if self.backend.turns.is_running(id) {
            let failure = describe(event.clone()).filter(|_| state != TurnEnd::Done);
            return self.end_turn(failure);
        }
        // A turn that never ran. Messages in a running turn end with that one.
        if let Some(waiting) = self.backend.turns.take(id) {
            self.print_message(&waiting.head(), &waiting.message());
            if let Some(text) = describe(event.clone()) {
                self.message(text);
            }
        }
    }

    /// Ends the running turn: shows the end of its last attempt, or else the reason of the gateway.
    fn end_turn(&mut self, failure: Option<Printable>) {
        let Some(RunningTurn { mut held, .. }) = self.backend.turns.running.take() else { return };
        if !held.iter().any(|event| matches!(event, Event::Done(_))) {
            let mut result = RunResult::default();
            result.is_error = failure.is_some();
            held.push(Event::Done(Box::new(Done::new(result))));
            if let Some(failure) = failure {
                self.message(failure);
            }
        }
        // How to stop the turn is not news any more.
        self.notice = None;
        for event in held {
            self.show_event(event, None);
        }
        for id in self.backend.open_requests.keys().cloned().collect::<Vec<_>>() {
            self.close_request(&id);
        }
        self.terminal.set_echo(true);
    }

    /// Notes that a request needs no answer. Returns whether it needed one.
    fn close_request(&mut self, id: &RequestId) -> bool {
        self.requests.retain(|request| request.id() != id);
        if let Some(asking) = self.asking.as_mut().filter(|asking| asking.id == *id) {
            asking.is_closed = true;
        }
        self.backend.open_requests.remove(id).is_some()
    }

    /// Shows who has answered a request, unless it was answered here.
    fn answered(&mut self, id: &RequestId, decision: &str, by: Option<&str>) {
        let was_open = self.close_request(id);
        let is_own = self.backend.answered.remove(id);
        let known = match decision {
            "allow" => PermissionDecision::Allow,
            "allow_always" => PermissionDecision::AllowAlways,
            "deny" => PermissionDecision::Deny,
            _ => PermissionDecision::Cancelled,
        };
        if was_open && !is_own {
            let what = match decision {
                "allow" => "allowed".into(),
                "allow_always" => "allowed for the agent's session".into(),
                "deny" => "denied".into(),
                "timed_out" => "denied: no answer came in time".into(),
                "worker_lost" | "turn_ended" => "closed: its turn has ended".into(),
                other => Printable::exact(other),
            };
            let who = by.map(|by| printable!(" by {}", Printable::exact(by))).unwrap_or_default();
            self.message(printable!("  {}{}", what, who));
        }
        // The output marks calls that were denied.
        let answered = PermissionAnswered::new(id.clone(), known, AnsweredBy::Caller);
        self.show_event(Event::PermissionAnswered(Box::new(answered)), None);
    }
}
