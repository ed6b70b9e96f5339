//! The person who answers permission requests.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::{CHATS, STRANGER, Services, person_of};
use crate::plan::one_in;

/// The time between two checks of the chats.
const LOOK: Duration = Duration::from_millis(100);

/// A press is repeated after this time if the buttons remain: it may be lost with the gateway.
const AGAIN: Duration = Duration::from_secs(1);

/// Presses the buttons of all permission requests: some allow and some deny. A stranger presses some before.
pub(crate) async fn press_buttons(services: Services) {
    let mut pressed: BTreeMap<(&'static str, usize, String), Instant> = BTreeMap::new();
    loop {
        for service in services.all() {
            for chat in 0..CHATS {
                for message in service.answers(chat).into_iter().filter(|message| message.has_buttons) {
                    let last = pressed.entry((service.name(), chat, message.id.clone()));
                    let is_new = matches!(last, std::collections::btree_map::Entry::Vacant(_));
                    let last = last.or_insert_with(Instant::now);
                    if !is_new && last.elapsed() < AGAIN {
                        continue;
                    }
                    *last = Instant::now();
                    if is_new && one_in(2) {
                        service.press(chat, &message, "Allow", STRANGER);
                    }
                    service.press(chat, &message, if one_in(4) { "Deny" } else { "Allow" }, person_of(chat));
                }
            }
        }
        tokio::time::sleep(LOOK).await;
    }
}
