//! The desk of a session: what its caller orders while a turn runs, and which requests of the agent wait for an answer.
//!
//! Invariants: turns are taken in the order in which they were sent; a request is answered once; who answers what does not
//! wait is told so; a handler that panics has denied.

mod answers;
mod kept;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use teamster_agents::rules::ToolRules;
use teamster_types::event::{AnsweredBy, Event, RequestId, SteerId};
use teamster_types::request::{Answer, PermissionMode, Prompt, RunRequest};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{Id, JoinSet};
use tokio::time::Instant;
use uuid::Uuid;

pub(super) use self::answers::Given;
use self::answers::{Open, deadline};
pub(super) use self::kept::Kept;
use crate::events::size;
use crate::permits::Ticket;
use crate::run::Run;
use crate::session::{AnswerError, Handler, Sent};
use crate::setup::path_resolver::DiskPathResolver;
use crate::turns::{Content, Running, TurnOrder, Turns};

/// A turn that begins.
pub(super) type Begun = (Content, Running);

/// How many requests of the agent may wait for an answer. Those beyond are denied at once.
const MAX_OPEN: usize = 1000;

/// How many bytes these requests may have, roughly: their protocols keep their inputs.
const MAX_OPEN_BYTES: usize = 16 << 20;

/// What the caller of a session orders.
pub(crate) enum Order {
    Turn(TurnOrder),
    Now(Box<Now>),
    Answer {
        request: RequestId,
        answer: Answer,
        told: oneshot::Sender<Result<(), AnswerError>>,
    },
    SetModel(String),
    SetPermissionMode(PermissionMode),
    /// No more turns come; the session ends when those that were sent have ended.
    Close,
}

/// Words that are to be said within the running turn, or else as a turn.
pub(crate) struct Now {
    pub(crate) turn: TurnOrder,
    /// The caller's end of that turn.
    pub(crate) run: Box<Run>,
    pub(crate) told: oneshot::Sender<Sent>,
}

/// What an order asks of the agent in mid-turn.
pub(super) enum Asked {
    Steer { id: SteerId, prompt: Prompt },
    Answer(Given),
    SetModel(String),
    SetPermissionMode(PermissionMode),
}

/// What comes between turns.
pub(super) enum Between {
    /// The next turn; `None` when there will be none.
    Turn(Option<Begun>),
    /// What is ordered of the agent.
    Change(Asked),
}

/// What the driver of a session knows of its caller.
pub(crate) struct Desk {
    orders: mpsc::Receiver<Order>,
    /// No more turns come.
    closed: bool,
    /// Nothing comes any more.
    hung_up: bool,
    turns: VecDeque<TurnOrder>,
    /// What the session's caller sees of its turns.
    list: Turns,
    /// Whether more can be said within the running turn.
    pub(super) steers: bool,
    /// What was said within the running turn, and is not known to be heard.
    steering: VecDeque<Steering>,
    /// What answers requests of the agent before anybody is asked.
    rules: ToolRules,
    /// Requests of the agent that wait.
    open: BTreeMap<RequestId, Open>,
    /// Answers that wait until the turn has its place again.
    held: VecDeque<Given>,
    /// The running turn's place among all turns.
    pub(super) place: Ticket,
    handler: Option<Handler>,
    /// Handlers at work, and for which request.
    handling: JoinSet<Answer>,
    handled: HashMap<Id, RequestId>,
    /// What the session's turns have in common, as it was last ordered.
    pub(super) frame: RunRequest,
}

/// Words that the agent has, and that are not known to be heard. They cannot be cancelled.
struct Steering {
    id: SteerId,
    now: Box<Now>,
    content: Content,
}

impl Steering {
    /// They are to be a turn, which can be cancelled again.
    fn unheard(self) -> Now {
        self.now.turn.put_back(self.content);
        *self.now
    }
}

impl Now {
    fn into_turn(self) -> TurnOrder {
        // If nobody waits for it any more, the run is dropped, and the turn is aborted.
        _ = self.told.send(Sent::Turn(self.run));
        self.turn
    }
}

impl Desk {
    pub(crate) fn new(
        orders: mpsc::Receiver<Order>,
        handler: Option<Handler>,
        rules: ToolRules,
        frame: RunRequest,
        list: Turns,
    ) -> Self {
        Self {
            orders,
            closed: false,
            hung_up: false,
            turns: VecDeque::new(),
            list,
            steers: false,
            steering: VecDeque::new(),
            rules,
            open: BTreeMap::new(),
            held: VecDeque::new(),
            place: Ticket::default(),
            handler,
            handling: JoinSet::new(),
            handled: HashMap::new(),
            frame,
        }
    }

    /// The next turn; `None` when there will be none. Can be dropped and called again at any time.
    pub(super) async fn turn(&mut self) -> Option<Begun> {
        loop {
            if let Between::Turn(turn) = self.turn_or_change().await {
                return turn;
            }
        }
    }

