//! Converts `system` and `rate_limit_event` lines to warnings and rate limits.

use std::time::Duration;

use serde_json::Value;
use time::OffsetDateTime;

use super::wire::{RateLimitInfo, SystemLine};
use crate::agent::limit;
use teamster_types::event::{Event, RateLimit, RateLimitStatus, Warning, WarningCode};

/// Returns the warning of a `system/*` line other than init; `None` for hooks, tasks and status.
pub(super) fn of_system(subtype: &str, line: &SystemLine) -> Option<Warning> {
    match subtype {
        "api_retry" => Some(api_retry(line)),
        "compact_boundary" => Some(compacted(line)),
        "model_fallback" | "model_refusal_fallback" => {
            let mut warning = Warning::new(WarningCode::ModelFallback, content(line, "the agent changed the model"));
            if let Some(model) = &line.original_model {
                warning = warning.with("from", model.as_str());
            }
            if let Some(model) = &line.fallback_model {
                warning = warning.with("to", model.as_str());
            }
            Some(warning)
        }
        "model_refusal_no_fallback" => Some(Warning::new(WarningCode::Notice, content(line, "the model refused"))),
        "informational" => Some(Warning::new(WarningCode::Notice, content(line, "the agent has a notice"))),
        _ => None,
    }
}

/// Returns the warning that the model has changed within a turn.
pub(super) fn model_changed(from: &str, to: &str) -> Warning {
    let text = format!("the agent changed the model from {from} to {to}");
    Warning::new(WarningCode::ModelFallback, text).with("from", from).with("to", to)
}

/// Returns the warning that a background task has ended. `name` is the description with which it was started.
pub(super) fn task(line: &SystemLine, name: Option<&str>) -> Warning {
    let ended = match line.status.as_deref() {
        Some("failed") => "a background task has failed",
        Some("stopped" | "killed") => "a background task was stopped",
        _ => "a background task has ended",
    };
    let summary = line.summary.as_deref().filter(|text| !text.is_empty());
    let name = name.filter(|name| !name.is_empty() && summary.is_none_or(|summary| !summary.contains(name)));
    let text = [Some(ended), name, summary].into_iter().flatten().collect::<Vec<_>>().join(": ");
    let data = [
        ("taskId", &line.task_id),
        ("toolId", &line.tool_use_id),
        ("status", &line.status),
        ("outputFile", &line.output_file),
    ];
    let known = data.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?)));
    known
        .filter(|(_, value)| !value.is_empty())
        .fold(Warning::new(WarningCode::BackgroundTask, text), |warning, (name, value)| warning.with(name, value))
}

fn api_retry(line: &SystemLine) -> Warning {
    let error = match &line.error {
        Some(Value::String(text)) if text != "unknown" => Some(text.replace('_', " ")),
        _ => None,
    };
    let reason = match (error, line.error_status) {
        (Some(error), Some(status)) => format!("{error} ({status})"),
        (Some(error), None) => format!("{error} (no answer)"),
        (None, Some(status)) => format!("status {status}"),
        (None, None) => "no answer".to_owned(),
    };
    let message = format!("{reason}; the agent tries again");
    let mut warning = Warning::new(WarningCode::Retrying, message);
    if let Some(status) = line.error_status {
        warning = warning.with("status", status);
    }
    if let Some(attempt) = line.attempt {
        warning = warning.with("attempt", attempt);
    }
    if let Some(max) = line.max_retries {
        warning = warning.with("max", max);
    }
    if let Some(delay) = line.retry_delay_ms.and_then(|ms| Duration::try_from_secs_f64(ms / 1000.0).ok()) {
        warning = warning.with("delayMs", u64::try_from(delay.as_millis()).unwrap_or(u64::MAX));
    }
    warning
}

fn compacted(line: &SystemLine) -> Warning {
    let mut warning = Warning::new(WarningCode::Compacted, "the agent shortened its conversation");
    if let Some(metadata) = &line.compact_metadata {
        if let Some(trigger) = &metadata.trigger {
            warning = warning.with("trigger", trigger.as_str());
        }
        if let Some(tokens) = metadata.pre_tokens {
            warning = warning.with("tokensBefore", tokens);
        }
        if let Some(tokens) = metadata.post_tokens {
            warning = warning.with("tokensAfter", tokens);
        }
    }
    warning
}

fn content(line: &SystemLine, otherwise: &str) -> String {
    let content = line.content.as_ref().and_then(Value::as_str);
    content.filter(|text| !text.is_empty()).unwrap_or(otherwise).to_owned()
}

/// Returns why the model cannot use an MCP server with this status; `None` if it can.
pub(super) fn mcp_server(status: &str) -> Option<String> {
    match status {
        "connected" | "disabled" => None,
        "failed" => Some("did not start".to_owned()),
        "pending" => Some("is still starting; its tools are missing".to_owned()),
        "needs-auth" => Some("needs a login".to_owned()),
        other => Some(format!("is {other}")),
    }
}

pub(super) fn rate_limit(info: &RateLimitInfo) -> Event {
    let status = match info.status.as_str() {
        "allowed_warning" => RateLimitStatus::Warning,
        other => RateLimitStatus::from(other),
    };
    let resets_at = info.resets_at.and_then(|seconds| OffsetDateTime::from_unix_timestamp(seconds).ok());
    Event::RateLimit(Box::new(
        RateLimit::new(status)
            .with_reset(resets_at.and_then(limit::time).map(Into::into))
            .with_kind(info.rate_limit_type.clone().map(Into::into)),
    ))
}
