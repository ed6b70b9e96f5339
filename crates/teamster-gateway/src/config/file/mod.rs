//! The table `[serve]` of the configuration file.
//!
//! | module | contents |
//! |---|---|
//! | `table`, `rule`, `channels`, `discord`, `slack`, `telegram`, `values` | the table as written; the JSON schema is generated from its description |
//! | `reader`, `message` | read the table; a problem of one key does not hide the others |
//! | `paths` | makes the paths of a table absolute |
//! | `build`, `checks`, `channel_names` | check the values |
//! | `apply` | makes a [`Config`](super::Config) of the table |

mod apply;
mod build;
mod channel_names;
mod channels;
mod checks;
mod discord;
mod message;
mod paths;
mod reader;
mod rule;
mod slack;
mod table;
mod telegram;
mod values;

pub use build::{Serve, build, store_file};
pub use channels::{BotsTable, DeliveryTable, UnknownName};
pub use checks::KeyProblem;
pub use discord::DiscordTable;
pub use reader::{Offset, Offsets, Parsed, Problem, read, schema};
pub use rule::RuleTable;
pub use slack::{RepliesName, SlackTable};
pub use table::{InstructionsTable, LimitsTable, RetentionTable, RetriesTable, ServeTable, TimingTable, TlsTable};
pub use telegram::{GroupsName, TelegramTable};
pub use values::{CompatName, InterruptedName, PermissionName, Role, Time};

#[cfg(test)]
mod tests;
