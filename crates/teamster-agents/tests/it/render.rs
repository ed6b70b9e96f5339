//! Renders a replay for snapshots: one line per event, with joined deltas, truncated values and renamed ids.

use std::fmt::Write as _;

use serde_json::Value;
use teamster_types::event::{Delta, Event, RunResult, Usage, WarningCode};

use crate::capture::{Capture, Exit};
use crate::drive::Step;

const LONGEST: usize = 160;

pub(crate) fn render(capture: &Capture, steps: &[Step]) -> String {
    let mut page = Page::default();
    page.line(&format!("$ {}", cut(&capture.argv.join(" "), 2 * LONGEST)));
    if let Some(note) = &capture.note {
        page.line(&format!("# {note}"));
    }
    match &capture.exit {
        Exit::Code(0) => {}
        Exit::Code(code) => page.line(&format!("# exit {code}")),
        Exit::Signal(name) => page.line(&format!("# {name}")),
        Exit::NotStarted(error) => page.line(&format!("# not started: {error}")),
    }
    let mut steps = steps.iter().peekable();
    while let Some(step) = steps.next() {
        if let Step::Event(Event::Text(delta) | Event::Thinking(delta)) = step {
            let (mut text, mut count) = (delta.text.clone(), 1);
            while let Some(Step::Event(Event::Text(more) | Event::Thinking(more))) =
                steps.next_if(|next| continues(step, next))
            {
                text.push_str(&more.text);
                count += 1;
            }
            page.delta(step, delta, &text, count);
        } else {
            page.step(step);
            let mut more = 0;
            while steps.next_if(|next| is_malformed(step) && is_malformed(next)).is_some() {
                more += 1;
            }
            if more > 0 {
                page.line(&format!("  and {more} more of these"));
            }
        }
    }
    page.renamed()
}

fn continues(first: &Step, next: &Step) -> bool {
    let same = |a: &Delta, b: &Delta| a.message_id == b.message_id && a.parent_tool_id == b.parent_tool_id;
    match (first, next) {
        (Step::Event(Event::Text(a)), Step::Event(Event::Text(b)))
        | (Step::Event(Event::Thinking(a)), Step::Event(Event::Thinking(b))) => same(a, b),
        _ => false,
    }
}

fn is_malformed(step: &Step) -> bool {
    matches!(step, Step::Event(Event::Warning(warning)) if warning.code == WarningCode::MalformedLine)
}

#[derive(Default)]
struct Page {
    text: String,
    /// The ids in order of appearance, with their names.
    ids: Vec<(String, String)>,
}

impl Page {
    fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    fn id(&mut self, kind: &str, id: &str) {
        if !id.is_empty() && !self.ids.iter().any(|(known, _)| known == id) {
            let number = self.ids.iter().filter(|(_, name)| name.starts_with(kind)).count() + 1;
            self.ids.push((id.to_owned(), format!("{kind}{number}")));
        }
    }

    fn renamed(mut self) -> String {
        let text = std::mem::take(&mut self.text);
        for candidate in text.split(|c: char| !c.is_ascii_hexdigit() && c != '-').filter(|word| is_uuid(word)) {
            self.id("uuid", candidate);
        }
        self.text = text;
        // Long ids first, because an id may be the prefix of another one.
        self.ids.sort_by_key(|(id, _)| std::cmp::Reverse(id.len()));
        self.ids.iter().fold(self.text, |text, (id, name)| text.replace(id.as_str(), name))
    }

