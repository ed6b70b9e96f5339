//! This program's file.

use std::{
    ffi::{CStr, OsStr, OsString, c_void},
    fs, io,
    mem::MaybeUninit,
    os::unix::ffi::OsStrExt,
    path::Path,
};

/// The name of this program's file in errors.
pub(crate) const OWN_PROGRAM: &str = "this program";

/// Closes descriptors that other libraries of the host opened without close-on-exec.
#[expect(unsafe_code, reason = "no safe call closes descriptors without an owner")]
pub(crate) fn close_inherited() {
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse::<i32>().ok();
    // All are read before the first is closed: one of them is the directory's own, which is closed by then.
    let open: Vec<i32> = fs::read_dir("/dev/fd").into_iter().flatten().flatten().filter_map(number).collect();
    for descriptor in open.into_iter().filter(|&descriptor| descriptor > 2) {
        // SAFETY: this process was just executed and has opened nothing itself, so no object owns this descriptor.
        unsafe { libc::close(descriptor) };
    }
}

/// Returns this program's own file, if this crate is linked into it. `address` is an address in the
/// crate's code. If the crate is in a library that the program loads at run time, it cannot run
/// before `main`, and executing the file would start the program itself.
#[expect(unsafe_code, reason = "no safe call finds the file of an address")]
pub(crate) fn own_program(address: usize) -> io::Result<Option<OsString>> {
    let mut image = MaybeUninit::<libc::Dl_info>::zeroed();
    let address = address as *const c_void;
    // SAFETY: the structure lives longer than the call, which fills it and returns something else than 0.
    if unsafe { libc::dladdr(address, image.as_mut_ptr()) } == 0 {
        return Ok(None);
    }
    // SAFETY: it is filled, and before it was all zeros, which are null pointers.
    let name = unsafe { image.assume_init() }.dli_fname;
    if name.is_null() {
        return Ok(None);
    }
    // SAFETY: the name of an image that holds this very code stays where it is.
    let name = Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(name) }.to_bytes()));
    let file = std::env::current_exe()?;
    Ok((name.canonicalize()? == file.canonicalize()?).then(|| file.into()))
}
