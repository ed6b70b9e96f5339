//! A turn: prints the agent's events, and asks the user to answer its requests.

use std::time::Instant;

use teamster::event::{Question, RequestId};
use teamster::request::Answer;
use teamster::{Event, Run};

use super::editor::{Purpose, Typed};
use super::page::Item;
use super::question::{self, Choices};
use super::terminal::LineReader;
use super::{Chat, End};
use crate::printable::{Printable, printable};
use crate::render::{TICK, width_of_stdout};

impl Chat<'_> {
    /// Sends a prompt to the agent and prints the events of the turn.
    pub(super) async fn turn(&mut self, text: String) -> Result<(), End> {
        let run = match self.session.send(text) {
            Ok(run) => run,
            Err(error) => return self.message(Printable::error(&error)).await,
        };
        (self.control, self.interrupted) = (Some(run.control()), false);
        self.write(Item::Turn(Printable::exact(&self.plan.agent))).await?;
        let end = self.show_events(run).await;
        self.control = None;
        end
    }

    async fn show_events(&mut self, mut run: Run) -> Result<(), End> {
        let terminal = self.terminal;
        let mut reader = LineReader::start(terminal).ok();
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let event = tokio::select! {
                event = run.next() => event,
                line = next_line(&mut reader) => {
                    self.queue_line(line).await?;
                    continue;
                }
                signal = self.signals.next() => {
                    self.on_signal(signal)?;
                    continue;
                }
                _ = ticks.tick() => {
                    // A writer that is behind needs no tick.
                    _ = self.page.try_send(Item::Tick);
                    continue;
                }
            };
            match event {
                None => break,
                Some(Event::PermissionRequest(request)) => {
                    self.stop_reader(reader.take());
                    self.write(Item::Event(Instant::now(), Box::new(Event::PermissionRequest(request.clone()))))
                        .await?;
                    self.permission(&request).await?;
                    reader = LineReader::start(terminal).ok();
                }
                Some(Event::Question(question)) => {
                    self.stop_reader(reader.take());
                    self.question(&question).await?;
                    reader = LineReader::start(terminal).ok();
                }
                Some(event) => {
                    if let Event::Done(done) = &event {
                        self.totals.add(&done.result);
                    }
                    self.write(Item::Event(Instant::now(), Box::new(event))).await?;
                }
            }
        }
        self.stop_reader(reader);
        self.flush().await
    }

    fn stop_reader(&mut self, reader: Option<LineReader<'_>>) {
        let lines = reader.map(LineReader::stop).unwrap_or_default();
        self.queued_lines.extend(lines.into_iter().filter(|line| !line.trim().is_empty()));
    }

    /// Queues a line that was typed while the agent works.
    async fn queue_line(&mut self, line: String) -> Result<(), End> {
        if line.trim().is_empty() {
            return Ok(());
        }
        let notice = printable!("(after this turn: {})", Printable::message(&line));
        self.queued_lines.push_back(line);
        self.message(notice).await
    }

    /// Asks the user to answer the agent's questions.
    async fn question(&mut self, asked: &Question) -> Result<(), End> {
        let mut choices = Choices::new();
        for item in &asked.questions {
            self.message(question::format_question(item, width_of_stdout())).await?;
            self.flush().await?;
            let chosen = loop {
                match self.read(question::question_prompt(item).into(), Purpose::Answer).await? {
                    Typed::Line(line) => match question::parse_choice(item, &line) {
                        Ok(chosen) => break chosen,
                        Err(problem) => {
                            self.message(printable!("  {}", problem)).await?;
                            self.flush().await?;
                        }
                    },
                    Typed::Interrupted => {
                        self.on_signal(crate::signals::Signal::Interrupt)?;
                        break None;
                    }
                    Typed::Ended => break None,
                }
            };
            let Some(chosen) = chosen else {
                return self.answer(&asked.request_id, Answer::Deny { message: None }).await;
            };
            choices.insert(item.id.clone().into_string(), chosen);
        }
        self.answer(&asked.request_id, Answer::Choose(choices)).await
    }

    pub(super) async fn answer(&mut self, request: &RequestId, answer: Answer) -> Result<(), End> {
        match self.session.answer(request.clone(), answer).await {
            Ok(()) => Ok(()),
            Err(_) => self.message("(the agent no longer waits for this answer)").await,
        }
    }
}

/// Waits for the next typed line. Cancel-safe.
async fn next_line(reader: &mut Option<LineReader<'_>>) -> String {
    match reader {
        Some(reader) => reader.next().await,
        None => std::future::pending().await,
    }
}