    fn delta(&mut self, step: &Step, delta: &Delta, text: &str, count: usize) {
        self.id("msg", delta.message_id.as_str());
        let word = if matches!(step, Step::Event(Event::Text(_))) { "text" } else { "thinking" };
        let times = if count > 1 { format!(" x{count}") } else { String::new() };
        let parent = delta.parent_tool_id.as_ref().map(|id| format!(" parent={}", id.as_str())).unwrap_or_default();
        self.line(&format!("{word} {}{parent}{times} {}", delta.message_id.as_str(), quoted(text)));
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Event(event) => self.event(event),
            Step::Wrote(bytes) => self.line(&format!("-> stdin {}", cut(&written(bytes), LONGEST))),
            Step::CloseStdin => self.line("-> close stdin"),
            Step::Interrupt => self.line("-> SIGINT"),
            Step::Stop => self.line("-> stop"),
        }
    }

    fn event(&mut self, event: &Event) {
        let mut value = serde_json::to_value(event).unwrap();
        match event {
            Event::Init(init) => {
                self.id("session", init.session_id.as_str());
                // The names of the tools depend on the version of the CLI. Their number shows that they are read.
                if let Some(Value::Array(tools)) = value.get_mut("tools") {
                    let count = tools.len();
                    value["tools"] = count.into();
                }
            }
            Event::ToolUse(tool) => self.id("tool", tool.tool_id.as_str()),
            Event::Done(done) => return self.done(&done.result),
            _ => {}
        }
        let Some(Value::Object(mut fields)) = Some(value) else { return };
        let kind = fields.remove("type").unwrap();
        let mut line = kind.as_str().unwrap().to_owned();
        for key in ["code", "toolId", "messageId", "requestId", "server", "toolName", "kind", "scope"] {
            if let Some(Value::String(text)) = fields.remove(key) {
                let _ = write!(line, " {text}");
            }
        }
        // With a feature of serde_json, maps retain the order of insertion.
        fields.sort_keys();
        for (key, mut value) in fields {
            value.sort_all_objects();
            let value = match &value {
                Value::String(text) => quoted(text),
                other => cut(&other.to_string(), LONGEST),
            };
            let _ = write!(line, " {key}={value}");
        }
        self.line(&line);
    }

    fn done(&mut self, result: &RunResult) {
        let mut line = "done".to_owned();
        let mut add = |key: &str, value: Option<String>| {
            if let Some(value) = value {
                let _ = write!(line, " {key}={value}");
            }
        };
        add("error", result.error_code.as_ref().map(ToString::to_string));
        add("aborted", result.aborted.then(|| "true".to_owned()));
        add("stop", result.stop_reason.as_ref().map(ToString::to_string));
        add("turns", result.num_turns.map(|turns| turns.to_string()));
        add("session", result.session_id.as_ref().map(|id| id.as_str().to_owned()));
        add("model", result.model.clone().map(Into::into));
        add("exit", result.exit_code.map(|code| code.to_string()));
        add("signal", result.signal.clone());
        if let Some(id) = &result.session_id {
            self.id("session", id.as_str());
        }
        self.line(&line);
        if let Some(usage) = &result.usage {
            let scope = result.usage_scope.as_ref().map(ToString::to_string).unwrap_or_default();
            let cost = result.total_cost_usd.map(|cost| format!(" ${cost:.6}")).unwrap_or_default();
            self.line(&format!("  usage {scope} {}{cost}", figures(usage)));
        }
        self.line(&format!("  text {}", quoted(&result.text)));
        if result.final_text != result.text {
            self.line(&format!("  final {}", quoted(&result.final_text)));
        }
        for denial in &result.permission_denials {
            let mut denial = denial.clone();
            if let Some(input) = &mut denial.input {
                let mut value = input.to_value().unwrap();
                value.sort_all_objects();
                *input = value.into();
            }
            self.line(&format!("  denied {}", cut(&serde_json::to_string(&denial).unwrap(), LONGEST)));
        }
        if let Some(document) = &result.structured_output {
            let mut document = document.to_value().unwrap();
            document.sort_all_objects();
            self.line(&format!("  structured {}", cut(&document.to_string(), LONGEST)));
        }
        if let Some(stderr) = &result.stderr {
            self.line(&format!("  stderr {}", quoted(stderr)));
        }
    }
}

fn is_uuid(word: &str) -> bool {
    let groups: Vec<usize> = word.split('-').map(str::len).collect();
    groups == [8, 4, 4, 4, 12]
}

fn figures(usage: &Usage) -> String {
    let optional = |word: &str, count: Option<u64>| count.map(|count| format!(" {word}={count}")).unwrap_or_default();
    format!(
        "in={}{}{} out={}{}",
        usage.input_tokens,
        optional("read", usage.cache_read_tokens),
        optional("written", usage.cache_write_tokens),
        usage.output_tokens,
        optional("reasoning", usage.reasoning_tokens),
    )
}

fn quoted(text: &str) -> String {
    let short: String = text.chars().take(LONGEST).collect();
    let rest = text.chars().count() - short.chars().count();
    if rest == 0 { format!("{text:?}") } else { format!("{short:?} +{rest}") }
}

fn cut(text: &str, longest: usize) -> String {
    let text = text.trim_end().replace('\n', "\\n");
    let short: String = text.chars().take(longest).collect();
    let rest = text.chars().count() - short.chars().count();
    if rest == 0 { text } else { format!("{short} +{rest}") }
}

/// Returns the written bytes as text. The fields of JSON are sorted.
fn written(bytes: &[u8]) -> String {
    match serde_json::from_slice::<Value>(bytes) {
        Ok(mut line) => {
            line.sort_all_objects();
            format!("{line}\n")
        }
        Err(_) => String::from_utf8_lossy(bytes).into_owned(),
    }
}
