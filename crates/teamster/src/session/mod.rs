//! Sessions: a conversation of many turns.

mod error;
mod options;
pub(crate) mod order;
mod rules;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use teamster_types::event::{RequestId, SessionId};
use teamster_types::request::{self, Answer, PermissionMode, Prompt};
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

pub(crate) use self::error::MAX_TURNS;
pub use self::error::{AnswerError, SendError};
pub(crate) use self::options::Handler;
pub use self::options::SessionOptions;
pub use self::order::Sent;
use self::order::{Order, SendNow};
pub(crate) use self::rules::SessionRules;
use crate::events::stamped::RunIdentity;
use crate::run::Run;
use crate::runtime::{read_attachments, read_attachments_on_thread};
use crate::turns::list::{TurnOrder, Turns};
use crate::turns::stop::StopTokens;

/// A conversation with an agent, turn by turn ([`Runtime::open`](crate::Runtime::open)).
///
/// Turns start in the order in which they were sent. Dropping the session aborts the running turn and kills the process
/// tree. [`abort`](Self::abort) does the same and waits until it is done. [`close`](Self::close) waits for the turns that were
/// sent.
///
/// ```no_run
/// use teamster::request::Answer;
/// use teamster::{RunRequest, Runtime, SessionOptions};
///
/// #[tokio::main]
/// async fn main() -> Result<(), Box<dyn std::error::Error>> {
///     // By default the agent asks before it changes something. It waits for the answer, at most 5 minutes.
///     let options = SessionOptions::new(RunRequest::session())
///         .with_handler(|_request| async { Answer::Deny { message: Some("Read only, please.".to_owned()) } });
///
///     let runtime = Runtime::new();
///     let session = runtime.open("claude", options)?;
///     for prompt in ["What does this project do?", "Which part is the oldest?"] {
///         // A failed turn is an error. `send` alone returns the stream of the turn's events.
///         let result = session.send(prompt)?.result().await?;
///         println!("{}", result.final_text.escaped());
///     }
///     session.close().await;
///     Ok(())
/// }
/// ```
#[derive(Debug)]
pub struct Session {
    pub(crate) orders: mpsc::Sender<Order>,
    /// Permits for waiting turns.
    pub(crate) turn_permits: Arc<Semaphore>,
    pub(crate) id: watch::Receiver<Option<SessionId>>,
    pub(crate) stop: StopTokens,
    /// Cancelled when the driver has ended.
    pub(crate) ended: CancellationToken,
    /// Whether the session rejects new turns.
    pub(crate) closing: AtomicBool,
    pub(crate) turns: Turns,
    pub(crate) identity: RunIdentity,
    /// Turns that the agent started by itself.
    pub(crate) agent_turns: Mutex<mpsc::Receiver<Run>>,
    /// The base of relative paths of attachments.
    pub(crate) cwd: PathBuf,
    pub(crate) rules: SessionRules,
}

impl Session {
    /// Sends a prompt. Its turn starts when the turns before it have ended.
    ///
    /// Attachments that are paths are read on the calling thread. If the disk may be slow, await
    /// [`read_attachments`](Self::read_attachments) before.
    ///
    /// The stream ends with one `done`. [`Control::interrupt`](crate::Control::interrupt) ends the turn and keeps the process.
    /// [`Control::abort`](crate::Control::abort), or dropping the stream, kills the process too; the next turn resumes the
    /// conversation in another process.
    ///
    /// # Errors
    /// The prompt or an attachment is invalid, too many turns wait, the session has ended, or its runtime is shut down.
    pub fn send(&self, prompt: impl Into<Prompt>) -> Result<Run, SendError> {
        let (run, turn) = self.turn(prompt.into())?;
        self.turns.push(&turn);
        self.order(Order::Turn(turn)).map(|()| run)
    }

    /// Sends a prompt at once: into the running turn, if the agent supports that. Otherwise, or if the turn is about to end, or
    /// if no turn runs, it becomes a turn of its own, which starts before the waiting turns.
    ///
    /// The call returns when it is known which of the two happened. With some agents that is when the model receives the
    /// prompt. If the call is dropped earlier, the model may still receive it. [`interrupt_turn`](Self::interrupt_turn) cancels
    /// the prompt by its id until the agent has it, and again when it has become a turn.
    ///
    /// # Errors
    /// The prompt or an attachment is invalid, too many turns wait, the session has ended, or its runtime is shut down.
    pub async fn send_now(&self, prompt: impl Into<Prompt>) -> Result<Sent, SendError> {
        let (run, turn) = self.turn_reading_on_thread(prompt.into()).await?;
        let (reply, received) = oneshot::channel();
        // Until the agent has it, it can be cancelled like a turn.
        self.turns.push_first(&turn);
        self.order(Order::SendNow(Box::new(SendNow { turn, run: Box::new(run), reply })))?;
        received.await.map_err(|_| SendError::Ended)
    }

    /// Replaces the paths of a prompt's attachments with the contents of the files, on a thread that may wait for the disk.
    ///
    /// # Errors
    /// A file cannot be attached.
    pub async fn read_attachments(&self, prompt: &mut Prompt) -> Result<(), SendError> {
        Ok(read_attachments_on_thread(&mut prompt.attachments, self.cwd.clone()).await?)
    }

