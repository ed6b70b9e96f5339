//! A turn: the agent has the terminal, until it asks or has ended.

use std::time::Instant;

use teamster::event::{PermissionRequest, Question, RequestId};
use teamster::request::Answer;
use teamster::{Event, Run};

use super::ask::{self, Choices, Reply};
use super::editor::{Purpose, Typed};
use super::page::Item;
use super::terminal::Listening;
use super::{Chat, End};
use crate::printable::{Printable, printable};
use crate::render::width_of_stdout;

impl Chat<'_> {
    /// Says something to the agent, and shows what comes of it.
    pub(super) async fn turn(&mut self, text: String) -> Result<(), End> {
        let run = match self.session.send(text) {
            Ok(run) => run,
            Err(error) => return self.say(Printable::error(&error)).await,
        };
        (self.control, self.interrupted) = (Some(run.control()), false);
        let end = self.follow(run).await;
        self.control = None;
        end
    }

    async fn follow(&mut self, mut run: Run) -> Result<(), End> {
        let terminal = self.terminal;
        let mut listening = Listening::to(terminal).ok();
        loop {
            let event = tokio::select! {
                event = run.next() => event,
                line = typed(&mut listening) => {
                    self.keep(line).await?;
                    continue;
                }
                signal = self.signals.next() => {
                    self.signalled(signal)?;
                    continue;
                }
            };
            match event {
                None => break,
                Some(Event::PermissionRequest(request)) => {
                    self.stop_listening(listening.take());
                    self.put(Item::Event(Instant::now(), Box::new(Event::PermissionRequest(request.clone())))).await?;
                    self.permission(&request).await?;
                    listening = Listening::to(terminal).ok();
                }
                Some(Event::Question(question)) => {
                    self.stop_listening(listening.take());
                    self.question(&question).await?;
                    listening = Listening::to(terminal).ok();
                }
                Some(event) => {
                    if let Event::Done(done) = &event {
                        self.tally.add(&done.result);
                    }
                    self.put(Item::Event(Instant::now(), Box::new(event))).await?;
                }
            }
        }
        self.stop_listening(listening);
        self.settle().await
    }

    fn stop_listening(&mut self, listening: Option<Listening<'_>>) {
        let typed = listening.map(Listening::stop).unwrap_or_default();
        self.waiting.extend(typed.into_iter().filter(|line| !line.trim().is_empty()));
    }

    /// Keeps what is typed while the agent works.
    async fn keep(&mut self, line: String) -> Result<(), End> {
        if line.trim().is_empty() {
            return Ok(());
        }
        let said = printable!("(after this turn: {})", Printable::message(&line));
        self.waiting.push_back(line);
        self.say(said).await
    }

    /// The agent asks for leave.
    async fn permission(&mut self, request: &PermissionRequest) -> Result<(), End> {
        let mut whole = false;
        let answer = loop {
            let ask::Shown { text, hidden } = ask::shown(request, whole, width_of_stdout());
            self.say(text).await?;
            self.settle().await?;
            match self.read(ask::prompt(request, hidden.as_ref()), Purpose::Answer).await? {
                Typed::Line(line) => match ask::answer(request, &line) {
                    Reply::Answer(answer) => break answer,
                    Reply::ShowAll => whole = true,
                    Reply::Again => self.say("  that is no answer").await?,
                },
                Typed::Interrupted => {
                    self.signalled(crate::signals::Signal::Interrupt)?;
                    break Answer::Deny { message: None };
                }
                Typed::Ended => break Answer::Deny { message: None },
            }
        };
        self.answer(&request.request_id, answer).await
    }

    /// The agent asks its user to choose.
    async fn question(&mut self, question: &Question) -> Result<(), End> {
        let mut choices = Choices::new();
        for item in &question.questions {
            self.say(ask::question(item, width_of_stdout())).await?;
            self.settle().await?;
            let chosen = loop {
                match self.read(ask::question_prompt(item).into(), Purpose::Answer).await? {
                    Typed::Line(line) => match ask::chosen(item, &line) {
                        Ok(chosen) => break chosen,
                        Err(why) => {
                            self.say(printable!("  {}", why)).await?;
                            self.settle().await?;
                        }
                    },
                    Typed::Interrupted => {
                        self.signalled(crate::signals::Signal::Interrupt)?;
                        break None;
                    }
                    Typed::Ended => break None,
                }
            };
            let Some(chosen) = chosen else {
                return self.answer(&question.request_id, Answer::Deny { message: None }).await;
            };
            choices.insert(item.id.clone().into_string(), chosen);
        }
        self.answer(&question.request_id, Answer::Choose(choices)).await
    }

    async fn answer(&mut self, request: &RequestId, answer: Answer) -> Result<(), End> {
        match self.session.answer(request.clone(), answer).await {
            Ok(()) => Ok(()),
            Err(_) => self.say("(the agent does not wait for this answer any more)").await,
        }
    }
}

/// What is typed while the agent works. Can be dropped and called again at any time.
async fn typed(listening: &mut Option<Listening<'_>>) -> String {
    match listening {
        Some(listening) => listening.next().await,
        None => std::future::pending().await,
    }
}
