//! The credential that an agent will use: what the agent knows about its CLI, applied to the variables and files of the machine.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use teamster_agents::agent::{Agent, CredentialPlaces};
use teamster_types::event::{Credential, CredentialKind};
use teamster_types::request::RunRequest;

use super::environment::Environment;

/// The longest file that is read. A longer one is treated as absent.
const MAX_FILE: u64 = 4 << 20;

/// Returns the credential that an agent will use for a request, if that is certain.
pub(crate) fn find(agent: &dyn Agent, request: &RunRequest, environment: &Environment) -> Option<Credential> {
    let variable = |name: &str| -> Option<OsString> {
        let of_request = request.env.get(name).map(OsString::from);
        of_request.or_else(|| environment.get(OsStr::new(name)).cloned())
    };
    agent.credential(request, &CredentialPlaces { variable: &variable, file: &content })
}

/// Returns what an agent reported about its credential, with what is known of the machine. A report takes precedence.
pub(crate) fn reported(report: Option<Credential>, found: Option<&Credential>) -> Option<Credential> {
    match (report, found) {
        (None, found) => found.cloned(),
        // The agent reports that it uses no key. It may have a token, a login or a cloud.
        (Some(report), Some(found))
            if report.kind == CredentialKind::Unknown && found.kind != CredentialKind::ApiKey =>
        {
            Some(found.clone())
        }
        (report, _) => report,
    }
}

fn content(path: &Path) -> Option<String> {
    let file = File::open(path).ok()?;
    let metadata = file.metadata().ok().filter(|metadata| metadata.is_file() && metadata.len() <= MAX_FILE)?;
    let mut text = String::with_capacity(usize::try_from(metadata.len()).ok()?);
    file.take(MAX_FILE).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_of_the_agent_takes_precedence_except_that_it_has_no_key() {
        let [key, login, none] = [CredentialKind::ApiKey, CredentialKind::Login, CredentialKind::Unknown];
        let kind = |report: Option<&CredentialKind>, found: Option<&CredentialKind>| {
            let found = found.cloned().map(Credential::new);
            reported(report.cloned().map(Credential::new), found.as_ref()).map(|credential| credential.kind)
        };
        assert_eq!(kind(None, Some(&login)), Some(login.clone()));
        assert_eq!(kind(Some(&key), Some(&login)), Some(key.clone()));
        assert_eq!(kind(Some(&none), Some(&login)), Some(login));
        assert_eq!(kind(Some(&none), Some(&key)), Some(none.clone()));
        assert_eq!(kind(Some(&none), None), Some(none));
        assert_eq!(kind(None, None), None);
    }
}
