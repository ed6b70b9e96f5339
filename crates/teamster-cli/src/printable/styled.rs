//! Text with styles, which have no width: truncated, or wrapped at a number of columns.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::Printable;

/// Ends all styles.
const RESET: &str = "\x1b[0m";

/// A part of a styled text.
enum Part<'a> {
    /// A sequence that sets a style.
    Style(&'a str),
    Character(char),
}

impl Printable {
    /// Converts output that was made from `Printable`s. Of longer output, only the last `limit` bytes are kept, without styles.
    pub(crate) fn of_output(bytes: &[u8], limit: usize) -> Self {
        let text = String::from_utf8_lossy(bytes);
        if text.len() <= limit {
            return Self(text.into_owned());
        }
        let plain = anstream::adapter::strip_str(&text).to_string();
        let from = plain.ceil_char_boundary(plain.len().saturating_sub(limit));
        Self(plain.get(from..).unwrap_or_default().to_owned())
    }

    /// Returns the text without styles.
    pub(crate) fn without_styles(&self) -> Self {
        Self(anstream::adapter::strip_str(&self.0).to_string())
    }

    /// Returns the width in columns, without styles.
    pub(crate) fn columns_without_styles(&self) -> usize {
        anstream::adapter::strip_str(&self.0).to_string().width()
    }

    /// Truncates a line with styles to a number of columns.
    pub(crate) fn cut_styled(&self, columns: usize) -> Self {
        if self.columns_without_styles() <= columns {
            return self.clone();
        }
        let (mut kept, mut used) = (String::new(), 0);
        for part in parts(&self.0) {
            match part {
                Part::Style(style) => kept.push_str(style),
                Part::Character(character) => {
                    used += character.width().unwrap_or(0);
                    if used >= columns {
                        break;
                    }
                    kept.push(character);
                }
            }
        }
        kept.push('…');
        kept.push_str(RESET);
        Self(kept)
    }

    /// Splits a line with styles into rows of at most this many columns. A style continues on the next row.
    pub(crate) fn rows(&self, columns: usize) -> Vec<Self> {
        let (mut rows, mut row, mut used) = (Vec::new(), String::new(), 0);
        for part in parts(&self.0) {
            match part {
                Part::Style(style) => row.push_str(style),
                Part::Character(character) => {
                    let width = character.width().unwrap_or(0);
                    if used + width > columns && used > 0 {
                        rows.push(Self(std::mem::take(&mut row)));
                        used = 0;
                    }
                    used += width;
                    row.push(character);
                }
            }
        }
        rows.push(Self(row));
        rows
    }
}

/// Splits a text into characters and styles. All control sequences of a [`Printable`] are styles.
fn parts(text: &str) -> impl Iterator<Item = Part<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.starts_with('\x1b')
            && let Some(end) = rest.find('m')
        {
            let (style, after) = rest.split_at(end + 1);
            rest = after;
            return Some(Part::Style(style));
        }
        let character = rest.chars().next()?;
        rest = rest.get(character.len_utf8()..)?;
        Some(Part::Character(character))
    })
}

#[cfg(test)]
mod tests {
    use anstyle::Style;

    use super::*;
    use crate::printable::printable;

    fn bold(text: &'static str) -> Printable {
        Printable::from(text).styled(Style::new().bold())
    }

    #[test]
    fn styles_have_no_width_and_end_where_a_line_is_truncated() {
        let line = printable!("a{}", bold("漢字 text"));
        assert_eq!((line.columns_without_styles(), line.cut_styled(10)), (10, line.clone()));
        assert_eq!(line.cut_styled(6).as_str(), "a\x1b[1m漢字…\x1b[0m");
        assert_eq!(line.cut_styled(5).as_str(), "a\x1b[1m漢…\x1b[0m");
    }

    #[test]
    fn rows_contain_every_character_and_keep_wide_ones_whole() {
        let line = printable!("ab{}", bold("漢字c"));
        let rows: Vec<_> = line.rows(3).iter().map(|row| row.as_str().to_owned()).collect();
        assert_eq!(rows, ["ab\x1b[1m", "漢", "字c\x1b[0m"]);
        assert_eq!(Printable::from("").rows(3), ["".into()]);
    }

    #[test]
    fn only_the_end_of_long_output_is_kept() {
        assert_eq!(Printable::of_output(bold("äbc").as_str().as_bytes(), 3).as_str(), "bc");
        assert_eq!(Printable::of_output(bold("abc").as_str().as_bytes(), 100), bold("abc"));
    }
}
