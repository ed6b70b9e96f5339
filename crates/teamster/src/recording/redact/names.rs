//! Names that mark their value as a secret.

/// Parts of a name that mark its value as a secret.
const SECRET_PARTS: &[&str] = &[
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "APIKEY",
    "API_KEY",
    "ACCESS_KEY",
    "PRIVATE_KEY",
    "AUTHORIZATION",
    "BEARER",
    "COOKIE",
];

/// Ends of such names.
const SECRET_ENDS: &[&str] = &["TOKEN", "_KEY", "_PASS", "_PAT", "_AUTH"];

/// Ends of names whose value is the location of a secret, which is not secret.
const LOCATIONS: &[&str] = &["_FILE", "_PATH", "_DIR", "_SOCK", "_URL", "_URI", "GOOGLE_APPLICATION_CREDENTIALS"];

/// Whether a name marks its value as a secret.
pub(super) fn is_secret(name: &str) -> bool {
    let name = format!("_{}", name.to_ascii_uppercase().replace('-', "_"));
    let is_marked =
        SECRET_PARTS.iter().any(|part| name.contains(part)) || SECRET_ENDS.iter().any(|end| name.ends_with(end));
    is_marked && !LOCATIONS.iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::is_secret;

    #[test]
    fn names_mark_secrets() {
        let secret = [
            "OPENAI_API_KEY",
            "GITHUB_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_ACCESS_KEY_ID",
            "DB_PASSWORD",
            "PGPASSWORD",
            "apiKey",
            "x-api-key",
            "Authorization",
            "key",
            "TOKEN",
            "npm_config__auth",
            "accessToken",
            "MY_CREDENTIALS",
            "SSH_PASSPHRASE",
        ];
        let plain = [
            "PATH",
            "HOME",
            "KEYBOARD",
            "MONKEY",
            "MAX_OUTPUT_TOKENS",
            "SSH_AUTH_SOCK",
            "SSH_ASKPASS",
            "AUTHOR",
            "PASS_THROUGH",
            "AWS_WEB_IDENTITY_TOKEN_FILE",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "COMPATIBLE",
            "TOKENIZER",
            "SECRETS_DIR",
        ];
        assert_eq!(secret.map(is_secret), secret.map(|_| true));
        assert_eq!(plain.map(is_secret), plain.map(|_| false));
    }
}
