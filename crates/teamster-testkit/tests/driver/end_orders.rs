//! The end of a run, in every possible order of its steps.
//!
//! The steps are the agent's result, the end of its output, its exit, the exit of other processes
//! that hold its output, and the caller's actions. Every order is played with the real driver:
//! first step by step, each after the effect of the one before, then all steps at the same time.
//! The model [`crate::end_model`] defines the expected result.

use std::fs::File;
use std::sync::{Arc, Mutex};

use serde_json::json;
use teamster::event::{ErrorCode, Event};
use teamster::{Control, Run};
use teamster_testkit::fake::{CLAUDE_SESSION, Child, Script, Signal};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};

use crate::end_model::{AgentResult, Order, Progress, Step, Stop, Verdict};
use crate::test_env::{
    INTERRUPT, LONG, SHORT, TestEnv, bounded, counted, is_alive, is_warning, parent, rest_after, state, wait_until,
};

/// The number of orders played at the same time. Most of their time is waiting.
const CONCURRENT_ORDERS: usize = 12;

/// More events than the queue between driver and consumer holds in memory.
const UNREAD: u64 = 300;

/// The state of the consumer.
enum Consumer {
    Reading { task: JoinHandle<Run>, stop: oneshot::Sender<()> },
    Stopped(Box<Run>),
    None,
}

/// An order that is being played.
struct OrderRun {
    env: TestEnv,
    order: Order,
    progress: Progress,
    control: Control,
    consumer: Consumer,
    stream: Arc<Mutex<Vec<Event>>>,
    agent: u32,
    /// The process that reports the agent's exit to the driver.
    keeper: u32,
}

impl OrderRun {
    async fn start(order: Order) -> Self {
        let env = TestEnv::new();
        let mut request = env.request(&agent(&env, &order));
        request.limits.startup = LONG;
        request.limits.silence = LONG;
        request.limits.after_result = LONG;
        request.limits.grace = LONG;
        // The wait for other processes is ended by a step, or only by this limit.
        request.limits.drain = if order.end().is_over() { LONG } else { SHORT };
        let mut run = env.start(request);
        let control = run.control();
        let stream = Arc::<Mutex<Vec<Event>>>::default();
        let (stop, mut stopped) = oneshot::channel();
        let all = Arc::clone(&stream);
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
        let agent = env.pid("ready").await;
        let keeper = parent(agent).unwrap();
        let progress = order.initial_progress();
        Self { env, order, progress, control, consumer: Consumer::Reading { task, stop }, stream, agent, keeper }
    }

    /// Performs a step.
    async fn perform(&mut self, step: Step) {
        match step {
            Step::Interrupt => self.control.interrupt(),
            Step::Abort => self.control.abort(),
            Step::Drop => drop(self.stop_reading().await),
            Step::StopReading => {
                self.consumer =
                    self.stop_reading().await.map_or(Consumer::None, |run| Consumer::Stopped(Box::new(run)));
            }
            Step::Release => {
                self.touch("write-noise");
                self.touch(&trigger_file(step));
            }
            Step::Result | Step::Fail | Step::Close | Step::Exit => self.touch(&trigger_file(step)),
        }
    }

    /// Waits until a step has had its effect.
    async fn wait_for_effect(&mut self, step: Step) {
        let before = self.progress;
        self.progress = before.after(step);
        let is_free = !before.exited && before.stop != Stop::Forced;
        match step {
            Step::Result | Step::Fail | Step::Close => _ = self.env.pid(&record_name(step)).await,
            Step::Exit => {
                wait_until("the agent dies", || !is_alive(self.agent)).await;
                if self.progress.held {
                    self.wait_until_driver_read_the_exit().await;
                }
            }
            Step::Release => {
                let grandchild = self.env.pid("grandchild").await;
                wait_until("the grandchild dies", || !is_alive(grandchild)).await;
            }
            // After the result the agent receives nothing, because stdin is closed.
            Step::Interrupt if is_free && matches!(before.answer, AgentResult::Pending | AgentResult::Lost) => {
                self.env.pid("interrupted").await;
            }
            Step::Abort | Step::Drop if is_free => _ = self.env.pid("terminated").await,
            _ => {}
        }
        if self.progress.is_over() {
            bounded("the end of the run", self.env.runtime.wait_idle()).await;
        }
    }

