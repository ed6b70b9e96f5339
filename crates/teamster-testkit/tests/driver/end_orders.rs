//! The end of a run, in every order in which it can come about.
//!
//! What ends a run is a handful of steps: the agent's result, the end of its output, its exit, the end of others who hold
//! its output, and what the caller does. Every order of them is played with the real driver, each step when the one
//! before has had its effect; and the same steps all at once. What must come of it says a model of a few lines,
//! [`crate::end_model`].

use std::fs::File;
use std::sync::{Arc, Mutex};

use serde_json::json;
use teamster::event::{ErrorCode, Event};
use teamster::{Control, Run};
use teamster_testkit::fake::{CLAUDE_SESSION, Child, Script, Signal};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};

use crate::end_model::{Answer, Order, Progress, Step, Stop, Verdict};
use crate::lab::{
    INTERRUPT, LONG, Lab, SHORT, bounded, counted, eventually, is_alive, is_warning, parent, rest_after, state,
};

/// Orders that are played at the same time: most of what they take is waiting.
const AT_ONCE: usize = 12;

/// More than waits between the driver and a consumer before the driver keeps it.
const UNREAD: u64 = 300;

/// Who takes the events.
enum Consumer {
    Reads { task: JoinHandle<Run>, stop: oneshot::Sender<()> },
    Stopped(Box<Run>),
    Gone,
}

/// Where an order is played.
struct Stage {
    lab: Lab,
    order: Order,
    progress: Progress,
    control: Control,
    consumer: Consumer,
    told: Arc<Mutex<Vec<Event>>>,
    agent: u32,
    /// The process that tells the driver of the agent's exit.
    keeper: u32,
}

impl Stage {
    async fn set(order: Order) -> Self {
        let lab = Lab::new();
        let mut request = lab.request(&agent(&lab, &order));
        request.limits.startup = LONG;
        request.limits.silence = LONG;
        request.limits.after_result = LONG;
        request.limits.grace = LONG;
        // What ends the wait for others is a step, or nothing but this limit.
        request.limits.drain = if order.end().is_over() { LONG } else { SHORT };
        let mut run = lab.start(request);
        let control = run.control();
        let told = Arc::<Mutex<Vec<Event>>>::default();
        let (stop, mut stopped) = oneshot::channel();
        let all = Arc::clone(&told);
        let task = tokio::spawn(async move {
            loop {
                tokio::select! {
                    event = run.next() => match event {
                        Some(event) => all.lock().unwrap().push(event),
                        None => return run,
                    },
                    _ = &mut stopped => return run,
                }
            }
        });
        let agent = lab.pid("ready").await;
        let keeper = parent(agent).unwrap();
        let progress = order.begin();
        Self { lab, order, progress, control, consumer: Consumer::Reads { task, stop }, told, agent, keeper }
    }

    /// Takes a step.
    async fn take(&mut self, step: Step) {
        match step {
            Step::Interrupt => self.control.interrupt(),
            Step::Abort => self.control.abort(),
            Step::Drop => drop(self.stop_reading().await),
            Step::StopReading => {
                self.consumer =
                    self.stop_reading().await.map_or(Consumer::Gone, |run| Consumer::Stopped(Box::new(run)));
            }
            Step::LetGo => {
                self.touch("speak");
                self.touch(&name(step));
            }
            Step::Result | Step::Fail | Step::Close | Step::Exit => self.touch(&name(step)),
        }
    }

    /// Waits until a step has had its effect.
    async fn see(&mut self, step: Step) {
        let before = self.progress;
        self.progress = before.after(step);
        let is_free = !before.exited && before.stop != Stop::Forced;
        match step {
            Step::Result | Step::Fail | Step::Close => _ = self.lab.pid(&done(step)).await,
            Step::Exit => {
                eventually("the agent dies", || !is_alive(self.agent)).await;
                if self.progress.held {
                    self.see_that_the_driver_knows().await;
                }
            }
            Step::LetGo => {
                let grandchild = self.lab.pid("grandchild").await;
                eventually("the grandchild dies", || !is_alive(grandchild)).await;
            }
            // After the result nobody is told any more: stdin is closed.
            Step::Interrupt if is_free && matches!(before.answer, Answer::Awaited | Answer::Lost) => {
                self.lab.pid("interrupted").await;
            }
            Step::Abort | Step::Drop if is_free => _ = self.lab.pid("terminated").await,
            _ => {}
        }
        if self.progress.is_over() {
            bounded("the end of the run", self.lab.runtime.shutdown()).await;
        }
    }

    /// Compares what became of the run with what may become of it.
    async fn compare(mut self, verdicts: &[Verdict]) {
        bounded("the end of the run", self.lab.runtime.shutdown()).await;
        self.lab.assert_all_dead();
        let Some(mut run) = self.stop_reading().await else { return };
        let events = std::mem::take(&mut *self.told.lock().unwrap());
        // One `done`, last: that and more is checked here.
        let told = rest_after(events, &mut run).await;
        assert!(bounded("the end of the stream", run.next()).await.is_none());
        let verdict = match told.result().error_code {
            None => Verdict::Success,
            Some(ErrorCode::Aborted) => Verdict::Aborted,
            Some(ErrorCode::Auth) => Verdict::Failed,
            Some(ErrorCode::Protocol) => Verdict::NoResult,
            _ => panic!("{:?}", told.result()),
        };
        assert!(verdicts.contains(&verdict), "{verdict:?}, not {verdicts:?}");
        assert_eq!(told.result().aborted, verdict == Verdict::Aborted);
        assert_eq!(told.result().text, said(&self.order), "nothing is lost");
        assert_eq!(told.result().exit_code, Some(0));
    }

    fn touch(&self, file: &str) {
        File::create(self.lab.path(file)).unwrap();
    }

