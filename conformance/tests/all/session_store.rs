//! The sessions that the CLIs store, as Teamster lists them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use teamster::sessions::{SessionQuery, StoredSession};
use teamster_conformance::{Agent, TestEnv, agent_tests};
use teamster_testkit::provider::{ModelRequest, Reply, Scenario};

const FIRST: &str = "First prompt: read the *file*";

agent_tests! {
    a_finished_run_is_listed_with_its_title_directory_and_turns: all,
}

/// A model that answers with the number of the prompt.
fn numbers(agent: &Agent) -> Scenario {
    let reply = agent.reply();
    Reply::from_fn(move |request: &ModelRequest| {
        let is_second = request.prompts().contains(&"Second prompt");
        reply.clone().text(if is_second { "Answer 2\nwith two lines." } else { "Answer 1." })
    })
    .into()
}

/// Returns the only session of the project.
fn listed(env: &TestEnv) -> Result<StoredSession> {
    let mut query = SessionQuery::default();
    query.directory = Some(env.project());
    let list = env.runtime().sessions(&query)?;
    ensure!(list.skipped.is_empty() && list.sessions.len() == 1, "{list:?}");
    list.sessions.into_iter().next().context("no session")
}

/// Returns the content of all files in a directory.
fn files(directory: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else if path.is_file() {
            found.insert(path.clone(), fs::read(path)?);
        }
    }
    Ok(found)
}

async fn a_finished_run_is_listed_with_its_title_directory_and_turns(agent: &Agent) -> Result<()> {
    let env = agent.test_env(numbers(agent)).await?;
    let first = env.run(agent.request(&env, FIRST)).await?;
    let session = listed(&env)?;
    assert_eq!((session.agent.as_str(), Some(&session.id)), (agent.name, first.result.session_id.as_ref()));
    // The model of OpenCode's provider writes the title.
    let title = session.title.as_deref().context("no title")?;
    assert!(title == FIRST || agent.name == "opencode", "{title:?}");
    assert_eq!(session.directory, Some(env.project().canonicalize()?));
    assert_eq!(session.turns, Some(1));
    assert!(session.created_at.is_some() && session.created_at <= session.updated_at, "{session:?}");
    assert!(session.model.is_some());
    assert_eq!(session.total_cost_usd.is_some(), agent.name == "opencode", "{session:?}");
    assert_eq!(session.last_exchange.prompt.as_deref(), Some(FIRST));
    assert_eq!(session.last_exchange.answer.as_deref(), Some("Answer 1."));

    env.resume(agent.request(&env, "Second prompt"), &first, FIRST).await?;
    let before = files(&env.home())?;
    let session = listed(&env)?;
    assert_eq!(Some(&session.id), first.result.session_id.as_ref());
    assert_eq!((session.turns, session.title.as_deref().is_some_and(|title| !title.is_empty())), (Some(2), true));
    assert_eq!(session.last_exchange.prompt.as_deref(), Some("Second prompt"));
    assert_eq!(session.last_exchange.answer.as_deref(), Some("Answer 2\nwith two lines."));
    let after = files(&env.home())?;
    let changed: Vec<_> = after.iter().filter(|(path, content)| before.get(*path) != Some(content)).collect();
    assert!(changed.is_empty() && before.len() == after.len(), "{:?}", changed.iter().map(|(path, _)| path));
    Ok(())
}
