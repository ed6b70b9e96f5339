//! Exports the spans of the gateway by OpenTelemetry: OTLP over HTTP, in the binary format.
//!
//! Only the four spans of `spans` are exported, and no events of the log. So no text of a message, a prompt or a tool leaves the
//! process. The standard variables `OTEL_EXPORTER_OTLP_*`, `OTEL_TRACES_SAMPLER`, `OTEL_BSP_*`, `OTEL_SERVICE_NAME` and
//! `OTEL_RESOURCE_ATTRIBUTES` apply.

use std::collections::HashMap;
use std::time::Duration;

use opentelemetry::propagation::TextMapPropagator as _;
use opentelemetry::trace::{TraceContextExt as _, TracerProvider as _};
use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::{Metadata, Span, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

/// The name of the service, unless `OTEL_SERVICE_NAME` or `OTEL_RESOURCE_ATTRIBUTES` has another one.
const SERVICE: &str = "teamster";

/// The names of the spans that are exported.
const SPANS: [&str; 4] = ["message", "turn", "attempt", "tool_call"];

/// The path of traces below an endpoint.
const TRACES: &str = "/v1/traces";

/// Sends spans to a collector. Call [`shutdown`](Self::shutdown) at the end: otherwise the last spans are lost.
#[derive(Debug)]
pub struct SpanExport {
    provider: SdkTracerProvider,
}

/// Why spans cannot be exported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The exporter cannot be created. The address of the collector is invalid, or a variable is.
    #[error("cannot export traces: {0}; check the endpoint and the variables OTEL_EXPORTER_OTLP_*")]
    Exporter(#[from] opentelemetry_otlp::ExporterBuildError),
    /// The last spans were not delivered.
    #[error("the last spans were not exported: {0}")]
    Flush(String),
}

impl SpanExport {
    /// Whether a variable names a collector.
    pub fn is_configured() -> bool {
        ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"]
            .iter()
            .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
    }

    /// Starts the export in a thread of its own. `endpoint` is the address of the collector without a path, such as
    /// `http://127.0.0.1:4318`. `None` takes it from `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` or `OTEL_EXPORTER_OTLP_ENDPOINT`.
    ///
    /// # Errors
    /// The endpoint or a variable is invalid. A collector that does not answer is not an error: its spans are lost, and
    /// the log reports it.
    pub fn start(endpoint: Option<&str>) -> Result<Self, ExportError> {
        // The HTTP client panics without a provider. If another one is installed already, it is used.
        _ = rustls::crypto::ring::default_provider().install_default();
        let exporter = SpanExporter::builder().with_http().with_protocol(Protocol::HttpBinary);
        let exporter = match endpoint {
            Some(endpoint) => exporter.with_endpoint(traces_url(endpoint)),
            None => exporter,
        };
        let provider =
            SdkTracerProvider::builder().with_batch_exporter(exporter.build()?).with_resource(resource()).build();
        Ok(Self { provider })
    }

    /// Returns the layer for a subscriber.
    pub fn layer<S>(&self) -> impl Layer<S> + Send + Sync + use<S>
    where
        S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
    {
        tracing_opentelemetry::layer()
            .with_tracer(self.provider.tracer(SERVICE))
            .with_location(false)
            .with_threads(false)
            .with_target(false)
            .with_tracked_inactivity(false)
            .with_filter(filter_fn(is_exported))
    }

    /// Sends the spans that wait, and stops the export. It takes at most `limit`, and 5 s before for the spans that wait. It
    /// blocks: do not call it in an async task.
    ///
    /// # Errors
    /// Spans were lost: the collector does not answer or refuses them.
    pub fn shutdown(self, limit: Duration) -> Result<(), ExportError> {
        // The shutdown sends what waits as well, but does not report whether it was sent.
        let flushed = self.provider.force_flush();
        let stopped = self.provider.shutdown_with_timeout(limit);
        stopped.and(flushed).map_err(|error| ExportError::Flush(error.to_string()))
    }
}

fn is_exported(metadata: &Metadata<'_>) -> bool {
    metadata.is_span() && metadata.target().starts_with("teamster_gateway") && SPANS.contains(&metadata.name())
}

fn traces_url(endpoint: &str) -> String {
    let endpoint = endpoint.trim_end_matches('/');
    if endpoint.ends_with(TRACES) { endpoint.to_owned() } else { format!("{endpoint}{TRACES}") }
}

fn resource() -> Resource {
    let from_environment = Resource::builder().build();
    let name = from_environment.get(&"service.name".into()).map(|name| name.to_string());
    // The library's own default starts with this.
    let is_default = name.is_none_or(|name| name.starts_with("unknown_service"));
    let resource = Resource::builder().with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
    if is_default { resource.with_service_name(SERVICE).build() } else { resource.build() }
}

/// Returns the context of a span in the format of the header `traceparent`, if the span is exported.
pub(super) fn trace_of(span: &Span) -> Option<String> {
    let context = span.context();
    if !context.span().span_context().is_valid() {
        return None;
    }
    let mut headers = HashMap::new();
    TraceContextPropagator::new().inject_context(&context, &mut headers);
    headers.remove("traceparent")
}

/// Makes a span a child of a context that [`trace_of`] has returned. An invalid one is ignored.
pub(super) fn continue_trace(span: &Span, trace: &str) {
    let headers = HashMap::from([("traceparent".to_owned(), trace.to_owned())]);
    let parent = TraceContextPropagator::new().extract_with_context(&Context::new(), &headers);
    if parent.span().span_context().is_valid() {
        // Without the layer there is nothing to continue.
        _ = span.set_parent(parent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_the_address_of_a_collector_with_or_without_the_path() {
        for endpoint in ["http://a:4318", "http://a:4318/", "http://a:4318/v1/traces"] {
            assert_eq!(traces_url(endpoint), "http://a:4318/v1/traces");
        }
    }
}
