//! The vendor's rate limits, from `account/rateLimits/updated`.

use time::OffsetDateTime;

use super::wire::{Limits, Window};
use crate::agent::limit;
use teamster_types::event::{RateLimit, RateLimitStatus};

/// The percentage at which Codex's own terminal interface warns.
const NEAR: i64 = 90;

/// Returns the event for these limits; `None` if none is reached or near.
pub(super) fn event(limits: &Limits) -> Option<RateLimit> {
    let windows = [&limits.primary, &limits.secondary].into_iter().flatten();
    let fullest = windows.max_by_key(|window| window.used_percent);
    let used = fullest.map_or(0, |window| window.used_percent);
    let status = match limits.rate_limit_reached_type {
        Some(_) => RateLimitStatus::Rejected,
        None if used >= 100 => RateLimitStatus::Rejected,
        None if used >= NEAR => RateLimitStatus::Warning,
        None => return None,
    };
    let kind = limits.rate_limit_reached_type.clone().or_else(|| limits.limit_id.clone());
    Some(RateLimit::new(status).with_reset(fullest.and_then(resets_at).map(Into::into)).with_kind(kind.map(Into::into)))
}

fn resets_at(window: &Window) -> Option<String> {
    limit::time(OffsetDateTime::from_unix_timestamp(window.resets_at?).ok()?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn reported(limits: serde_json::Value) -> Option<serde_json::Value> {
        event(&serde_json::from_value(limits).unwrap()).map(|limit| serde_json::to_value(limit).unwrap())
    }

    #[test]
    fn a_limit_is_reported_if_it_is_near_or_reached() {
        let window = |used: i64| json!({"usedPercent": used, "windowDurationMins": 300, "resetsAt": 1_999_999_999});
        let at = "2033-05-18T03:33:19Z";
        assert_eq!(reported(json!({"limitId": "codex", "primary": null, "secondary": null})), None);
        assert_eq!(reported(json!({"limitId": "codex", "primary": window(89)})), None);
        let near = json!({"status": "warning", "resetsAt": at, "kind": "codex"});
        assert_eq!(reported(json!({"limitId": "codex", "primary": window(3), "secondary": window(90)})), Some(near));
        // app_err_usage_limit
        let reached = json!({"status": "rejected", "resetsAt": at, "kind": "codex"});
        assert_eq!(reported(json!({"limitId": "codex", "primary": window(100)})), Some(reached));
        let depleted = json!({"status": "rejected", "kind": "workspace_owner_credits_depleted"});
        assert_eq!(reported(json!({"rateLimitReachedType": "workspace_owner_credits_depleted"})), Some(depleted));
    }
}
