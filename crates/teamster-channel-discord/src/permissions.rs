//! What the bot must be allowed to do, <https://discord.com/developers/docs/topics/permissions>.

/// A bot with this one may do everything.
const ADMINISTRATOR: u64 = 1 << 3;

/// What it always needs, with the names of the clients.
const NEEDED: [(u64, &str); 5] = [
    (1 << 10, "View Channels"),
    (1 << 11, "Send Messages"),
    (1 << 15, "Attach Files"),
    (1 << 16, "Read Message History"),
    (1 << 38, "Send Messages in Threads"),
];

/// What it needs to open threads.
const FOR_THREADS: (u64, &str) = (1 << 35, "Create Public Threads");

/// Returns the names of what is missing in a number of permissions.
pub(crate) fn missing(granted: &str, threads: bool) -> Vec<&'static str> {
    let granted: u64 = granted.parse().unwrap_or_default();
    if granted & ADMINISTRATOR != 0 {
        return Vec::new();
    }
    needed(threads).filter(|(bit, _)| granted & bit == 0).map(|(_, name)| name).collect()
}

/// Returns the number with all needed permissions.
pub(crate) fn all_permissions(threads: bool) -> u64 {
    needed(threads).fold(0, |all, (bit, _)| all | bit)
}

fn needed(threads: bool) -> impl Iterator<Item = (u64, &'static str)> {
    NEEDED.into_iter().chain(threads.then_some(FOR_THREADS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_and_an_administrator_lacks_nothing() {
        assert!(missing(&all_permissions(true).to_string(), true).is_empty());
        assert_eq!(missing(&all_permissions(false).to_string(), true), ["Create Public Threads"]);
        assert_eq!(missing("1024", false).len(), 4);
        assert!(missing("8", true).is_empty());
        assert_eq!(missing("no number", false).len(), 5);
    }
}
