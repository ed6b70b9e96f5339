//! Text that is safe to write to a terminal.
//!
//! Invariant: a [`Printable`] contains no control characters except line ends, tabs and styles, and all external text in
//! it is escaped. All output for people has this type. Only a `&'static str`, which is part of the program, is converted
//! without escapes. External text (from agents, models, files, errors, the system) is converted by an escaping function.

mod escape;
mod fold;
mod styled;
#[cfg(test)]
mod tests;
mod wrap;

use std::borrow::Cow;
use std::error::Error;
use std::ffi::OsStr;
use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anstyle::Style;
use clap::error::ContextValue;
use teamster::text::UntrustedText;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

pub(crate) use fold::{GUTTER, folded};
pub(crate) use wrap::{columns, wrap};

/// Text that is safe to write to a terminal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Printable(String);

/// Formats a [`Printable`], like `format!`. External values are escaped, or rejected by the compiler.
macro_rules! printable {
    ($format:literal $(, $value:expr)* $(,)?) => {
        // `concat!` prevents inline names in braces, which would be formatted without escapes.
        $crate::printable::Printable::of_escaped(format_args!(
            concat!($format) $(, $crate::printable::Show::show($value))*
        ))
    };
}
pub(crate) use printable;

impl Printable {
    /// Converts a text to one line. Invisible characters are escaped, and long runs of spaces are counted.
    pub(crate) fn exact(text: &str) -> Self {
        Self(escape::exact(text))
    }

    /// Converts a message to one line. White space is collapsed; everything else is as in [`exact`](Self::exact).
    pub(crate) fn message(text: &str) -> Self {
        let is_space = |character| matches!(character, ' ' | '\t' | '\n' | '\r');
        let words: Vec<&str> = text.split(is_space).filter(|word| !word.is_empty()).collect();
        Self::exact(&words.join(" "))
    }

    /// Converts an agent's answer, or a part of it. Line ends and tabs are kept.
    pub(crate) fn prose(text: &str) -> Self {
        Self(escape::prose(text))
    }

    /// Converts an error with its causes to one line.
    pub(crate) fn error(error: &dyn Error) -> Self {
        Self::message(&chain(error))
    }

    /// Converts a text to one word of a shell command, quoted if necessary.
    pub(crate) fn shell_word(text: &str) -> Self {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ':' | '@' | '+');
        if !text.is_empty() && text.chars().all(is_plain) {
            return Self::exact(text);
        }
        Self::exact(&format!("'{}'", text.replace('\'', r"'\''")))
    }

    /// Converts the formatted arguments of `printable!`.
    pub(crate) fn of_escaped(arguments: fmt::Arguments<'_>) -> Self {
        Self(arguments.to_string())
    }

    /// Joins texts with a separator.
    pub(crate) fn join(parts: impl IntoIterator<Item = Self>, between: &'static str) -> Self {
        Self(parts.into_iter().map(|part| part.0).collect::<Vec<_>>().join(between))
    }

    /// Returns the text with a style.
    pub(crate) fn styled(&self, style: Style) -> Self {
        Self(format!("{style}{}{style:#}", self.0))
    }

    /// Returns the text.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Appends a text.
    pub(crate) fn push(&mut self, more: &Self) {
        self.0.push_str(&more.0);
    }

    /// Appends a part of another `Printable`, or text of the program.
    pub(crate) fn push_of_escaped(&mut self, text: &str) {
        debug_assert!(text.chars().all(|character| matches!(character, '\n' | '\t') || !character.is_control()));
        self.0.push_str(text);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the width in columns.
    pub(crate) fn columns(&self) -> usize {
        self.0.width()
    }

    /// Returns the text without leading line ends.
    pub(crate) fn without_leading_line_ends(&self) -> Self {
        Self(self.0.trim_start_matches('\n').to_owned())
    }

    /// Returns the lines, each with its line end.
    pub(crate) fn lines(&self) -> impl Iterator<Item = Self> {
        self.0.split_inclusive('\n').map(|line| Self(line.to_owned()))
    }

    /// Removes the line end at the end.
    pub(crate) fn without_line_end(&self) -> Self {
        Self(self.0.strip_suffix('\n').unwrap_or(&self.0).to_owned())
    }

    /// Truncates a line to `room` columns and appends `…` if it was truncated. An escape is never split.
    pub(crate) fn cut(&self, room: usize) -> Self {
        if self.columns() <= room {
            return self.clone();
        }
        let mut kept = String::new();
        let mut used = 1; // the mark
        for character in self.0.chars() {
            used += character.width().unwrap_or(0);
            if used > room {
                break;
            }
            kept.push(character);
        }
        if let Some((before, escape)) = kept.rsplit_once(escape::OPEN)
            && !escape.contains('⟧')
        {
            kept.truncate(before.len());
        }
        kept.truncate(kept.trim_end().len());
        if room > 0 {
            kept.push('…');
        }
        Self(kept)
    }

    /// Writes the text.
    ///
    /// # Errors
    /// Returns the error of the stream.
    pub(crate) fn write(&self, out: &mut (impl Write + ?Sized)) -> io::Result<()> {
        out.write_all(self.0.as_bytes())
    }

    /// Writes the text and a line end.
    ///
    /// # Errors
    /// Returns the error of the stream.
    pub(crate) fn write_line(&self, out: &mut (impl Write + ?Sized)) -> io::Result<()> {
        self.write(out)?;
        out.write_all(b"\n")
    }
}

