//! A lease that this program renews, and without which its process trees are killed.
//!
//! A program may lose the right to run a tree without noticing it: it is stopped (`SIGSTOP`), or a
//! remote lock expires. A [`HostLease`] sets a deadline that the program moves forward. The keepers
//! kill the trees that were started under the lease when the deadline has passed.
//!
//! The deadline is in memory that this program shares with its keepers. A renewal is one write to
//! that memory, however many trees there are.

use std::{
    io,
    ops::{Add, Sub},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    ptr::{NonNull, null_mut},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use rustix::{
    io::Errno,
    mm::{MapFlags, ProtFlags, mmap, munmap},
    time::clock_gettime,
};

use crate::sys;

/// How often a keeper reads the deadline before it is due: it may have been moved back, and the
/// timers of processes stand still while the machine sleeps.
const CHECK: Duration = Duration::from_secs(5);

/// A time on the clock of leases, in milliseconds. The clock continues while the machine sleeps,
/// cannot be set, and starts again when the machine starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeaseTime(u64);

impl LeaseTime {
    /// Returns the present time.
    pub fn now() -> Self {
        let now = clock_gettime(sys::LEASE_CLOCK);
        let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
        let nanoseconds = u64::try_from(now.tv_nsec).unwrap_or_default();
        Self(seconds.saturating_mul(1000).saturating_add(nanoseconds / 1_000_000))
    }

    fn until(self, later: Self) -> Duration {
        Duration::from_millis(later.0.saturating_sub(self.0))
    }
}

impl Add<Duration> for LeaseTime {
    type Output = Self;

    /// Returns the latest possible time if the sum is later.
    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(millis(duration)))
    }
}

impl Sub<Duration> for LeaseTime {
    type Output = Self;

    /// Returns the start of the clock if the difference is earlier.
    fn sub(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(millis(duration)))
    }
}

fn millis(duration: Duration) -> u64 {
    duration.as_millis().try_into().unwrap_or(u64::MAX)
}

/// A lease for the process trees of this program. Clones are the same lease.
///
/// When the deadline has passed, every tree that was started under the lease is killed with
/// `SIGKILL`, without a grace period. Its keeper does that, so it also happens while this program
/// is stopped. An expired lease cannot be revived for these trees: a later renewal starts a new
/// term, for trees that are started after it. No tree starts under an expired lease.
///
/// ```
/// use std::time::Duration;
/// use teamster_process::lease::{HostLease, LeaseTime};
///
/// # fn main() -> std::io::Result<()> {
/// let lease = HostLease::new()?;
/// let before_the_renewal = LeaseTime::now();
/// // Renew the right to run the trees here. It lasts for 30 s from before the call. The margin is the
/// // time in which the trees are killed.
/// lease.renew(before_the_renewal + Duration::from_secs(30) - Duration::from_secs(4));
/// assert!(!lease.is_expired());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct HostLease(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    memory: LeaseMemory,
    file: OwnedFd,
    /// Held during a renewal.
    renewing: Mutex<()>,
}

impl HostLease {
    /// Creates a lease that is expired until its first renewal. It uses one file descriptor.
    ///
    /// # Errors
    /// The system provides no shared memory: too many files are open, or memory is used up.
    pub fn new() -> io::Result<Self> {
        let file = sys::shared_memory(size_of::<Words>())?;
        let memory = LeaseMemory::map(file.as_fd())?;
        Ok(Self(Arc::new(Inner { memory, file, renewing: Mutex::new(()) })))
    }

    /// Moves the deadline to `until`. Returns whether the lease had not expired before; if it had,
    /// the trees that were started before are killed, whatever `until` is.
    ///
    /// Compute `until` from a time before the call that renewed the right to run the trees. A
    /// deadline that is moved back applies within 5 seconds.
    pub fn renew(&self, until: LeaseTime) -> bool {
        let Inner { memory, renewing, .. } = &*self.0;
        let _guard = renewing.lock().unwrap_or_else(PoisonError::into_inner);
        let is_held = !self.is_expired();
        let words = memory.words();
        if !is_held {
            words.term.fetch_add(1, Ordering::Relaxed);
        }
        // A keeper that reads this deadline also reads the new term.
        words.deadline.store(until.0, Ordering::Release);
        is_held
    }

    /// Returns whether the deadline has passed.
    pub fn is_expired(&self) -> bool {
        LeaseTime::now().0 >= self.0.memory.words().deadline.load(Ordering::Acquire)
    }

    /// Returns the present term. `None` if the lease is expired.
    pub(crate) fn term(&self) -> Option<u64> {
        // Read first: if the lease is renewed meanwhile, the keeper rejects the old term.
        let term = self.0.memory.words().term.load(Ordering::Acquire);
        (!self.is_expired()).then_some(term)
    }

    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.0.file.as_fd()
    }
}

