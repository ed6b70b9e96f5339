//! The export of the gateway's spans by OpenTelemetry. Without the feature `otel` there is none.

#[cfg(feature = "otel")]
pub(crate) use with_otel::TraceExport;
#[cfg(not(feature = "otel"))]
pub(crate) use without_otel::TraceExport;

#[cfg(feature = "otel")]
mod with_otel {
    use std::time::Duration;

    use teamster_gateway::telemetry::otel::SpanExport;
    use tracing::Subscriber;
    use tracing_subscriber::Layer;
    use tracing_subscriber::registry::LookupSpan;

    use crate::args::Command;

    /// How long the end of the command waits for a collector.
    const LIMIT: Duration = Duration::from_secs(5);

    /// An export that runs, if this command has one.
    #[derive(Debug)]
    pub(crate) struct TraceExport(Option<SpanExport>);

    impl TraceExport {
        /// Starts the export of a gateway if a variable names a collector.
        pub(crate) fn start(command: &Command) -> Result<Self, String> {
            if !matches!(command, Command::Serve(args) if !args.check) || !SpanExport::is_configured() {
                return Ok(Self(None));
            }
            SpanExport::start(None).map(|export| Self(Some(export))).map_err(|error| error.to_string())
        }

        /// Returns the layer of the log.
        pub(crate) fn layer<S>(&self) -> Option<impl Layer<S> + Send + Sync + use<S>>
        where
            S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
        {
            self.0.as_ref().map(SpanExport::layer)
        }

        /// Sends the last spans.
        pub(crate) fn stop(self) {
            if let Some(export) = self.0
                && let Err(error) = export.shutdown(LIMIT)
            {
                tracing::warn!(%error, "traces are not complete");
            }
        }
    }
}

#[cfg(not(feature = "otel"))]
mod without_otel {
    use tracing_subscriber::layer::Identity;

    use crate::args::Command;

    /// No export.
    #[derive(Debug)]
    pub(crate) struct TraceExport;

    impl TraceExport {
        #[expect(clippy::unnecessary_wraps, reason = "as with the feature")]
        pub(crate) const fn start(_: &Command) -> Result<Self, String> {
            Ok(Self)
        }

        #[expect(clippy::unused_self, reason = "as with the feature")]
        pub(crate) const fn layer(&self) -> Option<Identity> {
            None
        }

        #[expect(clippy::unused_self, reason = "as with the feature")]
        pub(crate) const fn stop(self) {}
    }
}