impl fmt::Display for Printable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.0)
    }
}

impl From<&'static str> for Printable {
    /// Converts text that is part of the program.
    fn from(text: &'static str) -> Self {
        Self(text.to_owned())
    }
}

/// Writes clap's help or error text. External values in it are escaped if necessary.
pub(crate) fn write_clap_error(error: &clap::Error) {
    // Without its styles, the text also lacks the control sequences of arguments.
    let text = error.render().to_string();
    let escaped = Printable::prose(&text);
    // Write errors are ignored: the reader has closed the output.
    let _ = match error.use_stderr() {
        _ if escaped.0 == text && !contains_escapes(error) => error.print(),
        true => escaped.write(&mut anstream::stderr()),
        false => escaped.write(&mut anstream::stdout()),
    };
}

/// Whether a value in clap's error must be escaped.
fn contains_escapes(error: &clap::Error) -> bool {
    let is_escaped = |text: &String| escape::prose(text) != *text;
    let in_values = error.context().any(|(_, value)| match value {
        ContextValue::String(text) => is_escaped(text),
        ContextValue::Strings(texts) => texts.iter().any(is_escaped),
        _ => false,
    });
    in_values || error.source().is_some_and(|source| is_escaped(&chain(source)))
}

/// Returns the message of an error with those of its causes, without escapes.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let message = cause.to_string();
        // The message of some errors already contains the cause.
        if !text.contains(&message) {
            text = format!("{text}: {message}");
        }
        source = cause.source();
    }
    text
}

/// A value that [`printable!`] can format. External values are escaped.
pub(crate) trait Show {
    /// Returns the text, escaped if necessary.
    fn show(self) -> Cow<'static, str>;
}

/// Implements [`Show`] for values that need no escapes.
macro_rules! own {
    ($($type:ty),*) => {$(
        impl Show for $type {
            fn show(self) -> Cow<'static, str> {
                Cow::Owned(self.to_string())
            }
        }
    )*};
}
own!(u8, i32, u32, u64, usize, f64, char);

impl Show for &'static str {
    fn show(self) -> Cow<'static, str> {
        Cow::Borrowed(self)
    }
}

impl Show for Printable {
    fn show(self) -> Cow<'static, str> {
        Cow::Owned(self.0)
    }
}

impl Show for &Printable {
    fn show(self) -> Cow<'static, str> {
        Cow::Owned(self.0.clone())
    }
}

impl Show for &UntrustedText {
    fn show(self) -> Cow<'static, str> {
        Cow::Owned(escape::exact(self.as_str()))
    }
}

impl Show for &String {
    fn show(self) -> Cow<'static, str> {
        Cow::Owned(escape::exact(self))
    }
}

impl Show for &OsStr {
    /// Invalid UTF-8 is shown as `�`.
    fn show(self) -> Cow<'static, str> {
        Cow::Owned(escape::exact(&self.to_string_lossy()))
    }
}

impl Show for &Path {
    fn show(self) -> Cow<'static, str> {
        self.as_os_str().show()
    }
}

impl Show for &PathBuf {
    fn show(self) -> Cow<'static, str> {
        self.as_os_str().show()
    }
}
