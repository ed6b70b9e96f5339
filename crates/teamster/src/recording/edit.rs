//! Removes secrets from a recording, including secrets that are split over several lines or deltas.
//!
//! A channel is a stream of plain lines, or one member of the JSON lines of one stream or message. The editor remembers the end
//! of each channel that may start a secret. The entry with that end waits until the next text of the channel shows whether it
//! is a secret. The wait is bounded. After it, the start is removed as if it were a secret.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use teamster_types::event::Event;
use teamster_types::recording::{Entry, Payload, RecordedItem};

use super::redact::{Redactor, SHORTEST};
use super::scan::{Piece, Scan, mix};

/// The minimum length of a start of a secret for which an entry waits.
const HELD_FROM: usize = 4;

/// The maximum number of waiting entries.
const MAX_HELD: usize = 1024;

/// The maximum size of the waiting entries, in bytes, estimated.
const MAX_HELD_BYTES: usize = 4 * 1024 * 1024;

/// The maximum number of channels whose ends are remembered.
const MAX_CHANNELS: usize = 1024;

/// Redacts entries and returns them in their order.
#[derive(Default)]
pub(super) struct Editor {
    held: VecDeque<Held>,
    held_bytes: usize,
    /// The number of the first waiting entry.
    first: u64,
    channels: HashMap<u64, Channel>,
}

struct Held {
    entry: Entry,
    scan: Option<Scan>,
    bytes: usize,
}

/// The end of a channel's text, which may start a secret.
struct Channel {
    redactor: Arc<Redactor>,
    end: String,
    /// The pieces that the end consists of, in order.
    spans: Vec<Span>,
    /// Whether the end was removed already, because its entry must not wait any longer.
    settled: bool,
}

/// A range of a piece of an entry.
#[derive(Clone)]
struct Span {
    entry: u64,
    piece: usize,
    range: Range<usize>,
}

impl Editor {
    /// Adds an entry. Without a redactor it is not changed.
    pub(super) fn push(&mut self, mut entry: Entry, redactor: Option<&Arc<Redactor>>) {
        let redactor = redactor.filter(|redactor| !redactor.is_empty());
        let scan = redactor.and_then(|redactor| scan(&mut entry.item, redactor));
        let bytes = scan.iter().flat_map(|scan| &scan.pieces).map(|piece| piece.text.len()).sum();
        self.held_bytes += bytes;
        let number = self.first + self.held.len() as u64;
        let texts = scan.iter().flat_map(|scan| &scan.pieces).map(|piece| (piece.channels.clone(), piece.text.clone()));
        let texts: Vec<_> = texts.collect();
        self.held.push_back(Held { entry, scan, bytes });
        for (piece, (channels, text)) in texts.into_iter().enumerate() {
            let Some(redactor) = redactor else { break };
            let position = Span { entry: number, piece, range: 0..text.len() };
            if channels.is_empty() {
                self.redact(&text, std::slice::from_ref(&position), redactor);
            }
            for channel in &channels {
                self.join(*channel, &text, position.clone(), redactor);
            }
        }
        if self.held.len() > MAX_HELD || self.held_bytes > MAX_HELD_BYTES {
            self.settle();
        }
        if self.channels.len() > MAX_CHANNELS {
            self.settle();
            self.channels.clear();
        }
    }

    /// Returns the next entry that does not have to wait.
    pub(super) fn next(&mut self) -> Option<Entry> {
        loop {
            if self.held.is_empty() || self.first_waiting().is_some_and(|waiting| waiting <= self.first) {
                return None;
            }
            let Held { entry, scan, bytes } = self.held.pop_front()?;
            self.first += 1;
            self.held_bytes -= bytes;
            if let Some(entry) = render(entry, scan.as_ref()) {
                return Some(entry);
            }
        }
    }

    /// Ends all waits. What may start a secret is removed like a secret.
    pub(super) fn settle(&mut self) {
        let mut channels = std::mem::take(&mut self.channels);
        for channel in channels.values_mut().filter(|channel| !channel.settled) {
            channel.settled = true;
            if channel.end.len() >= SHORTEST
                && let Some((_, word)) = channel.redactor.started(&channel.end)
            {
                self.cut(&channel.spans, &(0..channel.end.len()), word);
            }
        }
        // The rest of such a secret is still found.
        self.channels = channels;
    }

    /// Returns the first entry that must wait.
    fn first_waiting(&self) -> Option<u64> {
        let waiting = self.channels.values().filter(|channel| channel.end.len() >= HELD_FROM && !channel.settled);
        waiting.filter_map(|channel| channel.spans.iter().map(|span| span.entry).find(|at| *at >= self.first)).min()
    }

