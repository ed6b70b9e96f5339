//! No output of an agent can send control sequences to the terminal.

use proptest::prelude::*;

use super::*;

proptest! {
    /// Without the renderer's own styles, the output contains no control sequence.
    #[test]
    fn output_of_an_agent_contains_no_control_sequences(texts in prop::collection::vec(hostile(), 16..24)) {
        let mut texts = texts.into_iter().cycle();
        let mut next = || texts.next().unwrap_or_default();
        let mut init = Init::new(next(), next().into());
        (init.model, init.agent_version) = (Some(next().into()), Some(next().into()));
        let entry = PlanEntry::new(next(), PlanStatus::Pending);
        let rate_limit = RateLimit::new(RateLimitStatus::Other(next())).with_reset(Some(next().into())).with_kind(Some(next().into()));
        let denial = PermissionDenial::new(next());
        let mut events = vec![
            Event::Init(Box::new(init)),
            text("1", &next()),
            text("1", &next()),
            thinking(&next()),
            tool("a", &next(), json!({"command": next()})),
            Event::Text(delta("2", Some("a"), &next())),
            tool_of(Some("a"), "b", &next(), json!({next(): next()})),
            tool("c", &next(), json!(next())),
            result("c", Some(&next())),
            result("a", Some(&next())),
            Event::Plan(Plan::new(vec![entry])),
            Event::RateLimit(Box::new(rate_limit)),
            Warning::new(WarningCode::Notice, next()).into(),
            text("3", &next()),
        ];
        events.extend(failed(ErrorCode::Other(next()), &next(), |result| {
            (result.model, result.session_id) = (Some(next().into()), Some(next().into()));
            (result.stderr, result.structured_output) = (Some(next().into()), Some(json!({next(): next()}).into()));
            result.permission_denials = vec![denial];
        }));
        let mut page = colored(PAGE, &events);
        for style in ["0", "1", "2", "3", "31", "32", "33", "36"] {
            page = page.replace(&format!("\u{1b}[{style}m"), "");
        }
        let turns = |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        prop_assert!(page.chars().all(|c| c == '\n' || c == '\t' || !c.is_control() && !turns(c)), "{page:?}");
    }
}

/// Text with control sequences that the renderer does not use.
fn hostile() -> impl Strategy<Value = String> {
    let parts = [
        "\u{1b}[2J",
        "\u{1b}]0;title\u{7}",
        "\u{1b}[",
        "\u{1b}",
        "\u{9b}5m",
        "\r",
        "\u{8}",
        "\n",
        " ",
        "word",
        "漢",
        "\u{9d}",
        "\u{9c}",
        "\u{202e}",
        "\u{2066}",
        "\u{200f}",
        "\u{85}",
    ];
    prop::collection::vec(prop::sample::select(parts.to_vec()), 0..8).prop_map(|parts| parts.concat())
}
