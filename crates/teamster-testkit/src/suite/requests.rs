//! Requests of strangers, and where their words may end up.

use proptest::prelude::*;
use proptest::sample::select;
use teamster_protocol::launch::{Arg, Launch};
use teamster_protocol::request::{Conversation, McpServer, OutputMode, PermissionMode, RunRequest};

/// Marks a secret, so that it is found wherever it went.
const SECRET: &str = "s3cr3t-0f-the-suite";

/// What strangers write in the hope that somebody reads it otherwise than it was meant.
const HOSTILE: &[&str] = &[
    "--help",
    "-c x=y",
    "--",
    "-",
    "@file",
    "/command",
    "$(touch made)",
    "`touch made`",
    "a b",
    "a\nb",
    "\"quoted\" 'words'",
    "--mcp-config=/tmp/x",
    "=",
    "../../etc/passwd",
    "${HOME}",
    "ünï",
];

/// A request in the making.
#[derive(Clone, Debug)]
pub(super) struct Case {
    words: Vec<String>,
    mode: PermissionMode,
    output: OutputMode,
    conversation: u8,
}

pub(super) fn case() -> impl Strategy<Value = Case> {
    // What begins with a dash here is no flag that an agent itself may use: it would be taken for a stranger's.
    let any = "[ -,.-~][ -~]{0,23}";
    let flag = "-{1,2}[a-z]{1,8}-of-a-stranger(=[a-z]{1,4})?";
    let word = prop_oneof![select(HOSTILE).prop_map(str::to_owned), any, flag];
    let modes = select(vec![PermissionMode::ReadOnly, PermissionMode::Ask, PermissionMode::Edit, PermissionMode::Full]);
    let outputs = select(vec![OutputMode::Stream, OutputMode::Messages, OutputMode::Batch]);
    (proptest::collection::vec(word, 10), modes, outputs, 0_u8..4)
        .prop_map(|(words, mode, output, conversation)| Case { words, mode, output, conversation })
}

impl Case {
    fn word(&self, at: usize) -> String {
        self.words.get(at).cloned().unwrap_or_default()
    }

    /// Half of the words are used, so that no option that is refused hides all others.
    fn some(&self, at: usize) -> Option<String> {
        self.words.get(at).filter(|word| word.len() % 2 == 0).cloned()
    }

    pub(super) fn request(&self) -> RunRequest {
        let mut request = placed(RunRequest::new(self.word(0)));
        request.model = self.some(1);
        request.effort = self.some(2);
        request.system_prompt = self.some(3);
        request.append_system_prompt = self.some(4);
        request.conversation = match self.conversation {
            0 => Conversation::Resume(self.word(5).into()),
            1 => Conversation::Fork(self.word(5).into()),
            2 => Conversation::Continue,
            _ => Conversation::New,
        };
        request.permissions.mode = self.mode;
        request.permissions.allow = self.some(6).into_iter().collect();
        request.permissions.deny = self.some(7).into_iter().collect();
        request.add_dirs = self.some(8).into_iter().map(Into::into).collect();
        request.output = self.output;
        request.env.insert("A_VARIABLE".to_owned(), SECRET.to_owned());
        if self.some(9).is_some() {
            let server = McpServer::stdio("server").args([self.word(9)]).env("TOKEN", SECRET);
            request.mcp_servers.insert("server".to_owned(), server);
        }
        request
    }
}

/// Where the agent works.
pub(super) const CWD: &str = "/home/dev/project";

/// As a runtime gives it to an agent: it says where the agent works.
pub(super) fn placed(mut request: RunRequest) -> RunRequest {
    request.cwd = Some(CWD.into());
    request
}

/// Looks where the words of a request stand in its launch.
pub(super) fn look_at(launch: &Launch, case: &Case) -> Result<(), String> {
    let mut after_dashes = false;
    for arg in &launch.args {
        let Arg::Text(text) = arg else { continue };
        if text.contains(SECRET) {
            return Err("a secret stands in an argument".to_owned());
        }
        let is_theirs = case.words.iter().any(|word| word == text);
        if is_theirs && text.starts_with('-') && text != "-" && text != "--" && !after_dashes {
            return Err(format!("{text:?} stands as an argument of its own"));
        }
        after_dashes |= text == "--";
    }
    Ok(())
}