/// A lease as a keeper sees it.
#[derive(Debug)]
pub(crate) struct KeeperLease {
    memory: LeaseMemory,
    term: u64,
}

impl KeeperLease {
    pub(crate) fn new(file: BorrowedFd<'_>, term: u64) -> io::Result<Self> {
        Ok(Self { memory: LeaseMemory::map(file)?, term })
    }

    /// Returns the time until the next check, which is zero if the term has expired.
    pub(crate) fn next_check(&self) -> Duration {
        let words = self.memory.words();
        let deadline = LeaseTime(words.deadline.load(Ordering::Acquire));
        let is_current = words.term.load(Ordering::Relaxed) == self.term;
        if is_current { LeaseTime::now().until(deadline).min(CHECK) } else { Duration::ZERO }
    }

    pub(crate) fn is_expired(&self) -> bool {
        self.next_check().is_zero()
    }
}

/// The content of the shared memory.
#[repr(C)]
struct Words {
    /// The number of times that the lease was renewed after it had expired.
    term: AtomicU64,
    /// The deadline of the term: a [`LeaseTime`].
    deadline: AtomicU64,
}

/// Shared memory that is mapped into this process.
#[derive(Debug)]
struct LeaseMemory(NonNull<Words>);

impl LeaseMemory {
    /// Maps a file of [`sys::shared_memory`].
    #[expect(unsafe_code, reason = "no safe call maps memory")]
    fn map(file: BorrowedFd<'_>) -> io::Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: without an address the system maps unused addresses, so no other memory changes.
        let mapped = unsafe { mmap(null_mut(), size_of::<Words>(), access, MapFlags::SHARED, file, 0) }?;
        NonNull::new(mapped.cast()).map(Self).ok_or_else(|| Errno::NOMEM.into())
    }

    #[expect(unsafe_code, reason = "the memory has no other reference")]
    fn words(&self) -> &Words {
        // SAFETY: the mapping starts at a page, has this size, and lasts as long as `self`. The file
        // has this size, which is sealed on Linux. Every value of the words is valid, and all processes
        // access them atomically.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for LeaseMemory {
    #[expect(unsafe_code, reason = "no safe call unmaps memory")]
    fn drop(&mut self) {
        // SAFETY: this address and size were mapped, and no reference into it outlives `self`.
        _ = unsafe { munmap(self.0.as_ptr().cast(), size_of::<Words>()) };
    }
}

// SAFETY: the memory is not bound to a thread, and is accessed through atomics only.
#[expect(unsafe_code, reason = "a pointer is not `Send` by itself")]
unsafe impl Send for LeaseMemory {}

// SAFETY: as above.
#[expect(unsafe_code, reason = "a pointer is not `Sync` by itself")]
unsafe impl Sync for LeaseMemory {}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_mins(1);

    fn keeper_of(lease: &HostLease) -> KeeperLease {
        KeeperLease::new(lease.file(), lease.term().unwrap()).unwrap()
    }

    #[test]
    fn a_renewal_reaches_a_keeper_that_maps_the_file() {
        let lease = HostLease::new().unwrap();
        assert!(lease.is_expired() && lease.term().is_none(), "no tree starts before the first renewal");
        assert!(!lease.renew(LeaseTime::now() + Duration::from_secs(2)));
        let keeper = keeper_of(&lease);
        assert!(keeper.next_check() <= Duration::from_secs(2) && !keeper.is_expired());
        assert!(lease.renew(LeaseTime::now() + LONG));
        assert_eq!(keeper.next_check(), CHECK);
    }

    #[test]
    fn an_expired_term_is_not_revived() {
        let lease = HostLease::new().unwrap();
        lease.renew(LeaseTime::now() + LONG);
        let (keeper, same) = (keeper_of(&lease), lease.clone());
        assert!(same.renew(LeaseTime::now() - Duration::from_secs(1)), "it had not expired before");
        assert!(keeper.is_expired() && lease.is_expired());
        assert!(!lease.renew(LeaseTime::now() + LONG));
        assert!(keeper.is_expired(), "its tree belongs to the term before");
        assert!(!keeper_of(&lease).is_expired());
    }

    #[test]
    fn times_are_bounded() {
        let now = LeaseTime::now();
        assert_eq!(now + Duration::from_millis(7) - Duration::from_millis(7), now);
        assert!(now + Duration::MAX > now && now - Duration::MAX < now);
        assert_eq!((now + LONG).until(now), Duration::ZERO);
    }
}
