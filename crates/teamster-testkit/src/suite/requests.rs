//! Requests with hostile values, and the check of where these values occur in the arguments.

use proptest::prelude::*;
use proptest::sample::select;
use teamster_agents::launch::{Arg, Launch};
use teamster_types::request::{Conversation, McpServer, OutputMode, PermissionMode, RunRequest};

/// A secret that is recognizable wherever it occurs.
const SECRET: &str = "s3cr3t-0f-the-suite";

/// Values that could be misinterpreted as flags, files, commands or JSON.
const HOSTILE_VALUES: &[&str] = &[
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

/// The random part of a request.
#[derive(Clone, Debug)]
pub(super) struct RequestCase {
    words: Vec<String>,
    mode: PermissionMode,
    output: OutputMode,
    conversation: u8,
}

pub(super) fn case() -> impl Strategy<Value = RequestCase> {
    // A value that starts with a dash is never a flag that the agent itself uses, so it can be
    // recognized.
    let any = "[ -,.-~][ -~]{0,23}";
    let flag = "-{1,2}[a-z]{1,8}-of-a-stranger(=[a-z]{1,4})?";
    let word = prop_oneof![select(HOSTILE_VALUES).prop_map(str::to_owned), any, flag];
    let modes = select(vec![PermissionMode::ReadOnly, PermissionMode::Ask, PermissionMode::Edit, PermissionMode::Full]);
    let outputs = select(vec![OutputMode::Stream, OutputMode::Messages, OutputMode::Batch]);
    (proptest::collection::vec(word, 10), modes, outputs, 0_u8..5)
        .prop_map(|(words, mode, output, conversation)| RequestCase { words, mode, output, conversation })
}

impl RequestCase {
    fn word(&self, at: usize) -> String {
        self.words.get(at).cloned().unwrap_or_default()
    }

    /// Half of the values are used, so that one rejected option does not hide all others.
    fn some(&self, at: usize) -> Option<String> {
        self.words.get(at).filter(|word| word.len() % 2 == 0).cloned()
    }

    pub(super) fn request(&self) -> RunRequest {
        let mut request = with_cwd(RunRequest::new(self.word(0)));
        request.model = self.some(1);
        request.effort = self.some(2);
        request.system_prompt = self.some(3);
        request.append_system_prompt = self.some(4);
        request.conversation = match self.conversation {
            0 => Conversation::Resume(self.word(5).into()),
            1 => Conversation::Fork(self.word(5).into()),
            2 => Conversation::Continue,
            3 => Conversation::ForkNewest,
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

/// The agent's working directory.
pub(super) const CWD: &str = "/home/dev/project";

/// Sets the working directory, as a runtime does.
pub(super) fn with_cwd(mut request: RunRequest) -> RunRequest {
    request.cwd = Some(CWD.into());
    request
}

/// Checks where the values of a request occur in the arguments of its launch.
pub(super) fn check_arguments(launch: &Launch, case: &RequestCase) -> Result<(), String> {
    let mut after_dashes = false;
    for arg in &launch.args {
        let Arg::Text(text) = arg else { continue };
        if text.contains(SECRET) {
            return Err("an argument contains a secret".to_owned());
        }
        let is_request_value = case.words.iter().any(|word| word == text);
        if is_request_value && text.starts_with('-') && text != "-" && text != "--" && !after_dashes {
            return Err(format!("{text:?} is a separate argument"));
        }
        after_dashes |= text == "--";
    }
    Ok(())
}
