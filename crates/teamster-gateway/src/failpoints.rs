//! Points between two durable steps at which a test can end the process, as a crash does.
//!
//! Release builds do not have them. In a debug build, the variable `TEAMSTER_FAILPOINT=NAME:N` aborts the process when it
//! reaches the point `NAME` for the Nth time.

/// Names a point at which the process may end.
macro_rules! failpoint {
    ($name:literal) => {
        #[cfg(debug_assertions)]
        $crate::failpoints::hit($name);
    };
}
pub(crate) use failpoint;

/// The names of all points, in the order of a message's path.
pub const FAILPOINTS: &[&str] = &[
    "accept.before",
    "accept.after",
    "claim.after",
    "attempt.counted",
    "session.opened",
    "prompt.sent",
    "append.before",
    "append.after",
    "steer.joined",
    "steer.recorded",
    "permission.requested",
    "permission.answered",
    "finish.before",
    "finish.after",
    "hand_back.before",
    "hand_back.after",
    "delivery.claimed",
    "delivery.started",
    "delivery.sent",
    "delivery.confirmed",
    "delivery.all_confirmed",
];

/// Aborts the process if the variable names this point and its number is reached.
#[cfg(debug_assertions)]
pub(crate) fn hit(name: &str) {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU32, Ordering};

    static TARGET: OnceLock<Option<(String, u32)>> = OnceLock::new();
    static HITS: AtomicU32 = AtomicU32::new(0);

    let target = TARGET.get_or_init(|| {
        let value = std::env::var("TEAMSTER_FAILPOINT").ok()?;
        let (name, count) = value.split_once(':')?;
        Some((name.to_owned(), count.parse().ok()?))
    });
    if let Some((target, count)) = target
        && target == name
        && HITS.fetch_add(1, Ordering::Relaxed) + 1 == *count
    {
        std::process::abort();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    /// Returns the names that the source uses.
    fn used(directory: &Path, names: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                used(&path, names);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let calls = text.split("failpoint!(\"").skip(1);
                names.extend(calls.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
            }
        }
    }

    #[test]
    fn the_list_has_each_point_of_the_source() {
        let mut names = BTreeSet::new();
        used(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut names);
        let listed: BTreeSet<_> = FAILPOINTS.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(names, listed);
    }
}
