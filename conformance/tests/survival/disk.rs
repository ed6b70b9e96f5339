//! A disk of the host's own that is full, or soon will be.
//!
//! It is a small file system in a user and mount namespace, or in a mount namespace alone if that is all that root may make. A
//! machine that refuses both limits the size of the host's files instead: the same writes fail, of another cause.

use crate::place::Place;

/// A line of shell before the host, after which these directories of the place are on one disk that takes so many KiB of
/// files. The host's ledger has no other place than this disk, if it is there at all.
pub(crate) fn of_kib(place: &Place, kib: u32, directories: &[&str]) -> String {
    let path = place.path("");
    let path = path.display();
    let names = directories.join(" ");
    // A file system has at least a page. One that is to take nothing has it filled.
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
echo 'nobody may make a file system here: a limit on the size of files stands in'
ulimit -f {blocks}"
    )
}

const PAGE_KIB: u32 = 4;