    fn join(&mut self, key: u64, text: &str, span: Span, redactor: &Arc<Redactor>) {
        let before = self.channels.remove(&key);
        let (mut end, mut spans) = before.map(|channel| (channel.end, channel.spans)).unwrap_or_default();
        end.push_str(text);
        spans.push(span);
        self.redact(&end, &spans, redactor);
        if let Some((length, _)) = redactor.started(&end) {
            let passed = end.len() - length;
            end.drain(..passed);
            let spans = from(spans, passed);
            self.channels.insert(key, Channel { redactor: Arc::clone(redactor), end, spans, settled: false });
        }
    }

    fn redact(&mut self, text: &str, spans: &[Span], redactor: &Redactor) {
        for (range, word) in redactor.find(text) {
            self.cut(spans, &range, word);
        }
    }

    /// Removes a range from a text that consists of these spans. The first span that is not written yet gets the replacement.
    fn cut(&mut self, spans: &[Span], range: &Range<usize>, word: &str) {
        let (mut at, mut word) = (0, word);
        for span in spans {
            let here = at..at + span.range.len();
            at = here.end;
            let (start, end) = (range.start.max(here.start), range.end.min(here.end));
            if start >= end {
                continue;
            }
            if let Some(piece) = self.piece(span) {
                let offset = span.range.start;
                piece.cut(start - here.start + offset..end - here.start + offset, word);
                word = "";
            }
        }
    }

    fn piece(&mut self, span: &Span) -> Option<&mut Piece> {
        let at = usize::try_from(span.entry.checked_sub(self.first)?).ok()?;
        self.held.get_mut(at)?.scan.as_mut()?.pieces.get_mut(span.piece)
    }
}

/// Returns the spans without their first bytes.
fn from(spans: Vec<Span>, mut passed: usize) -> Vec<Span> {
    let mut kept = Vec::new();
    for mut span in spans {
        let skipped = passed.min(span.range.len());
        passed -= skipped;
        span.range.start += skipped;
        if !span.range.is_empty() {
            kept.push(span);
        }
    }
    kept
}

/// Splits the texts of an entry. Texts that are complete are redacted at once.
fn scan(item: &mut RecordedItem, redactor: &Arc<Redactor>) -> Option<Scan> {
    let whole = |text: &mut String| *text = redactor.text(text).into_owned();
    match item {
        RecordedItem::Start { program, args } => args.iter_mut().chain([program]).for_each(whole),
        RecordedItem::Call { path, .. } => whole(path),
        _ => {}
    }
    // Another process has other secrets, and does not continue this text.
    let source = |kind: &str| mix(Arc::as_ptr(redactor).addr() as u64, kind);
    let split = |payload: &Payload, kind: &str| Some(Scan::of(&text_of(payload), source(kind)));
    match item {
        RecordedItem::In(text) => split(text, "in"),
        RecordedItem::Out(text) => split(text, "out"),
        RecordedItem::Err(text) => split(text, "err"),
        RecordedItem::ServerEvent(text) => split(text, "server event"),
        RecordedItem::Call { body, .. } => split(body.as_ref()?, "call"),
        RecordedItem::Reply { body, .. } => split(body, "reply"),
        RecordedItem::Event { event } => Some(Scan::of(&serde_json::to_string(event).ok()?, source("event"))),
        _ => None,
    }
}

fn text_of(payload: &Payload) -> String {
    String::from_utf8_lossy(&payload.bytes().unwrap_or_default()).into_owned()
}

/// Returns the entry without secrets. `None` for a delta of which nothing is left.
fn render(Entry { at_ms, item }: Entry, scan: Option<&Scan>) -> Option<Entry> {
    let Some(scan) = scan.filter(|scan| scan.is_changed()) else { return Some(Entry { at_ms, item }) };
    let text = Payload::Text(scan.render());
    let item = match item {
        RecordedItem::In(_) => RecordedItem::In(text),
        RecordedItem::Out(_) => RecordedItem::Out(text),
        RecordedItem::Err(_) => RecordedItem::Err(text),
        RecordedItem::ServerEvent(_) => RecordedItem::ServerEvent(text),
        RecordedItem::Call { id, method, path, .. } => RecordedItem::Call { id, method, path, body: Some(text) },
        RecordedItem::Reply { call, status, .. } => RecordedItem::Reply { call, status, body: text },
        RecordedItem::Event { .. } => match serde_json::from_str(&scan.render()) {
            Ok(Event::Text(delta) | Event::Thinking(delta)) if delta.text.is_empty() => return None,
            Ok(event) => RecordedItem::Event { event: Box::new(event) },
            // A name in the event's JSON was a secret.
            Err(_) => RecordedItem::Lost { lines: 1 },
        },
        other => other,
    };
    Some(Entry { at_ms, item })
}

#[cfg(test)]
mod tests;
