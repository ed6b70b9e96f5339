//! The signatures of webhooks, as <https://www.standardwebhooks.com> defines them: HMAC-SHA-256 over `ID.TIMESTAMP.BODY`.
//!
//! The signature covers the id and the time, so that a receiver can reject old and repeated messages. Sign each attempt
//! again.

use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// The header with the id of a message.
pub const ID_HEADER: &str = "webhook-id";

/// The header with the time of signing, in seconds since 1970.
pub const TIMESTAMP_HEADER: &str = "webhook-timestamp";

/// The header with one or more signatures.
pub const SIGNATURE_HEADER: &str = "webhook-signature";

/// The marker of a secret in base64.
const SECRET_PREFIX: &str = "whsec_";

/// The shortest secret in bytes.
const MIN_SECRET: usize = 16;

/// A secret that a sender and a receiver share.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookSecret(Vec<u8>);

/// Why a text is not a valid secret. The error does not contain the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// The part after `whsec_` is not base64.
    #[error("the part of the secret after whsec_ is not base64")]
    Base64,
    /// The secret could be guessed.
    #[error("the secret has {0} bytes, and needs at least {MIN_SECRET}: make one with `openssl rand -base64 24`")]
    TooShort(usize),
}

/// Why a message is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// The time is not a number of seconds.
    #[error("the header {TIMESTAMP_HEADER} is not a number of seconds since 1970")]
    Timestamp,
    /// The message is too old.
    #[error("the message was signed {0} s ago, which is too old: sign each attempt again")]
    TooOld(u64),
    /// The message comes from the future.
    #[error("the message was signed {0} s in the future: compare the clocks")]
    Future(u64),
    /// No signature is that of the secret.
    #[error("the signature does not match")]
    Mismatch,
}

impl WebhookSecret {
    /// Reads a secret: `whsec_` and base64, or any other text, whose bytes are the secret.
    ///
    /// # Errors
    /// It is too short, or its base64 is invalid.
    pub fn parse(text: &str) -> Result<Self, SecretError> {
        let bytes = match text.strip_prefix(SECRET_PREFIX) {
            Some(encoded) => STANDARD.decode(encoded).map_err(|_| SecretError::Base64)?,
            None => text.as_bytes().to_vec(),
        };
        if bytes.len() < MIN_SECRET {
            return Err(SecretError::TooShort(bytes.len()));
        }
        Ok(Self(bytes))
    }

    /// Returns the value of [`SIGNATURE_HEADER`] for a message. `timestamp` is in seconds since 1970.
    pub fn sign(&self, id: &str, timestamp: i64, body: &[u8]) -> String {
        let signature = self.mac(id, &timestamp.to_string(), body).map(|mac| mac.finalize().into_bytes());
        format!("v1,{}", STANDARD.encode(signature.unwrap_or_default()))
    }

    /// Checks the headers of a message. `now` is in seconds since 1970.
    ///
    /// A message may be `max_age` old, and `max_skew` in the future. Remember the ids of accepted messages for `max_age` and
    /// `max_skew` together, and refuse a repeated one. The comparison takes the same time for each wrong signature.
    ///
    /// # Errors
    /// No signature in the header matches, or the time is out of bounds.
    pub fn verify(
        &self,
        message: &SignedMessage<'_>,
        now: i64,
        max_age: Duration,
        max_skew: Duration,
    ) -> Result<(), SignatureError> {
        let SignedMessage { id, timestamp, signatures, body } = *message;
        signing_time(timestamp)?;
        let is_signed = signatures
            .split_ascii_whitespace()
            .filter_map(|signature| STANDARD.decode(signature.strip_prefix("v1,")?).ok())
            .filter_map(|signature| Some(self.mac(id, timestamp, body)?.verify_slice(&signature).is_ok()))
            .fold(false, |found, matches| found | matches);
        if !is_signed {
            return Err(SignatureError::Mismatch);
        }
        check_time(timestamp, now, max_age, max_skew)
    }

    /// Returns the state after the signed content. The timestamp is taken as it was sent.
    fn mac(&self, id: &str, timestamp: &str, body: &[u8]) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).ok()?;
        for part in [id.as_bytes(), b".", timestamp.as_bytes(), b".", body] {
            mac.update(part);
        }
        Some(mac)
    }
}

/// Checks the time of a message, as [`WebhookSecret::verify`] does. A receiver can check it before it reads the body.
///
/// # Errors
/// The time is not a number, or out of bounds.
pub fn check_time(timestamp: &str, now: i64, max_age: Duration, max_skew: Duration) -> Result<(), SignatureError> {
    let signed_at = signing_time(timestamp)?;
    let (age, skew) = (now.saturating_sub(signed_at), signed_at.saturating_sub(now));
    if let Some(age) = beyond(age, max_age) {
        return Err(SignatureError::TooOld(age));
    }
    match beyond(skew, max_skew) {
        Some(skew) => Err(SignatureError::Future(skew)),
        None => Ok(()),
    }
}

