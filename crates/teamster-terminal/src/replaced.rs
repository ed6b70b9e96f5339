//! Replaces what differs between two runs, for snapshots.

/// The length of the text of a UUID.
const UUID_LENGTH: usize = 36;

/// The start of the ids of OpenCode's sessions.
const SESSION_PREFIX: &str = "ses_";

/// Replaces each duration by `N` with its unit, each frame of a spinner by `⠿`, and each id of a session by zeros. Removes the duration
/// of a tool call, which is shown only if it is long.
pub fn steady(text: &str) -> String {
    let text = without_session_ids(&without_uuids(text));
    let mut steady = String::new();
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (number, after) = rest.split_at(rest.len() - rest.trim_start_matches(is_of_number).len());
        let is_duration = !number.is_empty()
            && !steady.ends_with(|c: char| c.is_ascii_alphanumeric())
            && ["s", " s", "ms"].iter().any(|unit| {
                after.strip_prefix(unit).is_some_and(|after| !after.starts_with(|c: char| c.is_alphanumeric()))
            });
        steady.push_str(if is_duration { "N" } else { number });
        let mut characters = after.chars();
        if let Some(character) = characters.next() {
            let is_spinner = ('\u{2800}'..='\u{28ff}').contains(&character);
            steady.push(if is_spinner { '⠿' } else { character });
        }
        rest = characters.as_str();
    }
    let lines: Vec<_> = steady.split('\n').map(without_call_duration).collect();
    lines.join("\n")
}

/// Replaces texts, such as the names of temporary directories.
pub fn replaced(text: &str, replacements: &[(&str, &str)]) -> String {
    replacements.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

fn is_of_number(character: char) -> bool {
    character.is_ascii_digit() || character == '.'
}

/// Removes the duration at the end of the line of a call.
fn without_call_duration(line: &str) -> String {
    for end in ["<dim>  Ns", "  Ns"] {
        if let Some(line) = line.strip_suffix(end) {
            return line.to_owned();
        }
    }
    let Some(before) = line.strip_suffix(" Ns") else { return line.to_owned() };
    let before = before.strip_suffix("<dim>").unwrap_or(before);
    let is_mark = ["✓", "done"].iter().any(|mark| before.ends_with(mark));
    if is_mark { before.to_owned() } else { line.to_owned() }
}

fn without_uuids(text: &str) -> String {
    let mut replaced = String::new();
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let length = match rest.get(..UUID_LENGTH) {
            Some(uuid) if is_uuid(uuid) => {
                replaced.extend(uuid.chars().map(|character| if character == '-' { '-' } else { '0' }));
                UUID_LENGTH
            }
            _ => {
                replaced.push(character);
                character.len_utf8()
            }
        };
        rest = rest.get(length..).unwrap_or_default();
    }
    replaced
}

/// Replaces the ids of OpenCode's sessions.
fn without_session_ids(text: &str) -> String {
    let mut parts = text.split(SESSION_PREFIX);
    let mut replaced = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let id = part.len() - part.trim_start_matches(|character: char| character.is_ascii_alphanumeric()).len();
        let (id, rest) = part.split_at(id);
        replaced.extend([SESSION_PREFIX, &"0".repeat(id.len()), rest]);
    }
    replaced
}

fn is_uuid(text: &str) -> bool {
    let is_hyphen = |at| matches!(at, 8 | 13 | 18 | 23);
    let fits = |(at, character): (usize, char)| {
        if is_hyphen(at) { character == '-' } else { character.is_ascii_hexdigit() }
    };
    text.char_indices().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_between_two_runs_is_replaced_and_nothing_else() {
        for (text, expected) in [
            ("⠙ claude · running npm test · 12 s · 860 tokens", "⠿ claude · running npm test · N s · 860 tokens"),
            (
                "1 turn · $0.0018 · 0.4s · session 67c9c3e6-c7de-48a2-bc6b-8c0c662932f4",
                "1 turn · $0.0018 · Ns · session 00000000-0000-0000-0000-000000000000",
            ),
            ("● Run npm test<green>  ✓<dim> 0.3s", "● Run npm test<green>  ✓"),
            ("● Run npm test  done  0.3s\n✓ Run ls  0.1s", "● Run npm test  done\n✓ Run ls"),
            ("--resume ses_dff927d83ffeURFK)", "--resume ses_0000000000000000)"),
            ("retrying in 4 s (429)", "retrying in N s (429)"),
            ("the 3 tests take 2 seconds", "the 3 tests take 2 seconds"),
        ] {
            assert_eq!(steady(text), expected);
        }
    }
}
