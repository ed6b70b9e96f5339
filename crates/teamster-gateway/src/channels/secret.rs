//! Secrets of chat services, from a file or an environment variable.

use std::io::Read as _;
use std::path::Path;

use teamster::text::without_bom;

/// The largest number of bytes of a secret's file.
const MAX_FILE: u64 = 4_096;

/// The largest length of the name of a variable.
const MAX_NAME: usize = 64;

/// The smallest length of a token of a chat service.
const MIN_TOKEN: usize = 24;

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
            (None, Some(name)) if !is_variable(name) => {
                let problem = "must be the name of an environment variable, not the token: letters, digits and _";
                Err(KeyProblem::new(variable_key, problem))
            }
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

/// Returns whether a text can be the name of a variable. A token is none, and must not be in an error.
fn is_variable(name: &str) -> bool {
    name.len() <= MAX_NAME && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Returns whether a path may be a token that was given instead of the path of its file.
fn may_be_token(file: &Path) -> bool {
    let text = file.file_name().unwrap_or_default().to_string_lossy();
    text.len() >= MIN_TOKEN && !text.contains(' ')
}

fn read(key: &'static str, file: &Path) -> Result<String, KeyProblem> {
    if may_be_token(file) && !file.exists() {
        let problem = "there is no such file: give the path of a file that contains the token, not the token";
        return Err(KeyProblem::new(key, problem));
    }
    let problem = |error: std::io::Error| KeyProblem::new(key, format!("cannot read {}: {error}", file.display()));
    let mut text = String::new();
    let opened = std::fs::File::open(file).map_err(problem)?;
    opened.take(MAX_FILE).read_to_string(&mut text).map_err(problem)?;
    Ok(without_bom(&text).to_owned())
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
        let long = "a".repeat(65);
        for token in ["xoxb-1-2-abc", "1234:AAH_x", "MTk4.Cl2FMQ.ZnCj", &long] {
            let text = problem(source(None, Some(token)));
            assert!(text.contains("not the token") && !text.contains(token), "{text}");
        }
        let token = "xoxb-12345678901-abcdefghijklmn";
        let path = Path::new("/home/dev").join(token);
        let text = problem(source(Some(&path), None));
        assert!(text.contains("not the token") && !text.contains(token), "{text}");
        let both = source(Some(Path::new("/x")), Some("X"));
        assert_eq!(problem(both), "token_env: either token_file or token_env: remove one of them");
        assert!(
            problem(source(Some(Path::new("/no/such/file")), None)).starts_with("token_file: cannot read /no/such")
        );
    }
}
