//! A conversation that is held: one process, or one after the other, and many turns.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use teamster_types::event::{Event, RequestId, SessionId};
use teamster_types::request::{self, Answer, BackgroundTasks, Mode, PermissionMode, Prompt, RequestError, RunRequest};
use teamster_types::text::UntrustedText;
use tokio::sync::{Mutex, Semaphore, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::driver::desk::{Now, Order};
use crate::run::Run;
use crate::runtime::read_attachment;
use crate::stamp::RunIdentity;
use crate::turns::{TurnOrder, Turns};

/// Turns that wait for their beginning.
pub(crate) const TURNS: usize = 256;

/// Other orders that wait for the driver, which takes them at once.
pub(crate) const ORDERS: usize = TURNS + 64;

/// Answers the agent's requests: called with each [`Event::PermissionRequest`] and [`Event::Question`].
pub(crate) type Handler = Arc<dyn Fn(Event) -> Pin<Box<dyn Future<Output = Answer> + Send>> + Send + Sync>;

/// A conversation with an agent, turn by turn ([`Runtime::open`](crate::Runtime::open)).
///
/// Turns are taken in the order in which they were sent. Dropping the session aborts the running turn and ends the
/// process tree; [`close`](Self::close) waits for what was sent.
#[derive(Debug)]
pub struct Session {
    pub(crate) orders: mpsc::Sender<Order>,
    /// Places for turns that wait.
    pub(crate) places: Arc<Semaphore>,
    pub(crate) id: watch::Receiver<Option<SessionId>>,
    pub(crate) abort: CancellationToken,
    /// Cancelled when the driver has ended.
    pub(crate) ended: CancellationToken,
    /// No more turns are taken.
    pub(crate) closing: AtomicBool,
    pub(crate) turns: Turns,
    pub(crate) identity: RunIdentity,
    /// Turns that the agent has begun by itself.
    pub(crate) own: Mutex<mpsc::Receiver<Run>>,
    /// Where relative paths of attachments count from.
    pub(crate) cwd: PathBuf,
}

/// How a session is to be opened: a request without a prompt, and who answers the agent.
pub struct Opening {
    pub(crate) frame: RunRequest,
    pub(crate) handler: Option<Handler>,
}

impl Opening {
    /// With what all turns have in common. Its limits hold for each turn.
    pub fn new(frame: RunRequest) -> Self {
        Self { frame, handler: None }
    }

    /// Each turn is to be a run of its own, which goes on with the conversation, though the agent may have a form that lives
    /// ([`Mode::Spawn`]).
    #[must_use]
    pub fn spawned(mut self) -> Self {
        self.frame.mode = Mode::Spawn;
        self
    }

    /// The agent may go on with commands and subagents in the background when it has answered. When one has ended, it may begin a
    /// turn that nobody asked for: those come from [`Session::own_turn`].
    #[must_use]
    pub fn with_background_tasks(mut self) -> Self {
        self.frame.background_tasks = BackgroundTasks::On;
        self
    }

    /// Requests of the agent are answered by this, called with each [`Event::PermissionRequest`] and [`Event::Question`].
    /// The stream tells them all the same, and [`Session::answer`] may be faster. A handler that panics has denied; one that
    /// takes too long is given up and has denied too (`limits.answer` of the request).
    #[must_use]
    pub fn answered_by<F>(mut self, handler: impl Fn(Event) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Answer> + Send + 'static,
    {
        self.handler = Some(Arc::new(move |event| Box::pin(handler(event))));
        self
    }
}

impl From<RunRequest> for Opening {
    fn from(frame: RunRequest) -> Self {
        Self::new(frame)
    }
}

impl std::fmt::Debug for Opening {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Opening").field("frame", &self.frame).field("handler", &self.handler.is_some()).finish()
    }
}

/// What became of words that were [sent at once](Session::send_now).
#[derive(Debug)]
#[non_exhaustive]
pub enum Sent {
    /// The model hears them within the turn that runs: what it says to them is in that turn's stream.
    Joined,
    /// They are a turn of their own.
    Turn(Box<Run>),
}

/// Why a turn was not taken. Nothing was sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The prompt or an attachment is wrong.
    #[error(transparent)]
    Prompt(#[from] RequestError),
    /// So many turns wait that no more are taken; try again when one has begun.
    #[error("{TURNS} turns wait already; send again when one has begun")]
    Busy,
    /// The session has ended.
    #[error("the session has ended; open another one")]
    Ended,
}

/// Why an answer was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// Nothing waits for it: it was answered already, in time or not, or was never asked.
    #[error("no request {} waits for an answer: it is unknown, was answered before, or the turn is over", request.escaped())]
    NotWaiting {
        /// The request.
        request: RequestId,
    },
    /// The request does not list the option, and waits still.
    #[error("the request {} lists no option {}; it lists {}", request.escaped(), UntrustedText::from(option_id.as_str()).escaped(), names(listed))]
    UnknownOption {
        /// The request.
        request: RequestId,
        /// What was chosen.
        option_id: String,
        /// The ids of the options that it lists.
        listed: Vec<UntrustedText>,
    },
    /// The session has ended.
    #[error("the session has ended")]
    Ended,
}

