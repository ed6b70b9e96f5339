//! Whether a run that failed is started again, and after how long. Decided from what is known of the attempt; the clock is
//! read in one place only.

use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};
use teamster_types::event::{ErrorCode, Failure, RateLimit, Warning, WarningCode};
use teamster_types::request::{Retries, RetryPolicy};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// The waits before each retry: as many as there may be.
pub(super) fn delays(retries: &Retries) -> ExponentialBackoff {
    ExponentialBuilder::new()
        .with_min_delay(retries.base)
        .with_factor(2.0)
        .with_max_delay(Retries::LONGEST_WAIT)
        .with_max_times(retries.max.try_into().unwrap_or(usize::MAX))
        .with_jitter()
        .build()
}

/// A failed attempt, as far as it matters for another one.
pub(super) struct Case<'a> {
    pub(super) failure: &'a Failure,
    /// Tools were called.
    pub(super) tools: bool,
    /// A session that is gone on with may hold the prompt.
    pub(super) prompt: bool,
    /// How long the vendor's limit lasts.
    pub(super) limit: Option<Duration>,
    /// How long until the deadline.
    pub(super) left: Option<Duration>,
}

/// What becomes of a run whose attempt failed.
#[derive(Debug, PartialEq)]
pub(super) enum Next {
    End,
    Refuse(Refusal),
    Wait(Duration),
}

/// Why a run is not started again, though its failure may pass.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(super) enum Refusal {
    #[error("a tool has run, and may have changed something")]
    Tools,
    #[error("the session may hold the prompt already")]
    Prompt,
    #[error("the vendor's limit lasts for another {} s", .0.as_secs())]
    Limit(Duration),
    #[error("the deadline would pass before")]
    Deadline,
}

/// Decides, and takes one of the waits if there is to be one.
pub(super) fn decide(case: &Case<'_>, policy: RetryPolicy, delays: &mut ExponentialBackoff) -> Next {
    let never = [ErrorCode::Aborted, ErrorCode::DeadlineExceeded, ErrorCode::SessionNotFound];
    // A quota that is used up is not retryable by itself, but comes back at a time that may be known and near.
    let limit = case.limit.filter(|_| case.failure.code == ErrorCode::RateLimit);
    let may_pass = case.failure.retryable == Some(true) || limit.is_some();
    if !may_pass || never.contains(&case.failure.code) {
        return Next::End;
    }
    let Some(delay) = delays.next() else { return Next::End };
    if case.tools && policy < RetryPolicy::MayRepeatTools {
        return Next::Refuse(Refusal::Tools);
    }
    if case.prompt && policy < RetryPolicy::MayRepeatPrompt {
        return Next::Refuse(Refusal::Prompt);
    }
    let limit = limit.unwrap_or_default();
    if limit > Retries::LONGEST_LIMIT {
        return Next::Refuse(Refusal::Limit(limit));
    }
    // Counted from the end of the limit, so that not all who wait for it come back at that moment.
    let delay = limit + delay;
    if case.left.is_some_and(|left| left <= delay) {
        return Next::Refuse(Refusal::Deadline);
    }
    Next::Wait(delay)
}

/// How long a vendor's limit lasts from now on, where the agent tells.
pub(super) fn lasts(limit: &RateLimit) -> Option<Duration> {
    let end = OffsetDateTime::parse(limit.resets_at.as_deref()?, &Rfc3339).ok()?;
    Some((end - OffsetDateTime::now_utc()).try_into().unwrap_or_default())
}

/// Tells that the run is started again, for the how manieth time.
pub(super) fn retrying(failure: &Failure, number: u32, max: u32, delay: Duration) -> Warning {
    let text = format!("{} [{}]; the run is started again", failure.message.as_str(), failure.code);
    Warning::new(WarningCode::Retrying, text)
        .with("attempt", number)
        .with("max", max)
        .with("delayMs", u64::try_from(delay.as_millis()).unwrap_or(u64::MAX))
        .with("errorCode", failure.code.as_str())
        .with("errorMessage", failure.message.as_str())
}

/// Tells why it is not.
pub(super) fn not_retried(failure: &Failure, refusal: &Refusal) -> Warning {
    let reason = match refusal {
        Refusal::Tools => "tools",
        Refusal::Prompt => "prompt",
        Refusal::Limit(_) => "limit",
        Refusal::Deadline => "deadline",
    };
    Warning::new(WarningCode::NotRetried, format!("the run is not started again: {refusal}"))
        .with("reason", reason)
        .with("errorCode", failure.code.as_str())
}

#[cfg(test)]
mod tests {
    use teamster_types::event::RateLimitStatus;

    use super::*;

