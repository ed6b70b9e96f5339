//! Short forms of the calls that every operation makes. Statements are cached by their text.

use rusqlite::{Connection, OptionalExtension, Params, Row};

use super::failure::Outcome;
use crate::error::{Result, StoreError};
use crate::ids::Cursor;
use crate::records::{Page, PageRequest};

/// Returns the first row, if there is one.
pub(super) fn first<T>(
    db: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
) -> Outcome<Option<T>> {
    Ok(db.prepare_cached(sql)?.query_row(params, read).optional()?)
}

/// Returns the value of a query that always has one row.
pub(super) fn value<T: rusqlite::types::FromSql>(db: &Connection, sql: &str, params: impl Params) -> Outcome<T> {
    Ok(db.prepare_cached(sql)?.query_row(params, |row| row.get(0))?)
}

/// Returns all rows.
pub(super) fn all<T>(
    db: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> Outcome<Vec<T>> {
    let mut statement = db.prepare_cached(sql)?;
    let rows = statement.query_map(params, read)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Runs a statement, and returns the number of changed rows.
pub(super) fn run(db: &Connection, sql: &str, params: impl Params) -> Outcome<usize> {
    Ok(db.prepare_cached(sql)?.execute(params)?)
}

/// Returns a limit as `SQLite` takes it.
pub(super) fn check_limit(limit: u32) -> Result<i64> {
    match limit {
        0 => Err(StoreError::Invalid { reason: "the limit of a list must be at least 1" }),
        _ => Ok(i64::from(limit)),
    }
}

/// Returns the key in a cursor.
pub(super) fn key_of(cursor: Option<&Cursor>) -> Result<Option<i64>> {
    let parsed = cursor.map(|cursor| cursor.as_str().parse()).transpose();
    parsed.map_err(|_| StoreError::Invalid { reason: "the cursor is not one of this list" })
}

/// Makes a page of rows with their keys. The query has read one row more than the page has.
pub(super) fn page<T>(mut rows: Vec<(i64, T)>, request: &PageRequest) -> Page<T> {
    let limit = usize::try_from(request.limit).unwrap_or(usize::MAX);
    let is_last = rows.len() <= limit;
    rows.truncate(limit);
    let next = rows.last().filter(|_| !is_last).map(|(key, _)| Cursor::new(key.to_string()));
    Page { items: rows.into_iter().map(|(_, item)| item).collect(), next }
}

/// Returns a page that was cut before its limit. Another one follows.
pub(super) fn cut_page<T>(rows: Vec<(i64, T)>) -> Page<T> {
    let next = rows.last().map(|(key, _)| Cursor::new(key.to_string()));
    Page { items: rows.into_iter().map(|(_, item)| item).collect(), next }
}