/// The ids of options, for an error.
fn names(listed: &[UntrustedText]) -> String {
    let names: Vec<_> = listed.iter().map(|id| id.escaped().to_string()).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

impl Session {
    /// Tells the model something: a turn, which begins when those sent before it have ended.
    ///
    /// The stream ends in one `done`. [`Control::interrupt`](crate::Control::interrupt) ends the turn and not the session;
    /// [`Control::abort`](crate::Control::abort), or dropping the stream, ends the process too, and the next turn goes on
    /// with the conversation in another one.
    ///
    /// # Errors
    /// When the prompt or an attachment is wrong, or the session takes no more.
    pub fn send(&self, prompt: impl Into<Prompt>) -> Result<Run, SendError> {
        let (run, turn) = self.turn(prompt.into())?;
        self.turns.push(&turn);
        self.order(Order::Turn(turn)).map(|()| run)
    }

    /// Tells the model something at once: within the running turn, at the next moment when the model listens, where the
    /// agent has a form that lives and can do that. Otherwise, if it is too late for that, and while no turn runs, it is a turn
    /// of its own, which comes before those that wait.
    ///
    /// The answer comes when it is known which of the two it is: with some agents, when the model hears the words. If it is
    /// dropped before, the words may still be heard. [`interrupt_turn`](Self::interrupt_turn) cancels them by their id until the
    /// agent has them, and again from when they are a turn; what the agent has cannot be taken back.
    ///
    /// # Errors
    /// When the prompt or an attachment is wrong, or the session takes no more.
    pub async fn send_now(&self, prompt: impl Into<Prompt>) -> Result<Sent, SendError> {
        let (run, turn) = self.turn(prompt.into())?;
        let (told, tells) = oneshot::channel();
        // Until the agent has them, they can be cancelled like a turn.
        self.turns.push_first(&turn);
        self.order(Order::Now(Box::new(Now { turn, run: Box::new(run), told })))?;
        tells.await.map_err(|_| SendError::Ended)
    }

    /// The next turn that the agent begins by itself, since something has ended that it had left in the background
    /// ([`Opening::with_background_tasks`]). `None` when there will be none: the session has ended, or was opened without.
    ///
    /// It is a turn like others, and comes between two others. Dropping it ends the process. What nobody takes waits; if 16 do,
    /// the next ones are stopped, and a warning says so. Can be dropped and called again at any time.
    pub async fn own_turn(&self) -> Option<Run> {
        self.own.lock().await.recv().await
    }

    /// Answers a request of the agent. The first answer counts.
    ///
    /// # Errors
    /// When nothing waits for it, or the request does not list the option that is chosen.
    pub async fn answer(&self, request: RequestId, answer: Answer) -> Result<(), AnswerError> {
        let (told, tells) = oneshot::channel();
        let order = Order::Answer { request, answer, told };
        self.orders.send(order).await.map_err(|_| AnswerError::Ended)?;
        tells.await.unwrap_or(Err(AnswerError::Ended))
    }

    /// Has another model answer, from the next turn on, be it sent or begun by the agent itself.
    ///
    /// # Errors
    /// When the name cannot be one, or the session takes no more.
    pub fn set_model(&self, model: impl Into<String>) -> Result<(), SendError> {
        let model = model.into();
        request::validate_argument("model", &model)?;
        self.order(Order::SetModel(model))
    }

    /// Has another permission mode hold, from the next turn on, be it sent or begun by the agent itself. The agent's process may be
    /// closed for it, with what it does in the background, and another one goes on with the conversation.
    ///
    /// # Errors
    /// When the session takes no more.
    pub fn set_permission_mode(&self, mode: PermissionMode) -> Result<(), SendError> {
        self.order(Order::SetPermissionMode(mode))
    }

    /// The session's own id, a UUID: the run id of all its events.
    pub fn run_id(&self) -> &str {
        &self.identity.run_id
    }

    /// The caller's labels ([`RunRequest::labels`](crate::RunRequest)), which all events of the session carry.
    pub fn labels(&self) -> &BTreeMap<String, String> {
        &self.identity.labels
    }

    /// The conversation's id, as soon as the agent has told it.
    pub fn id(&self) -> Option<SessionId> {
        self.id.borrow().clone()
    }

    /// Interrupts the running turn, or else the one that would run next. The turn ends as aborted, and the session goes on.
    /// Returns false if no turn runs or waits.
    pub fn interrupt(&self) -> bool {
        self.turns.interrupt()
    }

    /// Interrupts the turn with this [id](Prompt::id). A turn that waits ends at once, and is never said to the model. Returns
    /// false if no turn with this id runs or waits.
    pub fn interrupt_turn(&self, id: &str) -> bool {
        self.turns.interrupt_named(id)
    }

    /// Ends the session when every turn that was sent has ended, and waits until no process of it is left. No more turns are
    /// taken from now on; requests of the agent can still be answered. It can be called more than once, and by several tasks
    /// at a time; each call returns when the session has ended.
    pub async fn close(&self) {
        self.begin_close().await;
        self.ended.cancelled().await;
    }

    /// Takes no more turns: the session ends by itself when those that were sent have ended.
    pub(crate) async fn begin_close(&self) {
        self.closing.store(true, Ordering::Relaxed);
        // If it has ended, there is nothing to close.
        _ = self.orders.send(Order::Close).await;
    }

    fn turn(&self, mut prompt: Prompt) -> Result<(Run, TurnOrder), SendError> {
        if self.closing.load(Ordering::Relaxed) {
            return Err(SendError::Ended);
        }
        prompt.validate()?;
        for attachment in &mut prompt.attachments {
            read_attachment(attachment, &self.cwd)?;
        }
        let place = Arc::clone(&self.places).try_acquire_owned().map_err(|_| SendError::Busy)?;
        Ok(Run::waiting(&self.abort, self.identity.clone(), prompt, place))
    }

    fn order(&self, order: Order) -> Result<(), SendError> {
        self.orders.try_send(order).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => SendError::Busy,
            mpsc::error::TrySendError::Closed(_) => SendError::Ended,
        })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.abort.cancel();
    }
}
