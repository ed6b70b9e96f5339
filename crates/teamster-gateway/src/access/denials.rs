//! Denied requests in the audit log.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};

use governor::Quota;
use serde::Serialize;
use teamster_store::{Json, NewAuditEntry};

use super::limits::Rate;
use crate::engine::Gateway;

/// Entries of one address per minute.
const PER_ADDRESS: NonZeroU32 = match NonZeroU32::new(6) {
    Some(count) => count,
    None => NonZeroU32::MIN,
};

/// Entries of all addresses per minute.
const IN_ALL: NonZeroU32 = match NonZeroU32::new(60) {
    Some(count) => count,
    None => NonZeroU32::MIN,
};

/// Records denied requests. Their number is limited, so that denied requests cannot fill the disk.
#[derive(Debug)]
pub(crate) struct Denials {
    gateway: Gateway,
    by_address: Rate<IpAddr>,
    all: Rate<()>,
    /// Denials without an entry since the last entry.
    omitted: AtomicU64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Details<'a> {
    reason: &'a str,
    #[serde(skip_serializing_if = "is_zero")]
    omitted_before: u64,
}

impl Denials {
    pub(crate) fn new(gateway: Gateway) -> Self {
        Self {
            gateway,
            by_address: Rate::new(Quota::per_minute(PER_ADDRESS)),
            all: Rate::new(Quota::per_minute(IN_ALL)),
            omitted: AtomicU64::new(0),
        }
    }

    /// Records a denial. `route` is the template of the path: the path itself may contain a secret.
    pub(crate) async fn record(&self, actor: &str, action: &str, reason: &str, route: &str, address: IpAddr) {
        let is_omitted = self.by_address.check(&address).is_err() || self.all.check(&()).is_err();
        if is_omitted {
            self.omitted.fetch_add(1, Ordering::Relaxed);
            return;
        }
        tracing::warn!(actor, action, reason, route, %address, "a request was denied");
        let omitted_before = self.omitted.swap(0, Ordering::Relaxed);
        let entry = NewAuditEntry {
            actor: actor.to_owned(),
            action: action.to_owned(),
            subject: route.to_owned(),
            origin: address.to_string(),
            details: Json::of(&Details { reason, omitted_before }).unwrap_or_default(),
        };
        if let Err(error) = self.gateway.store().record_audit(entry, self.gateway.now()).await {
            tracing::error!(%error, action, "the audit log cannot be written");
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}
