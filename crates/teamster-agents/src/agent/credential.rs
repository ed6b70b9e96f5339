//! Where a CLI finds its credential. The driver has the variables and the files; an agent knows the order in which its CLI looks.

use std::ffi::OsString;
use std::path::Path;

use serde::de::DeserializeOwned;
use teamster_types::event::{Credential, CredentialKind};
use teamster_types::text::without_bom;

/// The variables of a run, and the files of the machine.
#[derive(Clone, Copy)]
pub struct CredentialPlaces<'a> {
    /// Returns the value of a variable.
    pub variable: &'a dyn Fn(&str) -> Option<OsString>,
    /// Returns the content of a file.
    pub file: &'a dyn Fn(&Path) -> Option<String>,
}

impl CredentialPlaces<'_> {
    /// Whether a variable is set and not empty.
    pub(super) fn has(&self, variable: &str) -> bool {
        (self.variable)(variable).is_some_and(|value| !value.is_empty())
    }

    /// Whether a variable enables something: it is neither empty, `0` nor `false`.
    pub(super) fn enables(&self, variable: &str) -> bool {
        let value = (self.variable)(variable).unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        !matches!(value.as_str(), "" | "0" | "false")
    }

    /// Returns the key in the first of these variables that is set.
    pub(super) fn key(&self, variables: &[&str]) -> Option<Credential> {
        let name = variables.iter().find(|name| self.has(name))?;
        Some(Credential::new(CredentialKind::ApiKey).named(*name))
    }

    /// Returns the content of a JSON file. `None` if there is none, or if it cannot be read.
    pub(super) fn json<T: DeserializeOwned>(&self, file: &Path) -> Option<T> {
        serde_json::from_str(without_bom(&(self.file)(file)?)).ok()
    }
}

impl std::fmt::Debug for CredentialPlaces<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("CredentialPlaces").finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(in crate::agent) mod tests {
    use super::*;
    use crate::agent::Agent;
    use teamster_types::request::RunRequest;

    /// Returns the credential that an agent finds: its kind and its name.
    pub(in crate::agent) fn found(
        agent: &dyn Agent,
        request: &RunRequest,
        variables: &[(&str, &str)],
        files: &[(&str, &str)],
    ) -> String {
        let value = |name: &str| variables.iter().find(|(other, _)| *other == name).map(|(_, value)| value.into());
        let home = |name: &str| value(name).or_else(|| (name == "HOME").then(|| "/h".into()));
        let content = |file: &Path| {
            files.iter().find(|(name, _)| Path::new(name) == file).map(|(_, content)| (*content).to_owned())
        };
        let places = CredentialPlaces { variable: &home, file: &content };
        let Some(credential) = agent.credential(request, &places) else { return "unknown".to_owned() };
        let name = credential.name.map(|name| format!(" {}", name.as_str())).unwrap_or_default();
        format!("{}{name}", credential.kind)
    }
}