    /// The next turn, or what is ordered before it. Can be dropped and called again at any time.
    pub(super) async fn turn_or_change(&mut self) -> Between {
        loop {
            while let Some(turn) = self.turns.pop_front() {
                // One that was cancelled is passed over.
                if let Some(begun) = self.list.begin(&turn) {
                    return Between::Turn(Some(begun));
                }
            }
            if self.closed {
                return Between::Turn(None);
            }
            let order = self.orders.recv().await;
            if let Some(change) = self.take(order) {
                return Between::Change(change);
            }
        }
    }

    /// Takes what is ordered while a turn waits in the queue, and collects what is ordered of the agent; it does not end. Can be
    /// dropped at any time.
    pub(super) async fn take_orders(&mut self, changes: &mut Vec<Asked>) {
        while !self.hung_up {
            let order = self.orders.recv().await;
            changes.extend(self.take(order));
        }
        std::future::pending::<()>().await;
    }

    /// What is ordered of the agent already. Turns are kept.
    pub(super) fn change_now(&mut self) -> Option<Asked> {
        while let Ok(order) = self.orders.try_recv() {
            if let Some(change) = self.take(Some(order)) {
                return Some(change);
            }
        }
        None
    }

    /// What is asked of the agent in mid-turn. Can be dropped and called again at any time.
    pub(super) async fn next(&mut self) -> Asked {
        loop {
            if (!self.place.is_away() || !self.open.is_empty())
                && let Some(given) = self.held.pop_front()
            {
                return Asked::Answer(given);
            }
            let asked = tokio::select! {
                () = self.place.granted(), if self.place.is_waiting() => None,
                order = self.orders.recv(), if !self.hung_up => self.take(order),
                Some(handled) = self.handling.join_next_with_id() => self.handled(handled),
                else => std::future::pending().await,
            };
            if let Some(asked) = asked {
                return asked;
            }
        }
    }

    fn take(&mut self, order: Option<Order>) -> Option<Asked> {
        match order {
            Some(Order::Turn(turn)) => self.turns.push_back(turn),
            Some(Order::Now(now)) if self.steers => {
                let id = SteerId::from(Uuid::new_v4().to_string());
                let Some(content) = now.turn.take() else {
                    // It was cancelled: a turn that never begins.
                    self.push_first(*now);
                    return None;
                };
                let prompt = content.prompt.clone();
                self.steering.push_back(Steering { id: id.clone(), now, content });
                return Some(Asked::Steer { id, prompt });
            }
            Some(Order::Now(now)) => self.push_first(*now),
            Some(Order::Answer { request, answer, told }) => {
                let given = self.take_answer(request, answer);
                let (given, outcome) = given.map_or_else(|error| (None, Err(error)), |given| (Some(given), Ok(())));
                // Who asked may have gone.
                _ = told.send(outcome);
                return self.answered(given?);
            }
            Some(Order::SetModel(model)) => {
                self.frame.model = Some(model.clone());
                return Some(Asked::SetModel(model));
            }
            Some(Order::SetPermissionMode(mode)) => {
                self.frame.permissions.mode = mode;
                return Some(Asked::SetPermissionMode(mode));
            }
            Some(Order::Close) => self.closed = true,
            None => (self.closed, self.hung_up) = (true, true),
        }
        None
    }

    fn handled(&mut self, handled: Result<(Id, Answer), tokio::task::JoinError>) -> Option<Asked> {
        let (id, answer) = match handled {
            Ok((id, answer)) => (id, answer),
            Err(panicked) => (panicked.id(), Answer::Deny { message: Some("The handler panicked.".to_owned()) }),
        };
        let request = self.handled.remove(&id)?;
        let open = self.open.remove(&request)?;
        let answer = if open.lists(&answer) {
            answer
        } else {
            Answer::Deny { message: Some("The handler chose an option that the request does not list.".to_owned()) }
        };
        self.answered(open.answered(request, answer, AnsweredBy::Handler))
    }

    /// Takes the caller's answer, if the request waits and lists what is chosen.
    fn take_answer(&mut self, request: RequestId, answer: Answer) -> Result<Given, AnswerError> {
        let Some(open) = self.open.get(&request) else { return Err(AnswerError::NotWaiting { request }) };
        if let Answer::Option { option_id } = &answer
            && !open.lists(&answer)
        {
            return Err(AnswerError::UnknownOption { option_id: option_id.clone(), listed: open.options(), request });
        }
        let open = self.open.remove(&request).unwrap_or_default();
        Ok(open.answered(request, answer, AnsweredBy::Caller))
    }

    /// A request has its answer. If it was the last one, the agent gets it when the turn has its place again.
    fn answered(&mut self, given: Given) -> Option<Asked> {
        if self.open.is_empty() && self.place.is_away() {
            self.place.requeue();
            self.held.push_back(given);
            return None;
        }
        Some(Asked::Answer(given))
    }

    /// Denies a request that has waited for too long.
    pub(super) fn deny(&mut self, request: RequestId, why: &str) -> Option<Asked> {
        let answer = Answer::Deny { message: Some(why.to_owned()) };
        self.answered(Given::of(request, answer, AnsweredBy::Timeout))
    }

