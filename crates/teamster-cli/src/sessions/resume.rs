//! The session that `--resume` or `--continue` means.

use std::path::Path;

use teamster::event::SessionId;
use teamster::request::Conversation;
use teamster::sessions::{SessionList, SessionQuery, StoredSession};

use super::exchange::ResumedSession;
use super::table::Table;
use crate::printable::{Printable, printable};
use crate::render::where_to_resume;
use crate::vendor;

/// The number of sessions in a list in which a person chooses.
const MAX_CHOICES: usize = 100;

/// The number of candidates that an error lists.
const MAX_CANDIDATES: usize = 10;

/// The minimum characters of an id with which the sessions of other agents are searched.
const MIN_OTHER: usize = 4;

/// The stored sessions, and a person who can choose one.
pub(crate) trait Stores {
    /// Lists stored sessions.
    fn list(&mut self, query: &SessionQuery) -> SessionList;
    /// Returns the session that was used last, without its content.
    fn newest(&mut self, query: &SessionQuery) -> Option<StoredSession>;
    /// Prints a note for the person.
    fn note(&mut self, note: Printable);
    /// Whether a person can choose a session.
    fn can_choose(&self) -> bool;
    /// Lets a person choose a session. Returns `None` if the person declines.
    fn choose(&mut self, title: Printable, sessions: &[StoredSession]) -> Option<SessionId>;
}

/// Why the session to resume is not known.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ResumeError {
    #[error("--resume without an id opens a list, which needs a terminal")]
    NoTerminal { agent: String },
    #[error("{agent} has no session in {directory}")]
    NoSessions { agent: String, directory: String },
    #[error("no session was chosen")]
    NotChosen,
    #[error("several sessions of {agent} have an id that starts with {prefix:?}")]
    Ambiguous { agent: String, prefix: String, candidates: Vec<StoredSession> },
    #[error("{agent} has no session whose id starts with {prefix:?}, but {} has", other.agent)]
    OtherAgent { agent: String, prefix: String, other: Box<StoredSession> },
    #[error("the session {id} of {agent} belongs to the directory {directory}")]
    OtherDirectory { agent: String, id: String, directory: String, exists: bool },
}

impl ResumeError {
    /// Returns what to do.
    pub(crate) fn hint(&self) -> Option<Printable> {
        Some(match self {
            Self::NoTerminal { agent } => {
                let agent = Printable::shell_word(agent);
                printable!("list the ids with `teamster sessions --agent {}`, and add one to --resume", agent)
            }
            Self::NoSessions { .. } => "to list those of all agents and directories: teamster sessions --all".into(),
            Self::NotChosen => return None,
            Self::Ambiguous { candidates, .. } => {
                let shown = candidates.get(..MAX_CANDIDATES).unwrap_or(candidates);
                let rows = Table::of_error().rows(shown);
                let more =
                    (candidates.len() > shown.len()).then(|| printable!("and {} more", candidates.len() - shown.len()));
                let rows = Printable::join(rows.into_iter().chain(more), "\n   ");
                printable!("type more of the id:\n   {}", rows)
            }
            Self::OtherAgent { other, .. } => {
                let (agent, id) = (Printable::shell_word(&other.agent), Printable::shell_word(other.id.as_str()));
                printable!("--agent {} --resume {}", agent, id)
            }
            Self::OtherDirectory { directory, exists, .. } => where_to_resume(directory, *exists),
        })
    }
}

