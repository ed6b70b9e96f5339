//! Secrets of chat services, from a file or an environment variable.

use std::io::Read as _;
use std::path::Path;

/// The largest number of bytes of a secret's file.
const MAX_FILE: u64 = 4_096;

/// A problem of a key in the table of a chat service.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {problem}")]
pub(crate) struct KeyProblem {
    /// The key in the table.
    pub(crate) key: &'static str,
    /// What is wrong. It contains no secret.
    pub(crate) problem: String,
}

impl KeyProblem {
    pub(crate) fn new(key: &'static str, problem: impl Into<String>) -> Self {
        Self { key, problem: problem.into() }
    }
}

/// Where a secret is, with the keys that name it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SecretSource<'a> {
    /// The key and the value of the file.
    pub(crate) file: (&'static str, Option<&'a Path>),
    /// The key and the value of the environment variable.
    pub(crate) variable: (&'static str, Option<&'a str>),
    /// The problem if there is neither.
    pub(crate) missing: &'a str,
}

impl SecretSource<'_> {
    /// Reads the secret. Returns it with the key that names it.
    ///
    /// # Errors
    /// There is no secret, there are two, or it cannot be read.
    pub(crate) fn read(self) -> Result<(&'static str, String), KeyProblem> {
        let ((file_key, file), (variable_key, variable)) = (self.file, self.variable);
        match (file, variable) {
            (Some(file), None) => Ok((file_key, read(file_key, file)?)),
            (None, Some(name)) => {
                let text = std::env::var(name);
                let unset = |_| KeyProblem::new(variable_key, format!("the variable {name} is not set"));
                Ok((variable_key, text.map_err(unset)?))
            }
            (None, None) => Err(KeyProblem::new(file_key, self.missing)),
            (Some(_), Some(_)) => {
                let problem = format!("either {file_key} or {variable_key}: remove one of them");
                Err(KeyProblem::new(variable_key, problem))
            }
        }
    }
}

fn read(key: &'static str, file: &Path) -> Result<String, KeyProblem> {
    let problem = |error: std::io::Error| KeyProblem::new(key, format!("cannot read {}: {error}", file.display()));
    let mut text = String::new();
    let opened = std::fs::File::open(file).map_err(problem)?;
    opened.take(MAX_FILE).read_to_string(&mut text).map_err(problem)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_or_given_twice_is_named() {
        let source = |file, variable| SecretSource {
            file: ("token_file", file),
            variable: ("token_env", variable),
            missing: "set it",
        };
        let problem = |source: SecretSource<'_>| source.read().unwrap_err().to_string();
        assert_eq!(problem(source(None, None)), "token_file: set it");
        assert!(problem(source(None, Some("TEAMSTER_NO_SUCH_VARIABLE"))).contains("TEAMSTER_NO_SUCH_VARIABLE"));
        let both = source(Some(Path::new("/x")), Some("X"));
        assert_eq!(problem(both), "token_env: either token_file or token_env: remove one of them");
        assert!(
            problem(source(Some(Path::new("/no/such/file")), None)).starts_with("token_file: cannot read /no/such")
        );
    }
}
