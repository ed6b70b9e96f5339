//! The only bot of the service.

use serde_json::{Value, json};

/// The token of the bot.
pub(super) const TOKEN: &str = "NDI0Mg.Gtest1.secret_of_the_testkit";

/// The id of the bot.
pub const BOT_ID: u64 = 4_242;

/// The id of the application.
pub(super) const APPLICATION_ID: u64 = 4_343;

/// The user name of the bot.
pub const BOT_NAME: &str = "teamster_test_bot";

/// The flag of an application that may have the contents of messages.
pub(super) const CONTENT_FLAG: u64 = 1 << 19;

/// Returns the bot as a user.
pub(super) fn bot() -> Value {
    json!({"id": BOT_ID.to_string(), "username": BOT_NAME, "global_name": null, "discriminator": "0", "avatar": null,
        "bot": true, "public_flags": 0, "flags": 0, "mfa_enabled": false, "verified": true, "locale": "en-US",
        "email": null})
}
