//! The directory of a session that is resumed.

use std::path::Path;

use super::exchange::ResumedSession;
use super::resume::ResumeError;

/// Checks that a session belongs to a directory. An agent resumes a session only in its own.
///
/// # Errors
/// It belongs to another directory.
pub(crate) fn check_directory(session: &ResumedSession, directory: &Path) -> Result<(), ResumeError> {
    let session = &session.0;
    match &session.directory {
        Some(other) if !is_same(other, directory) => Err(ResumeError::OtherDirectory {
            agent: session.agent.clone(),
            id: session.id.as_str().to_owned(),
            directory: other.to_string_lossy().into_owned(),
            exists: other.is_dir(),
        }),
        _ => Ok(()),
    }
}

fn is_same(one: &Path, other: &Path) -> bool {
    let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    one == other || canonical(one) == canonical(other)
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use teamster::sessions::StoredSession;

    use super::*;

    #[test]
    fn a_session_of_another_directory_is_refused_with_its_directory() {
        let session = |directory: &str| {
            let mut session = StoredSession::new("codex", "01a2-aaaa");
            session.directory = Some(directory.into());
            ResumedSession(session)
        };
        let refused = |directory: &str| {
            let error = check_directory(&session(directory), Path::new("/q")).unwrap_err();
            format!("{error}\n{}", error.hint().unwrap())
        };
        assert_snapshot!(refused("/"), @r"
        the session 01a2-aaaa of codex belongs to the directory /
        resume it in its directory: add -C /
        ");
        assert_snapshot!(refused("/no/such"), @r"
        the session 01a2-aaaa of codex belongs to the directory /no/such
        that directory no longer exists: make it again, or start a new session
        ");
        check_directory(&session("/q"), Path::new("/q/")).unwrap();
        check_directory(&session("/tmp/../tmp"), Path::new("/tmp")).unwrap();
        check_directory(&ResumedSession(StoredSession::new("codex", "x")), Path::new("/q")).unwrap();
    }
}
