//! A small disk for the host, which is full or soon will be.
//!
//! It is a small file system in a user and mount namespace, or in a mount namespace alone if root may create only that. If
//! the machine permits neither, the size of the host's files is limited: the same writes fail, with another error.

use crate::cell_env::CellEnv;

/// Returns shell that runs before the host, after which these directories of the place are on one disk that takes so many KiB of
/// files. The host's ledger has no other place than this disk, if it is there at all.
pub(crate) fn of_kib(cell: &CellEnv, kib: u32, directories: &[&str]) -> String {
    let path = cell.path("");
    let path = path.display();
    let names = directories.join(" ");
    // A file system has at least a page, which is filled if the disk should have no space.
    let size = kib.max(PAGE_KIB);
    let filled = (size - kib) * 1024;
    let blocks = kib * 2;
    format!(
        "\
export TEAMSTER_LEDGER_DIR='{path}runtime/teamster'
DISK='{path}disk'
mkdir \"$DISK\"
for NEW in -rm -m; do
  unshare $NEW mount -t tmpfs -o size={size}k full \"$DISK\" || continue
  exec unshare $NEW /bin/sh -ec '
    DISK=\"$1\"; shift
    mount -t tmpfs -o size={size}k full \"$DISK\"
    for NAME in {names}; do
      mkdir -m 700 \"$DISK/$NAME\"
      mount --bind \"$DISK/$NAME\" \"$DISK/../$NAME\"
    done
    head -c {filled} /dev/zero > \"$DISK/filled\"
    exec \"$@\"' sh \"$DISK\" \"$0\" \"$@\"
done
echo 'cannot create a file system here: using a limit on the size of files'
ulimit -f {blocks}"
    )
}

const PAGE_KIB: u32 = 4;
