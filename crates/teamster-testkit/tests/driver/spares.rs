//! Processes that are started before anybody asks for them.

use std::num::NonZeroUsize;
use std::time::Duration;

use teamster::{Runtime, Session, Spares};
use teamster_testkit::fake::Script;

use crate::lab::{LONG, Lab, bounded, eventually, is_alive, rest_of};

fn lab(spares: Spares) -> Lab {
    Lab::with_runtime(Runtime::new().with_spares(spares))
}

fn most(count: usize) -> Spares {
    Spares::new(NonZeroUsize::new(count).unwrap())
}

/// An agent whose processes write their numbers as `1`, `2`, `3`, `4` and say them in each turn. The numbers are in the order
/// of their first steps: a session's process and the spare that starts beside it may have theirs either way round.
fn agent(lab: &Lab) -> Script {
    let process = |number: &str| {
        let turn = Script::new().await_line("go").claude_init().claude_text(number).claude_result(number);
        Script::new().write_pid(&lab.pid_file(), number).then(turn.clone()).then(turn).read_to_end()
    };
    Script::new().play_next(&lab.path("starts"), ["1", "2", "3", "4"].map(process))
}

fn open(lab: &Lab, script: &Script, model: &str) -> Session {
    let mut frame = lab.request(script);
    frame.prompt.clear();
    frame.model = Some(model.to_owned());
    frame.limits.silence = LONG;
    // The same file each time, and so the same configuration.
    let path = lab.path("script");
    std::fs::write(&path, script.to_json()).unwrap();
    frame.env.insert(teamster_testkit::fake::SCRIPT_ENV.into(), path.to_str().unwrap().into());
    lab.runtime.open("claude", frame).unwrap()
}

/// Which process answers.
async fn answers(session: &Session) -> String {
    rest_of(&mut session.send("go").unwrap()).await.result().text.clone().into_string()
}

/// The number of the spare that started beside the process of this number.
fn beside(number: &str) -> &'static str {
    match number {
        "1" => "2",
        "2" => "1",
        "3" => "4",
        "4" => "3",
        other => panic!("no process says {other}"),
    }
}

async fn close(session: Session) {
    bounded("the session's end", session.close()).await;
}

async fn dies(lab: &Lab, process: &str) {
    let pid = lab.pid(process).await;
    eventually(&format!("process {process} dies"), || !is_alive(pid)).await;
}

#[tokio::test]
async fn the_next_session_like_one_that_was_opened_finds_a_process_that_waits() {
    let lab = lab(most(2));
    let script = agent(&lab);
    let first = open(&lab, &script, "a");
    let spare = beside(&answers(&first).await);
    lab.pid(spare).await;
    close(first).await;
    let second = open(&lab, &script, "a");
    assert_eq!(answers(&second).await, spare);
    assert_eq!(answers(&second).await, spare);
    lab.pid("3").await;
    close(second).await;
    bounded("the end of all", lab.runtime.shutdown()).await;
    lab.assert_all_dead();
}

#[tokio::test]
async fn a_session_of_another_configuration_gets_no_spare_and_too_many_end_the_oldest() {
    let lab = lab(most(1));
    let script = agent(&lab);
    let first = open(&lab, &script, "a");
    let spare = beside(&answers(&first).await);
    lab.pid(spare).await;
    let other = open(&lab, &script, "b");
    lab.pid(beside(&answers(&other).await)).await;
    dies(&lab, spare).await;
    close(first).await;
    close(other).await;
    bounded("the end of all", lab.runtime.shutdown()).await;
    lab.assert_all_dead();
}

#[tokio::test]
async fn a_spare_that_has_died_is_passed_over() {
    let lab = lab(most(1));
    let script = agent(&lab);
    let first = open(&lab, &script, "a");
    let spare = beside(&answers(&first).await);
    let pid = i32::try_from(lab.pid(spare).await).unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), rustix::process::Signal::KILL).unwrap();
    dies(&lab, spare).await;
    let second = open(&lab, &script, "a");
    assert!(["3", "4"].contains(&answers(&second).await.as_str()));
    close(first).await;
    close(second).await;
    bounded("the end of all", lab.runtime.shutdown()).await;
}

#[tokio::test]
async fn a_spare_that_is_too_old_or_too_large_ends() {
    let (mut old, mut large) = (most(1), most(1));
    old.age = Duration::from_millis(200);
    large.memory = Some(1);
    for spares in [old, large] {
        let lab = lab(spares);
        let first = open(&lab, &agent(&lab), "a");
        dies(&lab, beside(&answers(&first).await)).await;
        close(first).await;
    }
}

#[tokio::test]
async fn spares_end_with_their_runtime() {
    let mut lab = lab(most(1));
    let first = open(&lab, &agent(&lab), "a");
    let spare = beside(&answers(&first).await);
    lab.pid(spare).await;
    close(first).await;
    drop(std::mem::take(&mut lab.runtime));
    dies(&lab, spare).await;
}
