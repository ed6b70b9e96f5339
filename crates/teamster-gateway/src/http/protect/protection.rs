//! Puts the checks around routers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::from_fn_with_state;

use super::layers;
use super::state::Shared;
use crate::access::{
    AccessError, Authentication, Concurrency, Denials, Hosts, LimitKey, Rate, Secret, is_https, new_sessions, requests,
};
use crate::engine::Gateway;
use crate::telemetry::count_requests;

/// What the checks need besides the gateway.
#[derive(Clone, Debug)]
pub struct ProtectionOptions {
    /// The address where the gateway listens, with its real port.
    pub listen: SocketAddr,
    /// The fixed token of the operator, with all scopes.
    pub fixed_token: Option<Secret>,
}

/// The checks around the routers of a gateway. Clones share their counters.
#[derive(Clone, Debug)]
pub struct Protection {
    shared: Arc<Shared>,
}

impl Protection {
    /// Creates the checks.
    ///
    /// # Errors
    /// The fixed token is short, and other machines can reach the gateway.
    pub fn new(gateway: Gateway, options: ProtectionOptions) -> Result<Self, AccessError> {
        let ProtectionOptions { listen, fixed_token } = options;
        let config = gateway.config();
        if fixed_token.as_ref().is_some_and(Secret::is_short) {
            if config.behind_proxy || !listen.ip().is_loopback() {
                return Err(AccessError::ShortToken);
            }
            tracing::warn!("the token of TEAMSTER_TOKEN is short: other users of this machine may guess it");
        }
        let shared = Shared {
            authentication: Authentication::new(gateway.clone(), fixed_token),
            hosts: Hosts::new(config, listen),
            denials: Denials::new(gateway.clone()),
            rate: Rate::new(requests(config.limits.requests_per_second)),
            session_rate: Rate::new(new_sessions()),
            concurrency: Concurrency::new(config.limits.concurrent_requests),
            gateway,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Returns the app: `open` needs no token, such as probes, the files of the page, and webhooks, which are signed. `protected`
    /// needs one. Hosts, origins and limits are checked for both.
    pub fn protect(&self, open: Router, protected: Router) -> Router {
        let shared = || Arc::clone(&self.shared);
        let protected = protected
            .layer(from_fn_with_state(shared(), layers::bounds))
            .layer(from_fn_with_state(shared(), layers::authenticated));
        let app = open
            .layer(from_fn_with_state(shared(), layers::bounds))
            .merge(protected)
            .layer(from_fn_with_state(shared(), layers::front));
        // Outermost, so that refused requests are counted as well.
        count_requests(app, self.shared.gateway.metrics())
    }

    /// Returns the gateway.
    pub(in crate::http) fn gateway(&self) -> &Gateway {
        &self.shared.gateway
    }

    /// Counts a new session of a token. Returns the time to wait if there are too many.
    pub(in crate::http) fn check_new_session(&self, key: LimitKey) -> Result<(), Duration> {
        self.shared.session_rate.check(&key)
    }

    /// Returns whether clients use TLS.
    pub(in crate::http) fn is_https(&self) -> bool {
        is_https(self.shared.gateway.config())
    }
}
