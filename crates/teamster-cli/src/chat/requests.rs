//! Requests of the agent: shows them, reads the answers, and passes these to the agent.

use teamster::event::{PermissionRequest, Question};
use teamster::request::Answer;

use super::answer::{Attempt, Typed};
use super::backend::Backend;
use super::question::{self, Choices};
use super::request::{FormattedRequest, Prompt, Reply};
use super::state::{Asking, Chat, End, Request};
use crate::live_area::Size;
use crate::printable::printable;
use crate::render::width_of_stdout;

impl<B: Backend> Chat<'_, B> {
    /// Shows a request of the agent, and reads the answer.
    pub(super) async fn ask(&mut self, request: Request) -> Result<(), End> {
        self.asking = Some(Asking { id: request.id().clone(), is_closed: false });
        let asked = match &request {
            Request::Permission(request) => self.permission(request).await,
            Request::Question(question) => self.question(question).await,
        };
        self.asking = None;
        asked
    }

    /// Asks the user to answer a permission request.
    async fn permission(&mut self, request: &PermissionRequest) -> Result<(), End> {
        let always = self.backend.always(request);
        let (agent, directory) = (self.backend.agent().to_owned(), self.directory.clone());
        let Size { columns, rows } = Size::of_stdout();
        let directory = Some(&*directory).filter(|_| !B::IS_SHARED);
        let prompt = Prompt {
            agent: &agent,
            request,
            directory,
            always: always.as_ref(),
            can_save: self.backend.can_save(),
            can_skip: B::IS_SHARED,
            rows,
        };
        let mut show_all = false;
        let reply = loop {
            let FormattedRequest { text, .. } = prompt.format(show_all, columns);
            self.message(printable!("\n{}", text));
            match self.permission_reply(&prompt).await? {
                Some(Reply::ShowAll) => show_all = true,
                Some(reply) => break reply,
                None => return Ok(()),
            }
        };
        let answer = match reply {
            Reply::Allow => Answer::Allow { input: None },
            Reply::AllowAlways(lasting) => B::allow_always(self, &prompt, lasting),
            Reply::Deny { reason } => Answer::Deny { message: reason },
            Reply::Skip => {
                self.message("  left to others");
                return Ok(());
            }
            Reply::ShowAll | Reply::Invalid(_) => Answer::Deny { message: None },
        };
        B::answer(self, &request.request_id, answer).await;
        Ok(())
    }

    /// Reads lines until one is an answer. Returns `None` if the request was closed.
    async fn permission_reply(&mut self, prompt: &Prompt<'_>) -> Result<Option<Reply>, End> {
        let mut attempt = Attempt::First;
        loop {
            match self.read_answer("  allow? ".into(), Vec::new(), attempt).await? {
                Typed::Line(line) => match prompt.answer(&line) {
                    Reply::Invalid(why) => {
                        let columns = Size::of_stdout().columns;
                        self.message(printable!("  {}", why).wrapped(columns, 2));
                        attempt = Attempt::Again;
                    }
                    reply => return Ok(Some(reply)),
                },
                Typed::Interrupted | Typed::Ended => return Ok(Some(Reply::Deny { reason: None })),
                Typed::Closed => return Ok(None),
            }
        }
    }

    /// Asks the user to answer the agent's questions.
    async fn question(&mut self, asked: &Question) -> Result<(), End> {
        let (mut choices, mut attempt) = (Choices::new(), Attempt::First);
        let count = asked.questions.len();
        for (number, item) in (1..).zip(&asked.questions) {
            self.message(question::format_question(item, (number, count), width_of_stdout()));
            let chosen = loop {
                let prompt = question::question_prompt(item, self.page.is_live());
                match self.read_answer(prompt.into(), question::labels(item), attempt).await? {
                    Typed::Line(line) => match question::parse_choice(item, &line) {
                        Ok(chosen) => break chosen,
                        Err(problem) => {
                            self.message(printable!("  {}", problem));
                            attempt = Attempt::Again;
                        }
                    },
                    Typed::Interrupted | Typed::Ended => break None,
                    Typed::Closed => return Ok(()),
                }
            };
            attempt = Attempt::Again;
            let Some(chosen) = chosen else {
                B::answer(self, &asked.request_id, Answer::Deny { message: None }).await;
                return Ok(());
            };
            choices.insert(item.id.clone().into_string(), chosen);
        }
        B::answer(self, &asked.request_id, Answer::Choose(choices)).await;
        Ok(())
    }
}