    /// Returns the next turn that the agent starts by itself when a background task ends
    /// ([`SessionOptions::with_background_tasks`]). Returns `None` if the session has ended, or has no background tasks.
    ///
    /// Such a turn runs between two other turns. Dropping it kills the process. Turns that are not taken wait; if 16 wait, further
    /// ones are stopped with a warning. Cancel safe: the call can be dropped and repeated at any time.
    pub async fn next_agent_turn(&self) -> Option<Run> {
        self.agent_turns.lock().await.recv().await
    }

    /// Answers a request of the agent. Only the first answer to a request is accepted.
    ///
    /// # Errors
    /// The request does not wait for an answer, or does not list the chosen option.
    pub async fn answer(&self, request: RequestId, answer: Answer) -> Result<(), AnswerError> {
        let (reply, received) = oneshot::channel();
        let order = Order::Answer { request, answer, reply };
        self.orders.send(order).await.map_err(|_| AnswerError::Ended)?;
        received.await.unwrap_or(Err(AnswerError::Ended))
    }

    /// Changes the model for the next turn and those after it, including turns that the agent starts.
    ///
    /// # Errors
    /// The name is invalid, or the session has ended.
    pub fn set_model(&self, model: impl Into<String>) -> Result<(), SendError> {
        let model = model.into();
        request::validate_argument("model", &model)?;
        self.order(Order::SetModel(model))
    }

    /// Changes the permission mode for the next turn and those after it, including turns that the agent starts. The agent's
    /// process may be restarted for this. Its background tasks end then, and the new process resumes the conversation.
    ///
    /// # Errors
    /// The session has ended.
    pub fn set_permission_mode(&self, mode: PermissionMode) -> Result<(), SendError> {
        self.order(Order::SetPermissionMode(mode))
    }

    /// Returns the session's id in Teamster, a UUID. It is the run id of all its events.
    pub fn run_id(&self) -> &str {
        &self.identity.run_id
    }

    /// Returns the caller's labels ([`RunRequest::labels`](crate::RunRequest)), which are on all events of the session.
    pub fn labels(&self) -> &BTreeMap<String, String> {
        &self.identity.labels
    }

    /// Returns the conversation's id when the agent has reported it.
    pub fn id(&self) -> Option<SessionId> {
        self.id.borrow().clone()
    }

    /// Interrupts the running turn, or the next one if none runs. The turn ends as aborted, and the session continues. Returns
    /// false if no turn runs or waits.
    pub fn interrupt(&self) -> bool {
        self.turns.interrupt()
    }

    /// Interrupts the turn with this [id](Prompt::id). A waiting turn ends at once, and the model never receives its prompt.
    /// Returns false if no turn with this id runs or waits.
    pub fn interrupt_turn(&self, id: &str) -> bool {
        self.turns.interrupt_named(id)
    }

    /// Ends the session after every turn that was sent, and waits until no process of it is left. New turns are rejected from
    /// now on; requests of the agent can still be answered. Several tasks can call it; each call returns when the session has
    /// ended.
    pub async fn close(&self) {
        self.begin_close().await;
        self.ended.cancelled().await;
    }

    /// Aborts the running turn and the waiting ones, kills the process tree, and waits until no process of it is left.
    pub async fn abort(&self) {
        self.closing.store(true, Ordering::Relaxed);
        self.stop.abort.cancel();
        self.ended.cancelled().await;
    }

    /// Rejects new turns. The session ends by itself when the sent turns have ended.
    pub(crate) async fn begin_close(&self) {
        self.closing.store(true, Ordering::Relaxed);
        // The send fails if the session has ended already.
        _ = self.orders.send(Order::Close).await;
    }

    /// Sends a prompt like [`send`](Self::send), but reads its attachments on a thread that may wait.
    pub(crate) async fn send_reading_on_thread(&self, prompt: Prompt) -> Result<Run, SendError> {
        let (run, turn) = self.turn_reading_on_thread(prompt).await?;
        self.turns.push(&turn);
        self.order(Order::Turn(turn)).map(|()| run)
    }

    fn turn(&self, mut prompt: Prompt) -> Result<(Run, TurnOrder), SendError> {
        let permit = self.permit_for(&prompt)?;
        read_attachments(&mut prompt.attachments, &self.cwd)?;
        Ok(Run::waiting(&self.stop, self.identity.clone(), prompt, permit))
    }

    async fn turn_reading_on_thread(&self, mut prompt: Prompt) -> Result<(Run, TurnOrder), SendError> {
        let permit = self.permit_for(&prompt)?;
        self.read_attachments(&mut prompt).await?;
        Ok(Run::waiting(&self.stop, self.identity.clone(), prompt, permit))
    }

    /// Returns a permit for a turn with this prompt. No file is read without a permit.
    fn permit_for(&self, prompt: &Prompt) -> Result<OwnedSemaphorePermit, SendError> {
        if self.stop.interrupt.is_cancelled() {
            return Err(SendError::ShutDown);
        }
        if self.closing.load(Ordering::Relaxed) {
            return Err(SendError::Ended);
        }
        prompt.validate()?;
        Arc::clone(&self.turn_permits).try_acquire_owned().map_err(|_| SendError::Busy)
    }

    fn order(&self, order: Order) -> Result<(), SendError> {
        self.orders.try_send(order).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => SendError::Busy,
            mpsc::error::TrySendError::Closed(_) if self.stop.interrupt.is_cancelled() => SendError::ShutDown,
            mpsc::error::TrySendError::Closed(_) => SendError::Ended,
        })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.stop.abort.cancel();
    }
}
