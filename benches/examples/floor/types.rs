//! The least that a typed reader needs of each form: the kinds of lines, and borrowed texts.

use std::borrow::Cow;

use serde::Deserialize;
use teamster_benches::forms::Form;

#[derive(Deserialize)]
struct Claude<'a> {
    #[serde(borrow, rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    session_id: Option<&'a str>,
    #[serde(borrow)]
    uuid: Option<&'a str>,
    #[serde(borrow)]
    event: Option<StreamEvent<'a>>,
}

#[derive(Deserialize)]
struct StreamEvent<'a> {
    #[serde(borrow, rename = "type")]
    kind: &'a str,
    index: Option<u32>,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Exec<'a> {
    #[serde(borrow, rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    item: Option<Item<'a>>,
}

#[derive(Deserialize)]
struct Item<'a> {
    #[serde(borrow)]
    id: &'a str,
    #[serde(borrow, rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct App<'a> {
    #[serde(borrow)]
    method: Option<&'a str>,
    #[serde(borrow)]
    params: Option<Params<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params<'a> {
    #[serde(borrow)]
    thread_id: Option<&'a str>,
    #[serde(borrow)]
    item_id: Option<&'a str>,
    #[serde(borrow)]
    delta: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Acp<'a> {
    #[serde(borrow)]
    method: Option<&'a str>,
    #[serde(borrow)]
    params: Option<AcpParams<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AcpParams<'a> {
    #[serde(borrow)]
    session_id: Option<&'a str>,
    #[serde(borrow)]
    update: Option<Update<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Update<'a> {
    #[serde(borrow)]
    session_update: &'a str,
    #[serde(borrow)]
    content: Option<Content<'a>>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
}

/// What a consumer counts.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) texts: u64,
    bytes: usize,
}

impl Counts {
    /// Parses a line and counts it if it is a delta.
    pub(crate) fn line(&mut self, form: Form, line: &[u8]) {
        let line = std::str::from_utf8(line).expect("UTF-8");
        let text = match form {
            Form::Claude => claude(line),
            Form::CodexExec => exec(line),
            Form::CodexApp => app(line),
            Form::Acp => acp(line),
        };
        if let Some(bytes) = text {
            self.texts += 1;
            self.bytes += bytes;
        }
    }
}

fn claude(line: &str) -> Option<usize> {
    let line: Claude<'_> = serde_json::from_str(line).expect("a line of Claude Code");
    std::hint::black_box((line.kind, line.session_id, line.uuid));
    let event = line.event?;
    std::hint::black_box((event.kind, event.index));
    Some(event.delta?.text?.len())
}

fn exec(line: &str) -> Option<usize> {
    let line: Exec<'_> = serde_json::from_str(line).expect("a line of codex exec");
    std::hint::black_box(line.kind);
    let item = line.item?;
    std::hint::black_box((item.id, item.kind));
    Some(item.text?.len())
}

fn app(line: &str) -> Option<usize> {
    let line: App<'_> = serde_json::from_str(line).expect("a line of codex app-server");
    std::hint::black_box(line.method);
    let params = line.params?;
    std::hint::black_box((params.thread_id, params.item_id));
    Some(params.delta?.len())
}

fn acp(line: &str) -> Option<usize> {
    let line: Acp<'_> = serde_json::from_str(line).expect("a line of ACP");
    std::hint::black_box(line.method);
    let params = line.params?;
    std::hint::black_box(params.session_id);
    let update = params.update?;
    std::hint::black_box(update.session_update);
    Some(update.content?.text?.len())
}
