//! Permission requests and their answers.

use std::io::{self, Write};

use teamster::event::{AnsweredBy, PermissionAnswered, PermissionDecision, PermissionRequest};

use super::page::Kind;
use super::state::OpenRequest;
use super::style::DIM;
use super::{Pretty, call};
use crate::printable::{Printable, printable};

/// Formats the first line of a request: the kind of work and the server in brackets, then the tool. The brackets precede
/// every name that an agent chooses, so that no name can imitate them.
pub(crate) fn head(request: &PermissionRequest) -> Printable {
    printable!("? {}{} asks for permission", origin(request), call::tool_name(request.tool_name.as_str()))
}

fn origin(request: &PermissionRequest) -> Printable {
    let quoted = |text: &str| Printable::exact(&serde_json::Value::from(text).to_string());
    let kind = request.kind.as_ref().map(|kind| match kind {
        teamster::event::ToolKind::Other(other) => quoted(other),
        known => Printable::exact(known.as_str()),
    });
    let server = request.server.as_ref().map(|server| printable!("server {}", quoted(server)));
    let permission = request.permission.as_ref().map(|permission| printable!("for {}", quoted(permission)));
    let parts: Vec<_> = kind.into_iter().chain(server).chain(permission).collect();
    if parts.is_empty() { Printable::default() } else { printable!("[{}] ", Printable::join(parts, ", ")) }
}

/// Returns the source of the answer, as the end of a sentence.
fn answer_source(answered: &PermissionAnswered) -> Printable {
    match &answered.by {
        AnsweredBy::Caller => "by the caller".into(),
        AnsweredBy::Handler => "by the handler".into(),
        AnsweredBy::Rule => "by a rule".into(),
        AnsweredBy::Mode => "by the permission mode".into(),
        AnsweredBy::Timeout => "because the answer timed out".into(),
        AnsweredBy::Limit => "because too many requests are waiting".into(),
        AnsweredBy::Unattended => "because a run cannot ask".into(),
        AnsweredBy::Agent => "by the agent".into(),
        AnsweredBy::End => "because the turn has ended".into(),
        other => printable!("by {}", Printable::exact(other.as_str())),
    }
}

fn decision(answered: &PermissionAnswered) -> Printable {
    match &answered.decision {
        PermissionDecision::Allow => "allowed".into(),
        PermissionDecision::AllowAlways => "allowed for this session".into(),
        PermissionDecision::Deny => "denied".into(),
        PermissionDecision::DenyAlways => "denied for this session".into(),
        PermissionDecision::Cancelled => "withdrawn".into(),
        other => printable!("answered with {}", Printable::exact(other.as_str())),
    }
}

impl Pretty {
    /// Writes a permission request. In a chat, the chat itself asks the user.
    pub(super) fn request(&mut self, request: &PermissionRequest, out: &mut dyn Write) -> io::Result<()> {
        let open = OpenRequest { tool_name: request.tool_name.clone(), tool: request.tool_id.clone() };
        self.open_requests.insert(request.request_id.clone(), open);
        if self.chat.is_some() {
            // The chat shows the changes with the request.
            let call = request.tool_id.as_ref().and_then(|tool| self.calls.get_mut(tool));
            if let Some(changes) = call.and_then(|call| call.changes.as_mut()) {
                changes.clear();
            }
            return Ok(());
        }
        self.line(Kind::Work, 0, &[(&head(request), super::CAUTION)], out)
    }

    /// Writes an answer, unless the user gave it in the chat, or the call was allowed without a request. An answer that
    /// changes the input is always written.
    pub(super) fn answered(&mut self, answered: &PermissionAnswered, out: &mut dyn Write) -> io::Result<()> {
        let asked = self.open_requests.remove(&answered.request_id);
        let was_asked = asked.is_some();
        let of_answer = || {
            let request = answered.request.as_ref()?;
            Some(OpenRequest { tool_name: request.tool_name.clone(), tool: request.tool_id.clone() })
        };
        let request = asked.or_else(of_answer);
        let tool = request.as_ref().map_or_else(
            || printable!("the request {}", Printable::exact(answered.request_id.as_str())),
            |request| call::tool_name(request.tool_name.as_str()),
        );
        let allows = matches!(answered.decision, PermissionDecision::Allow | PermissionDecision::AllowAlways);
        let call = request.and_then(|request| self.calls.get_mut(&request.tool?));
        if let Some(call) = call.filter(|_| !allows) {
            call.is_denied = true;
        }
        let is_known = answered.input.is_none()
            && if self.chat.is_some() {
                answered.by == AnsweredBy::Caller || (allows && !was_asked)
            } else {
                allows && !was_asked
            };
        if is_known {
            return Ok(());
        }
        // That a run cannot ask is the whole reason.
        let why = answered.message.as_ref().filter(|_| answered.by != AnsweredBy::Unattended);
        let why = why.map(|why| printable!(": {}", Printable::message(why))).unwrap_or_default();
        let words = printable!("{} {} {}{}", tool, decision(answered), answer_source(answered), why);
        if allows {
            self.line(Kind::Work, 0, &[(&printable!("  ✓ {}", words), DIM)], out)?;
        } else {
            self.caution("!", &words, out)?;
        }
        let Some(input) = &answered.input else { return Ok(()) };
        let room = self.screen.width.saturating_sub(4);
        let changed = printable!("with {}", Printable::exact(input.as_str())).cut(room);
        self.line(Kind::Work, 2, &[(&changed, super::CAUTION)], out)
    }
}
