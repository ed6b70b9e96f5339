//! Limits for each token and address.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota};
use teamster_store::TokenId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// The key to which a limit applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LimitKey {
    /// An address, or a network of IPv6.
    Address(IpAddr),
    /// A token, with all of its sessions.
    Token(TokenId),
    /// The fixed token.
    Fixed,
}

/// The number of checks after which forgotten keys are removed.
const CLEANUP: u32 = 1_024;

/// The burst, as a multiple of the requests per second.
const BURST: u32 = 4;

/// Failed authentications of an address per minute.
const FAILURES: NonZeroU32 = match NonZeroU32::new(20) {
    Some(count) => count,
    None => NonZeroU32::MIN,
};

/// The burst of new sessions of a token.
const SESSIONS: NonZeroU32 = match NonZeroU32::new(300) {
    Some(count) => count,
    None => NonZeroU32::MIN,
};

/// How long a request waits for others of the same key.
const PERMIT_TIMEOUT: Duration = Duration::from_secs(2);

/// A rate for each key. Keys that have not been used for a while take no memory.
#[derive(Debug)]
pub(crate) struct Rate<K: Clone + Eq + Hash> {
    limiter: DefaultKeyedRateLimiter<K>,
    checks: AtomicU32,
}

impl<K: Clone + Eq + Hash> Rate<K> {
    pub(crate) fn new(quota: Quota) -> Self {
        Self { limiter: DefaultKeyedRateLimiter::keyed(quota), checks: AtomicU32::new(0) }
    }

    /// Counts a use. Returns the time to wait if there are too many.
    pub(crate) fn check(&self, key: &K) -> Result<(), Duration> {
        if self.checks.fetch_add(1, Ordering::Relaxed) % CLEANUP == CLEANUP - 1 {
            self.limiter.retain_recent();
        }
        self.limiter.check_key(key).map_err(|until| until.wait_time_from(DefaultClock::default().now()))
    }
}

/// The quota of requests.
pub(crate) fn requests(per_second: NonZeroU32) -> Quota {
    Quota::per_second(per_second).allow_burst(per_second.saturating_mul(NonZeroU32::MIN.saturating_add(BURST - 1)))
}

/// The quota of new sessions: a burst of a few hundred, then one per minute.
pub(crate) fn new_sessions() -> Quota {
    Quota::per_minute(NonZeroU32::MIN).allow_burst(SESSIONS)
}

/// Counts failed authentications of addresses.
#[derive(Debug)]
pub(crate) struct Failures {
    rate: Rate<IpAddr>,
    locked: Mutex<HashMap<IpAddr, Instant>>,
}

impl Failures {
    pub(crate) fn new() -> Self {
        Self { rate: Rate::new(Quota::per_minute(FAILURES)), locked: Mutex::default() }
    }

    /// Returns how long an address is locked.
    pub(crate) fn locked(&self, address: IpAddr) -> Option<Duration> {
        let locked = self.locked.lock().unwrap_or_else(PoisonError::into_inner);
        let until = locked.get(&address)?;
        Some(until.saturating_duration_since(Instant::now())).filter(|left| !left.is_zero())
    }

    /// Counts a failure. Returns how long the address is locked.
    pub(crate) fn record(&self, address: IpAddr) -> Option<Duration> {
        let wait = self.rate.check(&address).err()?;
        let now = Instant::now();
        let mut locked = self.locked.lock().unwrap_or_else(PoisonError::into_inner);
        locked.retain(|_, until| *until > now);
        locked.insert(address, now + wait);
        Some(wait)
    }
}

/// Limits the concurrent requests of each key.
#[derive(Clone, Debug)]
pub(crate) struct Concurrency {
    limit: usize,
    keys: Arc<Mutex<HashMap<LimitKey, InUse>>>,
}

#[derive(Debug)]
struct InUse {
    semaphore: Arc<Semaphore>,
    /// Requests that hold a permit or wait for one.
    requests: usize,
}

/// The permit of a request. Dropping it releases the permit.
#[derive(Debug)]
pub(crate) struct Permit {
    /// The permit of the key.
    _permit: OwnedSemaphorePermit,
    _entry: Entry,
}

/// The permits of long responses: in total, and per key.
#[derive(Clone, Debug)]
pub(crate) struct StreamPermits {
    all: Arc<Semaphore>,
    of_key: Concurrency,
}

/// The permit of a long response. Dropping it releases the permit.
#[derive(Debug)]
pub(crate) struct StreamPermit {
    /// One of all permits.
    _all: OwnedSemaphorePermit,
    /// One of the key's permits.
    _of_key: Permit,
}

/// Below this number of permits, one key may take all of them.
const FEW_PERMITS: usize = 8;

