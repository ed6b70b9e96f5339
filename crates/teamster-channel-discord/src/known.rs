//! What the bot knows of its servers, as data.

use std::collections::HashMap;
use std::time::Instant;

use crate::types::Channel;

/// What the bot knows of its servers.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// The channels by their ids.
    pub(crate) channels: HashMap<String, Channel>,
    /// The roles of the bot in a server, and since when they are known.
    pub(crate) roles: HashMap<String, (Instant, Vec<String>)>,
}