    /// The keeper has told of the exit when it has reaped the agent and waits again; and the driver knows of it when it
    /// has read what was written after that.
    async fn see_that_the_driver_knows(&self) {
        eventually("the agent is reaped", || state(self.agent).is_none()).await;
        eventually("its exit is told", || state(self.keeper) == Some('S')).await;
        self.touch("speak");
        eventually("the noise is told", || self.told.lock().unwrap().iter().any(is_warning)).await;
    }

    async fn stop_reading(&mut self) -> Option<Run> {
        match std::mem::replace(&mut self.consumer, Consumer::Gone) {
            Consumer::Reads { task, stop } => {
                // It may have read the end already.
                _ = stop.send(());
                Some(bounded("the reader's end", task).await.unwrap())
            }
            Consumer::Stopped(run) => Some(*run),
            Consumer::Gone => None,
        }
    }
}

/// An agent that does nothing by itself: it takes the steps of the order when it is told to.
fn agent(lab: &Lab, order: &Order) -> Script {
    let diary = lab.pid_file();
    let note = |what: &str| Script::new().write_pid(&diary, what);
    let mut script = Script::new()
        .ignore(Signal::Int)
        .on_signal(Signal::Term, note("terminated"))
        .on_line(INTERRUPT, note("interrupted"))
        .claude_init();
    if order.held {
        let noise = Script::new().await_file(&lab.path("speak")).text("noise\n").await_file(&lab.path("LetGo"));
        script = script.spawn(Child::new(note("grandchild").ready().then(noise)));
    }
    let unread = order.has(Step::StopReading);
    script = if unread { script.claude_burst(UNREAD) } else { script.claude_text("Hello") };
    script = script.then(note("ready"));
    let failure = json!({
        "type": "result", "subtype": "success", "is_error": true, "api_error_status": 401, "session_id": CLAUDE_SESSION,
        "result": "API Error: 401 invalid x-api-key",
    });
    let mut closed = false;
    for &step in &order.steps {
        let act = match step {
            // The driver closes stdin when it has read the result.
            Step::Result if !closed => Script::new().claude_result("-").read_to_end(),
            Step::Result => Script::new().claude_result("-"),
            Step::Fail => Script::new().line(failure.clone()).read_to_end(),
            Step::Close => Script::new().close_stdout(),
            Step::Exit => Script::new().exit(0),
            _ => continue,
        };
        closed |= step == Step::Close;
        script = script.await_file(&lab.path(&name(step))).then(act).then(note(&done(step)));
    }
    script
}

/// The file that tells the agent to take a step.
fn name(step: Step) -> String {
    format!("{step:?}")
}

/// What the agent notes when it has taken a step.
fn done(step: Step) -> String {
    format!("{step:?}-done")
}

/// What the agent says before the first step.
fn said(order: &Order) -> String {
    if order.has(Step::StopReading) { counted(UNREAD) } else { "Hello".to_owned() }
}

/// Takes the steps one after the other, each when the one before has had its effect.
async fn play(order: Order) {
    let (steps, verdict) = (order.steps.clone(), order.verdict());
    let mut stage = Stage::set(order).await;
    for step in steps {
        stage.take(step).await;
        stage.see(step).await;
    }
    stage.compare(&[verdict]).await;
}

/// Takes the steps at once. What comes of it must be what comes of them in some order.
async fn play_at_once(order: Order, verdicts: Vec<Verdict>) {
    let steps = order.steps.clone();
    let mut stage = Stage::set(order).await;
    for step in steps {
        stage.take(step).await;
    }
    stage.compare(&verdicts).await;
}

async fn all<F>(plays: impl IntoIterator<Item = (Order, F)>)
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut plays = plays.into_iter();
    let (mut playing, mut played) = (JoinSet::new(), 0);
    loop {
        while playing.len() < AT_ONCE
            && let Some((order, play)) = plays.next()
        {
            let play = tokio::spawn(play);
            playing.spawn(async move { (order, play.await) });
        }
        let Some(end) = playing.join_next().await else { break };
        let (order, end) = end.unwrap();
        assert!(end.is_ok(), "wrong in the order {order:?}");
        played += 1;
    }
    assert!(played > 50, "only {played} orders");
}

async fn every_order(held: bool, steps: &[Step]) {
    all(Order::all(held, steps).into_iter().map(|order| (order.clone(), play(order)))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_order_of_result_end_of_output_exit_interrupt_abort_and_drop() {
    every_order(false, &[Step::Result, Step::Close, Step::Exit, Step::Interrupt, Step::Abort, Step::Drop]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_order_while_a_grandchild_holds_the_output_or_lets_it_go() {
    every_order(true, &[Step::Result, Step::Exit, Step::LetGo, Step::Interrupt, Step::Abort, Step::Drop]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_order_of_a_failure_that_the_agent_reports() {
    every_order(false, &[Step::Fail, Step::Exit, Step::Interrupt, Step::Abort, Step::Drop]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_order_with_a_consumer_that_stops_reading() {
    every_order(false, &[Step::Result, Step::Exit, Step::Interrupt, Step::Abort, Step::Drop, Step::StopReading]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn steps_that_come_at_once_end_as_in_one_of_their_orders() {
    let steps = [Step::Result, Step::Exit, Step::LetGo, Step::Interrupt, Step::Abort];
    let orders = [false, true].map(|held| Order::all(held, &steps)).concat();
    let plays = orders.iter().map(|order| {
        // The caller's may come after the end, and change nothing then.
        let verdicts = orders.iter().filter(|other| order.may_end_as(other)).map(Order::verdict).collect();
        (order.clone(), play_at_once(order.clone(), verdicts))
    });
    all(plays).await;
}
