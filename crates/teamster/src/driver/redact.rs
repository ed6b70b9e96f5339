//! Words in the place of secrets, wherever the driver or a CLI speaks of itself: warnings, errors, diagnostics.
//!
//! Known are the values of variables whose names say that they are secret, passwords and the like in values that are URLs
//! or JSON, and every value of an MCP server's environment and headers. Nothing is known of what a CLI reads from files.
//! What the model says and tools print is passed on as it is: it is what the run was asked for, and a text with holes in
//! it is another text.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, BuildError, MatchKind};
use serde_json::Value;
use teamster_protocol::event::Event;
use teamster_protocol::launch::{Arg, Launch};
use teamster_protocol::request::{McpTransport, RunRequest};

use super::Host;
use super::environment::Environment;

/// Shorter values are words like any other: `true`, `default`, `8080`.
const SHORTEST: usize = 8;

/// How excerpts end that were cut.
const ELLIPSES: [&str; 2] = ["…", "..."];

/// Parts of a name that say that its value is a secret.
const SECRET_PARTS: &[&str] = &[
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "APIKEY",
    "API_KEY",
    "ACCESS_KEY",
    "PRIVATE_KEY",
    "AUTHORIZATION",
    "BEARER",
    "COOKIE",
];

/// Ends of such names.
const SECRET_ENDS: &[&str] = &["TOKEN", "_KEY", "_PASS", "_PAT", "_AUTH"];

/// Ends of names whose values say where a secret is, which is none.
const PLACES: &[&str] = &["_FILE", "_PATH", "_DIR", "_SOCK", "_URL", "_URI", "GOOGLE_APPLICATION_CREDENTIALS"];

/// The secrets of a run.
#[derive(Default)]
pub(crate) struct Redactor {
    /// What stands in the place of each.
    secrets: BTreeMap<String, String>,
    /// Made when it is needed: most runs say nothing that could hold one.
    finder: OnceLock<Result<AhoCorasick, BuildError>>,
}

impl Redactor {
    /// Learns the secrets that a CLI gets.
    pub(crate) fn new(host: &Host, launch: &Launch, request: &RunRequest) -> Self {
        let mut learned = Self::of(&host.environment, launch, request);
        if let Some(server) = &launch.server {
            learned.learn(server.password_variable, host.password.expose());
            learned.learn(server.password_variable, &host.password.basic(server.user));
        }
        learned
    }

    fn of(inherited: &Environment, launch: &Launch, request: &RunRequest) -> Self {
        let mut learned = Self { secrets: BTreeMap::new(), finder: OnceLock::new() };
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

    /// The text without secrets, nor with a piece of one where it was cut.
    pub(crate) fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.secrets.is_empty() || text.len() < SHORTEST {
            return text.into();
        }
        let Ok(finder) = self.finder() else { return "[redacted]".into() };
        let text = if finder.is_match(text) {
            let words: Vec<&str> = self.secrets.values().map(String::as_str).collect();
            finder.replace_all(text, &words).into()
        } else {
            Cow::Borrowed(text)
        };
        self.edges(text)
    }

    /// An event that speaks of the run, without secrets.
    pub(crate) fn event(&self, event: &mut Event) {
        match event {
            Event::Warning(warning) => {
                self.string(&mut warning.message);
                warning.data.iter_mut().flat_map(BTreeMap::values_mut).for_each(|value| self.value(value));
            }
            Event::Error(failure) => self.string(&mut failure.message),
            Event::Done(done) => done.result.stderr.iter_mut().for_each(|text| self.string(text)),
            _ => {}
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

    /// Of texts that overlap the longest one is the secret.
    fn finder(&self) -> &Result<AhoCorasick, BuildError> {
        self.finder.get_or_init(|| {
            AhoCorasick::builder()
                .match_kind(MatchKind::LeftmostLongest)
                .kind(Some(AhoCorasickKind::ContiguousNFA))
                .build(self.secrets.keys())
        })
    }

    /// Diagnostics lose their beginning, and excerpts their end: what is left of a secret there goes too.
    fn edges<'t>(&self, text: Cow<'t, str>) -> Cow<'t, str> {
        let mark = ELLIPSES.into_iter().find(|mark| text.ends_with(mark)).unwrap_or_default();
        let body = text.strip_suffix(mark).unwrap_or(&text);
        let longest = |length: fn(&str, &str) -> Option<usize>| {
            let pieces = self.secrets.iter().filter_map(|(value, word)| Some((length(body, value)?, word.as_str())));
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

    /// Members of a document whose names say that they are secret.
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

    /// The password in `scheme://user:password@host`.
    fn url(&mut self, name: &str, value: &str) {
        let authority = value.split_once("://").and_then(|(_, rest)| rest.split(['/', '?', '#']).next());
        let user = authority.and_then(|authority| Some(authority.rsplit_once('@')?.0));
        if let Some((_, password)) = user.and_then(|user| user.split_once(':')) {
            self.learn(name, password);
        }
    }

    /// A header's value, and what follows its scheme (`Bearer`).
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
        // As it stands in a line of JSON that is quoted in a warning.
        let quoted = Value::from(value).to_string();
        let quoted = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        for text in [Some(value), quoted].into_iter().flatten() {
            self.secrets.entry(text.to_owned()).or_insert_with(|| format!("[redacted {name}]"));
        }
    }
}

impl std::fmt::Debug for Redactor {
    /// Shows how many there are.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Redactor").field("secrets", &self.secrets.len()).finish_non_exhaustive()
    }
}

