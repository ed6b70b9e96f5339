//! Commands to a session as data. `teamster session` reads them, and hosts with a protocol of their own can.

use teamster_types::request::{Answer, InvalidAnswer, Prompt, SessionCommand};

use crate::run::Run;
use crate::session::{AnswerError, SendError, Sent, Session};

/// The effect of a [command](Session::apply).
#[derive(Debug)]
#[non_exhaustive]
pub enum Applied {
    /// A turn was sent. This is its stream.
    Turn(Box<Run>),
    /// The prompt was sent into the running turn. The answer is in the stream of that turn.
    Joined,
    /// The command was carried out.
    Accepted,
}

/// Why a command was rejected. It changed nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The prompt, the model or the mode was rejected.
    #[error(transparent)]
    Send(#[from] SendError),
    /// The parts of the answer are not a valid answer.
    #[error(transparent)]
    InvalidAnswer(#[from] InvalidAnswer),
    /// The answer was rejected.
    #[error(transparent)]
    Answer(#[from] AnswerError),
    /// There is no turn to interrupt.
    #[error("{}", match turn_id {
        Some(id) => format!("no turn {id:?} runs or waits"),
        None => "no turn is running".to_owned(),
    })]
    NoTurn {
        /// The id of the turn, if the command named one.
        turn_id: Option<String>,
    },
    /// The command belongs to a newer version.
    #[error("the command is not known")]
    Unknown,
}

impl Session {
    /// Applies a command. A `send` waits until its attachments are read. A `send` with `now` also waits until it is known
    /// whether the prompt joined the running turn, and an `answer` until the driver has accepted it. `close` does not wait for
    /// the end of the session: see [`close`](Self::close).
    ///
    /// ```no_run
    /// # use teamster::Session;
    /// # use teamster::command::Applied;
    /// # async fn example(session: &Session) -> Result<(), Box<dyn std::error::Error>> {
    /// let command = serde_json::from_str(r#"{"type": "send", "text": "Hello", "id": "1"}"#)?;
    /// if let Applied::Turn(mut turn) = session.apply(command).await? {
    ///     while let Some(event) = turn.next().await { /* as in a run */ }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The command was rejected.
    pub async fn apply(&self, command: SessionCommand) -> Result<Applied, CommandError> {
        match command {
            SessionCommand::Send { text, attachments, now, id } => {
                let mut prompt = Prompt::from(text);
                (prompt.attachments, prompt.id) = (attachments, id);
                if !now {
                    return Ok(Applied::Turn(Box::new(self.send_reading_on_thread(prompt).await?)));
                }
                return Ok(match self.send_now(prompt).await? {
                    Sent::Steered => Applied::Joined,
                    Sent::Turn(run) => Applied::Turn(run),
                });
            }
            SessionCommand::Interrupt { turn_id, .. } => {
                let is_one = turn_id.as_deref().map_or_else(|| self.interrupt(), |id| self.interrupt_turn(id));
                if !is_one {
                    return Err(CommandError::NoTurn { turn_id });
                }
            }
            SessionCommand::Answer { request_id, decision, option_id, choices, message, input, .. } => {
                let answer = Answer::of_parts(decision, option_id, choices, message, input)?;
                self.answer(request_id, answer).await?;
            }
            SessionCommand::SetModel { model, .. } => self.set_model(model)?,
            SessionCommand::SetPermissionMode { mode, .. } => self.set_permission_mode(mode)?,
            SessionCommand::Close { .. } => self.begin_close().await,
            _ => return Err(CommandError::Unknown),
        }
        Ok(Applied::Accepted)
    }
}
