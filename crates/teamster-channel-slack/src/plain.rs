//! The text of a message as a person sees it, <https://docs.slack.dev/messaging/formatting-message-text/>.
//!
//! In the texts of events, `&`, `<` and `>` are escaped, and mentions and links are in angle brackets.

/// Returns a text for an agent, without mentions of the bot.
pub(crate) fn plain(text: &str, bot: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('<') {
        shown.push_str(&unescaped(before));
        let Some((inside, after)) = after.split_once('>') else {
            shown.push('<');
            rest = after;
            continue;
        };
        shown.push_str(&unescaped(&sequence(inside, bot)));
        rest = after;
    }
    shown.push_str(&unescaped(rest));
    shown.trim().to_owned()
}

/// Returns the ids of the people that a text mentions.
pub(crate) fn mentioned(text: &str) -> impl Iterator<Item = &str> {
    text.split("<@").skip(1).filter_map(|rest| rest.split(['>', '|']).next()).filter(|id| !id.is_empty())
}

/// Returns what the inside of angle brackets is shown as.
fn sequence(inside: &str, bot: &str) -> String {
    let (target, label) = inside.split_once('|').map_or((inside, None), |(target, label)| (target, Some(label)));
    let label = label.filter(|label| !label.is_empty());
    if let Some(user) = target.strip_prefix('@') {
        return if user == bot { String::new() } else { format!("@{}", label.unwrap_or(user)) };
    }
    if let Some(channel) = target.strip_prefix('#') {
        return format!("#{}", label.unwrap_or(channel));
    }
    if let Some(special) = target.strip_prefix('!') {
        let name = special.split('^').next().unwrap_or(special);
        return label.map_or_else(|| format!("@{name}"), str::to_owned);
    }
    let address = target.strip_prefix("mailto:").unwrap_or(target);
    match label {
        // The client labels a link with its own text.
        Some(label) if label == address || address.ends_with(label) => address.to_owned(),
        Some(label) => format!("{label} ({address})"),
        None => address.to_owned(),
    }
}

fn unescaped(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

/// Returns a text that Slack shows as it is: no mention, no link.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Returns an escaped text of at most `max` characters, which ends with no cut escape.
pub(crate) fn escaped_to(text: &str, max: usize) -> String {
    let mut shown = String::new();
    let mut length = 0;
    for character in text.chars() {
        let piece = escaped(&character.to_string());
        length += piece.chars().count();
        if length > max {
            break;
        }
        shown.push_str(&piece);
    }
    shown
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_text_is_as_people_see_it_and_without_mentions_of_the_bot() {
        for (text, expected) in [
            ("<@UBOT> do it", "do it"),
            ("<@UBOT|teamster> do it", "do it"),
            ("ask <@U1|ada> and <@U2>", "ask @ada and @U2"),
            ("see <#C1|general> and <#C2>", "see #general and #C2"),
            ("<!here> and <!subteam^S1|@team> and <!date^1^{date}|today>", "@here and @team and today"),
            (
                "<https://e.org/x> <https://e.org|e.org> <https://e.org|here>",
                "https://e.org/x https://e.org here (https://e.org)",
            ),
            ("<mailto:a@b.org|a@b.org>", "a@b.org"),
            ("a &lt;b&gt; &amp;lt;", "a <b> &lt;"),
            ("a < b", "a < b"),
            ("", ""),
        ] {
            assert_eq!(plain(text, "UBOT"), expected);
        }
        assert_eq!(mentioned("<@U1> x <@U2|b>").collect::<Vec<_>>(), ["U1", "U2"]);
    }

    #[test]
    fn an_escaped_text_mentions_no_person_and_is_cut_between_characters() {
        assert_eq!(escaped("<!channel> & <@U1>"), "&lt;!channel&gt; &amp; &lt;@U1&gt;");
        assert_eq!(escaped_to("a&b", 5), "a");
        assert_eq!(escaped_to("a&b", 6), "a&amp;");
    }

    proptest! {
        #[test]
        fn what_is_escaped_is_read_as_it_was(text in ".*") {
            prop_assert_eq!(plain(&escaped(&text), "U"), text.trim());
        }

        #[test]
        fn no_text_is_a_cause_for_a_panic(text in "[<>@#!|&;a^ ]*") {
            plain(&text, "a");
            mentioned(&text).count();
            prop_assert!(!escaped_to(&text, 20).contains('<'));
        }
    }
}
