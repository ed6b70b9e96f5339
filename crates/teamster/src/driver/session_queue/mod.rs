//! The queue of a session: what its caller has ordered, and the agent's open requests.
//!
//! Invariants: turns start in the order in which they were sent; a request is answered once; an answer to a request that is
//! not open is rejected with an error; a handler that panics denies the request.

mod requests;
mod steering;

use std::collections::VecDeque;
use std::time::Duration;

use teamster_agents::protocol::{Command, Input};
use teamster_agents::rules::ToolRules;
use teamster_types::event::{Event, RequestId, SteerId};
use teamster_types::request::{PermissionMode, Prompt, RunRequest};
use tokio::sync::mpsc;
use tokio::time::Instant;

use self::requests::Requests;
use self::steering::Steering;
use super::answers::GivenAnswer;
use crate::permits::Ticket;
use crate::session::Handler;
use crate::session::order::{Order, SendNow};
use crate::turns::list::{Running, TurnOrder, Turns};
use crate::turns::waiting::Content;

/// A turn that starts.
pub(super) type StartedTurn = (Content, Running);

/// A command of the session's caller for the agent.
pub(super) enum AgentCommand {
    Steer { id: SteerId, prompt: Prompt },
    Answer(GivenAnswer),
    SetModel(String),
    SetPermissionMode(PermissionMode),
}

impl AgentCommand {
    pub(super) fn input(&self) -> Input<'_> {
        match self {
            Self::Answer(given) => given.input(),
            Self::Steer { id, prompt } => Input::Command(Command::Steer { id, prompt }),
            Self::SetModel(model) => Input::Command(Command::SetModel(model)),
            Self::SetPermissionMode(mode) => Input::Command(Command::SetPermissionMode(*mode)),
        }
    }
}

/// What follows between turns.
pub(super) enum NextOrder {
    Turn(StartedTurn),
    Command(AgentCommand),
    /// No more turns follow.
    Close,
}

/// The driver's side of a session's caller.
pub(crate) struct SessionQueue {
    orders: mpsc::Receiver<Order>,
    /// Whether no more turns follow.
    closed: bool,
    /// Whether no more orders follow.
    disconnected: bool,
    waiting: VecDeque<TurnOrder>,
    /// The session's turns as its caller sees them.
    turns: Turns,
    steering: Steering,
    requests: Requests,
    /// The running turn's place among the turns of the runtime.
    pub(super) ticket: Ticket,
    /// The request that all turns share, with the model and permission mode that were set last.
    pub(super) request: RunRequest,
}

impl SessionQueue {
    pub(crate) fn new(
        orders: mpsc::Receiver<Order>,
        handler: Option<Handler>,
        rules: ToolRules,
        request: RunRequest,
        turns: Turns,
    ) -> Self {
        Self {
            orders,
            closed: false,
            disconnected: false,
            waiting: VecDeque::new(),
            turns,
            steering: Steering::default(),
            requests: Requests::new(rules, handler),
            ticket: Ticket::default(),
            request,
        }
    }

    /// Waits for the next turn, without commands before it. Returns `None` if no more turns follow. Cancel safe.
    pub(super) async fn next_turn(&mut self) -> Option<StartedTurn> {
        loop {
            match self.next().await {
                NextOrder::Turn(turn) => return Some(turn),
                NextOrder::Close => return None,
                // Without a process, the next one is started with the changed request.
                NextOrder::Command(_) => {}
            }
        }
    }

    /// Waits for the next turn, or the next command before it. Cancel safe.
    pub(super) async fn next(&mut self) -> NextOrder {
        loop {
            while let Some(turn) = self.waiting.pop_front() {
                // Cancelled turns are skipped.
                if let Some(started) = self.turns.start(&turn) {
                    return NextOrder::Turn(started);
                }
            }
            if self.closed {
                return NextOrder::Close;
            }
            let order = self.orders.recv().await;
            if let Some(command) = self.take(order) {
                return NextOrder::Command(command);
            }
        }
    }

    /// Takes orders while a turn waits to be admitted, and collects the commands for the agent. Never returns. Cancel safe.
    pub(super) async fn collect_commands(&mut self, commands: &mut Vec<AgentCommand>) {
        while !self.disconnected {
            let order = self.orders.recv().await;
            commands.extend(self.take(order));
        }
        std::future::pending::<()>().await;
    }

    /// Returns the next command that was ordered already. Keeps the turns before it.
    pub(super) fn pending_command(&mut self) -> Option<AgentCommand> {
        while let Ok(order) = self.orders.try_recv() {
            if let Some(command) = self.take(Some(order)) {
                return Some(command);
            }
        }
        None
    }

    /// Waits for the next command for the agent while a turn runs. Cancel safe.
    pub(super) async fn next_command(&mut self) -> AgentCommand {
        loop {
            if let Some(answer) = self.requests.next_held(&self.ticket) {
                return AgentCommand::Answer(answer);
            }
            let command = tokio::select! {
                () = self.ticket.granted(), if self.ticket.is_waiting() => None,
                order = self.orders.recv(), if !self.disconnected => self.take(order),
                answer = self.requests.next_handled() => answer.and_then(|answer| self.answered(answer)),
            };
            if let Some(command) = command {
                return command;
            }
        }
    }

