//! Which of an agent's credentials is used and billed, and how to use another one.

use teamster::Inspection;
use teamster::event::{Credential, CredentialKind};

use crate::printable::{Printable, printable};

/// Returns the name of the credential that a run uses and that is billed. `None` if that is not certain.
pub(super) fn used(inspection: &Inspection) -> Option<Printable> {
    let Credential { kind, name, .. } = inspection.credential.as_ref()?;
    let name = name.as_ref().map(|name| Printable::exact(name.as_str()));
    Some(match kind {
        CredentialKind::Login => printable!("the login{}", files(inspection)),
        CredentialKind::Cloud => printable!("the account of the cloud{}", in_brackets(name)),
        CredentialKind::ApiKey | CredentialKind::Token => name?,
        _ => return None,
    })
}

/// Returns the line about several credentials: which one is used and billed, which ones are not, and how to use another one.
pub(super) fn billed(inspection: &Inspection) -> Option<Printable> {
    let is_login = inspection.credential.as_ref().is_some_and(|used| used.kind == CredentialKind::Login);
    let name =
        inspection.credential.as_ref().and_then(|used| used.name.as_ref()).map(teamster::text::UntrustedText::as_str);
    let is_other = |found: &&String| if is_login { !is_file(found) } else { Some(found.as_str()) != name };
    let others: Vec<&String> = inspection.credentials.iter().filter(is_other).collect();
    if others.is_empty() {
        return None;
    }
    let names = Printable::join(others.iter().map(|name| Printable::exact(name)), ", ");
    let Some(used) = used(inspection) else {
        return other(&inspection.agent, false, &others).map(Printable::from);
    };
    let line = printable!("{} is used and billed, not {}", used, names);
    let other = other(&inspection.agent, is_login, &others).map(|how| printable!("; {}", how));
    Some(Printable::join([line].into_iter().chain(other), ""))
}

/// Returns how to use one of the other credentials.
fn other(agent: &str, uses_login: bool, others: &[&String]) -> Option<&'static str> {
    let has_login = others.iter().any(|name| is_file(name));
    match agent {
        "claude" if has_login && !uses_login => Some("to use the login: --env-only HOME, which withholds the key"),
        "codex" if others.iter().any(|name| *name == "CODEX_API_KEY") => {
            Some("CODEX_API_KEY is used with --mode exec only")
        }
        "codex" if has_login => Some("to use the login: remove model_provider from its config.toml"),
        "gemini" => Some("to use another: security.auth.selectedType in ~/.gemini/settings.json"),
        _ => None,
    }
}

/// Whether the name of a credential is that of a file, which a login has written.
fn is_file(name: &str) -> bool {
    name.starts_with("~/")
}

fn files(inspection: &Inspection) -> Printable {
    let file = inspection.credentials.iter().find(|name| is_file(name));
    in_brackets(file.map(|name| Printable::exact(name)))
}

fn in_brackets(name: Option<Printable>) -> Printable {
    name.map(|name| printable!(" ({})", name)).unwrap_or_default()
}
