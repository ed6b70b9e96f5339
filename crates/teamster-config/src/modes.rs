//! Creates directories and files with the required modes, whatever the umask is.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;

/// Creates a directory and its missing parents with mode 0700. Removes what it created if it fails.
pub(crate) fn make_private(path: &Path) -> io::Result<()> {
    let missing: Vec<_> = path.ancestors().take_while(|path| fs::symlink_metadata(path).is_err()).collect();
    let mut made = Vec::new();
    for path in missing.into_iter().rev().filter(|path| !path.as_os_str().is_empty()) {
        match make(path, 0o700) {
            Ok(()) => made.push(path),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => {
                made.iter().rev().for_each(|path| _ = fs::remove_dir(path));
                return Err(error);
            }
        }
    }
    Ok(())
}

/// Creates a directory with the permissions that the umask leaves to others, and all for its owner.
pub(crate) fn make_for_owner(path: &Path) -> io::Result<()> {
    make(path, 0o777)
}

/// Sets mode 0600 on a file of this user, if the umask removed a part of it.
pub(crate) fn make_file_private(file: &File) -> io::Result<()> {
    if file.metadata()?.permissions().mode() & 0o777 == 0o600 {
        return Ok(());
    }
    file.set_permissions(Permissions::from_mode(0o600))
}

fn make(path: &Path, mode: u32) -> io::Result<()> {
    DirBuilder::new().mode(mode).create(path)?;
    let owned = fs::symlink_metadata(path).and_then(|metadata| {
        let mode = metadata.permissions().mode() & 0o7777;
        // This can only be a link that was put there meanwhile.
        if metadata.is_dir() && mode & 0o700 != 0o700 {
            fs::set_permissions(path, Permissions::from_mode(mode | 0o700))?;
        }
        Ok(())
    });
    owned.inspect_err(|_| _ = fs::remove_dir(path))
}