/// Whether a name says that its value is a secret.
fn is_secret(name: &str) -> bool {
    let name = format!("_{}", name.to_ascii_uppercase().replace('-', "_"));
    let says = SECRET_PARTS.iter().any(|part| name.contains(part)) || SECRET_ENDS.iter().any(|end| name.ends_with(end));
    says && !PLACES.iter().any(|end| name.ends_with(end))
}

/// The bytes at the beginning of a text that are the rest of a secret whose beginning is lost.
fn end_of_secret(text: &str, secret: &str) -> Option<usize> {
    let mut rests = (1..=secret.len().checked_sub(SHORTEST)?).filter_map(|lost| secret.get(lost..));
    rests.find(|rest| text.starts_with(rest)).map(str::len)
}

/// The bytes at the end of a text that begin a secret whose rest is lost.
fn start_of_secret(text: &str, secret: &str) -> Option<usize> {
    let mut starts = (SHORTEST..secret.len()).rev().filter_map(|kept| secret.get(..kept));
    starts.find(|start| text.ends_with(start)).map(str::len)
}

#[cfg(test)]
mod tests {
    use teamster_protocol::event::{Failure, RunResult, Warning, WarningCode};

    use super::*;

    fn redactor(variables: &[(&str, &str)]) -> Redactor {
        let variables = variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
        Redactor::of(&variables, &Launch::new("x"), &RunRequest::new("x"))
    }

    fn check(variables: &[(&str, &str)], text: &str, expected: &str) {
        assert_eq!(redactor(variables).text(text), expected);
    }

    #[test]
    fn a_secret_is_replaced_by_its_name_wherever_it_stands() {
        let key = [("ANTHROPIC_API_KEY", "sk-ant-0123456789")];
        check(&key, "no secret", "no secret");
        check(&key, "sk-ant-0123456789", "[redacted ANTHROPIC_API_KEY]");
        check(
            &key,
            "a sk-ant-0123456789 b\n\"sk-ant-0123456789\"",
            "a [redacted ANTHROPIC_API_KEY] b\n\"[redacted ANTHROPIC_API_KEY]\"",
        );
    }

    #[test]
    fn of_secrets_that_overlap_the_longest_is_replaced() {
        let keys = [("A_TOKEN", "12345678"), ("B_TOKEN", "1234567890")];
        check(&keys, "x 1234567890 12345678 x", "x [redacted B_TOKEN] [redacted A_TOKEN] x");
    }

    #[test]
    fn names_say_what_is_secret() {
        let secret = [
            "OPENAI_API_KEY",
            "GITHUB_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_ACCESS_KEY_ID",
            "DB_PASSWORD",
            "PGPASSWORD",
            "apiKey",
            "x-api-key",
            "Authorization",
            "key",
            "TOKEN",
            "npm_config__auth",
            "accessToken",
            "MY_CREDENTIALS",
            "SSH_PASSPHRASE",
        ];
        let plain = [
            "PATH",
            "HOME",
            "KEYBOARD",
            "MONKEY",
            "MAX_OUTPUT_TOKENS",
            "SSH_AUTH_SOCK",
            "SSH_ASKPASS",
            "AUTHOR",
            "PASS_THROUGH",
            "AWS_WEB_IDENTITY_TOKEN_FILE",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "COMPATIBLE",
            "TOKENIZER",
            "SECRETS_DIR",
        ];
        assert_eq!(secret.map(is_secret), secret.map(|_| true));
        assert_eq!(plain.map(is_secret), plain.map(|_| false));
    }

    #[test]
    fn a_value_that_is_shorter_than_eight_bytes_is_no_secret() {
        check(&[("A_TOKEN", "1234567")], "1234567", "1234567");
        check(&[("A_TOKEN", " 12345678\n")], "12345678", "[redacted A_TOKEN]");
    }

    #[test]
    fn passwords_in_urls_keys_in_json_and_headers_are_secrets() {
        check(
            &[("DATABASE_URL", "postgres://me:hunter2hunter2@db/x")],
            "hunter2hunter2@db",
            "[redacted DATABASE_URL]@db",
        );
        check(&[("SOME_URL", "https://host/a:b@c")], "https://host/a:b@c", "https://host/a:b@c");
        let config =
            r#"{"provider": {"x": [{"apiKey": "0123456789", "baseURL": "http://host"}]}, "model": "some-model"}"#;
        check(&[("CONFIG", config)], "0123456789 some-model http://host", "[redacted CONFIG] some-model http://host");
        check(
            &[("A_HEADERS", "X-Who: somebody\nAuthorization: Bearer 0123456789")],
            "0123456789",
            "[redacted Authorization]",
        );
        check(&[("CONFIG", "{no json")], "{no json", "{no json");
    }

