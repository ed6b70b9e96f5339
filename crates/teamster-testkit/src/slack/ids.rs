//! The tokens and ids of the app.

/// The token of the bot.
pub(super) const BOT_TOKEN: &str = "xoxb-4242-testkit-secret";

/// The token of the app.
pub(super) const APP_TOKEN: &str = "xapp-1-A0TESTKIT-4242-secret";

/// The id of the workspace.
pub const TEAM: &str = "T0TESTKIT";

/// The id of the bot's user, which mentions contain.
pub const BOT_USER: &str = "U0TEAMSTER";

/// The id of the bot, which its messages have.
pub(super) const BOT_ID: &str = "B0TEAMSTER";

/// The id of the app.
pub(super) const APP_ID: &str = "A0TESTKIT";
