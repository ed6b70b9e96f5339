//! Patterns with `*`, `**` and `?`.

/// A pattern.
#[derive(Clone, Debug)]
pub(super) struct Glob {
    text: String,
    parts: Vec<Part>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Character(char),
    /// `?`
    One,
    /// `*`
    Many,
    /// `**`
    Any,
}

/// How far a `*` reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Star {
    /// Over anything.
    Everything,
    /// Not over a slash; `**` does.
    WithinName,
}

impl Glob {
    pub(super) fn new(text: &str) -> Self {
        let mut parts = Vec::new();
        for character in text.chars() {
            match (character, parts.last()) {
                ('*', Some(Part::Any)) => {}
                ('*', Some(Part::Many)) => {
                    parts.pop();
                    parts.push(Part::Any);
                }
                ('*', _) => parts.push(Part::Many),
                ('?', _) => parts.push(Part::One),
                _ => parts.push(Part::Character(character)),
            }
        }
        Self { text: text.to_owned(), parts }
    }

    /// Whether it has no wildcard and is this text.
    pub(super) fn is_exactly(&self, text: &str) -> bool {
        self.text == text && self.parts.iter().all(|part| matches!(part, Part::Character(_)))
    }

    /// Whether it means all of this text. The time is that of both lengths multiplied.
    pub(super) fn matches(&self, text: &str, star: Star) -> bool {
        // Whether the parts so far match the text up to each character.
        let characters: Vec<char> = text.chars().collect();
        let mut reached = vec![false; characters.len() + 1];
        if let Some(begin) = reached.first_mut() {
            *begin = true;
        }
        for part in &self.parts {
            let mut next = vec![false; reached.len()];
            let mut carried = false;
            for (at, (from, to)) in reached.iter().zip(&mut next).enumerate() {
                let before = at.checked_sub(1);
                let character = before.and_then(|before| characters.get(before));
                let came = before.and_then(|before| reached.get(before)).copied().unwrap_or(false);
                let crosses = |star| star == Star::Everything || character != Some(&'/');
                *to = match part {
                    Part::Character(wanted) => came && character == Some(wanted),
                    Part::One => came && crosses(star),
                    Part::Many => *from || carried && crosses(star),
                    Part::Any => *from || carried,
                };
                carried = *to;
            }
            reached = next;
        }
        reached.last() == Some(&true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stays_within_a_name_unless_it_is_doubled() {
        for (pattern, text, within, everything) in [
            ("src/*.rs", "src/lib.rs", true, true),
            ("src/*.rs", "src/a/lib.rs", false, true),
            ("src/**", "src/a/lib.rs", true, true),
            ("**/*.env", "a/b/.env", true, true),
            ("a?c", "abc", true, true),
            ("a?c", "a/c", false, true),
            ("*", "", true, true),
            ("", "", true, true),
            ("", "a", false, false),
            ("a*b*c", "a-b-b-c", true, true),
            ("a*b*c", "a-c-b", false, false),
            ("[a]{b}", "[a]{b}", true, true),
            ("ä*", "äö", true, true),
        ] {
            let glob = Glob::new(pattern);
            let found = (glob.matches(text, Star::WithinName), glob.matches(text, Star::Everything));
            assert_eq!(found, (within, everything), "{pattern} {text}");
        }
    }
}