    /// Compares the run's result with the expected results.
    async fn compare(mut self, verdicts: &[Verdict]) {
        bounded("the end of the run", self.env.runtime.wait_idle()).await;
        self.env.assert_all_dead();
        let Some(mut run) = self.stop_reading().await else { return };
        let events = std::mem::take(&mut *self.stream.lock().unwrap());
        // This also checks that there is exactly one `done`, and that it is last.
        let stream = rest_after(events, &mut run).await;
        assert!(bounded("the end of the stream", run.next()).await.is_none());
        let verdict = match stream.result().error_code {
            None => Verdict::Success,
            Some(ErrorCode::Aborted) => Verdict::Aborted,
            Some(ErrorCode::Auth) => Verdict::Failed,
            Some(ErrorCode::Protocol) => Verdict::NoResult,
            _ => panic!("{:?}", stream.result()),
        };
        assert!(verdicts.contains(&verdict), "{verdict:?}, not {verdicts:?}");
        assert_eq!(stream.result().aborted, verdict == Verdict::Aborted);
        assert_eq!(stream.result().text, expected_text(&self.order), "no output is lost");
        assert_eq!(stream.result().exit_code, Some(0));
    }

    fn touch(&self, file: &str) {
        File::create(self.env.path(file)).unwrap();
    }

    /// The keeper has reported the exit once it has reaped the agent and waits again. The driver
    /// has read that report once it has read output written after it.
    async fn wait_until_driver_read_the_exit(&self) {
        wait_until("the agent is reaped", || state(self.agent).is_none()).await;
        wait_until("its exit is reported", || state(self.keeper) == Some('S')).await;
        self.touch("write-noise");
        wait_until("the noise is reported", || self.stream.lock().unwrap().iter().any(is_warning)).await;
    }

    async fn stop_reading(&mut self) -> Option<Run> {
        match std::mem::replace(&mut self.consumer, Consumer::None) {
            Consumer::Reading { task, stop } => {
                // The task may have read the end already.
                _ = stop.send(());
                Some(bounded("the reader's end", task).await.unwrap())
            }
            Consumer::Stopped(run) => Some(*run),
            Consumer::None => None,
        }
    }
}

/// Returns an agent that performs each step of the order when its file exists.
fn agent(env: &TestEnv, order: &Order) -> Script {
    let records = env.pid_file();
    let note = |what: &str| Script::new().write_pid(&records, what);
    let mut script = Script::new()
        .ignore(Signal::Int)
        .on_signal(Signal::Term, note("terminated"))
        .on_line(INTERRUPT, note("interrupted"))
        .claude_init();
    if order.held {
        let noise = Script::new().await_file(&env.path("write-noise")).text("noise\n").await_file(&env.path("Release"));
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
        script = script.await_file(&env.path(&trigger_file(step))).then(act).then(note(&record_name(step)));
    }
    script
}

/// Returns the path of the file that triggers a step.
fn trigger_file(step: Step) -> String {
    format!("{step:?}")
}

/// Returns the path that the agent records after a step.
fn record_name(step: Step) -> String {
    format!("{step:?}-record_name")
}

/// Returns the agent's output before the first step.
fn expected_text(order: &Order) -> String {
    if order.has(Step::StopReading) { counted(UNREAD) } else { "Hello".to_owned() }
}

/// Performs the steps one after the other, each after the effect of the one before.
async fn play(order: Order) {
    let (steps, verdict) = (order.steps.clone(), order.verdict());
    let mut run = OrderRun::start(order).await;
    for step in steps {
        run.perform(step).await;
        run.wait_for_effect(step).await;
    }
    run.compare(&[verdict]).await;
}

/// Performs the steps at the same time. The result must be that of one of their orders.
async fn play_simultaneously(order: Order, verdicts: Vec<Verdict>) {
    let steps = order.steps.clone();
    let mut run = OrderRun::start(order).await;
    for step in steps {
        run.perform(step).await;
    }
    run.compare(&verdicts).await;
}

async fn all<F>(plays: impl IntoIterator<Item = (Order, F)>)
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut plays = plays.into_iter();
    let (mut playing, mut played) = (JoinSet::new(), 0);
    loop {
        while playing.len() < CONCURRENT_ORDERS
            && let Some((order, play)) = plays.next()
        {
            let play = tokio::spawn(play);
            playing.spawn(async move { (order, play.await) });
        }
        let Some(end) = playing.join_next().await else { break };
        let (order, end) = end.unwrap();
        assert!(end.is_ok(), "wrong result in the order {order:?}");
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
async fn every_order_while_a_grandchild_holds_the_output_or_releases_it() {
    every_order(true, &[Step::Result, Step::Exit, Step::Release, Step::Interrupt, Step::Abort, Step::Drop]).await;
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
async fn simultaneous_steps_have_the_result_of_one_of_their_orders() {
    let steps = [Step::Result, Step::Exit, Step::Release, Step::Interrupt, Step::Abort];
    let orders = [false, true].map(|held| Order::all(held, &steps)).concat();
    let plays = orders.iter().map(|order| {
        // The caller's actions may come after the end, and then have no effect.
        let verdicts = orders.iter().filter(|other| order.may_end_as(other)).map(Order::verdict).collect();
        (order.clone(), play_simultaneously(order.clone(), verdicts))
    });
    all(plays).await;
}
