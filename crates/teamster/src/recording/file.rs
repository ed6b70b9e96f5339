//! Creates the file of a recording, at the path that the user chose.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

/// Creates the file with mode 0600, whatever the umask is.
///
/// An existing file is never written to. With `overwrite` a regular file is replaced by a new one, so that a process that may
/// read the old file, or has it open, cannot read the recording. Links, pipes and devices are rejected without being opened.
///
/// # Errors
/// The path exists and must not be replaced, or the system cannot create the file.
pub(super) fn create(path: &Path, overwrite: bool) -> io::Result<File> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if !metadata.is_file() => {
            let problem = "it is not a regular file; a recording is not written to links, pipes or devices";
            return Err(io::Error::new(ErrorKind::InvalidInput, problem));
        }
        Ok(_) if overwrite => fs::remove_file(path)?,
        Ok(_) => return Err(exists()),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    // This fails if something was created at the path meanwhile, including a link.
    let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let file = created.map_err(|error| if error.kind() == ErrorKind::AlreadyExists { exists() } else { error })?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(file)
}

fn exists() -> io::Error {
    let problem = "the file exists; choose another name, or allow it to be replaced (`record_overwrite`)";
    io::Error::new(ErrorKind::AlreadyExists, problem)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::fs::symlink;

    use teamster_process::PrivateDir;

    use super::*;

    #[test]
    fn an_existing_file_is_replaced_only_if_that_is_allowed_and_is_never_written_to() {
        let folder = PrivateDir::create(None, "recording-").unwrap();
        let (path, other_name) = (folder.path().join("recording"), folder.path().join("other-name"));
        fs::write(&path, "before").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        fs::hard_link(&path, &other_name).unwrap();
        let refused = create(&path, false).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::AlreadyExists);
        assert!(refused.to_string().contains("record_overwrite"), "{refused}");
        create(&path, true).unwrap().write_all(b"now").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read(&path).unwrap(), b"now");
        assert_eq!(fs::read(&other_name).unwrap(), b"before");
    }

    #[test]
    fn links_pipes_devices_and_directories_are_rejected_at_once() {
        let folder = PrivateDir::create(None, "recording-").unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("target"), "before").unwrap();
        symlink(path("target"), path("link")).unwrap();
        symlink(path("nowhere"), path("dangling")).unwrap();
        let made = std::process::Command::new("mkfifo").arg(path("pipe")).status().unwrap();
        assert!(made.success());
        for overwrite in [false, true] {
            for refused in [path("link"), path("dangling"), path("pipe"), folder.path().to_owned(), "/dev/full".into()]
            {
                let error = create(&refused, overwrite).unwrap_err();
                assert!(error.to_string().contains("not a regular file"), "{}: {error}", refused.display());
            }
        }
        assert_eq!(fs::read(path("target")).unwrap(), b"before");
        assert!(!path("nowhere").exists() && fs::symlink_metadata(path("pipe")).is_ok());
    }
}
