//! Turns the content of a delivery into the parts that a service accepts. Pure: the same content has the same parts.

use teamster_channel::{Capabilities, Content, Prompt, REPEAT_MARK, TextLimit, split};

/// Returns the parts of a content. Only the last part of a prompt has its buttons.
pub(super) fn parts(content: &Content, capabilities: &Capabilities) -> Vec<Content> {
    let limit = capabilities.text_limit;
    // The channel marks a possible repeat in the text.
    let limit = TextLimit { max: limit.max.saturating_sub(REPEAT_MARK.len()), unit: limit.unit };
    match content {
        Content::Prompt(prompt) => prompt_parts(prompt, capabilities, limit),
        Content::File(_) if capabilities.max_file_bytes == 0 => Vec::new(),
        Content::File(file) => {
            // A caption that is too long is cut: the file is what matters.
            let caption = split(&file.caption, limit).into_iter().next().unwrap_or_default();
            vec![content.clone().with_text(caption)]
        }
        Content::Progress { text } => {
            let shown = split(text, limit).into_iter().next_back().unwrap_or_else(|| "…".to_owned());
            vec![content.clone().with_text(shown)]
        }
        _ => {
            let texts = split(content.text(), limit);
            let texts = if texts.is_empty() { vec!["…".to_owned()] } else { texts };
            texts.into_iter().map(|text| content.clone().with_text(text)).collect()
        }
    }
}

fn prompt_parts(prompt: &Prompt, capabilities: &Capabilities, limit: TextLimit) -> Vec<Content> {
    let mut prompt = prompt.clone();
    if !capabilities.buttons && !prompt.buttons.is_empty() {
        let Prompt { id, text, buttons } = prompt;
        let text = format!("{text}\n\nAnswer it in the gateway's page, or with `teamster approve {id}`.");
        prompt = Prompt { id, text, buttons };
        prompt.buttons.clear();
    }
    let mut texts = split(&prompt.text, limit);
    let last = texts.pop().unwrap_or_else(|| "…".to_owned());
    let mut parts: Vec<_> = texts.into_iter().map(|text| Content::Notice { text }).collect();
    parts.push(Content::Prompt(Prompt { text: last, ..prompt }));
    parts
}

#[cfg(test)]
mod tests {
    use teamster_channel::{Button, ButtonStyle, File, TextUnit};

    use super::*;

    fn capabilities(max: usize) -> Capabilities {
        let text_limit = TextLimit { max, unit: TextUnit::Chars };
        Capabilities { text_limit, buttons: true, ..Capabilities::default() }
    }

    #[test]
    fn a_long_answer_has_parts_and_each_can_be_marked_as_a_repeat() {
        let text = "word ".repeat(200);
        let answer = Content::Answer { text, session_id: Some("s".into()) };
        let parts = parts(&answer, &capabilities(250));
        assert!(parts.len() > 3);
        for part in parts {
            let marked = format!("{REPEAT_MARK}{}", part.text());
            assert!(marked.chars().count() <= 250, "{marked}");
            assert!(matches!(part, Content::Answer { session_id: Some(_), .. }));
        }
    }

    #[test]
    fn only_the_last_part_of_a_prompt_has_buttons() {
        let button =
            Button { label: "Allow".into(), token: "t".into(), style: ButtonStyle::Positive, takes_text: false };
        let prompt = Prompt { id: "p".into(), text: "word ".repeat(100), buttons: vec![button] };
        let shown = parts(&Content::Prompt(prompt.clone()), &capabilities(250));
        let (last, others) = shown.split_last().unwrap();
        assert!(matches!(last, Content::Prompt(prompt) if prompt.buttons.len() == 1), "{last:?}");
        assert!(!others.is_empty() && others.iter().all(|part| matches!(part, Content::Notice { .. })));
        let plain = Capabilities { buttons: false, ..capabilities(2_000) };
        let shown = parts(&Content::Prompt(prompt), &plain);
        assert!(shown[0].text().ends_with("`teamster approve p`."), "{shown:?}");
        let answered_elsewhere = Prompt { id: "p".into(), text: "May I?".into(), buttons: Vec::new() };
        assert_eq!(parts(&Content::Prompt(answered_elsewhere), &plain)[0].text(), "May I?");
    }

    #[test]
    fn an_empty_text_has_a_visible_part_and_a_file_needs_a_service_with_files() {
        assert_eq!(parts(&Content::Notice { text: " ".into() }, &capabilities(250))[0].text(), "…");
        let file =
            Content::File(File { name: "a".into(), media_type: "b".into(), hash: "c".into(), caption: String::new() });
        assert!(parts(&file, &capabilities(250)).is_empty());
        let with_files = Capabilities { max_file_bytes: 1, ..capabilities(250) };
        assert_eq!(parts(&file, &with_files), [file]);
    }
}
