//! The protocol between the host and a keeper: JSON lines over a Unix socket, with descriptors
//! beside them.

use std::{
    ffi::OsString,
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::{
    io::{Errno, FdFlags, fcntl_setfd},
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
        recvmsg, sendmsg,
    },
};
use serde::{Deserialize, Serialize};

use crate::{process::Process, survivor::Survivor, sys};

/// The largest number of descriptors in one message: stdin, stdout, stderr, a lock, a lease.
const MAX_DESCRIPTORS: usize = 5;

/// A request from the host to a keeper.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
    /// Start the leader. It is the first request, is sent once, and carries the descriptors.
    Start(Box<Start>),
    /// Send this signal to the leader.
    Signal(i32),
    /// Terminate the tree: SIGTERM, then SIGKILL after this many milliseconds.
    End { grace_ms: u64 },
    /// Stop supervising the tree and exit.
    #[serde(rename = "leave")]
    Detach,
}

/// The program to start. `env` and the marker are its whole environment.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Start {
    pub(crate) program: OsString,
    pub(crate) args: Vec<OsString>,
    pub(crate) env: Vec<(OsString, OsString)>,
    #[serde(rename = "mark")]
    pub(crate) marker: String,
    pub(crate) cwd: OsString,
    /// Whether the first descriptor is stdin; otherwise stdin is `/dev/null`.
    pub(crate) has_stdin: bool,
    /// The directory to remove if the host dies before the tree.
    pub(crate) directory: Option<OsString>,
    /// The term of the lease under which the tree runs. The lease is the last descriptor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lease_term: Option<u64>,
}

/// A report from a keeper to the host.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Report {
    /// The keeper runs and accepts requests. The first report.
    Ready { keeper: Process },
    /// The leader was started.
    Started { leader: Process },
    /// The leader could not be started; `errno` if the system refused it.
    NotStarted { errno: Option<i32> },
    /// The tree is killed because its lease has expired; or it was not started for that reason.
    LeaseExpired,
    /// The leader has exited.
    Exited { code: Option<i32>, signal: Option<i32> },
    /// The tree is gone, except for processes that could not be killed. The last report, from the
    /// keeper, or from the supervisor if the keeper was killed.
    Gone { survivors: Vec<Survivor> },
}

pub(crate) fn encode<T: Serialize>(message: &T) -> Vec<u8> {
    // Strings, numbers and lists always serialize.
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}

/// Reassembles messages from partial reads.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    bytes: Vec<u8>,
    /// How many bytes were searched for a line end.
    searched: usize,
    pub(crate) descriptors: Vec<OwnedFd>,
}

impl Inbox {
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the next complete message, or an error if it is invalid.
    pub(crate) fn next<T: for<'a> Deserialize<'a>>(&mut self) -> io::Result<Option<T>> {
        let rest = self.bytes.get(self.searched..).unwrap_or_default();
        let Some(end) = memchr::memchr(b'\n', rest).map(|end| self.searched + end) else {
            self.searched = self.bytes.len();
            return Ok(None);
        };
        let message = serde_json::from_slice(self.bytes.get(..end).unwrap_or_default())?;
        self.bytes.drain(..=end);
        self.searched = 0;
        Ok(Some(message))
    }

    /// Reads once; returns `false` at the end of the connection.
    pub(crate) fn receive(&mut self, socket: BorrowedFd<'_>, flags: RecvFlags) -> io::Result<bool> {
        let mut buffer = [0; 4096];
        let (count, descriptors) = receive(socket, &mut buffer, flags)?;
        self.feed(buffer.get(..count).unwrap_or_default());
        self.descriptors.extend(descriptors);
        Ok(count > 0)
    }
}

/// Reads bytes and the descriptors that arrived with them.
pub(crate) fn receive(
    socket: BorrowedFd<'_>,
    buffer: &mut [u8],
    flags: RecvFlags,
) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    loop {
        let mut control = RecvAncillaryBuffer::new(&mut space);
        match recvmsg(socket, &mut [IoSliceMut::new(buffer)], &mut control, flags | sys::RECEIVE) {
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
            Ok(message) => {
                let mut descriptors = Vec::new();
                for message in control.drain() {
                    if let RecvAncillaryMessage::ScmRights(rights) = message {
                        descriptors.extend(rights);
                    }
                }
                for descriptor in &descriptors {
                    // For systems without `MSG_CMSG_CLOEXEC`.
                    fcntl_setfd(descriptor, FdFlags::CLOEXEC)?;
                }
                return Ok((message.bytes, descriptors));
            }
        }
    }
}

/// Writes some of the bytes, and all descriptors with them. Returns the number of bytes written.
pub(crate) fn send(
    socket: impl AsFd,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
    flags: SendFlags,
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    loop {
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
            return Err(io::Error::other("too many descriptors for one message"));
        }
        match sendmsg(&socket, &[IoSlice::new(bytes)], &mut control, flags | sys::SEND) {
            Err(Errno::INTR) => {}
            result => return Ok(result?),
        }
    }
}

/// Writes all bytes to a blocking socket.
pub(crate) fn send_all(socket: impl AsFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let count = send(&socket, bytes, &[], SendFlags::empty())?;
        bytes = bytes.get(count..).unwrap_or_default();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    #[test]
    fn messages_are_reassembled_from_any_split() {
        let start = Start {
            program: OsString::from_vec(b"/bin/\xff".to_vec()),
            args: vec!["a\nb".into(), "".into()],
            env: vec![("A".into(), "=".into())],
            marker: "TEAMSTER_TREE_1".into(),
            cwd: "/".into(),
            has_stdin: true,
            directory: None,
            lease_term: Some(3),
        };
        let both = [encode(&Request::Start(Box::new(start))), encode(&Request::End { grace_ms: 7 })].concat();
        for cut in 0..both.len() {
            let mut inbox = Inbox::default();
            let mut requests = Vec::new();
            for piece in [&both[..cut], &both[cut..]] {
                inbox.feed(piece);
                while let Some(request) = inbox.next::<Request>().unwrap() {
                    requests.push(request);
                }
            }
            let [Request::Start(start), Request::End { grace_ms: 7 }] = &requests[..] else { panic!("{requests:?}") };
            assert_eq!(start.program.as_encoded_bytes(), b"/bin/\xff");
            assert_eq!(start.args, ["a\nb", ""]);
        }
    }

    #[test]
    fn an_invalid_line_is_an_error() {
        let mut inbox = Inbox::default();
        inbox.feed(b"{}\n");
        assert!(inbox.next::<Request>().is_err());
    }
}
