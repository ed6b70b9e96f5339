//! What happens after an attempt. Pure: time, delay and attempts are arguments.

use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBuilder};
use teamster_channel::{Operation, SendError, SendOutcome};
use teamster_store::{LONGEST_DELIVERY_DELAY, Timestamp};

use super::settings::{DeliverySettings, UnknownOutcome};

/// The longest wait that a service can require. A longer one is treated as an error of the service.
const MAX_DEMAND: Duration = LONGEST_DELIVERY_DELAY;

/// How long a delivery waits for a service that can send nothing, for example because the token is wrong.
pub(super) const LONGEST_OUTAGE: Duration = Duration::from_hours(24);

/// The start of the error of a delivery whose outcome is unknown. A caller that queues it again requests that it is
/// sent.
pub(super) const UNKNOWN: &str = "it is unknown whether the service has this message: ";

/// What happens to a delivery after an attempt that has not confirmed all parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// It is sent again at this time.
    Retry(Timestamp, String),
    /// It is sent at this time, and the attempt is not counted: the service was not called.
    Postpone(Timestamp),
    /// It is sent at this time, because the service can send nothing now. This number of its attempts still counts.
    Wait(Timestamp, String, u32),
    /// It is given up.
    Failed(String),
    /// Its outcome is unknown, and it is given up.
    Unknown(String),
}

/// The data about an attempt on which decisions depend.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempt {
    /// Its number, starting at 1.
    pub(super) number: u32,
    /// The number after which the delivery is given up.
    pub(super) max: u32,
    /// The delay before the next one, unless the service requires a longer one.
    pub(super) delay: Duration,
    /// The time.
    pub(super) now: Timestamp,
    /// The time since the delivery was queued.
    pub(super) age: Duration,
    /// How long it waits for a service that can send nothing.
    pub(super) longest_outage: Duration,
    /// A call for a part had an unknown outcome.
    pub(super) is_uncertain: bool,
}

impl Attempt {
    /// Decides before the first call: earlier attempts have ended without a result, by a crash or a panic. `was_started`: the
    /// service may have a part.
    pub(super) fn given_up(self, was_started: bool) -> Option<Next> {
        if self.number <= self.max {
            return None;
        }
        let reason = format!("all {} attempts ended with a crash of the channel or the gateway", self.max);
        Some(if was_started { Next::Unknown(format!("{UNKNOWN}{reason}")) } else { Next::Failed(reason) })
    }

    /// Decides after a temporary error.
    pub(super) fn later(self, reason: &str, demanded: Option<Duration>) -> Next {
        if self.number < self.max {
            return Next::Retry(self.next_time(demanded), reason.to_owned());
        }
        Next::Failed(format!("given up after {} attempts: {reason}", self.number))
    }

    /// Decides while the service can send nothing. No delivery ends before a person had time to correct the cause.
    pub(super) fn unavailable(self, reason: &str, demanded: Option<Duration>) -> Next {
        // At most half of the attempts are used up, so that a crash during the outage does not end the delivery. A part that may
        // be shown already is not repeated more often than without an outage.
        let used = if self.is_uncertain { self.max.saturating_sub(1) } else { self.max / 2 };
        if self.number <= used || self.age >= self.longest_outage {
            return self.later(reason, demanded);
        }
        Next::Wait(self.next_time(demanded), reason.to_owned(), used)
    }

    fn next_time(self, demanded: Option<Duration>) -> Timestamp {
        self.now.after(demanded.map_or(self.delay, |demanded| demanded.min(MAX_DEMAND).max(self.delay)))
    }

    /// Decides after a call whose outcome is unknown.
    pub(super) fn unknown(self, reason: &str) -> Next {
        if self.number >= self.max {
            return Next::Unknown(format!("{UNKNOWN}{reason}"));
        }
        Next::Retry(self.now.after(self.delay), reason.to_owned())
    }
}

/// What to do with a part whose call was started, and whose outcome is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Settlement {
    /// The service has it, with this id.
    Confirmed(Option<String>),
    /// Send it. `true`: people may see it twice, so it is marked.
    Send {
        /// Whether the service may show it twice.
        may_be_repeat: bool,
    },
    /// The service does not answer: ask it again later.
    AskLater(String),
    /// The service cannot be reached: ask it again later.
    Unavailable(String, Option<Duration>),
    /// The outcome cannot be determined: report it.
    Report,
}

/// Decides about a part whose outcome is unknown.
///
/// `found` is the service's answer, `recognized` whether the service still recognizes a repeat of its key, and `is_requested`
/// whether a caller has queued the delivery again although its outcome was unknown.
pub(super) fn settle(
    found: Option<SendOutcome>,
    operation: &Operation,
    recognized: bool,
    is_requested: bool,
    policy: UnknownOutcome,
) -> Settlement {
    match found {
        Some(SendOutcome::Sent(delivered)) => Settlement::Confirmed(delivered.message_id),
        Some(SendOutcome::NotSent(SendError::Unavailable { reason, after })) => Settlement::Unavailable(reason, after),
        Some(SendOutcome::NotSent(_)) => Settlement::Send { may_be_repeat: false },
        Some(SendOutcome::Unknown(reason)) => Settlement::AskLater(reason),
        // A repeated edit or deletion has the same result.
        None if *operation != Operation::New || recognized => Settlement::Send { may_be_repeat: false },
        None if is_requested || policy == UnknownOutcome::Repeat => Settlement::Send { may_be_repeat: true },
        None => Settlement::Report,
    }
}