    /// What was said within the turn is heard, or will not be.
    pub(super) fn steered(&mut self, id: &SteerId, heard: bool) {
        let Some(at) = self.steering.iter().position(|steering| steering.id == *id) else { return };
        let Some(steering) = self.steering.remove(at) else { return };
        if heard {
            // Who asked may have gone.
            _ = steering.now.told.send(Sent::Steered);
        } else {
            let now = steering.unheard();
            self.push_first(now);
        }
    }

    /// Makes a turn of it, which comes before those that wait.
    fn push_first(&mut self, now: Now) {
        self.list.push_first(&now.turn);
        self.turns.push_front(now.into_turn());
    }

    /// The first of what was said too late, where the agent begins a turn with all of it. The rest is heard in that turn.
    pub(super) fn steered_too_late(&mut self) -> Option<Begun> {
        let first = self.steering.pop_front()?.unheard();
        // The agent has begun it: nobody can cancel it before it runs.
        let begun = self.list.begin(&first.turn);
        // In this order: who knows of the rest can know which turn it has joined.
        drop(first.into_turn());
        for steering in self.steering.drain(..) {
            _ = steering.now.told.send(Sent::Steered);
        }
        begun
    }

    /// The turn is over: whatever was not heard in it becomes turns.
    pub(super) fn stop_steering(&mut self) {
        for steering in std::mem::take(&mut self.steering).into_iter().rev() {
            self.push_first(steering.unheard());
        }
    }

    /// What the rules of the request answer, so that nobody is asked.
    pub(super) fn by_rule(&self, event: &Event) -> Option<Given> {
        if let Some(request) = request_of(event)
            && self.is_full(size::in_memory(event))
        {
            let message = format!("More than {MAX_OPEN} requests wait for an answer, or they are too large.");
            let answer = Answer::Deny { message: Some(message) };
            return Some(Given::of(request.clone(), answer, AnsweredBy::Limit).unasked(event));
        }
        let Event::PermissionRequest(request) = event else { return None };
        let mode = self.frame.permissions.mode;
        let (tool, server, input) = (&request.tool_name, request.server.as_deref(), &request.input);
        // What must be asked is asked.
        let answer = self.rules.verdict_on(mode, tool, server, input, &DiskPathResolver)?.answer()?;
        Some(Given::of(request.request_id.clone(), answer, AnsweredBy::Rule).unasked(event))
    }

    /// Whether a request of so many bytes is one too many. One alone is not.
    fn is_full(&self, bytes: usize) -> bool {
        let waiting: usize = self.open.values().map(Open::bytes).sum();
        self.open.len() >= MAX_OPEN || (waiting > 0 && waiting.saturating_add(bytes) > MAX_OPEN_BYTES)
    }

    /// Notes a request of the agent that waits from now on, for so long at most; a limit of zero is none.
    pub(super) fn note(&mut self, event: &mut Event, limit: Duration) {
        let Some(request) = request_of(event).cloned() else { return };
        if let Event::PermissionRequest(asked) = event {
            asked.deadline = deadline(limit);
        }
        self.open.insert(request.clone(), Open::new(event, limit));
        // Others may run while a person thinks.
        self.place.release();
        if let Some(handler) = &self.handler {
            let (handler, event) = (Arc::clone(handler), event.clone());
            let task = self.handling.spawn(async move { handler(event).await });
            self.handled.insert(task.id(), request);
        }
    }

    /// The agent does not wait for this any more.
    pub(super) fn withdraw(&mut self, request: &RequestId) {
        let held = self.held.len();
        self.held.retain(|given| given.request != *request);
        let was_held = self.held.len() < held;
        // It works on already.
        if (self.open.remove(request).is_some() || was_held) && self.open.is_empty() && self.held.is_empty() {
            self.place.reacquire_now();
        }
    }

    /// The turn is over: nothing waits for an answer of the caller's any more. Gives what did.
    pub(super) fn clear(&mut self) -> Vec<RequestId> {
        self.steers = false;
        self.handling.abort_all();
        self.handled.clear();
        let held = std::mem::take(&mut self.held).into_iter().map(|given| given.request);
        std::mem::take(&mut self.open).into_keys().chain(held).collect()
    }

    /// Whether the agent waits for its caller, or for its place after an answer.
    pub(super) fn is_awaited(&self) -> bool {
        !self.open.is_empty() || !self.held.is_empty()
    }

    /// When the first request will have waited for too long.
    pub(super) fn due(&self) -> Option<Instant> {
        self.open.values().filter_map(Open::until).min()
    }

    /// Takes the requests that have waited for too long.
    pub(super) fn overdue(&mut self, now: Instant) -> Vec<RequestId> {
        self.open.extract_if(.., |_, open| open.until().is_some_and(|until| until <= now)).map(|(id, _)| id).collect()
    }
}

/// The request that an event makes of the caller.
fn request_of(event: &Event) -> Option<&RequestId> {
    match event {
        Event::PermissionRequest(request) => Some(&request.request_id),
        Event::Question(question) => Some(&question.request_id),
        _ => None,
    }
}
