//! Telemetry of the gateway: metrics, spans and JSON logs.
//!
//! | module | contents |
//! |---|---|
//! | `metrics`, `labels` | the metrics: [`Metrics`]. Labels have a bounded number of values |
//! | `turn_times` | the times of running turns, for histograms |
//! | `uncounted` | the writes that a scrape waits for |
//! | `store` | counts and measures the operations of a store |
//! | `requests` | counts HTTP requests |
//! | `endpoint` | `GET /metrics` |
//! | `spans` | the spans of a message, a turn, an attempt and a tool call |
//! | `logs` | log lines as JSON |
//! | `otel` | exports the spans by OpenTelemetry (feature `otel`) |
//!
//! No span, log line or metric contains the text of a message, a prompt, or the input or output of a tool.

mod endpoint;
mod labels;
mod logs;
mod metrics;
#[cfg(feature = "otel")]
pub mod otel;
mod requests;
pub(crate) mod spans;
mod store;
mod turn_times;
mod uncounted;

pub use self::endpoint::metrics_router;
pub use self::logs::json_logs;
pub use self::metrics::Metrics;
pub(crate) use self::metrics::Subscriber;
pub use self::requests::count_requests;
pub(crate) use self::store::MeasuredStore;
