//! The decisions about turns, as pure functions over plain data. Nothing here reads a clock or does I/O.

use std::time::Duration;

use teamster::event::{ErrorCode, Failure, RunResult};
use teamster_store::{LONGEST_RETRY_DELAY, Progress, Timestamp};

use crate::config::{Interrupted, Retries};

/// The number of times that a worker may die during a turn. After that the turn is not started again.
pub(super) const MAX_CRASHES: u32 = 3;

/// The data about an ended attempt on which the decision depends.
#[derive(Clone, Debug)]
pub(super) struct AttemptFacts<'a> {
    /// The result of the run.
    pub(super) result: &'a RunResult,
    /// The number of the attempt.
    pub(super) attempt: u32,
    /// The number of earlier attempts that do not count as failed: they ended with a pause, or with a lost session.
    pub(super) uncounted: u32,
    /// What the attempt has done.
    pub(super) progress: Progress,
    /// The end of the vendor's rate limit, if it is known.
    pub(super) limited_until: Option<Timestamp>,
    /// A client has requested the abort.
    pub(super) abort_requested: bool,
    /// This attempt or an earlier one has called a tool.
    pub(super) ran_tools: bool,
    /// The attempt has used a session of an earlier turn or attempt.
    pub(super) resumed: bool,
}

/// What follows an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AfterAttempt {
    /// The turn has ended with an answer.
    Done,
    /// The turn was aborted.
    Aborted,
    /// The turn has failed.
    Failed(ErrorCode),
    /// Another attempt starts after this time.
    Retry { delay: Duration, code: ErrorCode },
    /// The conversation pauses.
    Pause { until: Timestamp },
    /// The session cannot be used. Another attempt starts at once, in a new session.
    NewSession,
    /// The session cannot be used to continue an interrupted turn, and the turn must not start again.
    Interrupted,
}

/// Decides what follows an attempt. `jitter` is between 0 and 1.
pub(super) fn after_attempt(facts: &AttemptFacts<'_>, retries: &Retries, now: Timestamp, jitter: f64) -> AfterAttempt {
    let result = facts.result;
    if !result.is_error && !result.aborted {
        return AfterAttempt::Done;
    }
    let code = result.error_code.clone().unwrap_or(ErrorCode::Protocol);
    if facts.abort_requested || code == ErrorCode::Aborted {
        return AfterAttempt::Aborted;
    }
    if code == ErrorCode::SessionNotFound && facts.resumed {
        let must_not_repeat = facts.ran_tools && !retries.after_tools;
        return if must_not_repeat { AfterAttempt::Interrupted } else { AfterAttempt::NewSession };
    }
    if facts.progress == Progress::Tools && !retries.after_tools {
        return AfterAttempt::Failed(code);
    }
    if let Some(until) = facts.limited_until.filter(|until| code == ErrorCode::RateLimit && *until > now) {
        // Pauses have no maximum number, so that each has a minimum length.
        let until = until.max(now.after(retries.first_delay));
        return if retries.pause_on_rate_limit { AfterAttempt::Pause { until } } else { AfterAttempt::Failed(code) };
    }
    let attempt = facts.attempt.saturating_sub(facts.uncounted).max(1);
    if attempt > retries.max || !is_retryable(&code, result.error.as_deref()) {
        return AfterAttempt::Failed(code);
    }
    AfterAttempt::Retry { delay: delay(attempt, retries.first_delay, jitter), code }
}

/// Returns whether another attempt may succeed.
fn is_retryable(code: &ErrorCode, failure: Option<&Failure>) -> bool {
    let vendor = failure.and_then(|failure| failure.retryable);
    match code {
        ErrorCode::SpawnFailed
        | ErrorCode::CliExit
        | ErrorCode::CliSignaled
        | ErrorCode::Protocol
        | ErrorCode::WatchdogTimeout
        | ErrorCode::DeadlineExceeded
        | ErrorCode::QueueFull
        | ErrorCode::Overloaded
        | ErrorCode::Connection => true,
        // The vendor reports a quota that is used up as not retryable.
        ErrorCode::RateLimit => vendor.unwrap_or(true),
        ErrorCode::Provider => vendor.unwrap_or(false),
        _ => false,
    }
}

/// Returns the delay after an attempt: it doubles each time, and up to a quarter of it is random.
fn delay(attempt: u32, first: Duration, jitter: f64) -> Duration {
    let factor = 2_u32.saturating_pow(attempt.saturating_sub(1).min(16));
    let full = first.saturating_mul(factor).min(LONGEST_RETRY_DELAY);
    full.mul_f64(0.75 + 0.25 * jitter.clamp(0.0, 1.0))
}

