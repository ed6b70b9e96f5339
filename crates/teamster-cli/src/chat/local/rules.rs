//! The permission mode, and the rules that were allowed in this session or saved for its directory: `/permission`.

use super::LocalSession;
use crate::chat::command::name_of;
use crate::chat::request::Lasting;
use crate::chat::state::Chat;
use crate::live_area::Size;
use crate::path_text::home_relative;
use crate::printable::{Printable, printable};

impl Chat<'_, LocalSession> {
    pub(super) fn add_rules(&mut self, rules: &[String], scopes: &Printable, lasting: Lasting) {
        if let Err(error) = rules.iter().try_for_each(|rule| self.backend.session.allow_rule(rule.as_str())) {
            for rule in rules {
                _ = self.backend.session.revoke_rule(rule);
            }
            return self.message(printable!("  allowed only this time: {}", Printable::error(&error)));
        }
        let plan = &mut self.backend.plan;
        let saved = match lasting {
            Lasting::Session => None,
            Lasting::Saved => Some(plan.saved_rules.save(&plan.agent, rules)),
        };
        let names = Printable::join(rules.iter().map(|rule| Printable::exact(rule)), ", ");
        let (until, problem) = match saved {
            None => ("until this session ends", None),
            Some(Ok(())) => ("in this directory", None),
            Some(Err(error)) => {
                ("until this session ends", Some(printable!("\n  not saved: {}", Printable::error(&error))))
            }
        };
        let noun = if rules.len() == 1 { "rule" } else { "rules" };
        let back = if rules.len() == 1 { "takes it back" } else { "takes them back" };
        let text = printable!(
            "  allowed {}: {}\n  ({} {}; /permission revoke {}){}",
            until,
            scopes,
            noun,
            names,
            back,
            problem.unwrap_or_default()
        );
        self.message(text.wrapped(Size::of_stdout().columns, 2));
    }

    /// Prints the permission mode and the rules that were allowed.
    pub(super) fn list_permissions(&mut self) {
        let plan = &self.backend.plan;
        let mode = printable!("mode: {} (/permission MODE changes it)", name_of(plan.request.permissions.mode));
        let rules = self.backend.session.allowed_rules();
        let mut lines = vec![mode];
        if rules.is_empty() {
            lines.push("nothing else is allowed in this session".into());
        } else {
            lines.push("allowed until this session ends (/permission revoke N takes one back):".into());
            let saved = plan.saved_rules.of(&plan.agent);
            let file = plan.saved_rules.file().map(home_relative).unwrap_or_default();
            lines.extend((1_usize..).zip(&rules).map(|(number, rule)| {
                let rule_text = Printable::exact(rule);
                if saved.contains(rule) {
                    printable!("  {}  {} (saved for this directory in {})", number, rule_text, &file)
                } else {
                    printable!("  {}  {}", number, rule_text)
                }
            }));
        }
        self.message(Printable::join(lines, "\n").wrapped(Size::of_stdout().columns, 5));
    }

    /// Takes back the rule with this number, also from the file in which it was saved.
    pub(super) fn revoke(&mut self, number: usize) {
        let rules = self.backend.session.allowed_rules();
        let Some(rule) = number.checked_sub(1).and_then(|index| rules.get(index)) else {
            return self.message(printable!("there is no rule {}: /permission lists the rules", number));
        };
        if let Err(error) = self.backend.session.revoke_rule(rule) {
            return self.message(Printable::error(&error));
        }
        let plan = &mut self.backend.plan;
        let shown = Printable::exact(rule);
        let text = match plan.saved_rules.remove(&plan.agent, rule) {
            Ok(true) => printable!("no longer allowed: {}, also in later chats", shown),
            Ok(false) => printable!("no longer allowed: {}", shown),
            Err(error) => printable!(
                "no longer allowed in this session: {}; it is still saved: {}",
                shown,
                Printable::error(&error)
            ),
        };
        self.message(text);
    }
}
