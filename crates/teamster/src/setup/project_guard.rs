//! Checks an untrusted project for files that its agent cannot be prevented from using.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use teamster_agents::launch::ForbiddenFiles;
use teamster_types::event::{ErrorCode, Failure};

use super::environment::Environment;

/// The files that an untrusted project and its parent directories must not contain.
#[derive(Clone, Debug)]
pub(crate) struct ProjectGuard {
    forbidden_files: ForbiddenFiles,
    cwd: PathBuf,
    /// The user's home directory, which is trusted.
    home: Option<PathBuf>,
}

impl ProjectGuard {
    /// Creates the guard. `environment` is the environment of the process.
    pub(crate) fn new(forbidden_files: ForbiddenFiles, cwd: &Path, environment: &Environment) -> Self {
        let home = environment.get(OsStr::new("HOME")).map(PathBuf::from);
        Self { forbidden_files, cwd: cwd.to_owned(), home }
    }

    /// Checks the project. Waits for the disk.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        // An agent may walk up from the path as it was given, or from the canonical path.
        let real = self.cwd.canonicalize().ok();
        let homes = [self.home.clone(), self.home.as_ref().and_then(|home| home.canonicalize().ok())];
        let directories = self.cwd.ancestors().chain(real.iter().flat_map(|real| real.ancestors()));
        let strangers = directories.filter(|directory| !homes.iter().flatten().any(|home| home == directory));
        for directory in strangers {
            for name in self.forbidden_files.names {
                let path = directory.join(name);
                // If the guard cannot read it, the agent cannot either. A dangling link may get a target at any moment.
                if path.symlink_metadata().is_ok() {
                    return Err(self.refusal(&path));
                }
            }
        }
        Ok(())
    }

    fn refusal(&self, path: &Path) -> Failure {
        let (path, why) = (path.display(), self.forbidden_files.why);
        let text = format!("`project_trust: untrusted` does not permit {path}: {why}; remove it, or trust the project");
        Failure::new(ErrorCode::Config, text).with_retryable(false)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use teamster_process::PrivateDir;

    use super::*;

    const FORBIDDEN: ForbiddenFiles = ForbiddenFiles { names: &[".guarded", "guarded.json"], why: "it is used" };

    fn guard(cwd: &Path, home: &Path) -> ProjectGuard {
        let environment = Environment::from([("HOME".into(), home.into())]);
        ProjectGuard::new(FORBIDDEN, cwd, &environment)
    }

    #[test]
    fn a_forbidden_file_in_the_project_or_above_it_is_found_and_named() {
        let root = PrivateDir::create(None, "guard").unwrap();
        let inner = root.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        let guard = guard(&inner, Path::new("/home/dev"));
        assert_eq!(guard.check(), Ok(()));
        for place in ["a/b/.guarded", "a/guarded.json", ".guarded"] {
            let path = root.path().join(place);
            symlink("nowhere", &path).unwrap();
            let failure = guard.check().unwrap_err();
            assert_eq!(failure.code, ErrorCode::Config);
            assert!(failure.message.contains(&*path.to_string_lossy()), "{failure:?}");
            fs::remove_file(path).unwrap();
        }
        assert_eq!(guard.check(), Ok(()));
    }

    #[test]
    fn a_forbidden_file_is_found_by_either_name_of_the_project() {
        let root = PrivateDir::create(None, "guard").unwrap();
        for directory in ["stranger/inner", "links"] {
            fs::create_dir_all(root.path().join(directory)).unwrap();
        }
        let link = root.path().join("links/here");
        symlink(root.path().join("stranger/inner"), &link).unwrap();
        let guard = guard(&link, Path::new("/home/dev"));
        assert_eq!(guard.check(), Ok(()));
        for place in ["stranger/.guarded", "links/.guarded"] {
            fs::create_dir(root.path().join(place)).unwrap();
            assert!(guard.check().is_err(), "{place}");
            fs::remove_dir(root.path().join(place)).unwrap();
        }
    }

    #[test]
    fn the_users_home_is_trusted() {
        let home = PrivateDir::create(None, "guard").unwrap();
        let project = home.path().join("project");
        for directory in [".guarded", "project"] {
            fs::create_dir(home.path().join(directory)).unwrap();
        }
        assert_eq!(guard(&project, home.path()).check(), Ok(()));
        assert!(guard(&project, &project).check().is_err());
    }
}