/// Finds the session that a request means, and replaces the start of an id in it. An id that no store has stays: the agent
/// may know it. An empty id lets a person choose.
///
/// # Errors
/// The session is not known.
pub(crate) fn resolve(
    conversation: &mut Conversation,
    agent: &str,
    directory: &Path,
    stores: &mut impl Stores,
) -> Result<Option<ResumedSession>, ResumeError> {
    let found = match conversation {
        Conversation::Resume(id) | Conversation::Fork(id) => {
            let found = if id.as_str().is_empty() {
                Some(choose(agent, directory, stores)?)
            } else {
                find(id.as_str(), agent, stores)?
            };
            if let Some(found) = &found {
                *id = found.id.clone();
            }
            found
        }
        Conversation::Continue | Conversation::ForkNewest => {
            let found = newest(agent, directory, stores);
            if let Some(found) = &found {
                let id = found.id.clone();
                let is_fork = *conversation == Conversation::ForkNewest;
                *conversation = if is_fork { Conversation::Fork(id) } else { Conversation::Resume(id) };
            }
            found
        }
        Conversation::New => None,
    };
    Ok(found.map(ResumedSession))
}

fn query(agent: &str, directory: Option<&Path>) -> SessionQuery {
    let mut query = SessionQuery::default();
    query.agents = vec![agent.to_owned()];
    query.directory = directory.map(Path::to_owned);
    query
}

fn choose(agent: &str, directory: &Path, stores: &mut impl Stores) -> Result<StoredSession, ResumeError> {
    if !stores.can_choose() {
        return Err(ResumeError::NoTerminal { agent: agent.to_owned() });
    }
    let mut query = query(agent, Some(directory));
    query.limit = Some(MAX_CHOICES);
    let mut sessions = stores.list(&query).sessions;
    if sessions.is_empty() {
        let directory = directory.to_string_lossy().into_owned();
        return Err(ResumeError::NoSessions { agent: agent.to_owned(), directory });
    }
    let title = printable!("Which session of {} to resume?", Printable::exact(agent));
    let id = stores.choose(title, &sessions).ok_or(ResumeError::NotChosen)?;
    let at = sessions.iter().position(|session| session.id == id).ok_or(ResumeError::NotChosen)?;
    Ok(sessions.swap_remove(at))
}

/// Finds the session whose id is `typed` or starts with it. Returns `None` if no store has one.
fn find(typed: &str, agent: &str, stores: &mut impl Stores) -> Result<Option<StoredSession>, ResumeError> {
    let mut wanted = query(agent, None);
    wanted.id_prefix = Some(typed.to_owned());
    let mut sessions = stores.list(&wanted).sessions;
    if let Some(at) = sessions.iter().position(|session| session.id.as_str() == typed) {
        return Ok(Some(sessions.swap_remove(at)));
    }
    let (agent, prefix) = (agent.to_owned(), typed.to_owned());
    if sessions.len() > 1 {
        return Err(ResumeError::Ambiguous { agent, prefix, candidates: sessions });
    }
    let Some(session) = sessions.pop() else {
        if typed.chars().count() < MIN_OTHER {
            return Ok(None);
        }
        wanted.agents.clear();
        let mut others = stores.list(&wanted).sessions;
        // Some programs that speak ACP store their sessions where the agent's own CLI does. So the whole id of a session of another
        // agent may be theirs too.
        if !vendor::has_store(&agent) && others.iter().any(|other| other.id.as_str() == typed) {
            return Ok(None);
        }
        let other = (!others.is_empty()).then(|| others.swap_remove(0));
        return match other {
            Some(other) => Err(ResumeError::OtherAgent { agent, prefix, other: Box::new(other) }),
            None => Ok(None),
        };
    };
    Ok(Some(session))
}