/// Returns the delay after a failed attempt, with jitter.
pub(super) fn delay(settings: &DeliverySettings, attempt: u32) -> Duration {
    let backoff = ExponentialBuilder::new()
        .with_min_delay(settings.first_delay)
        .with_max_delay(settings.max_delay)
        .without_max_times()
        .with_jitter();
    // The exponent is limited, so that a high number does not need as many steps.
    let step = usize::try_from(attempt.clamp(1, 32)).unwrap_or(1);
    backoff.build().nth(step - 1).unwrap_or(settings.max_delay)
}

#[cfg(test)]
mod tests {
    use teamster_channel::Delivered;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000);
    const SECOND: Duration = Duration::from_secs(1);

    fn attempt(number: u32) -> Attempt {
        Attempt {
            number,
            max: 3,
            delay: SECOND,
            now: NOW,
            age: Duration::ZERO,
            longest_outage: LONGEST_OUTAGE,
            is_uncertain: false,
        }
    }

    #[test]
    fn a_demanded_wait_is_kept_if_it_is_longer_than_the_delay_and_shorter_than_a_day() {
        let at = |demanded| match attempt(1).later("x", demanded) {
            Next::Retry(at, _) => Duration::from_millis(u64::try_from(at.as_millis() - NOW.as_millis()).unwrap()),
            other => panic!("{other:?}"),
        };
        assert_eq!(at(None), SECOND);
        assert_eq!(at(Some(Duration::ZERO)), SECOND);
        assert_eq!(at(Some(SECOND * 13_938)), SECOND * 13_938);
        assert_eq!(at(Some(Duration::MAX)), MAX_DEMAND);
    }

    #[test]
    fn the_last_attempt_gives_up_visibly() {
        let last = attempt(3).later("x", None);
        assert!(matches!(last, Next::Failed(reason) if reason.contains("3 attempts: x")));
        assert!(matches!(attempt(2).unknown("x"), Next::Retry(..)));
        assert!(matches!(attempt(3).unknown("x"), Next::Unknown(reason) if reason.starts_with(UNKNOWN)));
    }

    #[test]
    fn a_delivery_waits_for_a_day_for_a_channel_that_cannot_send() {
        let reason = "the token is wrong";
        let wanted = Next::Wait(NOW.after(SECOND), reason.to_owned(), 1);
        assert_eq!(attempt(3).unavailable(reason, None), wanted);
        assert_eq!(attempt(2).unavailable(reason, None), wanted);
        assert!(matches!(attempt(1).unavailable(reason, None), Next::Retry(..)));
        let uncertain = |number| Attempt { is_uncertain: true, ..attempt(number) }.unavailable(reason, None);
        assert!(matches!(uncertain(2), Next::Retry(..)), "each call counts that may be a repeat");
        assert_eq!(uncertain(3), Next::Wait(NOW.after(SECOND), reason.to_owned(), 2));
        let late = Attempt { age: LONGEST_OUTAGE, ..attempt(3) };
        let without = Attempt { longest_outage: Duration::ZERO, ..attempt(3) };
        for ended in [late, without] {
            assert!(matches!(ended.unavailable(reason, None), Next::Failed(_)));
        }
    }

    #[test]
    fn an_attempt_beyond_the_last_one_calls_no_service() {
        assert_eq!(attempt(3).given_up(false), None);
        assert!(matches!(attempt(4).given_up(false), Some(Next::Failed(_))));
        assert!(matches!(attempt(4).given_up(true), Some(Next::Unknown(reason)) if reason.starts_with(UNKNOWN)));
    }

    #[test]
    fn an_unknown_outcome_is_settled_by_the_service_then_by_its_key_then_by_configuration() {
        let (new, edit) = (Operation::New, Operation::Edit("1".into()));
        let (repeat, report) = (UnknownOutcome::Repeat, UnknownOutcome::Report);
        let id = Some("7".to_owned());
        let sent = Some(SendOutcome::Sent(Delivered { message_id: id.clone() }));
        let (plain, marked) = (Settlement::Send { may_be_repeat: false }, Settlement::Send { may_be_repeat: true });
        let absent = Some(SendOutcome::NotSent(SendError::Never("not found".into())));
        let silent = Some(SendOutcome::Unknown("busy".into()));
        let down = Some(SendOutcome::NotSent(SendError::Unavailable { reason: "down".into(), after: None }));
        for (found, operation, recognized, requested, policy, wanted) in [
            (sent, &new, false, false, report, Settlement::Confirmed(id)),
            (absent, &new, false, false, report, plain.clone()),
            (silent, &new, true, true, repeat, Settlement::AskLater("busy".into())),
            (down, &new, true, true, repeat, Settlement::Unavailable("down".into(), None)),
            (None, &edit, false, false, report, plain.clone()),
            (None, &new, true, false, report, plain),
            (None, &new, false, false, repeat, marked.clone()),
            (None, &new, false, true, report, marked),
            (None, &new, false, false, report, Settlement::Report),
        ] {
            assert_eq!(settle(found, operation, recognized, requested, policy), wanted);
        }
    }

    #[test]
    fn delays_grow_up_to_their_limit_with_jitter() {
        let settings = DeliverySettings { first_delay: SECOND, max_delay: SECOND * 60, ..DeliverySettings::default() };
        for (number, least) in [(1, 1), (2, 2), (4, 8), (7, 60), (1_000, 60), (u32::MAX, 60)] {
            let delay = delay(&settings, number);
            assert!(delay >= SECOND * least && delay <= SECOND * least * 2, "{number}: {delay:?}");
        }
    }
}
