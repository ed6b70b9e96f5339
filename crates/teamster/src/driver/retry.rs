//! Decides whether a failed run is retried, and after which delay. Only [`remaining`] reads the clock.

use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};
use teamster_types::event::{ErrorCode, Failure, RateLimit, Warning, WarningCode};
use teamster_types::request::{Retries, RetryPolicy};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Returns the delays before each retry, as many as there may be retries.
pub(super) fn delays(retries: &Retries) -> ExponentialBackoff {
    ExponentialBuilder::new()
        .with_min_delay(retries.base)
        .with_factor(2.0)
        .with_max_delay(Retries::LONGEST_WAIT)
        .with_max_times(retries.max.try_into().unwrap_or(usize::MAX))
        .with_jitter()
        .build()
}

/// What the decision needs to know about a failed attempt.
pub(super) struct FailedAttempt<'a> {
    pub(super) failure: &'a Failure,
    pub(super) called_tools: bool,
    /// Whether the resumed session may contain the prompt already.
    pub(super) may_have_stored_prompt: bool,
    /// The remaining time of the vendor's rate limit.
    pub(super) rate_limited_for: Option<Duration>,
    pub(super) until_deadline: Option<Duration>,
}

/// Whether a run is retried.
#[derive(Debug, PartialEq)]
pub(super) enum Decision {
    /// The failure is not temporary, or there are no retries left.
    End,
    /// The failure is temporary, but a retry is not safe or not useful.
    Refuse(Refusal),
    /// After this delay.
    Retry(Duration),
}

/// Why a run is not retried, although its failure is temporary.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(super) enum Refusal {
    #[error("a tool has run, and may have changed something")]
    Tools,
    #[error("the session may contain the prompt already")]
    Prompt,
    #[error("the vendor's limit lasts for another {} s", .0.as_secs())]
    Limit(Duration),
    #[error("the deadline would pass before")]
    Deadline,
}

/// Decides whether a run is retried. Takes one of the delays if so.
pub(super) fn decide(failed: &FailedAttempt<'_>, policy: RetryPolicy, delays: &mut ExponentialBackoff) -> Decision {
    let never = [ErrorCode::Aborted, ErrorCode::DeadlineExceeded, ErrorCode::SessionNotFound];
    // A used-up quota is not retryable by itself, but the vendor may report when it is available again.
    let limit = failed.rate_limited_for.filter(|_| failed.failure.code == ErrorCode::RateLimit);
    let is_temporary = failed.failure.retryable == Some(true) || limit.is_some();
    if !is_temporary || never.contains(&failed.failure.code) {
        return Decision::End;
    }
    let Some(delay) = delays.next() else { return Decision::End };
    if failed.called_tools && policy < RetryPolicy::MayRepeatTools {
        return Decision::Refuse(Refusal::Tools);
    }
    if failed.may_have_stored_prompt && policy < RetryPolicy::MayRepeatPrompt {
        return Decision::Refuse(Refusal::Prompt);
    }
    let limit = limit.unwrap_or_default();
    if limit > Retries::LONGEST_LIMIT {
        return Decision::Refuse(Refusal::Limit(limit));
    }
    // The random delay starts at the end of the limit, so that not all waiting runs start at the same moment.
    let delay = limit + delay;
    if failed.until_deadline.is_some_and(|left| left <= delay) {
        return Decision::Refuse(Refusal::Deadline);
    }
    Decision::Retry(delay)
}

/// Returns the remaining time of a vendor's limit, if the agent reports its end.
pub(super) fn remaining(limit: &RateLimit) -> Option<Duration> {
    let end = OffsetDateTime::parse(limit.resets_at.as_deref()?, &Rfc3339).ok()?;
    Some((end - OffsetDateTime::now_utc()).try_into().unwrap_or_default())
}

/// Returns the warning that the run is retried. `attempt` is the number of the failed attempt, starting at 1.
pub(super) fn retrying(failure: &Failure, attempt: u32, max: u32, delay: Duration) -> Warning {
    let text = format!("{} [{}]; the run is started again", failure.message.as_str(), failure.code);
    Warning::new(WarningCode::Retrying, text)
        .with("attempt", attempt)
        .with("max", max)
        .with("delayMs", u64::try_from(delay.as_millis()).unwrap_or(u64::MAX))
        .with("errorCode", failure.code.as_str())
        .with("errorMessage", failure.message.as_str())
}