    fn retries(max: u32) -> Retries {
        let mut retries = Retries::default();
        retries.max = max;
        retries
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// What is decided of a failure with this code, whatever is set besides.
    fn decided(code: ErrorCode, set: impl FnOnce(&mut Case<'_>), policy: RetryPolicy) -> Next {
        let failure = Failure { retryable: Some(true), ..Failure::new(code, "why") };
        let mut case = Case { failure: &failure, tools: false, prompt: false, limit: None, left: None };
        set(&mut case);
        decide(&case, policy, &mut delays(&retries(1)))
    }

    fn waits(next: &Next, least: Duration, most: Duration) -> bool {
        matches!(next, Next::Wait(delay) if (least..=most).contains(delay))
    }

    #[test]
    fn waits_double_from_five_seconds_to_a_minute_and_chance_adds_as_much_again_at_most() {
        for _ in 0..100 {
            let waits: Vec<_> = delays(&retries(6)).collect();
            assert_eq!(waits.len(), 6);
            for (wait, least) in waits.into_iter().zip([5, 10, 20, 40, 60, 60]) {
                assert!((seconds(least)..=seconds(2 * least)).contains(&wait), "{wait:?} instead of {least} s");
            }
        }
    }

    #[test]
    fn two_runs_that_failed_together_do_not_come_back_together() {
        let firsts: Vec<_> = (0..10).filter_map(|_| delays(&retries(1)).next()).collect();
        assert!(firsts.iter().any(|first| *first != firsts[0]), "{firsts:?}");
    }

    #[test]
    fn a_base_of_zero_waits_for_nothing() {
        let mut retries = retries(3);
        retries.base = Duration::ZERO;
        assert_eq!(delays(&retries).collect::<Vec<_>>(), [Duration::ZERO; 3]);
    }

    #[test]
    fn some_failures_are_never_started_again_whatever_is_said_of_them() {
        for code in [ErrorCode::Aborted, ErrorCode::DeadlineExceeded, ErrorCode::SessionNotFound] {
            assert_eq!(decided(code, |_| {}, RetryPolicy::MayRepeatTools), Next::End);
        }
        let failure = Failure { retryable: None, ..Failure::new(ErrorCode::Overloaded, "why") };
        let case = Case { failure: &failure, tools: false, prompt: false, limit: None, left: None };
        assert_eq!(decide(&case, RetryPolicy::MayRepeatTools, &mut delays(&retries(1))), Next::End);
    }

    #[test]
    fn what_may_stand_of_an_attempt_is_a_matter_of_degree() {
        let tools = |case: &mut Case<'_>| (case.tools, case.prompt) = (true, true);
        let prompt = |case: &mut Case<'_>| case.prompt = true;
        let of = |set: fn(&mut Case<'_>), policy| decided(ErrorCode::Overloaded, set, policy);
        assert_eq!(of(tools, RetryPolicy::Safe), Next::Refuse(Refusal::Tools));
        assert_eq!(of(tools, RetryPolicy::MayRepeatPrompt), Next::Refuse(Refusal::Tools));
        assert!(matches!(of(tools, RetryPolicy::MayRepeatTools), Next::Wait(_)));
        assert_eq!(of(prompt, RetryPolicy::Safe), Next::Refuse(Refusal::Prompt));
        assert!(matches!(of(prompt, RetryPolicy::MayRepeatPrompt), Next::Wait(_)));
    }

    #[test]
    fn the_wait_begins_when_the_vendors_limit_ends() {
        let limit = |limit: Duration| move |case: &mut Case<'_>| case.limit = Some(limit);
        let next = decided(ErrorCode::RateLimit, limit(seconds(100)), RetryPolicy::Safe);
        assert!(waits(&next, seconds(105), seconds(110)), "{next:?}");
        let longest = Retries::LONGEST_LIMIT + seconds(1);
        let next = decided(ErrorCode::RateLimit, limit(longest), RetryPolicy::Safe);
        assert_eq!(next, Next::Refuse(Refusal::Limit(longest)));
        let quota = Failure { retryable: Some(false), ..Failure::new(ErrorCode::RateLimit, "why") };
        let mut case = Case { failure: &quota, tools: false, prompt: false, limit: None, left: None };
        assert_eq!(decide(&case, RetryPolicy::MayRepeatTools, &mut delays(&retries(1))), Next::End);
        case.limit = Some(seconds(100));
        let next = decide(&case, RetryPolicy::Safe, &mut delays(&retries(1)));
        assert!(waits(&next, seconds(105), seconds(110)), "{next:?}");
        // A limit that is not why the run failed holds nothing up.
        let next = decided(ErrorCode::Overloaded, limit(longest), RetryPolicy::Safe);
        assert!(waits(&next, seconds(5), seconds(10)), "{next:?}");
    }

    #[test]
    fn a_wait_beyond_the_deadline_is_refused() {
        let left = |left: Duration| move |case: &mut Case<'_>| case.left = Some(left);
        let next = decided(ErrorCode::Overloaded, left(seconds(4)), RetryPolicy::Safe);
        assert_eq!(next, Next::Refuse(Refusal::Deadline));
        assert!(matches!(decided(ErrorCode::Overloaded, left(seconds(11)), RetryPolicy::Safe), Next::Wait(_)));
    }

    #[test]
    fn the_end_of_a_limit_is_read_where_it_is_a_time() {
        let limit = |resets_at: Option<&str>| RateLimit {
            status: RateLimitStatus::Rejected,
            resets_at: resets_at.map(Into::into),
            kind: None,
        };
        assert_eq!(lasts(&limit(None)), None);
        assert_eq!(lasts(&limit(Some("soon"))), None);
        assert_eq!(lasts(&limit(Some("2001-01-01T00:00:00Z"))), Some(Duration::ZERO));
        assert!(lasts(&limit(Some("9999-01-01T00:00:00+02:00"))) > Some(Retries::LONGEST_LIMIT));
    }
}
