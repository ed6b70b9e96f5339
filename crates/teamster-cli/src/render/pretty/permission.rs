//! Permission requests and their answers.

use std::io::{self, Write};

use teamster::event::{AnsweredBy, PermissionAnswered, PermissionDecision, PermissionRequest};

use super::page::Kind;
use super::{DIM, Pretty};
use crate::printable::{Printable, printable};

/// The first line of a request: what sort of work it is and for which server, then the tool. What stands in the brackets comes
/// before every name that an agent chooses, so that no name can imitate it.
pub(crate) fn head(request: &PermissionRequest) -> Printable {
    printable!("? {}{} asks for leave", origin(request), &request.tool_name)
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

/// Who answered, as the end of a sentence.
fn by(answered: &PermissionAnswered) -> Printable {
    match &answered.by {
        AnsweredBy::Caller => "by the caller".into(),
        AnsweredBy::Handler => "by the handler".into(),
        AnsweredBy::Rule => "by a rule".into(),
        AnsweredBy::Mode => "by the permission mode".into(),
        AnsweredBy::Timeout => "since nobody answered in time".into(),
        AnsweredBy::Limit => "since too many requests wait".into(),
        AnsweredBy::Unattended => "since nobody can be asked".into(),
        AnsweredBy::Agent => "by the agent".into(),
        AnsweredBy::End => "since the turn has ended".into(),
        other => printable!("by {}", Printable::exact(other.as_str())),
    }
}

fn decision(answered: &PermissionAnswered) -> Printable {
    match &answered.decision {
        PermissionDecision::Allow => "allowed".into(),
        PermissionDecision::AllowAlways => "allowed for this session".into(),
        PermissionDecision::Deny => "denied".into(),
        PermissionDecision::DenyAlways => "denied, and what is like it".into(),
        PermissionDecision::Cancelled => "withdrawn".into(),
        other => printable!("answered with {}", Printable::exact(other.as_str())),
    }
}

impl Pretty {
    /// A request. In a conversation the person is asked elsewhere.
    pub(super) fn request(&mut self, request: &PermissionRequest, out: &mut dyn Write) -> io::Result<()> {
        self.asked.insert(request.request_id.clone(), request.tool_name.clone());
        if self.chat.is_some() {
            return Ok(());
        }
        self.line(Kind::Work, 0, &[(&head(request), super::CAUTION)], out)
    }

    /// An answer, where the person has not given it, or it changes what runs. What was allowed without being asked is seen in
    /// the call itself.
    pub(super) fn answered(&mut self, answered: &PermissionAnswered, out: &mut dyn Write) -> io::Result<()> {
        let asked = self.asked.remove(&answered.request_id);
        let was_asked = asked.is_some();
        let tool = asked.or_else(|| answered.request.as_ref().map(|request| request.tool_name.clone()));
        let tool = tool.map_or_else(
            || printable!("the request {}", Printable::exact(answered.request_id.as_str())),
            |tool| printable!("{}", &tool),
        );
        let allows = matches!(answered.decision, PermissionDecision::Allow | PermissionDecision::AllowAlways);
        let is_known = answered.input.is_none()
            && if self.chat.is_some() {
                answered.by == AnsweredBy::Caller || (allows && !was_asked)
            } else {
                allows && !was_asked
            };
        if is_known {
            return Ok(());
        }
        let why = answered.message.as_ref().map(|why| printable!(": {}", Printable::message(why))).unwrap_or_default();
        let words = printable!("{} {} {}{}", tool, decision(answered), by(answered), why);
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
