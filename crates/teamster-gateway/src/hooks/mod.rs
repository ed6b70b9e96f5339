//! Hooks: commands and webhooks of the operator.
//!
//! A hook of `message_accepted` decides before the message is stored. All other events are queued, one bounded queue for each
//! hook, so that a slow hook delays neither turns nor other hooks.
//!
//! | module | contents |
//! |---|---|
//! | `config` | the configuration: [`HookConfig`] |
//! | `event` | what hooks get: [`HookEvent`] |
//! | `call`, `payload`, `error` | one call and its answer, what it sends, and why it fails |
//! | `command`, `webhook` | the two kinds of hooks |
//! | `queue` | the calls for which no message waits |
//! | `failures` | the recent failures, for the operator |

mod call;
mod command;
mod config;
mod error;
mod event;
mod failures;
mod payload;
mod queue;
mod webhook;

use std::sync::Arc;

use teamster_process::Supervisor;

use self::call::{Answer, Decision, Hook};
pub use self::config::{HookConfig, HookConfigError, OnFailure, SecretText};
use self::error::FailedCall;
pub use self::event::{HookEvent, HookEventKind, Verdict};
use self::failures::Failures;
pub use self::failures::HookFailure;
pub use self::queue::HookTasks;
use self::queue::Queues;
use self::webhook::Client;
use crate::clock::Clock;
use crate::event_log::EventLog;

/// The operator's hooks.
#[derive(Debug)]
pub struct Hooks {
    hooks: Vec<Arc<Hook>>,
    queues: Queues,
    failures: Arc<Failures>,
    clock: Clock,
}

impl Hooks {
    /// Creates the hooks of a configuration. Events are queued until [`start`](Self::start).
    pub fn new(configs: Vec<HookConfig>, clock: Clock) -> Self {
        let (supervisor, client) = (Arc::new(Supervisor::new()), Client::default());
        let hooks: Vec<_> =
            configs.into_iter().map(|config| Hook::new(config, Arc::clone(&supervisor), client.clone())).collect();
        let failures = Arc::new(Failures::default());
        Self { queues: Queues::new(&hooks, &failures, &clock), hooks, failures, clock }
    }

    /// Checks that the hooks can be called: their values, programs and secrets.
    ///
    /// # Errors
    /// Returns the first problem.
    pub fn check(&self) -> Result<(), HookConfigError> {
        for (number, hook) in self.hooks.iter().enumerate() {
            let config = &hook.config;
            config.check()?;
            if self.hooks.iter().take(number).any(|other| other.config.name == config.name) {
                return Err(config.error("name", "is the name of two hooks"));
            }
            if config.url.is_some() {
                config.read_secret()?;
            } else {
                command::program(config)?;
            }
        }
        Ok(())
    }

    /// Runs the hooks of a message before it is accepted, in the order of the configuration. Each hook gets the text
    /// that the previous one returned.
    pub async fn judge(&self, event: &HookEvent) -> Verdict {
        let HookEvent::MessageAccepted { text, .. } = event else { return Verdict::Accept(String::new()) };
        let mut event = event.clone();
        let mut accepted = text.clone();
        for hook in self.hooks.iter().filter(|hook| hook.config.events.contains(&HookEventKind::MessageAccepted)) {
            match hook.call(&event, self.clock.now()).await {
                Ok(Answer { decision: Decision::Reject, reason, .. }) => {
                    return Verdict::Reject(
                        reason.unwrap_or_else(|| "the operator's rules do not permit it".to_owned()),
                    );
                }
                Ok(Answer { text: Some(rewritten), .. }) => {
                    accepted.clone_from(&rewritten);
                    if let HookEvent::MessageAccepted { text, .. } = &mut event {
                        *text = rewritten;
                    }
                }
                Ok(Answer { text: None, .. }) => {}
                Err(failed) => {
                    self.report(hook, &event, failed);
                    if hook.config.on_failure == OnFailure::Closed {
                        let reason = "a required hook of the operator failed; send the message again later";
                        return Verdict::Unavailable(reason.to_owned());
                    }
                }
            }
        }
        Verdict::Accept(accepted)
    }

    /// Queues another event for its hooks, and returns at once. If the queue of a hook is full, the event is lost for
    /// this hook, and a failure of the hook is recorded.
    pub fn notify(&self, event: HookEvent) {
        self.queues.push(&Arc::new(event));
    }

    /// Starts the tasks that call the hooks of queued events. Failures go to the log. Call it once, inside a Tokio runtime.
    pub fn start(&self, log: Arc<dyn EventLog>) -> HookTasks {
        for hook in &self.hooks {
            let HookConfig { name, events, on_failure, .. } = &hook.config;
            if events.contains(&HookEventKind::MessageAccepted) && *on_failure == OnFailure::Open {
                tracing::warn!(
                    hook = name,
                    "on_failure is \"open\": messages are accepted while this hook fails or is overloaded"
                );
            }
        }
        self.queues.start(log)
    }

    /// Returns the recent failures, the oldest first.
    pub fn recent_failures(&self) -> Vec<HookFailure> {
        self.failures.all()
    }

    /// Returns the number of failures since the start.
    pub fn failure_count(&self) -> u64 {
        self.failures.count()
    }

    #[cfg(test)]
    pub(crate) fn add_failure(&self, failure: HookFailure) {
        self.failures.add(failure);
    }

    fn report(&self, hook: &Hook, event: &HookEvent, failed: FailedCall) {
        let failure = queue::failure(hook, event, failed, self.clock.now());
        self.failures.add(failure.clone());
        self.queues.log(failure);
    }
}

#[cfg(test)]
mod tests;