/// Returns the warning that the run is not retried.
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

    /// Returns the decision on a failure with this code.
    fn decided(code: ErrorCode, set: impl FnOnce(&mut FailedAttempt<'_>), policy: RetryPolicy) -> Decision {
        let failure = Failure::new(code, "why").with_retryable(true);
        let mut case = FailedAttempt {
            failure: &failure,
            called_tools: false,
            may_have_stored_prompt: false,
            rate_limited_for: None,
            until_deadline: None,
        };
        set(&mut case);
        decide(&case, policy, &mut delays(&retries(1)))
    }

    fn waits(next: &Decision, least: Duration, most: Duration) -> bool {
        matches!(next, Decision::Retry(delay) if (least..=most).contains(delay))
    }

    #[test]
    fn delays_double_from_five_seconds_to_a_minute_and_jitter_at_most_doubles_them() {
        for _ in 0..100 {
            let waits: Vec<_> = delays(&retries(6)).collect();
            assert_eq!(waits.len(), 6);
            for (wait, least) in waits.into_iter().zip([5, 10, 20, 40, 60, 60]) {
                assert!((seconds(least)..=seconds(2 * least)).contains(&wait), "{wait:?} instead of {least} s");
            }
        }
    }

    #[test]
    fn two_runs_that_failed_together_are_not_retried_together() {
        let firsts: Vec<_> = (0..10).filter_map(|_| delays(&retries(1)).next()).collect();
        assert!(firsts.iter().any(|first| *first != firsts[0]), "{firsts:?}");
    }

    #[test]
    fn a_base_of_zero_means_no_delay() {
        let mut retries = retries(3);
        retries.base = Duration::ZERO;
        assert_eq!(delays(&retries).collect::<Vec<_>>(), [Duration::ZERO; 3]);
    }

    #[test]
    fn some_failures_are_never_retried_even_if_marked_retryable() {
        for code in [ErrorCode::Aborted, ErrorCode::DeadlineExceeded, ErrorCode::SessionNotFound] {
            assert_eq!(decided(code, |_| {}, RetryPolicy::MayRepeatTools), Decision::End);
        }
        let mut failure = Failure::new(ErrorCode::Overloaded, "why");
        failure.retryable = None;
        let case = FailedAttempt {
            failure: &failure,
            called_tools: false,
            may_have_stored_prompt: false,
            rate_limited_for: None,
            until_deadline: None,
        };
        assert_eq!(decide(&case, RetryPolicy::MayRepeatTools, &mut delays(&retries(1))), Decision::End);
    }

    #[test]
    fn the_policy_decides_whether_tools_or_the_prompt_may_be_repeated() {
        let tools = |case: &mut FailedAttempt<'_>| (case.called_tools, case.may_have_stored_prompt) = (true, true);
        let prompt = |case: &mut FailedAttempt<'_>| case.may_have_stored_prompt = true;
        let of = |set: fn(&mut FailedAttempt<'_>), policy| decided(ErrorCode::Overloaded, set, policy);
        assert_eq!(of(tools, RetryPolicy::Safe), Decision::Refuse(Refusal::Tools));
        assert_eq!(of(tools, RetryPolicy::MayRepeatPrompt), Decision::Refuse(Refusal::Tools));
        assert!(matches!(of(tools, RetryPolicy::MayRepeatTools), Decision::Retry(_)));
        assert_eq!(of(prompt, RetryPolicy::Safe), Decision::Refuse(Refusal::Prompt));
        assert!(matches!(of(prompt, RetryPolicy::MayRepeatPrompt), Decision::Retry(_)));
    }

    #[test]
    fn the_delay_starts_at_the_end_of_the_vendors_limit() {
        let limit = |limit: Duration| move |case: &mut FailedAttempt<'_>| case.rate_limited_for = Some(limit);
        let next = decided(ErrorCode::RateLimit, limit(seconds(100)), RetryPolicy::Safe);
        assert!(waits(&next, seconds(105), seconds(110)), "{next:?}");
        let longest = Retries::LONGEST_LIMIT + seconds(1);
        let next = decided(ErrorCode::RateLimit, limit(longest), RetryPolicy::Safe);
        assert_eq!(next, Decision::Refuse(Refusal::Limit(longest)));
        let quota = Failure::new(ErrorCode::RateLimit, "why").with_retryable(false);
        let mut case = FailedAttempt {
            failure: &quota,
            called_tools: false,
            may_have_stored_prompt: false,
            rate_limited_for: None,
            until_deadline: None,
        };
        assert_eq!(decide(&case, RetryPolicy::MayRepeatTools, &mut delays(&retries(1))), Decision::End);
        case.rate_limited_for = Some(seconds(100));
        let next = decide(&case, RetryPolicy::Safe, &mut delays(&retries(1)));
        assert!(waits(&next, seconds(105), seconds(110)), "{next:?}");
        // A limit that did not cause the failure has no effect.
        let next = decided(ErrorCode::Overloaded, limit(longest), RetryPolicy::Safe);
        assert!(waits(&next, seconds(5), seconds(10)), "{next:?}");
    }

    #[test]
    fn a_delay_beyond_the_deadline_is_refused() {
        let left = |left: Duration| move |case: &mut FailedAttempt<'_>| case.until_deadline = Some(left);
        let next = decided(ErrorCode::Overloaded, left(seconds(4)), RetryPolicy::Safe);
        assert_eq!(next, Decision::Refuse(Refusal::Deadline));
        assert!(matches!(decided(ErrorCode::Overloaded, left(seconds(11)), RetryPolicy::Safe), Decision::Retry(_)));
    }

    #[test]
    fn the_end_of_a_limit_is_read_only_if_it_is_a_time() {
        let limit =
            |resets_at: Option<&str>| RateLimit::new(RateLimitStatus::Rejected).with_reset(resets_at.map(Into::into));
        assert_eq!(remaining(&limit(None)), None);
        assert_eq!(remaining(&limit(Some("soon"))), None);
        assert_eq!(remaining(&limit(Some("2001-01-01T00:00:00Z"))), Some(Duration::ZERO));
        assert!(remaining(&limit(Some("9999-01-01T00:00:00+02:00"))) > Some(Retries::LONGEST_LIMIT));
    }
}