    fn take(&mut self, order: Option<Order>) -> Option<AgentCommand> {
        match order {
            Some(Order::Turn(turn)) => self.waiting.push_back(turn),
            Some(Order::SendNow(send)) => return self.send_now(*send),
            Some(Order::Answer { request, answer, reply }) => {
                let given = self.requests.take_answer(request, answer);
                let (given, outcome) = given.map_or_else(|error| (None, Err(error)), |given| (Some(given), Ok(())));
                // The caller may have dropped its call.
                _ = reply.send(outcome);
                return self.answered(given?);
            }
            Some(Order::SetModel(model)) => {
                self.request.model = Some(model.clone());
                return Some(AgentCommand::SetModel(model));
            }
            Some(Order::SetPermissionMode(mode)) => {
                self.request.permissions.mode = mode;
                return Some(AgentCommand::SetPermissionMode(mode));
            }
            Some(Order::SetRules(rules)) => self.requests.set_rules(*rules),
            Some(Order::Close) => self.closed = true,
            None => (self.closed, self.disconnected) = (true, true),
        }
        None
    }

    /// Steers the running turn, if the agent supports that. Otherwise the prompt becomes the next turn.
    fn send_now(&mut self, send: SendNow) -> Option<AgentCommand> {
        if !self.steering.is_enabled() {
            self.push_first(send);
            return None;
        }
        match self.steering.push(send) {
            Ok((id, prompt)) => Some(AgentCommand::Steer { id, prompt }),
            // It was cancelled: a turn that never starts.
            Err(cancelled) => {
                self.push_first(*cancelled);
                None
            }
        }
    }

    /// Puts a prompt before the waiting turns.
    fn push_first(&mut self, send: SendNow) {
        self.turns.push_first(&send.turn);
        self.waiting.push_front(send.into_turn());
    }

    /// Allows or forbids steering in the turn that starts now.
    pub(super) fn set_steering(&mut self, enabled: bool) {
        self.steering.enable(enabled);
    }

    /// Notes whether the agent accepted a steering prompt. A rejected one becomes the next turn.
    pub(super) fn steered(&mut self, id: &SteerId, accepted: bool) {
        if let Some(rejected) = self.steering.resolve(id, accepted) {
            self.push_first(rejected);
        }
    }

    /// Starts the turn of the prompts that came too late to steer, if there are any. The agent receives all of them in this
    /// turn.
    pub(super) fn start_steered_turn(&mut self) -> Option<StartedTurn> {
        let first = self.steering.pop_first()?;
        // The agent has started the turn, so the caller can no longer cancel it.
        let started = self.turns.start(&first.turn);
        // In this order, so that a caller that learns of its steered prompt can find the turn.
        drop(first.into_turn());
        self.steering.resolve_all();
        started
    }

    /// Turns the prompts that the agent has not accepted into turns.
    pub(super) fn stop_steering(&mut self) {
        for prompt in self.steering.take_all().into_iter().rev() {
            self.push_first(prompt);
        }
    }

    /// Returns the answer of the request's rules to a request of the agent.
    pub(super) fn answer_by_rule(&self, event: &Event) -> Option<GivenAnswer> {
        self.requests.answer_by_rule(event, self.request.permissions.mode)
    }

    /// Opens a request of the agent, if the event is one. A limit of zero means no deadline.
    pub(super) fn open_request(&mut self, event: &mut Event, limit: Duration) {
        self.requests.open(event, limit, &mut self.ticket);
    }

    /// Passes an answer on. If it is the answer to the last open request, the agent gets it when the turn has its place again.
    pub(super) fn answered(&mut self, answer: GivenAnswer) -> Option<AgentCommand> {
        self.requests.hold_or_pass(answer, &mut self.ticket).map(AgentCommand::Answer)
    }

    /// Removes a request that the agent has withdrawn.
    pub(super) fn withdraw(&mut self, request: &RequestId) {
        self.requests.withdraw(request, &mut self.ticket);
    }

    /// Ends the turn: nothing can be steered or answered any more. Returns the requests that were open.
    pub(super) fn end_turn(&mut self) -> Vec<RequestId> {
        self.steering.enable(false);
        self.requests.clear()
    }

    /// Whether the agent waits for an answer, or for its place in the queue after an answer.
    pub(super) fn awaits_answer(&self) -> bool {
        self.requests.is_open()
    }

    /// Returns the first deadline of the open requests.
    pub(super) fn answer_deadline(&self) -> Option<Instant> {
        self.requests.deadline()
    }

    /// Removes and returns the requests whose deadline has passed.
    pub(super) fn take_overdue(&mut self, now: Instant) -> Vec<RequestId> {
        self.requests.take_overdue(now)
    }
}
