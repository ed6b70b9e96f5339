//! What a stranger's directory must not hold, where an agent cannot be kept from using it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use teamster_agents::launch::ForbiddenFiles;
use teamster_types::event::{ErrorCode, Failure};

use super::environment::Environment;

/// What must not be in the directory of a process, nor above it.
#[derive(Clone, Debug)]
pub(crate) struct ProjectGuard {
    forbidden_files: ForbiddenFiles,
    cwd: PathBuf,
    /// The user's own, which is no stranger's.
    home: Option<PathBuf>,
}

impl ProjectGuard {
    /// `environment` is that of the process.
    pub(crate) fn new(forbidden_files: ForbiddenFiles, cwd: &Path, environment: &Environment) -> Self {
        let home = environment.get(OsStr::new("HOME")).map(PathBuf::from);
        Self { forbidden_files, cwd: cwd.to_owned(), home }
    }

    /// Whether it is so. Waits for the disk.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        // An agent may go up from the directory as it was named, or as the system names it.
        let real = self.cwd.canonicalize().ok();
        let homes = [self.home.clone(), self.home.as_ref().and_then(|home| home.canonicalize().ok())];
        let directories = self.cwd.ancestors().chain(real.iter().flat_map(|real| real.ancestors()));
        let strangers = directories.filter(|directory| !homes.iter().flatten().any(|home| home == directory));
        for directory in strangers {
            for name in self.forbidden_files.names {
                let path = directory.join(name);
                // What cannot be looked at is out of the agent's reach too. A link that leads nowhere may do so in a moment.
                if path.symlink_metadata().is_ok() {
                    return Err(self.refusal(&path));
                }
            }
        }
        Ok(())
    }

    fn refusal(&self, path: &Path) -> Failure {
        let (path, why) = (path.display(), self.forbidden_files.why);
        let text =
            format!("{path} is in the way of `project_trust: untrusted`: {why}; take it away, or trust the project");
        Failure { retryable: Some(false), ..Failure::new(ErrorCode::Config, text) }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use teamster_process::PrivateDir;

    use super::*;

    const FORBIDDEN: ForbiddenFiles = ForbiddenFiles { names: &[".x", "x.json"], why: "it is used" };

    fn guard(cwd: &Path, home: &Path) -> ProjectGuard {
        let environment = Environment::from([("HOME".into(), home.into())]);
        ProjectGuard::new(FORBIDDEN, cwd, &environment)
    }

    #[test]
    fn what_stands_in_the_directory_or_above_it_is_found_and_named() {
        let root = PrivateDir::create(None, "guard").unwrap();
        let inner = root.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        let guard = guard(&inner, Path::new("/home/dev"));
        assert_eq!(guard.check(), Ok(()));
        for place in ["a/b/.x", "a/x.json", ".x"] {
            let path = root.path().join(place);
            symlink("nowhere", &path).unwrap();
            let failure = guard.check().unwrap_err();
            assert_eq!(failure.code, ErrorCode::Config);
            assert!(failure.message.starts_with(&*path.to_string_lossy()), "{failure:?}");
            fs::remove_file(path).unwrap();
        }
        assert_eq!(guard.check(), Ok(()));
    }

    #[test]
    fn it_is_found_by_either_name_of_the_directory() {
        let root = PrivateDir::create(None, "guard").unwrap();
        for directory in ["stranger/inner", "links"] {
            fs::create_dir_all(root.path().join(directory)).unwrap();
        }
        let link = root.path().join("links/here");
        symlink(root.path().join("stranger/inner"), &link).unwrap();
        let guard = guard(&link, Path::new("/home/dev"));
        assert_eq!(guard.check(), Ok(()));
        for place in ["stranger/.x", "links/.x"] {
            fs::create_dir(root.path().join(place)).unwrap();
            assert!(guard.check().is_err(), "{place}");
            fs::remove_dir(root.path().join(place)).unwrap();
        }
    }

    #[test]
    fn the_users_home_is_no_strangers() {
        let home = PrivateDir::create(None, "guard").unwrap();
        let project = home.path().join("project");
        for directory in [".x", "project"] {
            fs::create_dir(home.path().join(directory)).unwrap();
        }
        assert_eq!(guard(&project, home.path()).check(), Ok(()));
        assert!(guard(&project, &project).check().is_err());
    }
}
