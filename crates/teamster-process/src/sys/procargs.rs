//! Parses the arguments and environment of a process as macOS returns them, in one buffer.

/// Returns the environment: variables, each terminated by a NUL.
///
/// Before it, the buffer has the number of arguments, the program's path, NULs up to an aligned
/// position, and the arguments.
pub(super) fn environment(bytes: &[u8]) -> &[u8] {
    let Some((count, rest)) = bytes.split_first_chunk() else { return &[] };
    let count = usize::try_from(i32::from_ne_bytes(*count)).unwrap_or_default();
    let Some(mut rest) = behind_nul(rest) else { return &[] };
    let padding = rest.iter().take_while(|&&byte| byte == 0).count();
    rest = rest.get(padding..).unwrap_or_default();
    for _ in 0..count {
        let Some(next) = behind_nul(rest) else { return &[] };
        rest = next;
    }
    // An empty string ends it; data of the system follows.
    let end = rest.windows(2).position(|two| two == [0, 0]).map_or(rest.len(), |at| at + 1);
    let environment = rest.get(..end).unwrap_or_default();
    if environment.first() == Some(&0) { &[] } else { environment }
}

fn behind_nul(bytes: &[u8]) -> Option<&[u8]> {
    bytes.get(memchr::memchr(0, bytes)? + 1..)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(count: i32, rest: &[u8]) -> Vec<u8> {
        [&count.to_ne_bytes()[..], rest].concat()
    }

    #[test]
    fn the_environment_follows_the_arguments() {
        let whole = piece(2, b"/bin/sh\0\0\0\0sh\0A=not\0A=1\0B=\0\0executable_path=/bin/sh\0");
        assert_eq!(environment(&whole), b"A=1\0B=\0");
        assert_eq!(environment(&piece(1, b"/bin/sh\0sh\0A=1\0")), b"A=1\0");
    }

    #[test]
    fn a_hidden_or_truncated_environment_is_empty_or_a_prefix() {
        assert_eq!(environment(&piece(1, b"/bin/sh\0\0sh\0\0\0")), b"");
        assert_eq!(environment(&piece(1, b"/bin/sh\0\0sh\0")), b"");
        assert_eq!(environment(&piece(-1, b"/bin/sh\0")), b"");
        let whole = piece(2, b"/bin/sh\0\0\0\0sh\0A=not\0A=1\0\0");
        for length in 0..whole.len() {
            assert!(b"A=1\0".starts_with(environment(&whole[..length])), "{length}");
        }
    }
}
