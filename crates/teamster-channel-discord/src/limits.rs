//! The rate limits of the REST API, <https://discord.com/developers/docs/topics/rate-limits>. Pure: time is an argument.
//!
//! The service names the bucket of a route in its answers. A route and a channel have calls left, or must wait.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// The number of waits and routes above which those that have passed are removed.
const MAX_KNOWN: usize = 2_000;

/// The routes of interactions, which the global limit does not concern,
/// <https://discord.com/developers/docs/interactions/receiving-and-responding>.
const OF_INTERACTIONS: [&str; 3] = ["acknowledge", "editReply", "followUp"];

/// A route: the method and the path without ids, and the id that divides its limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) name: &'static str,
    /// The channel, the server, or the webhook.
    pub(crate) major: String,
}

impl Route {
    fn is_of_interactions(&self) -> bool {
        OF_INTERACTIONS.contains(&self.name)
    }
}

/// What an answer states.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stated {
    pub(crate) bucket: Option<String>,
    pub(crate) remaining: Option<u64>,
    pub(crate) reset_after: Option<Duration>,
}

/// The known limits.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    buckets: HashMap<&'static str, String>,
    until: HashMap<(String, String), Instant>,
    global: Option<Instant>,
}

impl Limits {
    /// Returns how long a call must wait.
    pub(crate) fn wait(&self, route: &Route, now: Instant) -> Duration {
        let global = self.global.filter(|_| !route.is_of_interactions());
        let until = [self.until.get(&self.key(route)).copied(), global];
        let until = until.into_iter().flatten().max();
        until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now))
    }

    /// Returns whether the whole bot must wait.
    pub(crate) fn is_global(&self, now: Instant) -> bool {
        self.global.is_some_and(|until| until > now)
    }

    /// Takes what an answer states.
    pub(crate) fn stated(&mut self, route: &Route, stated: Stated, now: Instant) {
        if let Some(bucket) = stated.bucket {
            self.buckets.insert(route.name, bucket);
        }
        if let (Some(0), Some(after)) = (stated.remaining, stated.reset_after) {
            self.hold(route, after, now);
        }
    }

    /// Takes a 429.
    pub(crate) fn limited(&mut self, route: &Route, wait: Duration, is_global: bool, now: Instant) {
        if is_global {
            self.global = now.checked_add(wait).max(self.global);
        }
        // A proxy can refuse a call of an interaction too, and demands a wait then.
        if !is_global || route.is_of_interactions() {
            self.hold(route, wait, now);
        }
    }

    fn hold(&mut self, route: &Route, wait: Duration, now: Instant) {
        if self.until.len() >= MAX_KNOWN {
            self.until.retain(|_, until| *until > now);
        }
        let Some(until) = now.checked_add(wait) else { return };
        let known = self.until.entry(self.key(route)).or_insert(until);
        *known = (*known).max(until);
    }

    /// Two routes can share a bucket.
    fn key(&self, route: &Route) -> (String, String) {
        let bucket = self.buckets.get(route.name).map_or(route.name, String::as_str);
        (bucket.to_owned(), route.major.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn route(name: &'static str, major: &str) -> Route {
        Route { name, major: major.to_owned() }
    }

    #[test]
    fn a_bucket_without_calls_waits_for_its_reset_in_one_channel_only() {
        let (mut limits, now) = (Limits::default(), Instant::now());
        let stated = |remaining| Stated {
            bucket: Some("b".to_owned()),
            remaining: Some(remaining),
            reset_after: Some(SECOND * 3),
        };
        limits.stated(&route("send", "1"), stated(1), now);
        assert_eq!(limits.wait(&route("send", "1"), now), Duration::ZERO);
        limits.stated(&route("send", "1"), stated(0), now);
        assert_eq!(limits.wait(&route("send", "1"), now + SECOND), SECOND * 2);
        assert_eq!(limits.wait(&route("send", "2"), now), Duration::ZERO);
        assert_eq!(limits.wait(&route("edit", "1"), now), Duration::ZERO);
    }

    #[test]
    fn routes_of_one_bucket_wait_together() {
        let (mut limits, now) = (Limits::default(), Instant::now());
        let shared = || Stated { bucket: Some("same".to_owned()), ..Stated::default() };
        limits.stated(&route("send", "1"), shared(), now);
        limits.stated(&route("edit", "1"), shared(), now);
        limits.limited(&route("send", "1"), SECOND, false, now);
        assert_eq!(limits.wait(&route("edit", "1"), now), SECOND);
        assert!(!limits.is_global(now));
    }

    #[test]
    fn a_global_limit_holds_every_route_and_a_shorter_one_does_not_end_it() {
        let (mut limits, now) = (Limits::default(), Instant::now());
        limits.limited(&route("send", "1"), SECOND * 9, true, now);
        limits.limited(&route("send", "1"), SECOND, true, now);
        assert!(limits.is_global(now));
        assert_eq!(limits.wait(&route("edit", "2"), now), SECOND * 9);
        assert!(!limits.is_global(now + SECOND * 9));
    }

    #[test]
    fn an_interaction_waits_for_no_global_limit_except_if_it_was_refused_itself() {
        let (mut limits, now) = (Limits::default(), Instant::now());
        limits.limited(&route("send", "1"), SECOND * 9, true, now);
        for name in OF_INTERACTIONS {
            assert_eq!(limits.wait(&route(name, "1"), now), Duration::ZERO, "{name}");
        }
        limits.limited(&route("followUp", "1"), SECOND, true, now);
        assert_eq!(limits.wait(&route("followUp", "1"), now), SECOND);
        assert_eq!(limits.wait(&route("followUp", "2"), now), Duration::ZERO);
    }

    #[test]
    fn the_number_of_known_limits_is_bounded() {
        let (mut limits, start) = (Limits::default(), Instant::now());
        for number in 0..10_000_u32 {
            limits.limited(&route("send", &number.to_string()), SECOND, false, start + SECOND * 2 * number);
        }
        assert!(limits.until.len() <= MAX_KNOWN, "{}", limits.until.len());
    }
}