fn signing_time(timestamp: &str) -> Result<i64, SignatureError> {
    let is_number = !timestamp.is_empty() && timestamp.bytes().all(|byte| byte.is_ascii_digit());
    timestamp.parse().ok().filter(|_| is_number).ok_or(SignatureError::Timestamp)
}

/// Returns a number of seconds if it is above a limit.
fn beyond(seconds: i64, limit: Duration) -> Option<u64> {
    u64::try_from(seconds).ok().filter(|seconds| *seconds > limit.as_secs())
}

/// A received message and its headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignedMessage<'a> {
    /// The header [`ID_HEADER`].
    pub id: &'a str,
    /// The header [`TIMESTAMP_HEADER`].
    pub timestamp: &'a str,
    /// The header [`SIGNATURE_HEADER`].
    pub signatures: &'a str,
    /// The body as it was received.
    pub body: &'a [u8],
}

/// Shows no secret.
impl fmt::Debug for WebhookSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("WebhookSecret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGE: Duration = Duration::from_mins(5);
    const SKEW: Duration = Duration::from_secs(30);
    const BODY: &[u8] = br#"{"test": 2432232314}"#;
    const SIGNED_AT: i64 = 1_614_265_330;

    fn secret() -> WebhookSecret {
        WebhookSecret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap()
    }

    fn message<'a>(signatures: &'a str, timestamp: &'a str) -> SignedMessage<'a> {
        SignedMessage { id: "msg_p5jXN8AQM9LWM0D4loKWxJek", timestamp, signatures, body: BODY }
    }

    fn check(message: &SignedMessage<'_>, now: i64) -> Result<(), SignatureError> {
        secret().verify(message, now, AGE, SKEW)
    }

    #[test]
    fn the_signature_is_that_of_the_standards_example() {
        let signature = secret().sign("msg_p5jXN8AQM9LWM0D4loKWxJek", SIGNED_AT, BODY);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn a_signed_message_is_accepted_within_its_time_only() {
        let signature = secret().sign("msg_p5jXN8AQM9LWM0D4loKWxJek", SIGNED_AT, BODY);
        let timestamp = SIGNED_AT.to_string();
        let message = message(&signature, &timestamp);
        for now in [SIGNED_AT, SIGNED_AT + 300, SIGNED_AT - 30] {
            assert_eq!(check(&message, now), Ok(()), "{now}");
        }
        assert_eq!(check(&message, SIGNED_AT + 301), Err(SignatureError::TooOld(301)));
        assert_eq!(check(&message, SIGNED_AT - 31), Err(SignatureError::Future(31)));
    }

    #[test]
    fn each_changed_part_of_a_message_is_refused() {
        let signature = secret().sign("msg_p5jXN8AQM9LWM0D4loKWxJek", SIGNED_AT, BODY);
        let timestamp = SIGNED_AT.to_string();
        let good = message(&signature, &timestamp);
        let later = (SIGNED_AT + 1).to_string();
        let changed = [
            SignedMessage { id: "msg_2", ..good },
            SignedMessage { timestamp: &later, ..good },
            SignedMessage { body: b"{}", ..good },
            SignedMessage { signatures: "", ..good },
            SignedMessage { signatures: "v1,AAAA v2,g0hM", ..good },
        ];
        for message in changed {
            assert_eq!(check(&message, SIGNED_AT), Err(SignatureError::Mismatch), "{message:?}");
        }
        for timestamp in ["", "now", "-5", "+5", "1614265330.5"] {
            let message = SignedMessage { timestamp, ..good };
            assert_eq!(check(&message, SIGNED_AT), Err(SignatureError::Timestamp), "{timestamp}");
        }
    }

    #[test]
    fn one_of_several_signatures_is_enough() {
        let signature = format!("v1,AAAA {}", secret().sign("msg_p5jXN8AQM9LWM0D4loKWxJek", SIGNED_AT, BODY));
        assert_eq!(check(&message(&signature, &SIGNED_AT.to_string()), SIGNED_AT), Ok(()));
    }

    #[test]
    fn a_short_or_broken_secret_is_refused_and_none_is_shown() {
        assert_eq!(WebhookSecret::parse("whsec_AAAA"), Err(SecretError::TooShort(3)));
        assert_eq!(WebhookSecret::parse("hunter2"), Err(SecretError::TooShort(7)));
        assert_eq!(WebhookSecret::parse("whsec_%%%"), Err(SecretError::Base64));
        let secret = WebhookSecret::parse("a long enough secret").unwrap();
        assert_eq!(format!("{secret:?}"), "WebhookSecret");
    }
}
