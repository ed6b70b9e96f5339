//! Replaces secrets where the driver or a CLI reports about itself: in warnings, errors and diagnostics.
//!
//! Known secrets are the values of variables with secret names, passwords in values that are URLs or JSON, and
//! every value of an MCP server's environment and headers. What a CLI reads from files is not known. The model's texts and the
//! output of tools are not changed: they are the result of the run, and a redacted text is a different text.

mod forms;
mod names;
#[cfg(test)]
mod tests;
mod unwrapped;

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::ops::Bound::{Excluded, Unbounded};
use std::ops::Range;
use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, BuildError, MatchKind};
use serde_json::Value;
use teamster_agents::launch::{Arg, Launch};
use teamster_types::event::Event;
use teamster_types::request::{McpTransport, RunRequest};
use teamster_types::text::UntrustedText;

pub(crate) use self::forms::SHORTEST;
use self::names::is_secret;
use self::unwrapped::{Unwrapped, merge};
use crate::agent_server::Password;

/// How excerpts end that were cut.
const ELLIPSES: [&str; 2] = ["…", "..."];

/// The secrets of a run.
#[derive(Default)]
pub(crate) struct Redactor {
    /// Every form of every secret.
    secrets: BTreeMap<String, Form>,
    /// The length of the longest form.
    longest: usize,
    /// The first bytes of the forms.
    first_bytes: BTreeSet<u8>,
    /// Built when it is needed. Most runs emit nothing that could contain a secret.
    finder: OnceLock<Result<AhoCorasick, BuildError>>,
}

/// A form of a secret.
struct Form {
    /// The replacement.
    word: String,
    /// Whether a part of it at a cut is replaced too.
    whole: bool,
}

impl Redactor {
    /// Collects the secrets that a CLI gets.
    pub(crate) fn new(
        inherited: &BTreeMap<OsString, OsString>,
        password: &Password,
        launch: &Launch,
        request: &RunRequest,
    ) -> Self {
        let mut learned = Self::of(inherited, launch, request);
        if let Some(server) = &launch.server {
            learned.learn(server.password_variable, password.expose());
            learned.learn(server.password_variable, &password.basic(server.user));
        }
        learned
    }

    pub(crate) fn of(inherited: &BTreeMap<OsString, OsString>, launch: &Launch, request: &RunRequest) -> Self {
        let mut learned = Self::default();
        for (name, value) in inherited {
            learned.variable(&name.to_string_lossy(), &value.to_string_lossy());
        }
        for (name, value) in &launch.env {
            if let Some(Arg::Text(value)) = value {
                learned.variable(name, value);
            }
        }
        for (name, server) in &request.mcp_servers {
            if let McpTransport::Stdio { env, .. } = &server.transport {
                for (name, value) in env {
                    learned.learn(name, value);
                }
            }
            if let Some(endpoint) = server.endpoint() {
                learned.url(name, &endpoint.url);
                for (name, value) in endpoint.all_headers() {
                    learned.header(name, &value);
                }
            }
        }
        learned
    }

