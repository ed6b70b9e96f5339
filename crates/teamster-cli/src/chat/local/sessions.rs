//! The stored sessions: `/sessions`, and the start of an id in `/resume`.

use teamster::event::SessionId;
use teamster::request::Conversation;
use teamster::sessions::{SessionList, SessionQuery, StoredSession};
use teamster::{Registry, Runtime};

use super::LocalSession;
use crate::chat::state::{Chat, End, TaskResult};
use crate::option_names;
use crate::plan::UsageError;
use crate::printable::{Printable, printable};
use crate::render::width_of_stdout;
use crate::sessions::{self, Commands, Table};

/// The number of sessions that are listed.
const MAX_LISTED: usize = 20;

const COMMANDS: Commands = Commands { all: "/sessions all", older: "teamster sessions --limit 0" };

impl Chat<'_, LocalSession> {
    /// Lists the sessions of the working directory, or of all directories.
    pub(super) fn list_sessions(&mut self, all: bool) {
        let registry = self.backend.plan.runtime.registry().clone();
        let mut query = SessionQuery::default();
        query.directory = (!all).then(|| self.directory.clone());
        query.limit = Some(MAX_LISTED);
        // Reading the stores can take long.
        self.tasks.spawn_blocking(move || {
            let list = list(&registry, &query);
            let notes = sessions::notes(&list, &query, &registry, COMMANDS);
            let lines = Table::of_stdout(all).lines(&list.sessions);
            TaskResult::Message(Printable::join(lines.into_iter().chain(notes), "\n"))
        });
    }

    /// Resumes the session with this id, or with this start of an id.
    pub(super) async fn resume(&mut self, typed: String) -> Result<(), End> {
        let mut stores = Stores(self.backend.plan.runtime.registry().clone());
        let mut conversation = Conversation::Resume(typed.into());
        let (agent, directory) = (self.backend.plan.agent.clone(), self.directory.clone());
        let found = tokio::task::block_in_place(|| {
            let resumed = sessions::resolve(&mut conversation, &agent, &directory, &mut stores)?;
            if let Some(resumed) = &resumed {
                sessions::check_directory(resumed, &directory)?;
            }
            Ok::<_, UsageError>(resumed)
        });
        match found {
            Ok(resumed) => {
                self.start_conversation(agent, conversation).await?;
                if let Some(resumed) = resumed {
                    self.message(resumed.summary(width_of_stdout()));
                }
            }
            Err(error) => {
                let hint = error.hint().map(|hint| printable!("\n{}", hint)).unwrap_or_default();
                self.message(printable!("{}{}", option_names::in_error(&error), hint));
            }
        }
        Ok(())
    }
}

fn list(registry: &Registry, query: &SessionQuery) -> SessionList {
    // The names of the agents are those of the registry.
    Runtime::builder().registry(registry.clone()).build().sessions(query).unwrap_or_default()
}

/// The stored sessions. In a chat, a person chooses by the command's argument.
struct Stores(Registry);

impl sessions::Stores for Stores {
    fn list(&mut self, query: &SessionQuery) -> SessionList {
        list(&self.0, query)
    }

    fn newest(&mut self, query: &SessionQuery) -> Option<StoredSession> {
        Runtime::builder().registry(self.0.clone()).build().newest_session(query).ok().flatten()
    }

    fn note(&mut self, _: Printable) {}

    fn can_choose(&self) -> bool {
        false
    }

    fn choose(&mut self, _: Printable, _: &[StoredSession]) -> Option<SessionId> {
        None
    }
}