impl StreamPermits {
    /// Creates permits, of which one key takes at most a quarter.
    pub(crate) fn new(all: usize) -> Self {
        let all = all.clamp(1, Semaphore::MAX_PERMITS);
        let of_key = if all < FEW_PERMITS { all } else { all / 4 };
        Self { all: Arc::new(Semaphore::new(all)), of_key: Concurrency::new(of_key) }
    }

    /// Returns the number of available permits.
    pub(crate) fn free(&self) -> usize {
        self.all.available_permits()
    }

    /// Takes a permit if one is available.
    pub(crate) fn take(&self, key: LimitKey) -> Option<StreamPermit> {
        let of_key = self.of_key.try_enter(key)?;
        let all = Arc::clone(&self.all).try_acquire_owned().ok()?;
        Some(StreamPermit { _all: all, _of_key: of_key })
    }
}

/// Keeps a key in the map.
#[derive(Debug)]
struct Entry {
    of: Concurrency,
    key: LimitKey,
}

impl Concurrency {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit: limit.clamp(1, Semaphore::MAX_PERMITS), keys: Arc::default() }
    }

    /// Takes a permit, and waits for at most `PERMIT_TIMEOUT`. `None` if none is available then.
    pub(crate) async fn enter(&self, key: LimitKey) -> Option<Permit> {
        let (semaphore, entry) = self.entry(key);
        let permit = timeout(PERMIT_TIMEOUT, semaphore.acquire_owned()).await.ok()?.ok()?;
        Some(Permit { _permit: permit, _entry: entry })
    }

    /// Takes a permit if one is available.
    pub(crate) fn try_enter(&self, key: LimitKey) -> Option<Permit> {
        let (semaphore, entry) = self.entry(key);
        Some(Permit { _permit: semaphore.try_acquire_owned().ok()?, _entry: entry })
    }

    fn entry(&self, key: LimitKey) -> (Arc<Semaphore>, Entry) {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let make = || InUse { semaphore: Arc::new(Semaphore::new(self.limit)), requests: 0 };
        let found = keys.entry(key).or_insert_with(make);
        found.requests = found.requests.saturating_add(1);
        (Arc::clone(&found.semaphore), Entry { of: self.clone(), key })
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut keys = self.of.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = keys.get_mut(&self.key) {
            found.requests = found.requests.saturating_sub(1);
            if found.requests == 0 {
                keys.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_fails_too_often_is_locked_and_others_are_not() {
        let failures = Failures::new();
        let (bad, good) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        let locked = (0..=FAILURES.get()).filter(|_| failures.record(bad).is_some()).count();
        assert_eq!(locked, 1);
        assert!(failures.locked(bad).is_some());
        assert!(failures.locked(good).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_beyond_the_limit_is_refused_after_a_moment_and_the_key_is_forgotten() {
        let limit = Concurrency::new(2);
        let key = LimitKey::Fixed;
        let first = limit.enter(key).await.unwrap();
        let second = limit.enter(key).await.unwrap();
        assert!(limit.enter(key).await.is_none());
        assert!(limit.enter(LimitKey::Address("192.0.2.1".parse().unwrap())).await.is_some());
        drop(first);
        let third = limit.enter(key).await.unwrap();
        drop((second, third));
        assert!(limit.keys.lock().unwrap().is_empty());
    }

    #[test]
    fn one_key_takes_at_most_a_quarter_of_the_permits() {
        let permits = StreamPermits::new(40);
        let key = |number| LimitKey::Token(TokenId::new(uuid::Uuid::from_u128(number)));
        let taken: Vec<_> = std::iter::from_fn(|| permits.take(key(1))).take(100).collect();
        assert_eq!(taken.len(), 10);
        let others: Vec<_> = (0..100).filter_map(|number| permits.take(key(2 + number % 8))).collect();
        assert_eq!(others.len(), 30, "all permits are taken");
        drop(taken);
        assert_eq!((0..100).filter_map(|number| permits.take(key(2 + number % 8))).collect::<Vec<_>>().len(), 10);
        let few = StreamPermits::new(3);
        assert_eq!((0..9).filter_map(|_| few.take(key(1))).collect::<Vec<_>>().len(), 3);
    }

    #[test]
    fn a_rate_returns_how_long_to_wait() {
        let rate = Rate::new(requests(NonZeroU32::MIN));
        let refused = (0..10).filter_map(|_| rate.check(&1).err()).collect::<Vec<_>>();
        assert_eq!(refused.len(), 6);
        assert!(refused.iter().all(|wait| *wait <= Duration::from_secs(1)));
        assert!(rate.check(&2).is_ok());
    }
}