    /// Returns the text without secrets, and without parts of secrets at its cuts.
    pub(crate) fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.secrets.is_empty() || text.len() < SHORTEST {
            return text.into();
        }
        let found = self.find(text);
        if found.is_empty() {
            return self.edges(text.into());
        }
        let (mut redacted, mut done) = (String::new(), 0);
        for (range, word) in found {
            redacted.push_str(text.get(done..range.start).unwrap_or_default());
            redacted.push_str(word);
            done = range.end;
        }
        redacted.push_str(text.get(done..).unwrap_or_default());
        self.edges(redacted.into())
    }

    /// Whether no secret is known.
    pub(crate) fn is_empty(&self) -> bool {
        self.secrets.is_empty()
    }

    /// Finds the secrets in a text, and their replacements, in order. Finds secrets that are broken over several lines too, as
    /// `base64` breaks them.
    pub(crate) fn find(&self, text: &str) -> Vec<(Range<usize>, &str)> {
        let Ok(finder) = self.finder() else { return vec![(0..text.len(), "[redacted]")] };
        let mut found = self.matches(finder, text);
        if let Some(unwrapped) = Unwrapped::of(text) {
            let wrapped = self.matches(finder, &unwrapped.text).into_iter();
            let wrapped = wrapped.map(|(range, word)| (unwrapped.original(&range), word));
            found.extend(wrapped.filter(|(range, _)| text.get(range.clone()).is_some_and(|text| text.contains('\n'))));
            found.sort_by_key(|(range, _)| (range.start, Reverse(range.end)));
            merge(&mut found);
        }
        found
    }

    fn matches(&self, finder: &AhoCorasick, text: &str) -> Vec<(Range<usize>, &str)> {
        let mut found = finder.find_iter(text).peekable();
        if found.peek().is_none() {
            return Vec::new();
        }
        let words: Vec<&str> = self.words().collect();
        found.filter_map(|found| Some((found.range(), *words.get(found.pattern().as_usize())?))).collect()
    }

    /// Returns the length of the longest end of a text that starts a secret, and the replacement of that secret. A complete
    /// secret counts only if it starts a longer one. The secret may be broken over lines.
    pub(crate) fn started(&self, text: &str) -> Option<(usize, &str)> {
        let plain = self.started_in(text);
        // The next text decides whether a line break at the end belongs to the secret.
        let lines = text.trim_end_matches(['\r', '\n']);
        let unwrapped = Unwrapped::of(lines);
        let whole = unwrapped.as_ref().map_or(lines, |unwrapped| &unwrapped.text);
        let broken = (whole.len() < text.len()).then(|| self.started_in(whole)).flatten().map(|(length, word)| {
            let range = whole.len() - length..whole.len();
            let start = unwrapped.as_ref().map_or(range.start, |unwrapped| unwrapped.original(&range).start);
            (text.len() - start, word)
        });
        plain.into_iter().chain(broken).max_by_key(|(length, _)| *length)
    }

    fn started_in(&self, text: &str) -> Option<(usize, &str)> {
        let first = text.len().saturating_sub(self.longest.saturating_sub(1));
        let starts = text.bytes().enumerate().skip(first).filter(|(_, byte)| self.first_bytes.contains(byte));
        starts.filter_map(|(start, _)| text.get(start..)).find_map(|end| {
            let (form, Form { word, .. }) = self.secrets.range::<str, _>((Excluded(end), Unbounded)).next()?;
            form.starts_with(end).then_some((end.len(), word.as_str()))
        })
    }

    fn words(&self) -> impl Iterator<Item = &str> {
        self.secrets.values().map(|form| form.word.as_str())
    }

    /// Redacts an event that reports about the run.
    pub(crate) fn event(&self, event: &mut Event) {
        match event {
            Event::Warning(warning) => {
                self.untrusted(&mut warning.message);
                warning.data.iter_mut().flat_map(BTreeMap::values_mut).for_each(|value| self.value(value));
            }
            Event::Error(failure) => self.untrusted(&mut failure.message),
            Event::Done(done) => done.result.stderr.iter_mut().for_each(|text| self.untrusted(text)),
            _ => {}
        }
    }

    fn untrusted(&self, text: &mut UntrustedText) {
        if let Cow::Owned(redacted) = self.text(text) {
            *text = redacted.into();
        }
    }

    fn string(&self, text: &mut String) {
        if let Cow::Owned(redacted) = self.text(text) {
            *text = redacted;
        }
    }

    fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.string(text),
            Value::Array(values) => values.iter_mut().for_each(|value| self.value(value)),
            Value::Object(fields) => fields.values_mut().for_each(|value| self.value(value)),
            _ => {}
        }
    }

    /// Of overlapping matches, the longest one is the secret.
    fn finder(&self) -> &Result<AhoCorasick, BuildError> {
        self.finder.get_or_init(|| {
            AhoCorasick::builder()
                .match_kind(MatchKind::LeftmostLongest)
                .kind(Some(AhoCorasickKind::ContiguousNFA))
                .build(self.secrets.keys())
        })
    }

    /// Diagnostics lose their beginning, and excerpts their end. The remaining part of a secret at the cut is replaced too.
    fn edges<'t>(&self, text: Cow<'t, str>) -> Cow<'t, str> {
        let mark = ELLIPSES.into_iter().find(|mark| text.ends_with(mark)).unwrap_or_default();
        let body = text.strip_suffix(mark).unwrap_or(&text);
        let longest = |length: fn(&str, &str) -> Option<usize>| {
            let whole = self.secrets.iter().filter(|(_, form)| form.whole);
            let pieces = whole.filter_map(|(value, form)| Some((length(body, value)?, form.word.as_str())));
            pieces.max().unwrap_or_default()
        };
        let (head, first) = longest(end_of_secret);
        let (tail, last) = longest(start_of_secret);
        if head == 0 && tail == 0 {
            return text;
        }
        let middle = body.get(head..body.len() - tail).unwrap_or_default();
        format!("{first}{middle}{last}{mark}").into()
    }

    fn variable(&mut self, name: &str, value: &str) {
        if is_secret(name) {
            self.learn(name, value);
        }
        self.url(name, value);
        if name.ends_with("_HEADERS") {
            for (header, value) in value.lines().filter_map(|line| line.split_once(':')) {
                self.header(header, value.trim());
            }
        }
        if value.starts_with('{') {
            self.json(name, &serde_json::from_str(value).unwrap_or_default());
        }
    }

    /// Adds the members of a document whose names mark them as secret.
    fn json(&mut self, name: &str, document: &Value) {
        match document {
            Value::Array(values) => values.iter().for_each(|value| self.json(name, value)),
            Value::Object(fields) => {
                for (field, value) in fields {
                    match value {
                        Value::String(text) if is_secret(field) => self.learn(name, text),
                        value => self.json(name, value),
                    }
                }
            }
            _ => {}
        }
    }

    /// Adds the password of `scheme://user:password@host`.
    fn url(&mut self, name: &str, value: &str) {
        let authority = value.split_once("://").and_then(|(_, rest)| rest.split(['/', '?', '#']).next());
        let user = authority.and_then(|authority| Some(authority.rsplit_once('@')?.0));
        if let Some((_, password)) = user.and_then(|user| user.split_once(':')) {
            self.learn(name, password);
        }
    }

    /// Adds the value of a header, and the part after its scheme (`Bearer`).
    fn header(&mut self, name: &str, value: &str) {
        self.learn(name, value);
        if let Some((_, credentials)) = value.split_once(' ') {
            self.learn(name, credentials);
        }
    }

    fn learn(&mut self, name: &str, value: &str) {
        let value = value.trim();
        if value.len() < SHORTEST {
            return;
        }
        for (form, whole) in forms::of(value) {
            self.longest = self.longest.max(form.len());
            self.first_bytes.extend(form.bytes().next());
            let known = self.secrets.entry(form);
            known.or_insert_with(|| Form { word: format!("[redacted {name}]"), whole }).whole |= whole;
        }
    }
}

impl std::fmt::Debug for Redactor {
    /// Shows the number of forms.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Redactor").field("forms", &self.secrets.len()).finish_non_exhaustive()
    }
}

/// Returns the number of bytes at the beginning of a text that end a secret whose beginning was cut.
fn end_of_secret(text: &str, secret: &str) -> Option<usize> {
    let mut rests = (1..=secret.len().checked_sub(SHORTEST)?).filter_map(|lost| secret.get(lost..));
    rests.find(|rest| text.starts_with(rest)).map(str::len)
}

/// Returns the number of bytes at the end of a text that start a secret whose end was cut.
fn start_of_secret(text: &str, secret: &str) -> Option<usize> {
    let mut starts = (SHORTEST..secret.len()).rev().filter_map(|kept| secret.get(..kept));
    starts.find(|start| text.ends_with(start)).map(str::len)
}
