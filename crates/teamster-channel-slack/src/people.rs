//! The names of people, for people. Events have ids only.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use teamster_channel::Author;

use crate::api::Api;
use crate::types::{User, UserInfo};

/// The time limit of a question. A message must be acknowledged within three seconds.
const TIMEOUT: Duration = Duration::from_secs(1);

/// The largest number of names.
const MAX_PEOPLE: usize = 5_000;

/// The longest name of an author, in characters.
const MAX_NAME: usize = 200;

/// Names that are known.
#[derive(Debug, Default)]
pub(crate) struct People(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    people: HashMap<String, (String, bool)>,
    /// Whether the token lacks the scope.
    is_forbidden: bool,
}

impl People {
    /// Returns the author with this id. Without an answer of the service, the name is the id.
    pub(crate) async fn author(&self, api: &Api, id: &str, is_bot: bool) -> Author {
        let (name, is_known_bot) = match self.known(id) {
            Some(known) => known,
            None => self.ask(api, id).await,
        };
        Author { id: id.to_owned(), name, is_bot: is_bot || is_known_bot }
    }

    fn known(&self, id: &str) -> Option<(String, bool)> {
        let known = self.lock();
        // Bots that have no user are named by their id.
        let has_no_user = known.is_forbidden || !id.starts_with(['U', 'W']);
        known.people.get(id).cloned().or_else(|| has_no_user.then(|| (id.to_owned(), false)))
    }

    async fn ask(&self, api: &Api, id: &str) -> (String, bool) {
        let info = api.call::<UserInfo>("users.info", &vec![("user", Cow::Borrowed(id))], TIMEOUT).await;
        match info {
            Ok(info) => {
                let known = (name_of(&info.user, id), info.user.is_bot);
                let mut all = self.lock();
                if all.people.len() >= MAX_PEOPLE {
                    all.people.clear();
                }
                all.people.insert(id.to_owned(), known.clone());
                known
            }
            Err(error) => {
                tracing::debug!(%error, "the name of a person in Slack is not known");
                self.lock().is_forbidden |= error.is_refusal("missing_scope");
                (id.to_owned(), false)
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the name that Slack shows.
pub(crate) fn name_of(user: &User, id: &str) -> String {
    let User { profile, real_name, name, username, .. } = user;
    let names = [&profile.display_name, &profile.real_name, real_name, name, username];
    let name = names.into_iter().find(|name| !name.trim().is_empty());
    name.map_or(id, String::as_str).chars().take(MAX_NAME).collect()
}
