//! The tokens of buttons.
//!
//! A token is the id of its request and 128 random bits, in 43 characters. The id finds the request; the random bits prove that
//! the sender has seen the prompt. The token permits nothing by itself: the inbox checks who presses the button.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use teamster_store::PermissionId;
use uuid::Uuid;

use crate::error::GatewayError;

const ID: usize = 16;
const RANDOM: usize = 16;

/// Creates a token for a button of a request.
pub(super) fn new_token(request: PermissionId) -> Result<String, GatewayError> {
    let mut random = [0; RANDOM];
    getrandom::fill(&mut random).map_err(|error| GatewayError::Random(error.to_string()))?;
    Ok(URL_SAFE_NO_PAD.encode([*request.uuid().as_bytes(), random].concat()))
}

/// Returns the request of a token. `None`: the text is not a token.
pub(super) fn request_of(token: &str) -> Option<PermissionId> {
    let bytes = URL_SAFE_NO_PAD.decode(token).ok().filter(|bytes| bytes.len() == ID + RANDOM)?;
    let id = Uuid::from_slice(bytes.get(..ID)?).ok()?;
    Some(PermissionId::new(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_names_its_request_fits_into_64_bytes_and_is_never_the_same() {
        let id = PermissionId::new(Uuid::now_v7());
        let (first, second) = (new_token(id).unwrap(), new_token(id).unwrap());
        assert_ne!(first, second);
        assert!(first.len() <= 64, "{}", first.len());
        assert_eq!(request_of(&first), Some(id));
    }

    #[test]
    fn a_text_that_is_no_token_names_no_request() {
        for text in ["", "approve", "allow", &"A".repeat(42), &"A".repeat(44), "!!!", &"=".repeat(43)] {
            assert_eq!(request_of(text), None, "{text}");
        }
    }
}