    #[test]
    fn every_value_of_an_mcp_server_is_a_secret() {
        use teamster_protocol::request::McpServer;

        let mut request = RunRequest::new("x");
        let document = r#"{"a": {"command": "x", "env": {"WHERE": "somewhere"}},
            "b": {"type": "http", "url": "https://me:passwords@host", "headers": {"X-Who": "Bearer somebody"}},
            "c": {"url": "https://host", "bearerToken": "t0ken-of-c"}}"#;
        request.mcp_servers = McpServer::from_json(document, |_| None).unwrap();
        let redactor = Redactor::of(&Environment::new(), &Launch::new("x"), &request);
        let text = redactor.text("somewhere passwords somebody t0ken-of-c");
        assert_eq!(text, "[redacted WHERE] [redacted b] [redacted X-Who] [redacted Authorization]");
    }

    #[test]
    fn what_the_launch_sets_is_known() {
        let mut launch = Launch::new("x");
        launch.env("A_TOKEN", "0123456789");
        let redactor = Redactor::of(&Environment::new(), &launch, &RunRequest::new("x"));
        assert_eq!(redactor.text("0123456789"), "[redacted A_TOKEN]");
    }

    #[test]
    fn a_piece_of_a_secret_at_a_cut_is_replaced_too() {
        let key = [("A_TOKEN", "0123456789abcdef")];
        check(&key, "3456789abcdef and so on", "[redacted A_TOKEN] and so on");
        check(&key, "it says 0123456789ab", "it says [redacted A_TOKEN]");
        check(&key, "it says 0123456789ab…", "it says [redacted A_TOKEN]…");
        check(&key, "it says 0123456789ab...", "it says [redacted A_TOKEN]...");
        check(
            &key,
            "3456789abcdef 0123456789abcdef 0123456789",
            "[redacted A_TOKEN] [redacted A_TOKEN] [redacted A_TOKEN]",
        );
        check(&key, "89abcdef", "[redacted A_TOKEN]");
        check(&key, "9abcdef", "9abcdef");
        check(&[("A_TOKEN", "ääääää")], "äää ääää", "äää [redacted A_TOKEN]");
    }

    #[test]
    fn no_piece_of_a_secret_is_left_however_a_text_is_cut() {
        const SECRET: &str = "0123456789abcdef";
        let text = format!("in front {SECRET} between {SECRET} behind");
        let redactor = redactor(&[("A_TOKEN", SECRET)]);
        for start in 0..text.len() {
            for end in start..text.len() {
                let cut = text.get(start..end).unwrap();
                // Of a text that is the inside of a secret and nothing else nobody can know what it is.
                if SECRET.contains(cut) {
                    continue;
                }
                let redacted = redactor.text(cut);
                let pieces = (0..=SECRET.len() - SHORTEST).filter_map(|from| SECRET.get(from..from + SHORTEST));
                let left: Vec<_> = pieces.filter(|piece| redacted.contains(piece)).collect();
                assert!(left.is_empty(), "{left:?} of {cut:?} in {redacted:?}");
            }
        }
    }

    #[test]
    fn a_secret_that_json_escapes_is_found_in_a_line_that_is_quoted() {
        check(&[("A_TOKEN", "pass\"word\\x")], r#"{"error":"pass\"word\\x"}"#, r#"{"error":"[redacted A_TOKEN]"}"#);
    }

    #[test]
    fn warnings_errors_and_diagnostics_are_redacted_and_nothing_else() {
        let redactor = redactor(&[("A_TOKEN", "0123456789")]);
        let warning = Warning::new(WarningCode::Notice, "0123456789").with("line", "x 0123456789").with("n", 1);
        let failure = Failure::new(teamster_protocol::event::ErrorCode::Auth, "bad key 0123456789");
        let mut result = RunResult::default();
        result.text = "0123456789".to_owned();
        result.stderr = Some("0123456789".to_owned());
        let mut events = [
            warning.into(),
            Event::Error(Box::new(failure)),
            Event::Done(Box::new(teamster_protocol::event::Done { result })),
        ];
        for event in &mut events {
            redactor.event(event);
        }
        let text = serde_json::to_string(&events).unwrap();
        assert_eq!(text.matches("0123456789").count(), 1, "{text}");
        assert_eq!(text.matches("[redacted A_TOKEN]").count(), 4, "{text}");
        let Event::Done(done) = &events[2] else { panic!("{text}") };
        assert_eq!(done.result.text, "0123456789");
    }

    #[test]
    fn debug_output_shows_no_secret() {
        assert_eq!(format!("{:?}", redactor(&[("A_TOKEN", "0123456789")])), "Redactor { secrets: 1, .. }");
    }
}
