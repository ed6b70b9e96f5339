//! What a call is about: a command, a path, a URL; and what a text may hold of them.

use serde_json::Value;

/// What a rule's pattern is held against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    Command(Command),
    Path(String),
    Url(String),
}

/// A command of a shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Command(String);

/// The agents' names for the file that a tool reads or writes.
const PATHS: [&str; 7] = ["file_path", "filePath", "absolute_path", "notebook_path", "path", "dir_path", "filepath"];

/// Parts of names of arguments that may say where else a call reaches.
const PLACES: [&str; 14] = [
    "path", "file", "dir", "url", "uri", "dest", "target", "source", "src", "cwd", "folder", "root", "location",
    "include",
];

/// Characters by which a shell does more than one command.
const COMPOUND: [char; 12] = [';', '&', '|', '`', '\n', '\r', '<', '>', '(', ')', '{', '}'];

/// Words before a command that run it.
const RUNNERS: [&str; 8] = ["sudo", "env", "command", "exec", "nohup", "time", "xargs", "!"];

impl Subject {
    /// What a call with these arguments is about; `None` where that is not certain.
    pub(super) fn of(input: &Value) -> Option<Self> {
        let fields = input.as_object()?;
        if let Some(command) = fields.get("command").or_else(|| fields.get("cmd")) {
            return Some(Self::Command(Command(unwrapped(&words(command)?).to_owned())));
        }
        let is_place = |name: &str| PLACES.iter().any(|place| name.to_ascii_lowercase().contains(place));
        let mut places = fields.iter().filter(|(name, _)| is_place(name));
        let (name, value) = places.next()?;
        // One that reaches elsewhere too is more than its path.
        if places.next().is_some() {
            return None;
        }
        let value = value.as_str()?.to_owned();
        match name.as_str() {
            "url" => Some(Self::Url(value)),
            name if PATHS.contains(&name) => Some(Self::Path(value)),
            _ => None,
        }
    }
}

impl Command {
    pub(super) fn text(&self) -> &str {
        &self.0
    }

    /// Whether it is one command: nothing is chained, substituted or redirected, as far as the characters tell.
    pub(super) fn is_simple(&self) -> bool {
        !self.0.contains(COMPOUND) && !self.0.chars().any(|c| c.is_control() && c != '\t')
    }
}

fn words(command: &Value) -> Option<String> {
    match command {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Array(words) => {
            let words: Option<Vec<&str>> = words.iter().map(Value::as_str).collect();
            Some(words?.join(" "))
        }
        _ => None,
    }
}

/// The script of `bash -lc 'SCRIPT'`, as Codex asks for each of its commands, where the quotes are plain.
fn unwrapped(command: &str) -> &str {
    let mut words = command.splitn(3, ' ');
    let (Some(shell), Some(flag), Some(rest)) = (words.next(), words.next(), words.next()) else { return command };
    let shell = shell.rsplit('/').next().unwrap_or_default();
    if !["bash", "sh", "zsh"].contains(&shell) || !["-c", "-lc"].contains(&flag) {
        return command;
    }
    let between = |quote| rest.strip_prefix(quote)?.strip_suffix(quote);
    match (between('\''), between('"')) {
        (Some(script), _) if !script.contains('\'') => script,
        (_, Some(script)) if !script.contains(['"', '\\', '$', '`', '!']) => script,
        (None, None) if !rest.contains(['\'', '"', '\\', '$', ' ', '\t']) => rest,
        _ => command,
    }
}

/// A path that leads where it says: it does not climb, and begins at no home.
pub(super) fn is_plain_path(path: &str) -> bool {
    !path.split('/').any(|part| part == "..") && !path.starts_with('~') && !path.contains('\0')
}

/// The host of a URL, in small letters; `None` where anything about it is odd.
pub(super) fn host(url: &str) -> Option<String> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
    let host = rest.split(['/', '?', '#']).next()?;
    let host = host.split_once(':').map_or(host, |(host, port)| if port.is_empty() { "" } else { host });
    let is_plain = !host.is_empty() && host.chars().all(|c| c.is_ascii_alphanumeric() || c == '.' || c == '-');
    let climbs = url.split(['/', '?', '#']).any(|part| part == "..");
    let odd = climbs || url.contains(['\\', '@', '%']) || url.chars().any(|c| c.is_whitespace() || c.is_control());
    (is_plain && !odd).then(|| host.to_ascii_lowercase())
}

/// Whatever may be a host in a text.
pub(super) fn hosts(text: &str) -> Vec<String> {
    let after = text.split("://").skip(1);
    after
        .flat_map(|rest| {
            let authority = rest.split(['/', '?', '#', ' ', '"', '\'']).next().unwrap_or_default();
            let host = authority.rsplit('@').next().unwrap_or_default();
            [host, host.split(':').next().unwrap_or_default()].map(str::to_ascii_lowercase)
        })
        .collect()
}

/// Every text of the arguments, at any depth; a list of words as one text too.
pub(super) fn strings(input: &Value) -> Vec<String> {
    let (mut found, mut waiting) = (Vec::new(), vec![input]);
    while let Some(value) = waiting.pop() {
        match value {
            Value::String(text) => found.push(text.clone()),
            Value::Array(values) => {
                found.extend(words(value));
                waiting.extend(values);
            }
            Value::Object(fields) => waiting.extend(fields.values()),
            _ => {}
        }
    }
    found
}

/// Whatever may be a command in a text: what stands between the characters that chain commands, without quotes, and without
/// what may stand before a command.
pub(super) fn commands(text: &str) -> Vec<String> {
    let whole = text.replace(['\'', '"', '\\'], "");
    let mut found = Vec::new();
    for piece in whole.split(COMPOUND).chain(whole.split(" -c ")).chain(whole.split(" -lc ")) {
        let mut words: Vec<&str> = piece.split_whitespace().collect();
        loop {
            let command = words.join(" ");
            if let Some(first) = words.first()
                && let Some((_, name)) = first.rsplit_once('/')
            {
                let mut named = vec![name];
                named.extend(words.iter().skip(1));
                found.push(named.join(" "));
            }
            found.push(command);
            match words.first() {
                // Options of the runner stand before the command: every word may be its beginning.
                Some(first)
                    if RUNNERS.contains(first)
                        || first.contains('=')
                        || first.starts_with('-')
                        || first.starts_with('$') =>
                {
                    words.remove(0);
                }
                _ => break,
            }
        }
    }
    found.retain(|command| !command.is_empty());
    found
}
