//! What the agent says: its answer as it streams, its thoughts in short.

use std::io::{self, Write};

use teamster::event::{Delta, MessageId, ToolId};
use unicode_width::UnicodeWidthChar as _;

use super::page::Kind;
use super::{DIM, NORMAL, Open, Piece, Pretty, THOUGHT, indent};
use crate::printable::{Printable, printable};

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Speaker {
    voice: Voice,
    message: MessageId,
    parent: Option<ToolId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Voice {
    Text,
    Thinking,
}

impl Pretty {
    pub(super) fn speak(&mut self, voice: Voice, delta: &Delta, out: &mut dyn Write) -> io::Result<()> {
        let speaker = Speaker { voice, message: delta.message_id.clone(), parent: delta.parent_tool_id.clone() };
        if self.speaker.as_ref() != Some(&speaker) {
            self.open = Open::Nothing;
            self.speaker = Some(speaker);
            self.finish_speech(out)?;
        }
        let text = Printable::prose(&delta.text);
        match voice {
            Voice::Text => self.say(&text, delta.parent_tool_id.as_ref(), out),
            Voice::Thinking => self.think(&text, delta.parent_tool_id.as_ref(), out),
        }
    }

    fn say(&mut self, text: &Printable, parent: Option<&ToolId>, out: &mut dyn Write) -> io::Result<()> {
        let mut text = text.clone();
        let depth = self.depth(parent);
        if self.open != Open::Speech {
            text = text.without_leading_line_ends();
            if text.is_empty() {
                return Ok(());
            }
            self.place_under(parent, out)?;
            // A subagent's words are part of the work.
            self.page.begin(if depth == 0 { Kind::Speech } else { Kind::Work }, out)?;
            self.open = Open::Speech;
        }
        if depth == 0 {
            return match self.chat.as_mut().and_then(|chat| chat.markdown.as_mut()) {
                Some(markdown) => {
                    let pieces = markdown.feed(&text);
                    self.write_pieces(&pieces, out)
                }
                None => self.page.write(&text, NORMAL, out),
            };
        }
        for line in text.lines() {
            if self.page.at_line_start() && line.as_str() != "\n" {
                self.page.write(&indent(depth), NORMAL, out)?;
            }
            self.page.write(&line, DIM, out)?;
        }
        Ok(())
    }

    /// Writes what was held back of what was said.
    pub(super) fn finish_speech(&mut self, out: &mut dyn Write) -> io::Result<()> {
        match self.chat.as_mut().and_then(|chat| chat.markdown.as_mut()) {
            Some(markdown) => {
                let pieces = markdown.finish();
                self.write_pieces(&pieces, out)
            }
            None => Ok(()),
        }
    }

    fn write_pieces(&mut self, pieces: &[Piece], out: &mut dyn Write) -> io::Result<()> {
        pieces.iter().try_for_each(|(text, style)| self.page.write(text, *style, out))
    }

    /// Thinking is told by its beginning, as far as a line takes it.
    fn think(&mut self, text: &Printable, parent: Option<&ToolId>, out: &mut dyn Write) -> io::Result<()> {
        let (mut room, mut space) = match self.open {
            Open::Thought { room, space } => (room, space),
            _ if text.as_str().trim_start().is_empty() => return Ok(()),
            _ => {
                let depth = self.depth(parent);
                self.place_under(parent, out)?;
                self.page.begin(Kind::Work, out)?;
                self.page.write(&printable!("{}✻ ", indent(depth)), THOUGHT, out)?;
                (self.screen.width.saturating_sub(2 * depth + 2), false)
            }
        };
        let begins = !matches!(self.open, Open::Thought { .. });
        let mut shown = Printable::default();
        for character in text.as_str().chars() {
            if character.is_whitespace() {
                space = !(begins && shown.is_empty());
                continue;
            }
            let needed = character.width().unwrap_or(0) + usize::from(space);
            // One column is kept for the mark of cutting.
            if needed >= room {
                if std::mem::take(&mut room) > 0 {
                    shown.push(&"…".into());
                }
                break;
            }
            if std::mem::take(&mut space) {
                shown.push(&" ".into());
            }
            shown.push_of_escaped(character.encode_utf8(&mut [0; 4]));
            room -= needed;
        }
        self.open = Open::Thought { room, space };
        self.page.write(&shown, THOUGHT, out)
    }
}
