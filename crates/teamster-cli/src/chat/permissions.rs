//! The permission mode, and the rules that were allowed in this session: `/permission`.

use teamster::event::PermissionRequest;
use teamster::request::Answer;

use super::answer::{Attempt, Typed};
use super::command::name_of;
use super::request::{FormattedRequest, Prompt, Reply};
use super::state::{Chat, End};
use crate::live_area::Size;
use crate::printable::{Printable, printable};

impl Chat<'_> {
    /// Asks the user to answer a permission request.
    pub(super) async fn permission(&mut self, request: &PermissionRequest) -> Result<(), End> {
        let rule = self.session.suggest_rule(request);
        let (agent, directory) = (self.plan.agent.clone(), self.directory.clone());
        let Size { columns, rows } = Size::of_stdout();
        let prompt = Prompt { agent: &agent, request, directory: &directory, rule: rule.as_deref(), rows };
        let mut show_all = false;
        let reply = loop {
            let FormattedRequest { text, .. } = prompt.format(show_all, columns);
            self.message(printable!("\n{}", text));
            match self.permission_reply(&prompt).await? {
                Reply::ShowAll => show_all = true,
                reply => break reply,
            }
        };
        let answer = match reply {
            Reply::Allow => Answer::Allow { input: None },
            Reply::AllowAlways => {
                let rule = rule.as_deref().unwrap_or_default();
                self.allow_always(rule, &prompt.scope(rule));
                Answer::Allow { input: None }
            }
            Reply::Deny { reason } => Answer::Deny { message: reason },
            Reply::ShowAll | Reply::Invalid(_) => Answer::Deny { message: None },
        };
        self.answer(&request.request_id, answer).await
    }

    /// Reads lines until one is an answer.
    async fn permission_reply(&mut self, prompt: &Prompt<'_>) -> Result<Reply, End> {
        let mut attempt = Attempt::First;
        loop {
            match self.read_answer("  allow? ".into(), Vec::new(), attempt).await? {
                Typed::Line(line) => match prompt.answer(&line) {
                    Reply::Invalid(why) => {
                        let columns = Size::of_stdout().columns;
                        self.message(printable!("  {}", why).wrapped(columns, 2));
                        attempt = Attempt::Again;
                    }
                    reply => return Ok(reply),
                },
                Typed::Interrupted | Typed::Ended => return Ok(Reply::Deny { reason: None }),
            }
        }
    }

    fn allow_always(&mut self, rule: &str, scope: &Printable) {
        match self.session.allow_rule(rule) {
            Ok(()) => {
                let rule = Printable::exact(rule);
                let text = printable!(
                    "  allowed until this session ends: {}\n  (rule {}; /permission revoke takes it back)",
                    scope,
                    rule
                );
                self.message(text.wrapped(Size::of_stdout().columns, 2));
            }
            Err(error) => self.message(printable!("  allowed only this time: {}", Printable::error(&error))),
        }
    }

    /// Prints the permission mode and the rules that were allowed.
    pub(super) fn list_permissions(&mut self) {
        let mode = printable!("mode: {} (/permission MODE changes it)", name_of(self.plan.request.permissions.mode));
        let rules = self.session.allowed_rules();
        let mut lines = vec![mode];
        if rules.is_empty() {
            lines.push("nothing else is allowed in this session".into());
        } else {
            lines.push("allowed until this session ends (/permission revoke N takes one back):".into());
            let numbered = (1_usize..).zip(&rules);
            lines.extend(numbered.map(|(number, rule)| printable!("  {}  {}", number, Printable::exact(rule))));
        }
        self.message(Printable::join(lines, "\n").wrapped(Size::of_stdout().columns, 5));
    }

    /// Takes back the rule with this number.
    pub(super) fn revoke(&mut self, number: usize) {
        let rules = self.session.allowed_rules();
        let Some(rule) = number.checked_sub(1).and_then(|index| rules.get(index)) else {
            return self.message(printable!("there is no rule {}: /permission lists the rules", number));
        };
        match self.session.revoke_rule(rule) {
            Ok(_) => self.message(printable!("no longer allowed: {}", Printable::exact(rule))),
            Err(error) => self.message(Printable::error(&error)),
        }
    }
}