/// Returns the session of the directory that was used last. If another agent has a newer one, or the only one, a note names it.
fn newest(agent: &str, directory: &Path, stores: &mut impl Stores) -> Option<StoredSession> {
    let of_agent = query(agent, Some(directory));
    let found = stores.newest(&of_agent);
    let mut newer = of_agent.clone();
    newer.agents.clear();
    newer.updated_after = found.as_ref().and_then(|found| found.updated_at);
    if let Some(other) = stores.newest(&newer).filter(|other| !other.agent.eq_ignore_ascii_case(agent)) {
        let (name, option) = (Printable::exact(&other.agent), Printable::shell_word(&other.agent));
        stores.note(match &found {
            Some(_) => printable!("{} has a newer session in this directory: --agent {} --continue", name, option),
            None => printable!(
                "{} has no session in this directory, but {} has: --agent {} --continue",
                Printable::exact(agent),
                name,
                option
            ),
        });
    }
    // Its last exchange is shown.
    let mut whole = query(agent, None);
    whole.id_prefix = Some(found.as_ref()?.id.as_str().to_owned());
    let is_found = |session: &StoredSession| found.as_ref().is_some_and(|found| found.id == session.id);
    stores.list(&whole).sessions.into_iter().find(is_found).or(found)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use insta::assert_snapshot;

    use super::*;

    #[derive(Default)]
    struct TestStores {
        sessions: Vec<StoredSession>,
        choice: Option<usize>,
        notes: Vec<String>,
    }

    impl TestStores {
        fn new(ids: &[(&str, &str)]) -> Self {
            let session = |(agent, id): &(&str, &str)| {
                let mut session = StoredSession::new(*agent, *id);
                session.directory = Some("/p".into());
                session.title = Some(format!("title of {id}").into());
                session
            };
            Self { sessions: ids.iter().map(session).collect(), choice: None, notes: Vec::new() }
        }
    }

    impl Stores for TestStores {
        fn list(&mut self, query: &SessionQuery) -> SessionList {
            let matches = |session: &&StoredSession| {
                (query.agents.is_empty() || query.agents.contains(&session.agent))
                    && query.directory.as_ref().is_none_or(|directory| session.directory.as_ref() == Some(directory))
                    && query.id_prefix.as_ref().is_none_or(|prefix| session.id.as_str().starts_with(prefix))
            };
            let mut list = SessionList::default();
            list.sessions = self.sessions.iter().filter(matches).cloned().collect();
            list.sessions.truncate(query.limit.unwrap_or(usize::MAX));
            list
        }

        fn newest(&mut self, query: &SessionQuery) -> Option<StoredSession> {
            let is_new =
                |session: &StoredSession| query.updated_after.is_none() || session.updated_at > query.updated_after;
            self.list(query).sessions.into_iter().filter(is_new).max_by_key(|session| session.updated_at)
        }

        fn note(&mut self, note: Printable) {
            self.notes.push(note.to_string());
        }

        fn can_choose(&self) -> bool {
            self.choice.is_some()
        }

        fn choose(&mut self, _: Printable, sessions: &[StoredSession]) -> Option<SessionId> {
            sessions.get(self.choice?).map(|session| session.id.clone())
        }
    }

    /// Returns the resolved id, or the error with its hint.
    fn resolved(typed: &str, agent: &str, directory: &str, stores: &mut TestStores) -> String {
        let mut conversation = Conversation::Resume(typed.into());
        match (resolve(&mut conversation, agent, Path::new(directory), stores), conversation) {
            (Ok(_), Conversation::Resume(id)) => id.as_str().to_owned(),
            (Err(error), _) => match error.hint() {
                Some(hint) => format!("{error}\n{hint}"),
                None => error.to_string(),
            },
            (_, other) => panic!("{other:?}"),
        }
    }

    const IDS: &[(&str, &str)] =
        &[("codex", "01a2-aaaa"), ("codex", "01a2-abbb"), ("codex", "01a2"), ("claude", "0ba1-cccc")];

    #[test]
    fn a_unique_start_of_an_id_is_completed() {
        let mut stores = TestStores::new(IDS);
        assert_eq!(resolved("01a2-aa", "codex", "/elsewhere", &mut stores), "01a2-aaaa");
        assert_eq!(resolved("0b", "claude", "/p", &mut stores), "0ba1-cccc");
        assert_eq!(resolved("01a2", "codex", "/p", &mut stores), "01a2", "the whole id of a session");
    }

    #[test]
    fn an_id_that_no_store_has_stays() {
        let mut stores = TestStores::new(IDS);
        assert_eq!(resolved("ffff-0000", "codex", "/p", &mut stores), "ffff-0000");
        assert_eq!(resolved("my name", "codex", "/p", &mut TestStores::default()), "my name");
    }

    #[test]
    fn a_start_that_fits_two_sessions_is_refused() {
        assert_snapshot!(resolved("01a2-a", "codex", "/p", &mut TestStores::new(IDS)));
    }

    #[test]
    fn a_session_of_another_agent_is_named() {
        assert_snapshot!(resolved("0ba1-", "codex", "/p", &mut TestStores::new(IDS)), @r#"
        codex has no session whose id starts with "0ba1-", but claude has
        --agent claude --resume 0ba1-cccc
        "#);
    }

    #[test]
    fn the_whole_id_of_another_agents_session_stays_for_an_agent_without_a_store() {
        let mut stores = TestStores::new(IDS);
        for agent in ["acp", "my-agent"] {
            assert_eq!(resolved("0ba1-cccc", agent, "/p", &mut stores), "0ba1-cccc");
            assert_eq!(resolved("01a2", agent, "/p", &mut stores), "01a2", "it is the start of other ids too");
            assert!(resolved("0ba1-", agent, "/p", &mut stores).contains("but claude has"), "a start is no id");
        }
        assert!(resolved("0ba1-cccc", "codex", "/p", &mut stores).contains("but claude has"));
    }

    #[test]
    fn without_an_id_a_person_chooses() {
        let mut stores = TestStores::new(IDS);
        assert_snapshot!(resolved("", "codex", "/p", &mut stores), @r"
        --resume without an id opens a list, which needs a terminal
        list the ids with `teamster sessions --agent codex`, and add one to --resume
        ");
        stores.choice = Some(1);
        assert_eq!(resolved("", "codex", "/p", &mut stores), "01a2-abbb");
        stores.choice = Some(9);
        assert_eq!(resolved("", "codex", "/p", &mut stores), "no session was chosen");
        assert_snapshot!(resolved("", "codex", "/q", &mut stores), @r"
        codex has no session in /q
        to list those of all agents and directories: teamster sessions --all
        ");
    }

    #[test]
    fn continue_resumes_the_newest_session_of_the_directory_by_its_id() {
        let mut stores = TestStores::new(IDS);
        let mut conversation = Conversation::Continue;
        let resumed = resolve(&mut conversation, "claude", Path::new("/p"), &mut stores).unwrap().unwrap();
        assert_eq!((resumed.0.id.as_str(), conversation), ("0ba1-cccc", Conversation::Resume("0ba1-cccc".into())));
        let mut conversation = Conversation::ForkNewest;
        resolve(&mut conversation, "claude", Path::new("/p"), &mut stores).unwrap();
        assert_eq!(conversation, Conversation::Fork("0ba1-cccc".into()));
        let mut conversation = Conversation::Continue;
        assert!(resolve(&mut conversation, "codex", Path::new("/q"), &mut stores).unwrap().is_none());
        assert_eq!(conversation, Conversation::Continue, "a new session is started");
        assert!(resolve(&mut Conversation::New, "codex", Path::new("/p"), &mut stores).unwrap().is_none());
        assert!(stores.notes.is_empty(), "{:?}", stores.notes);
    }

    #[test]
    fn a_newer_session_of_another_agent_is_noted() {
        let mut stores = TestStores::new(IDS);
        let time = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        for (session, seconds) in stores.sessions.iter_mut().zip([10, 20, 30, 25]) {
            session.updated_at = Some(time(seconds));
        }
        let mut continued = |agent: &str| {
            resolve(&mut Conversation::Continue, agent, Path::new("/p"), &mut stores).unwrap();
            stores.notes.pop().unwrap_or_default()
        };
        assert_eq!(continued("codex"), "");
        assert_eq!(continued("claude"), "codex has a newer session in this directory: --agent codex --continue");
        assert_eq!(
            continued("gemini"),
            "gemini has no session in this directory, but codex has: --agent codex --continue"
        );
    }
}