/// How a claimed turn starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TurnStart {
    /// With its message.
    Prompt,
    /// The agent is asked to continue, in the session of the interrupted attempt.
    Continue,
    /// Not at all: the interruption is reported in the chat.
    ReportInterrupted,
    /// Not at all: its workers have died too often.
    Park,
}

/// The data about a claimed turn on which the decision depends.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClaimFacts {
    /// The lease of its last worker expired while it ran.
    pub(super) interrupted: bool,
    /// The number of attempts that ended with their worker.
    pub(super) crashes: u32,
    /// What the last attempt has done. Nothing, if its failure was recorded.
    pub(super) progress: Progress,
    /// An attempt has called a tool.
    pub(super) ran_tools: bool,
    /// The session of the interrupted attempt can be resumed here.
    pub(super) has_session: bool,
}

/// Decides how a claimed turn starts. After a tool call, its message is sent again only if the configuration permits
/// it.
pub(super) fn turn_start(facts: ClaimFacts, rule: Interrupted, retries: &Retries) -> TurnStart {
    if facts.interrupted && facts.crashes >= MAX_CRASHES {
        return TurnStart::Park;
    }
    let has_effect = facts.interrupted && facts.progress != Progress::Nothing;
    let must_not_repeat = facts.ran_tools && !retries.after_tools;
    match rule {
        _ if !has_effect && !must_not_repeat => TurnStart::Prompt,
        Interrupted::Resume if facts.has_session => TurnStart::Continue,
        _ => TurnStart::ReportInterrupted,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use teamster::event::Event;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000);

    fn failed(code: &str) -> RunResult {
        let json = format!(
            r#"{{"type":"done","result":{{"text":"","finalText":"","durationMs":1,"aborted":false,"isError":true,"errorCode":"{code}"}}}}"#
        );
        match serde_json::from_str(&json).unwrap() {
            Event::Done(done) => done.result,
            other => panic!("{other:?}"),
        }
    }

    fn facts(result: &RunResult) -> AttemptFacts<'_> {
        AttemptFacts {
            result,
            attempt: 1,
            uncounted: 0,
            progress: Progress::Nothing,
            limited_until: None,
            abort_requested: false,
            ran_tools: false,
            resumed: false,
        }
    }

    fn decide(facts: &AttemptFacts<'_>) -> AfterAttempt {
        after_attempt(facts, &Retries::default(), NOW, 1.0)
    }

    #[test]
    fn crashes_timeouts_and_overload_are_retried_after_5_10_and_20_seconds() {
        for code in
            ["CLI_EXIT", "CLI_SIGNALED", "WATCHDOG_TIMEOUT", "OVERLOADED", "CONNECTION", "SPAWN_FAILED", "RATE_LIMIT"]
        {
            let result = failed(code);
            let delays: Vec<_> = (1..=4)
                .map(|attempt| match decide(&AttemptFacts { attempt, ..facts(&result) }) {
                    AfterAttempt::Retry { delay, .. } => Some(delay.as_secs()),
                    AfterAttempt::Failed(_) => None,
                    other => panic!("{other:?}"),
                })
                .collect();
            assert_eq!(delays, [Some(5), Some(10), Some(20), None], "{code}");
        }
    }

    #[test]
    fn failures_that_another_attempt_repeats_are_final() {
        for code in
            ["AUTH", "BUDGET", "CONTEXT_WINDOW", "INVALID_REQUEST", "CLI_NOT_FOUND", "CONFIG", "MAX_TURNS", "PROVIDER"]
        {
            let result = failed(code);
            assert!(matches!(decide(&facts(&result)), AfterAttempt::Failed(_)), "{code}");
        }
    }

    #[test]
    fn a_turn_that_has_called_tools_is_retried_only_if_the_configuration_permits_it() {
        let result = failed("CLI_EXIT");
        let after_tools = AttemptFacts { progress: Progress::Tools, ..facts(&result) };
        assert_eq!(decide(&after_tools), AfterAttempt::Failed(ErrorCode::CliExit));
        let retries = Retries { after_tools: true, ..Retries::default() };
        assert!(matches!(after_attempt(&after_tools, &retries, NOW, 0.0), AfterAttempt::Retry { .. }));
        let text = AttemptFacts { progress: Progress::Text, ..facts(&result) };
        assert!(matches!(decide(&text), AfterAttempt::Retry { .. }));
    }

    #[test]
    fn a_rate_limit_with_a_known_end_pauses_however_many_attempts_there_were() {
        let result = failed("RATE_LIMIT");
        let until = NOW.after(Duration::from_hours(5));
        let limited = AttemptFacts { limited_until: Some(until), attempt: 9, ..facts(&result) };
        assert_eq!(decide(&limited), AfterAttempt::Pause { until });
        let retries = Retries { pause_on_rate_limit: false, ..Retries::default() };
        assert_eq!(after_attempt(&limited, &retries, NOW, 0.0), AfterAttempt::Failed(ErrorCode::RateLimit));
        let past = AttemptFacts { limited_until: Some(NOW), attempt: 1, ..limited };
        assert!(matches!(decide(&past), AfterAttempt::Retry { .. }));
    }

    #[test]
    fn a_pause_is_no_failed_attempt() {
        let result = failed("CLI_EXIT");
        let fourth = AttemptFacts { attempt: 4, uncounted: 3, ..facts(&result) };
        let wanted = AfterAttempt::Retry { delay: Duration::from_secs(5), code: ErrorCode::CliExit };
        assert_eq!(decide(&fourth), wanted);
        assert_eq!(decide(&AttemptFacts { uncounted: 0, ..fourth }), AfterAttempt::Failed(ErrorCode::CliExit));
    }

    #[test]
    fn a_lost_session_is_replaced_once() {
        let result = failed("SESSION_NOT_FOUND");
        assert_eq!(decide(&AttemptFacts { resumed: true, ..facts(&result) }), AfterAttempt::NewSession);
        let after_tools = AttemptFacts { resumed: true, ran_tools: true, ..facts(&result) };
        assert_eq!(decide(&after_tools), AfterAttempt::Interrupted);
        let retries = Retries { after_tools: true, ..Retries::default() };
        assert_eq!(after_attempt(&after_tools, &retries, NOW, 0.0), AfterAttempt::NewSession);
        assert_eq!(decide(&facts(&result)), AfterAttempt::Failed(ErrorCode::SessionNotFound));
    }

    #[test]
    fn an_abort_is_never_retried() {
        let result = failed("CLI_SIGNALED");
        assert_eq!(decide(&AttemptFacts { abort_requested: true, ..facts(&result) }), AfterAttempt::Aborted);
        assert_eq!(decide(&facts(&failed("ABORTED"))), AfterAttempt::Aborted);
    }

    #[test]
    fn an_interrupted_turn_runs_again_only_if_nothing_of_it_had_run() {
        use Interrupted::{Report, Resume};
        use TurnStart::{Continue, Park, Prompt, ReportInterrupted};
        let table = [
            (false, 9, Progress::Tools, Report, false, Prompt),
            (true, 1, Progress::Nothing, Report, false, Prompt),
            (true, 1, Progress::Nothing, Resume, true, Prompt),
            (true, 1, Progress::Text, Report, true, ReportInterrupted),
            (true, 1, Progress::Tools, Resume, true, Continue),
            (true, 1, Progress::Text, Resume, false, ReportInterrupted),
            (true, 3, Progress::Nothing, Resume, true, Park),
        ];
        for (interrupted, crashes, progress, rule, has_session, expected) in table {
            let facts = ClaimFacts { interrupted, crashes, progress, ran_tools: false, has_session };
            assert_eq!(turn_start(facts, rule, &Retries::default()), expected, "{facts:?} {rule:?}");
        }
    }

    #[test]
    fn a_message_is_not_sent_again_after_any_of_its_attempts_has_called_a_tool() {
        use Interrupted::{Report, Resume};
        use TurnStart::{Continue, Prompt, ReportInterrupted};
        for interrupted in [false, true] {
            let facts = |has_session| ClaimFacts {
                interrupted,
                crashes: 1,
                progress: Progress::Nothing,
                ran_tools: true,
                has_session,
            };
            let start = |has_session, rule, retries: &Retries| turn_start(facts(has_session), rule, retries);
            let careful = Retries::default();
            assert_eq!(start(true, Resume, &careful), Continue);
            assert_eq!(start(false, Resume, &careful), ReportInterrupted);
            assert_eq!(start(true, Report, &careful), ReportInterrupted);
            let repeating = Retries { after_tools: true, ..Retries::default() };
            assert_eq!(start(true, Resume, &repeating), Prompt);
        }
    }

    proptest! {
        #[test]
        fn delays_grow_and_stay_within_their_bounds(attempt in 1_u32..100, jitter in 0.0_f64..1.0) {
            let first = Duration::from_secs(5);
            let found = delay(attempt, first, jitter);
            prop_assert!(found >= first.mul_f64(0.75) && found <= LONGEST_RETRY_DELAY);
            prop_assert!(delay(attempt + 1, first, jitter) >= found);
        }
    }
}
