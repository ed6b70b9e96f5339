//! A receiver of OpenTelemetry spans: OTLP over HTTP, in the binary format.
//!
//! It keeps every span that an exporter sends, so that a test can verify names, parents and attributes.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode as SpanStatus;
use prost::Message as _;

use crate::server::LocalServer;

/// A span as the exporter has sent it. Ids are hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedSpan {
    /// The trace.
    pub trace_id: String,
    /// The span.
    pub span_id: String,
    /// The parent. `None` is the root of a trace.
    pub parent_id: Option<String>,
    /// The name.
    pub name: String,
    /// The attributes, with their values as text.
    pub attributes: BTreeMap<String, String>,
    /// The number of the span's events.
    pub events: usize,
    /// Whether its status is an error.
    pub is_error: bool,
    /// The start, in nanoseconds since the epoch.
    pub start: u64,
    /// The end, in nanoseconds since the epoch.
    pub end: u64,
    /// The attributes of the process that has sent it.
    pub resource: BTreeMap<String, String>,
}

/// A collector that keeps the spans it gets. Dropping it stops it.
#[derive(Debug)]
pub struct Collector {
    server: LocalServer,
    received: Received,
}

#[derive(Clone, Default)]
struct Received {
    spans: Arc<Mutex<Vec<ReceivedSpan>>>,
    /// All bodies, for a search of what must not be sent.
    bodies: Arc<Mutex<Vec<u8>>>,
}

impl fmt::Debug for Received {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Received").finish_non_exhaustive()
    }
}

impl Collector {
    /// Starts a collector on a free port of the loopback address.
    ///
    /// # Errors
    /// No port can be opened.
    pub async fn start() -> io::Result<Self> {
        let received = Received::default();
        let router = Router::new().route("/v1/traces", post(receive)).with_state(received.clone());
        Ok(Self { server: LocalServer::start(router).await?, received })
    }

    /// Returns the address of the collector, without a path.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// Returns the spans so far, in the order of their arrival.
    pub fn spans(&self) -> Vec<ReceivedSpan> {
        self.received.spans.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns whether anything that was sent contains these bytes.
    pub fn has_received(&self, bytes: &[u8]) -> bool {
        let bodies = self.received.bodies.lock().unwrap_or_else(PoisonError::into_inner);
        !bytes.is_empty() && bodies.windows(bytes.len()).any(|window| window == bytes)
    }
}

async fn receive(State(received): State<Received>, headers: HeaderMap, body: Bytes) -> (StatusCode, Vec<u8>) {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if kind != "application/x-protobuf" {
        return (StatusCode::UNSUPPORTED_MEDIA_TYPE, Vec::new());
    }
    let Ok(request) = ExportTraceServiceRequest::decode(body.clone()) else {
        return (StatusCode::BAD_REQUEST, Vec::new());
    };
    received.bodies.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&body);
    let mut spans = received.spans.lock().unwrap_or_else(PoisonError::into_inner);
    for resource_spans in request.resource_spans {
        let resource = resource_spans.resource.map(|resource| attributes(&resource.attributes)).unwrap_or_default();
        let sent = resource_spans.scope_spans.into_iter().flat_map(|scope| scope.spans);
        spans.extend(sent.map(|span| received_span(span, resource.clone())));
    }
    (StatusCode::OK, ExportTraceServiceResponse::default().encode_to_vec())
}

fn received_span(span: Span, resource: BTreeMap<String, String>) -> ReceivedSpan {
    ReceivedSpan {
        trace_id: hexadecimal(&span.trace_id),
        span_id: hexadecimal(&span.span_id),
        parent_id: Some(hexadecimal(&span.parent_span_id)).filter(|id| !id.is_empty()),
        attributes: attributes(&span.attributes),
        name: span.name,
        events: span.events.len(),
        is_error: span.status.is_some_and(|status| status.code() == SpanStatus::Error),
        start: span.start_time_unix_nano,
        end: span.end_time_unix_nano,
        resource,
    }
}

fn attributes(sent: &[KeyValue]) -> BTreeMap<String, String> {
    sent.iter().map(|attribute| (attribute.key.clone(), text(attribute.value.as_ref()))).collect()
}

fn text(value: Option<&AnyValue>) -> String {
    match value.and_then(|value| value.value.as_ref()) {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::BoolValue(value)) => value.to_string(),
        Some(Value::IntValue(value)) => value.to_string(),
        Some(Value::DoubleValue(value)) => value.to_string(),
        Some(other) => format!("{other:?}"),
        None => String::new(),
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a text cannot fail.
        _ = write!(text, "{byte:02x}");
        text
    })
}
