//! Which updates are one message: the files of an album, and the parts of a long text. Pure.

use teamster_channel::utf16_length;

use crate::types::{Message, Update};

/// The length from which a client may have split a text. Clients split at 4,096, or at a word before.
const SPLIT_FROM: usize = 3_500;

/// The longest time between the parts of a text, in seconds as the service counts them.
const SPLIT_SECONDS: i64 = 2;

/// The largest number of parts of one message.
const MAX_PARTS: usize = 50;

/// Returns whether more updates of the same message may follow.
pub(crate) fn may_continue(updates: &[Update]) -> bool {
    updates
        .iter()
        .filter_map(|update| update.message.as_ref())
        .any(|message| message.media_group_id.is_some() || is_long_text(message))
}

/// Groups updates, in the order of their first ones. The updates of a group are one message.
pub(crate) fn group(updates: Vec<Update>) -> Vec<Vec<Update>> {
    let mut groups: Vec<Vec<Update>> = Vec::new();
    for update in updates {
        let joined = groups.iter_mut().rev().find(|group| continues(group, &update));
        match joined {
            Some(group) => group.push(update),
            None => groups.push(vec![update]),
        }
    }
    groups
}

/// Returns whether an update belongs to the message of these ones.
pub(crate) fn continues(group: &[Update], update: &Update) -> bool {
    let (Some(last), Some(next)) = (group.last().and_then(|last| last.message.as_ref()), update.message.as_ref())
    else {
        return false;
    };
    let sender = |message: &Message| message.from.as_ref().map(|user| user.id);
    let is_same_place = last.chat.id == next.chat.id
        && last.message_thread_id == next.message_thread_id
        && sender(last) == sender(next)
        && group.len() < MAX_PARTS;
    let is_album = last.media_group_id.is_some() && last.media_group_id == next.media_group_id;
    let is_rest = is_long_text(last)
        && next.text.as_deref().is_some_and(|text| !text.starts_with('/'))
        && next.media_group_id.is_none()
        && last.message_id.checked_add(1) == Some(next.message_id)
        && (0..=SPLIT_SECONDS).contains(&next.date.saturating_sub(last.date));
    is_same_place && (is_album || is_rest)
}

/// Removes the last message, if there are others: its further parts are in the next poll.
pub(crate) fn leave_last_message(updates: &mut Vec<Update>) {
    let Some(last) = updates.last().cloned() else { return };
    let is_same =
        |update: &Update| update.update_id == last.update_id || continues(std::slice::from_ref(update), &last);
    let start = updates.iter().position(is_same).filter(|start| *start > 0);
    if let Some(start) = start.filter(|_| may_continue(std::slice::from_ref(&last))) {
        updates.truncate(start);
    }
}

fn is_long_text(message: &Message) -> bool {
    // A text that is short in bytes need not be counted.
    message.text.as_deref().is_some_and(|text| text.len() >= SPLIT_FROM && utf16_length(text) >= SPLIT_FROM)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Chat;

    fn update(id: i64, change: impl FnOnce(&mut Message)) -> Update {
        let mut message =
            Message { message_id: id, date: 100, chat: Chat { id: 1, ..Chat::default() }, ..Message::default() };
        change(&mut message);
        Update { update_id: id, message: Some(message), ..Update::default() }
    }

    fn ids(updates: Vec<Update>) -> Vec<Vec<i64>> {
        group(updates).iter().map(|group| group.iter().map(|update| update.update_id).collect()).collect()
    }

    #[test]
    fn an_album_is_one_group_although_another_message_is_in_between() {
        let album = |id| update(id, |message| message.media_group_id = Some("a".to_owned()));
        let other = update(2, |message| message.chat.id = 9);
        assert_eq!(ids(vec![album(1), other, album(3), album(4)]), [vec![1, 3, 4], vec![2]]);
        assert!(may_continue(&[album(1)]));
    }

    #[test]
    fn the_parts_of_a_long_text_are_one_group_and_a_command_or_a_later_text_is_not() {
        let text = |id, text: String| update(id, |message| message.text = Some(text));
        let long = || text(1, "x".repeat(4_096));
        assert_eq!(ids(vec![long(), text(2, "rest".to_owned())]), [vec![1, 2]]);
        assert_eq!(ids(vec![long(), text(2, "/stop".to_owned())]), [vec![1], vec![2]]);
        assert_eq!(ids(vec![long(), text(3, "rest".to_owned())]), [vec![1], vec![3]]);
        let late = update(2, |message| (message.text, message.date) = (Some("late".to_owned()), 110));
        assert_eq!(ids(vec![long(), late]), [vec![1], vec![2]]);
        assert_eq!(ids(vec![text(1, "short".to_owned()), text(2, "other".to_owned())]), [vec![1], vec![2]]);
        assert!(!may_continue(&[text(1, "short".to_owned())]));
    }
}
