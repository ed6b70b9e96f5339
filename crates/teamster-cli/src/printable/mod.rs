//! Text that may be written to a terminal.
//!
//! Invariant: a [`Printable`] has no control character but line ends, tabs and styles, and everything from outside in it was escaped.
//! Whatever the command writes for people is of this type. A `&str` becomes one only if it is part of the program; text from
//! outside (agents, models, files, errors, the system) only by a function that escapes it.

mod escape;
mod fold;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::error::Error;
use std::ffi::OsStr;
use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anstyle::Style;
use teamster::text::UntrustedText;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

pub(crate) use fold::folded;

/// Text that may be written to a terminal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Printable(String);

/// Formats a [`Printable`]: as `format!`, but values from outside are escaped, or refused by the compiler.
macro_rules! printable {
    ($format:literal $(, $value:expr)* $(,)?) => {
        // `concat!` keeps names out of the braces: they would be formatted as they are.
        $crate::printable::Printable::of_escaped(format_args!(
            concat!($format) $(, $crate::printable::Show::show($value))*
        ))
    };
}
pub(crate) use printable;

impl Printable {
    /// All of a text on one line: each character that cannot be seen is an escape, long runs of spaces are counted.
    pub(crate) fn exact(text: &str) -> Self {
        Self(escape::exact(text))
    }

    /// A message on one line: white space between its words is one space, everything else as in [`exact`](Self::exact).
    pub(crate) fn message(text: &str) -> Self {
        let is_space = |character| matches!(character, ' ' | '\t' | '\n' | '\r');
        let words: Vec<&str> = text.split(is_space).filter(|word| !word.is_empty()).collect();
        Self::exact(&words.join(" "))
    }

    /// An agent's answer, or a piece of it: its line ends and tabs stay.
    pub(crate) fn prose(text: &str) -> Self {
        Self(escape::prose(text))
    }

    /// An error with its causes, on one line.
    pub(crate) fn error(error: &dyn Error) -> Self {
        Self::message(&chain(error))
    }

    /// A word that a shell takes as it is, to be copied into a command line.
    pub(crate) fn shell_word(text: &str) -> Self {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ':' | '@' | '+');
        if !text.is_empty() && text.chars().all(is_plain) {
            return Self::exact(text);
        }
        Self::exact(&format!("'{}'", text.replace('\'', r"'\''")))
    }

    /// What `printable!` has formatted.
    pub(crate) fn of_escaped(arguments: fmt::Arguments<'_>) -> Self {
        Self(arguments.to_string())
    }

    /// Several with something between them.
    pub(crate) fn join(parts: impl IntoIterator<Item = Self>, between: &'static str) -> Self {
        Self(parts.into_iter().map(|part| part.0).collect::<Vec<_>>().join(between))
    }

    /// The same between the sequences of a style.
    pub(crate) fn styled(&self, style: Style) -> Self {
        Self(format!("{style}{}{style:#}", self.0))
    }

    /// The text.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Appends more.
    pub(crate) fn push(&mut self, more: &Self) {
        self.0.push_str(&more.0);
    }

    /// Appends a part of another one, or text of the program.
    pub(crate) fn push_of_escaped(&mut self, text: &str) {
        debug_assert!(text.chars().all(|character| matches!(character, '\n' | '\t') || !character.is_control()));
        self.0.push_str(text);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many columns it takes on one line.
    pub(crate) fn columns(&self) -> usize {
        self.0.width()
    }

    /// The text without line ends at its beginning.
    pub(crate) fn without_leading_line_ends(&self) -> Self {
        Self(self.0.trim_start_matches('\n').to_owned())
    }

    /// Its lines, with their ends.
    pub(crate) fn lines(&self) -> impl Iterator<Item = Self> {
        self.0.split_inclusive('\n').map(|line| Self(line.to_owned()))
    }

    /// As much of a line as the columns take, with `…` where it was cut. No escape is cut in two.
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

    /// Writes it.
    ///
    /// # Errors
    /// The stream does not take it.
    pub(crate) fn write(&self, out: &mut (impl Write + ?Sized)) -> io::Result<()> {
        out.write_all(self.0.as_bytes())
    }

    /// Writes it and a line end.
    ///
    /// # Errors
    /// The stream does not take it.
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
    /// Text that is part of the program.
    fn from(text: &'static str) -> Self {
        Self(text.to_owned())
    }
}

/// Writes help, or what is wrong with the arguments. Values in it are escaped where they hold something to escape.
pub(crate) fn write_clap_error(error: &clap::Error) {
    let text = error.render().to_string();
    // A closed output is no error: the reader did not want the help text.
    let _ = match Printable::prose(&text) {
        escaped if escaped.0 == text => error.print(),
        escaped if error.use_stderr() => escaped.write(&mut anstream::stderr()),
        escaped => escaped.write(&mut anstream::stdout()),
    };
}

/// An error with its causes, as data.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let told = cause.to_string();
        // The message of some errors already contains the cause.
        if !text.ends_with(&told) {
            text = format!("{text}: {told}");
        }
        source = cause.source();
    }
    text
}

/// A value that [`printable!`] formats. What comes from outside is escaped.
pub(crate) trait Show {
    /// As it is written.
    fn show(self) -> Cow<'static, str>;
}

/// Values of our own: numbers, and text that is part of the program.
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
    /// Bytes that are no text are shown as `�`.
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
