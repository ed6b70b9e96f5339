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

/// What a `*` matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Star {
    /// Any text.
    Everything,
    /// Any text without a slash. `**` also matches slashes.
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

    /// Parses a pattern in lower case, for texts in lower case.
    pub(super) fn lowercase(text: &str) -> Self {
        Self::new(&text.to_lowercase())
    }

    /// Parses a word in which a shell or a tool expands `*`, `?`, `[...]` and `{...}`. Brackets and braces match any text.
    pub(super) fn of_input(text: &str) -> Self {
        let mut plain = String::new();
        let mut until = None;
        for character in text.chars() {
            match (until, character) {
                (Some(end), _) if character == end => until = None,
                (Some(_), _) => {}
                (None, '[') => (until, plain) = (Some(']'), plain + "**"),
                (None, '{') => (until, plain) = (Some('}'), plain + "**"),
                (None, _) => plain.push(character),
            }
        }
        Self::new(&plain)
    }

    /// Whether a text exists that matches both patterns. Time and memory are proportional to the product of the lengths.
    pub(super) fn intersects(&self, other: &Self) -> bool {
        let many = |part: &Part| matches!(part, Part::Many | Part::Any);
        // Row `i`, column `j`: whether the parts from `i` here and from `j` there can match the same text.
        let mut below: Vec<bool> = Vec::new();
        for at in (0..=self.parts.len()).rev() {
            let here = self.parts.get(at);
            let mut row = vec![false; other.parts.len() + 1];
            for to in (0..=other.parts.len()).rev() {
                let there = other.parts.get(to);
                let pass_own = || below.get(to).copied().unwrap_or(false);
                let pass_other = || row.get(to + 1).copied().unwrap_or(false);
                let both = || below.get(to + 1).copied().unwrap_or(false);
                let meets = match (here, there) {
                    (None, None) => true,
                    (Some(here), Some(there)) if many(here) || many(there) => pass_own() || pass_other(),
                    (Some(here), None) => many(here) && pass_own(),
                    (None, Some(there)) => many(there) && pass_other(),
                    (Some(Part::Character(here)), Some(Part::Character(there))) => here == there && both(),
                    (Some(_), Some(_)) => both(),
                };
                if let Some(cell) = row.get_mut(to) {
                    *cell = meets;
                }
            }
            below = row;
        }
        below.first() == Some(&true)
    }

    /// Whether it has no wildcard and equals this text.
    pub(super) fn is_exactly(&self, text: &str) -> bool {
        self.text == text && self.parts.iter().all(|part| matches!(part, Part::Character(_)))
    }

    /// Whether it matches the whole text. The time is proportional to the product of the lengths.
    pub(super) fn matches(&self, text: &str, star: Star) -> bool {
        // For each character: whether the parts so far match the text up to it.
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
    fn two_patterns_intersect_if_a_text_matches_both() {
        for (one, other, wanted) in [
            ("secrets/**", "s*/key", true),
            ("secrets/**", "sec?ets/key", true),
            ("secrets/**", "src/*", false),
            ("secrets/**", "[s]ecrets/key", true),
            ("secrets/**", "{src,secrets}/key", true),
            ("a", "a", true),
            ("a", "b", false),
            ("", "*", true),
            ("a*", "*b", true),
            ("a*c", "b*c", false),
        ] {
            assert_eq!(Glob::new(one).intersects(&Glob::of_input(other)), wanted, "{one} {other}");
            assert_eq!(Glob::of_input(other).intersects(&Glob::new(one)), wanted, "{other} {one}");
        }
    }

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
