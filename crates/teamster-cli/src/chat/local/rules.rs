//! The permission mode, and the rules that were allowed in this session: `/permission`.

use super::LocalSession;
use crate::chat::command::name_of;
use crate::chat::state::Chat;
use crate::live_area::Size;
use crate::printable::{Printable, printable};

impl Chat<'_, LocalSession> {
    pub(super) fn add_rule(&mut self, rule: &str, scope: &Printable) {
        match self.backend.session.allow_rule(rule) {
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
        let mode =
            printable!("mode: {} (/permission MODE changes it)", name_of(self.backend.plan.request.permissions.mode));
        let rules = self.backend.session.allowed_rules();
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
        let rules = self.backend.session.allowed_rules();
        let Some(rule) = number.checked_sub(1).and_then(|index| rules.get(index)) else {
            return self.message(printable!("there is no rule {}: /permission lists the rules", number));
        };
        match self.backend.session.revoke_rule(rule) {
            Ok(_) => self.message(printable!("no longer allowed: {}", Printable::exact(rule))),
            Err(error) => self.message(Printable::error(&error)),
        }
    }
}
