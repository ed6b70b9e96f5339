//! The calls that open a thread (new, resumed or forked), and the thread's sandbox.
//!
//! A resumed thread always gets an explicit model. Otherwise it would change to the model of the configuration
//! (`app_resume_fork`).

use std::path::Path;

use serde_json::{Map, Value, json};

use super::super::config::{self, Settings, Table};
use super::super::prompt;
use super::super::thread::{self, Expected};
use super::prompt_input::MISSING_PATH;
use teamster_types::request::{Conversation, PermissionMode, ProjectTrust, RequestError, RunRequest};

/// The side that answers permission requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Approver {
    /// The caller of a session.
    Caller,
    /// None: in a run, every request is denied.
    None,
}

/// What commands and patches may do without approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Confinement {
    /// A sandbox that no action can leave. 0.169.0 runs a command that a rule of the user allows outside the sandbox, unless the
    /// profile denies reading some path.
    Strict(&'static str),
    /// A sandbox that an action leaves with the caller's approval, or by a rule of the user.
    WithApproval(&'static str),
}

/// The name of our permission profile.
const PROFILE: &str = "teamster";

impl Confinement {
    pub(super) fn of(request: &RunRequest, approver: Approver) -> Self {
        let untrusted = request.project_trust == ProjectTrust::Untrusted;
        match (request.permissions.mode, approver) {
            (PermissionMode::ReadOnly, _) | (PermissionMode::Ask, Approver::None) => Self::Strict(":read-only"),
            (PermissionMode::Edit, Approver::None) if untrusted => Self::Strict(":workspace"),
            (PermissionMode::Ask, Approver::Caller) => Self::WithApproval("read-only"),
            (PermissionMode::Edit, _) => Self::WithApproval("workspace-write"),
            (PermissionMode::Full, _) => Self::WithApproval("danger-full-access"),
        }
    }

    /// Adds the settings that the thread needs for it.
    pub(super) fn configure(self, request: &RunRequest, settings: &mut Settings) -> Result<(), RequestError> {
        let mut dirs = Vec::new();
        if request.permissions.mode == PermissionMode::Edit {
            for dir in &request.add_dirs {
                dirs.push(absolute(request, dir)?);
            }
        }
        match self {
            Self::Strict(base) => {
                let files = Table::default().entry(MISSING_PATH, "\"deny\"");
                let files = dirs.iter().fold(files, |files, dir| files.entry(dir, "\"write\""));
                let profile = Table::default().entry("extends", config::string(base)).entry("filesystem", files);
                settings.set("permissions", Table::default().entry(PROFILE, profile));
            }
            Self::WithApproval(_) if !dirs.is_empty() => {
                let dirs = config::strings(dirs.iter().map(String::as_str));
                settings.set("sandbox_workspace_write.writable_roots", dirs);
            }
            Self::WithApproval(_) => {}
        }
        Ok(())
    }

    /// Adds it to the parameters of the call that opens the thread.
    fn add_to(self, params: &mut Map<String, Value>) {
        let (name, value) = match self {
            Self::Strict(_) => ("permissions", PROFILE),
            Self::WithApproval(mode) => ("sandbox", mode),
        };
        params.insert(name.to_owned(), value.into());
    }
}

fn absolute(request: &RunRequest, dir: &Path) -> Result<String, RequestError> {
    let dir = request.cwd.as_deref().map_or_else(|| dir.to_owned(), |cwd| cwd.join(dir));
    let text = dir.to_str().map(str::to_owned);
    text.ok_or_else(|| RequestError::NotUtf8 { field: "add_dirs", value: dir.display().to_string() })
}

/// A call to the app-server on the way to an open thread.
#[derive(Debug)]
pub(super) enum ThreadCall {
    /// `thread/list`: finds the newest thread.
    List(Value),
    /// `thread/read`: finds the model of a thread.
    Read(Value),
    /// `thread/start`, `thread/resume` or `thread/fork`.
    Open(&'static str, Value),
}

/// The request to open a thread.
#[derive(Debug)]
pub(super) struct ThreadRequest {
    conversation: Conversation,
    /// The parameters of all three methods.
    params: Map<String, Value>,
    directory: String,
}

impl ThreadRequest {
    pub(super) fn of(
        request: &RunRequest,
        config: Map<String, Value>,
        approver: Approver,
    ) -> Result<Self, RequestError> {
        let conversation = match &request.conversation {
            Conversation::Resume(id) => Conversation::Resume(thread::parse_id("conversation=resume", id)?.into()),
            Conversation::Fork(id) => Conversation::Fork(thread::parse_id("conversation=fork", id)?.into()),
            other => other.clone(),
        };
        let directory = request.cwd.as_deref().filter(|cwd| cwd.is_absolute()).and_then(Path::to_str);
        let directory = directory.unwrap_or(".").to_owned();
        let has_approvals = approver == Approver::Caller
            && matches!(request.permissions.mode, PermissionMode::Ask | PermissionMode::Edit);
        let mut params = Map::new();
        let mut put = |name: &str, value: Value| params.insert(name.to_owned(), value);
        put("approvalPolicy", if has_approvals { "on-request" } else { "never" }.into());
        // The user approves, not a model.
        put("approvalsReviewer", "user".into());
        put("config", config.into());
        if let Some(model) = &request.model {
            put("model", model.as_str().into());
        }
        match (&request.system_prompt, &request.append_system_prompt) {
            (Some(system), more) => {
                put("baseInstructions", prompt::system_prompt(system, more.as_deref()).into());
            }
            (None, Some(more)) => {
                put("developerInstructions", more.as_str().into());
            }
            (None, None) => {}
        }
        Confinement::of(request, approver).add_to(&mut params);
        Ok(Self { conversation, params, directory })
    }

    /// Returns the first call.
    pub(super) fn first(&self) -> ThreadCall {
        match &self.conversation {
            Conversation::Resume(id) | Conversation::Fork(id) if !self.params.contains_key("model") => {
                ThreadCall::Read(json!({ "threadId": id }))
            }
            Conversation::Continue | Conversation::ForkNewest => ThreadCall::List(json!({
                "cwd": self.directory,
                "limit": 1,
                "sortKey": "updated_at",
                "sourceKinds": ["cli", "vscode", "exec", "appServer"],
            })),
            _ => self.open(None),
        }
    }

    /// Returns the call after `thread/list`: it resumes or forks the newest thread.
    pub(super) fn after_list(&mut self, newest: Option<String>) -> ThreadCall {
        self.conversation = match newest {
            None => Conversation::New,
            Some(id) if self.conversation == Conversation::ForkNewest => Conversation::Fork(id.into()),
            Some(id) => Conversation::Resume(id.into()),
        };
        self.first()
    }

    /// Returns the last call. `model` is the thread's own model, which is used if the request names none.
    pub(super) fn open(&self, model: Option<String>) -> ThreadCall {
        let mut params = self.params.clone();
        if let Some(model) = model {
            params.insert("model".to_owned(), model.into());
        }
        let method = match &self.conversation {
            Conversation::Resume(id) | Conversation::Fork(id) => {
                params.insert("threadId".to_owned(), id.as_str().into());
                // The process already starts in this directory. A resumed thread would otherwise use its old one.
                params.insert("cwd".to_owned(), self.directory.as_str().into());
                params.insert("excludeTurns".to_owned(), true.into());
                if matches!(self.conversation, Conversation::Fork(_)) { "thread/fork" } else { "thread/resume" }
            }
            // No directory is named, so the thread uses that of the process. If a writable one is named, 0.169.0 marks it as
            // trusted in the user's configuration, and uses the configuration in it.
            _ => "thread/start",
        };
        ThreadCall::Open(method, params.into())
    }

    /// Returns whether the thread has no history.
    pub(super) fn is_new(&self) -> bool {
        !matches!(self.conversation, Conversation::Resume(_) | Conversation::Fork(_))
    }

    pub(super) fn expected(&self) -> Expected {
        Expected::of(&self.conversation)
    }
}
