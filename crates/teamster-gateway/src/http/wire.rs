//! What several calls share: lists, times and stored documents.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Number;
use serde_json::value::RawValue;
use teamster_store::{Cursor, Json, Page, PageRequest, Timestamp};
use utoipa::ToSchema;

use super::problem::{Problem, Result};
use crate::event::rfc3339;

/// The number of items of a page, if the caller does not select one.
const DEFAULT_LIMIT: u32 = 50;

/// The largest number of items of a page.
const MAX_LIMIT: u32 = 500;

/// A page of a list.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct List<T> {
    /// The items.
    pub(super) items: Vec<T>,
    /// The value of `cursor` for the next page. It is absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next_cursor: Option<String>,
}

impl<T> List<T> {
    /// Returns a list with one page.
    pub(super) const fn whole(items: Vec<T>) -> Self {
        Self { items, next_cursor: None }
    }
}

/// Returns a page of the store as it is sent.
pub(super) fn list<R, T>(page: Page<R>, view: impl FnMut(R) -> Result<T>) -> Result<List<T>> {
    let next_cursor = page.next.map(|cursor| cursor.as_str().to_owned());
    Ok(List { items: page.items.into_iter().map(view).collect::<Result<_>>()?, next_cursor })
}

/// Checks the parameters of a list.
pub(super) fn page(limit: Option<u32>, cursor: Option<String>) -> Result<PageRequest> {
    let limit = limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(Problem::invalid("limit", format_args!("must be a number from 1 to {MAX_LIMIT}")));
    }
    Ok(PageRequest { limit, cursor: cursor.map(Cursor::new) })
}

/// A time in RFC 3339, in UTC.
#[derive(Clone, Copy, Debug, ToSchema)]
#[schema(value_type = String, format = DateTime)]
pub(super) struct Time(pub(super) Timestamp);

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(&rfc3339(self.0))
    }
}

/// Returns a document of the store as a part of a response.
pub(super) fn document(json: &Json) -> Result<Box<RawValue>> {
    json.to().map_err(|error| Problem::internal(&error))
}

/// Reads a document of the store.
pub(super) fn read<'a, T: serde::Deserialize<'a>>(json: &'a Json) -> Result<T> {
    json.to().map_err(|error| Problem::internal(&error))
}

/// Reads a number. JSON does not distinguish 3 and 3.0.
pub(super) fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Option<u64>, D::Error> {
    let Some(number) = Option::<Number>::deserialize(deserializer)? else { return Ok(None) };
    // A larger number has no exact value as a float.
    let is_whole = |number: f64| number.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&number);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is whole, and its range is checked"
    )]
    let whole =
        number.as_u64().or_else(|| number.as_f64().filter(|number| is_whole(*number)).map(|number| number as u64));
    whole.map(Some).ok_or_else(|| serde::de::Error::custom("the number must be an integer from 0"))
}

/// Checks the length of a text in characters.
pub(super) fn check_length(field: &str, text: &str, max: usize) -> Result<()> {
    if text.chars().nth(max).is_some() {
        return Err(Problem::invalid(field, format_args!("must have at most {max} characters")));
    }
    if text.contains('\0') {
        return Err(Problem::invalid(field, "must not contain the character NUL"));
    }
    Ok(())
}
