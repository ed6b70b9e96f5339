//! The steps that make an agent ready.

use std::path::PathBuf;

use teamster::{Inspection, VersionStatus};

use crate::printable::{Printable, printable};
use crate::vendor;

/// What makes an agent ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Install its CLI, or a newer version of it.
    Npm { package: &'static str },
    /// Start the vendor's login command.
    Login { program: PathBuf, name: &'static str, arguments: &'static [&'static str] },
}

impl Step {
    /// Returns the next step for an agent. With `is_named_program` the user names the program, which npm does not install.
    pub(super) fn next(inspection: &Inspection, is_named_program: bool) -> Option<Self> {
        let agent = inspection.agent.as_str();
        let is_missing = inspection.program.is_none();
        let is_older = inspection.can_run() && inspection.version_status == Some(VersionStatus::Older);
        if is_missing || is_older {
            return vendor::package(agent).filter(|_| !is_named_program).map(|package| Self::Npm { package });
        }
        Self::login(inspection)
    }

    /// Returns the step that logs in, if that is missing.
    pub(super) fn login(inspection: &Inspection) -> Option<Self> {
        let agent = inspection.agent.as_str();
        let (Some(program), true) = (inspection.program.clone(), inspection.can_run()) else { return None };
        let arguments = vendor::login_arguments(agent).filter(|_| inspection.credentials.is_empty())?;
        Some(Self::Login { program, name: vendor::program(agent)?, arguments })
    }

    /// Returns the command of the step.
    pub(super) fn command(&self) -> Printable {
        match self {
            Self::Npm { package } => printable!("npm install -g {}", *package),
            Self::Login { name, arguments, .. } => {
                let words = [*name].into_iter().chain(arguments.iter().copied()).map(Printable::from);
                Printable::join(words, " ")
            }
        }
    }
}
