//! How a thread is opened: new, resumed or forked, and within which fence.
//!
//! A thread that goes on is always told its model: without one it would change to the configuration's (`app_resume_fork`).

use std::path::Path;

use serde_json::{Map, Value, json};

use super::super::config::{self, Settings, Table};
use super::super::launch as exec;
use super::super::thread::Expected;
use super::NOWHERE;
use teamster_types::request::{Conversation, PermissionMode, ProjectTrust, RequestError, RunRequest};

/// Who may be asked for leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asker {
    /// A session's caller.
    Caller,
    /// A run has nobody: what would be asked for is refused.
    Nobody,
}

/// What commands and patches may do by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fence {
    /// A sandbox that nothing leaves, not even by a rule of the user's that allows a command: 0.169.0 runs such a command
    /// outside of the sandbox, unless its profile denies the reading of something.
    Closed(&'static str),
    /// A sandbox that is left by leave: the caller's, or a rule of the user's.
    Sandbox(&'static str),
}

/// The name of our profile of permissions.
const PROFILE: &str = "teamster";

impl Fence {
    pub(super) fn of(request: &RunRequest, asker: Asker) -> Self {
        let untrusted = request.project_trust == ProjectTrust::Untrusted;
        match (request.permissions.mode, asker) {
            (PermissionMode::ReadOnly, _) | (PermissionMode::Ask, Asker::Nobody) => Self::Closed(":read-only"),
            (PermissionMode::Edit, Asker::Nobody) if untrusted => Self::Closed(":workspace"),
            (PermissionMode::Ask, Asker::Caller) => Self::Sandbox("read-only"),
            (PermissionMode::Edit, _) => Self::Sandbox("workspace-write"),
            (PermissionMode::Full, _) => Self::Sandbox("danger-full-access"),
        }
    }

    /// What the thread's configuration needs for it.
    pub(super) fn configure(self, request: &RunRequest, settings: &mut Settings) -> Result<(), RequestError> {
        let mut dirs = Vec::new();
        if request.permissions.mode == PermissionMode::Edit {
            for dir in &request.add_dirs {
                dirs.push(whole(request, dir)?);
            }
        }
        match self {
            Self::Closed(base) => {
                let files = Table::default().entry(NOWHERE, "\"deny\"");
                let files = dirs.iter().fold(files, |files, dir| files.entry(dir, "\"write\""));
                let profile = Table::default().entry("extends", config::string(base)).entry("filesystem", files);
                settings.set("permissions", Table::default().entry(PROFILE, profile));
            }
            Self::Sandbox(_) if !dirs.is_empty() => {
                let dirs = config::strings(dirs.iter().map(String::as_str));
                settings.set("sandbox_workspace_write.writable_roots", dirs);
            }
            Self::Sandbox(_) => {}
        }
        Ok(())
    }

    fn say(self, params: &mut Map<String, Value>) {
        let (name, value) = match self {
            Self::Closed(_) => ("permissions", PROFILE),
            Self::Sandbox(mode) => ("sandbox", mode),
        };
        params.insert(name.to_owned(), value.into());
    }
}

fn whole(request: &RunRequest, dir: &Path) -> Result<String, RequestError> {
    let dir = request.cwd.as_deref().map_or_else(|| dir.to_owned(), |cwd| cwd.join(dir));
    let text = dir.to_str().map(str::to_owned);
    text.ok_or_else(|| RequestError::NotUtf8 { field: "add_dirs", value: dir.display().to_string() })
}

/// What is to be asked of the app-server so that there is a thread.
#[derive(Debug)]
pub(super) enum Step {
    /// `thread/list`: which one is the newest.
    List(Value),
    /// `thread/read`: by which model it speaks.
    Read(Value),
    /// `thread/start`, `thread/resume` or `thread/fork`.
    Open(&'static str, Value),
}

/// A thread that is to be opened.
#[derive(Debug)]
pub(super) struct Opening {
    conversation: Conversation,
    /// What all three methods take.
    params: Map<String, Value>,
    directory: String,
}

impl Opening {
    pub(super) fn of(request: &RunRequest, config: Map<String, Value>, asker: Asker) -> Result<Self, RequestError> {
        let conversation = match &request.conversation {
            Conversation::Resume(id) => Conversation::Resume(exec::thread("--resume", id)?.into()),
            Conversation::Fork(id) => Conversation::Fork(exec::thread("--fork", id)?.into()),
            other => other.clone(),
        };
        let directory = request.cwd.as_deref().filter(|cwd| cwd.is_absolute()).and_then(Path::to_str);
        let directory = directory.unwrap_or(".").to_owned();
        let asks =
            asker == Asker::Caller && matches!(request.permissions.mode, PermissionMode::Ask | PermissionMode::Edit);
        let mut params = Map::new();
        let mut put = |name: &str, value: Value| params.insert(name.to_owned(), value);
        put("approvalPolicy", if asks { "on-request" } else { "never" }.into());
        // And no model in the user's place.
        put("approvalsReviewer", "user".into());
        put("config", config.into());
        if let Some(model) = &request.model {
            put("model", model.as_str().into());
        }
        match (&request.system_prompt, &request.append_system_prompt) {
            (Some(system), more) => {
                put("baseInstructions", exec::whole(system, more.as_deref()).into());
            }
            (None, Some(more)) => {
                put("developerInstructions", more.as_str().into());
            }
            (None, None) => {}
        }
        Fence::of(request, asker).say(&mut params);
        Ok(Self { conversation, params, directory })
    }

    /// What comes first.
    pub(super) fn first(&self) -> Step {
        match &self.conversation {
            Conversation::Resume(id) | Conversation::Fork(id) if !self.params.contains_key("model") => {
                Step::Read(json!({ "threadId": id }))
            }
            Conversation::Continue => Step::List(json!({
                "cwd": self.directory,
                "limit": 1,
                "sortKey": "updated_at",
                "sourceKinds": ["cli", "vscode", "exec", "appServer"],
            })),
            _ => self.open(None),
        }
    }

    /// What comes after `thread/list`: the newest thread is resumed.
    pub(super) fn found(&mut self, newest: Option<String>) -> Step {
        self.conversation = newest.map_or(Conversation::New, |id| Conversation::Resume(id.into()));
        self.first()
    }

    /// The last step; with the model that the thread has spoken by, if none was asked for.
    pub(super) fn open(&self, model: Option<String>) -> Step {
        let mut params = self.params.clone();
        if let Some(model) = model {
            params.insert("model".to_owned(), model.into());
        }
        let method = match &self.conversation {
            Conversation::Resume(id) | Conversation::Fork(id) => {
                params.insert("threadId".to_owned(), id.as_str().into());
                // The process starts there anyway; a thread that goes on would be where it was.
                params.insert("cwd".to_owned(), self.directory.as_str().into());
                params.insert("excludeTurns".to_owned(), true.into());
                if matches!(self.conversation, Conversation::Fork(_)) { "thread/fork" } else { "thread/resume" }
            }
            // Without a directory, which is that of the process: where one is named and may be written to, 0.169.0 notes in
            // the user's configuration that it is trusted, and uses what it brings.
            _ => "thread/start",
        };
        Step::Open(method, params.into())
    }

    /// Whether the thread has no history.
    pub(super) fn is_new(&self) -> bool {
        !matches!(self.conversation, Conversation::Resume(_) | Conversation::Fork(_))
    }

    pub(super) fn expected(&self) -> Expected {
        Expected::of(&self.conversation)
    }
}
