//! Resolves paths in tool rules on this machine.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use teamster_agents::rules::PathResolver;

/// The maximum number of symbolic links to follow, as in the kernel, and of components of a path.
const LINKS: usize = 40;
const COMPONENTS: usize = 2048;

/// The file system of this machine, as this process sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DiskPathResolver;

impl PathResolver for DiskPathResolver {
    /// Resolves component by component. `canonicalize` of the nearest existing ancestor is not enough: the target of a dangling
    /// link is where a file would be created.
    fn resolve(&self, path: &Path) -> Option<PathBuf> {
        let (mut waiting, mut found) = (VecDeque::new(), PathBuf::from("/"));
        if !path.is_absolute() {
            return None;
        }
        put_before(&mut waiting, path);
        let (mut links, mut steps) = (0, 0);
        while let Some(name) = waiting.pop_front() {
            steps += 1;
            if steps > COMPONENTS {
                return None;
            }
            if name == ".." {
                found.pop();
                continue;
            }
            let next = found.join(&name);
            match next.symlink_metadata() {
                // The target of `/proc/self/cwd` is that of this process, and not of the agent.
                Ok(meta) if meta.is_symlink() && found.starts_with("/proc") => return None,
                Ok(meta) if meta.is_symlink() => {
                    links += 1;
                    let target = next.read_link().ok().filter(|_| links <= LINKS)?;
                    if target.is_absolute() {
                        found = PathBuf::from("/");
                    }
                    put_before(&mut waiting, &target);
                }
                Ok(_) => found = next,
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => found = next,
                Err(_) => return None,
            }
        }
        Some(found)
    }

    fn home(&self) -> Option<PathBuf> {
        std::env::home_dir()
    }
}

fn put_before(waiting: &mut VecDeque<OsString>, path: &Path) {
    for component in path.components().rev() {
        match component {
            Component::Normal(name) => waiting.push_front(name.to_owned()),
            Component::ParentDir => waiting.push_front("..".into()),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_path_is_resolved_as_the_system_would_open_it() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let at = |path: &str| root.join(path);
        fs::create_dir_all(at("src/deep")).unwrap();
        fs::create_dir_all(at("other")).unwrap();
        symlink("../other", at("src/link")).unwrap();
        symlink(at("other/new"), at("src/dangling")).unwrap();
        symlink("round", at("src/round")).unwrap();
        for (path, real) in [
            ("src/./deep/../a", "src/a"),
            ("src/link/key", "other/key"),
            ("src/link/../key", "key"),
            ("src/dangling", "other/new"),
            ("src/dangling/more", "other/new/more"),
            ("src/none/../a", "src/a"),
            ("src/none/none", "src/none/none"),
        ] {
            assert_eq!(DiskPathResolver.resolve(&at(path)), Some(at(real)), "{path}");
        }
        assert_eq!(DiskPathResolver.resolve(&at("src/round")), None);
        symlink("/proc/self/cwd", at("src/own")).unwrap();
        assert_eq!(DiskPathResolver.resolve(&at("src/own/a")), None, "it is another directory for each process");
        assert_eq!(DiskPathResolver.resolve(Path::new("src")), None);
        assert_eq!(DiskPathResolver.resolve(Path::new("/../..")), Some("/".into()));
    }
}
