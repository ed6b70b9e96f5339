//! Tokens and the audit log.

use async_trait::async_trait;
use rusqlite::params;

use super::SqliteStore;
use super::query::{all, check_limit, first, key_of, page, run};
use super::rows::{TOKENS, token};
use super::values::unsigned;
use crate::error::{Entity, Result, StoreError};
use crate::ids::{Timestamp, TokenId};
use crate::records::{AuditEntry, NewAuditEntry, Page, PageRequest, Token};
use crate::store::AccessStore;

#[async_trait]
impl AccessStore for SqliteStore {
    async fn add_token(&self, token: Token) -> Result<()> {
        self.write(move |db| {
            let Token { id, hash, owner, scopes, created_at, revoked_at } = token;
            let sql = "INSERT INTO token (id, hash, owner, scopes, created_at, revoked_at)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING";
            match run(db, sql, params![id, hash, owner, scopes, created_at, revoked_at])? {
                0 => Err(StoreError::exists(Entity::Token, id).into()),
                _ => Ok(()),
            }
        })
        .await
    }

    async fn token_by_hash(&self, hash: [u8; 32]) -> Result<Option<Token>> {
        self.read_token(move |db| first(db, &format!("{TOKENS} WHERE hash = ?1"), [hash], token)).await
    }

    async fn revoke_token(&self, id: TokenId, now: Timestamp) -> Result<Token> {
        self.write(move |db| {
            let sql = "UPDATE token SET revoked_at = coalesce(revoked_at, ?2) WHERE id = ?1";
            run(db, sql, params![id, now])?;
            let found = first(db, &format!("{TOKENS} WHERE id = ?1"), [id], token)?;
            Ok(found.ok_or_else(|| StoreError::not_found(Entity::Token, id))?)
        })
        .await
    }

    async fn remove_token(&self, id: TokenId) -> Result<bool> {
        self.write(move |db| Ok(run(db, "DELETE FROM token WHERE id = ?1", [id])? > 0)).await
    }

    async fn tokens(&self, request: PageRequest) -> Result<Page<Token>> {
        let limit = check_limit(request.limit)?;
        let after = key_of(request.cursor.as_ref())?.unwrap_or_default();
        self.read(move |db| {
            let sql = format!("{TOKENS} WHERE key > ?1 ORDER BY key LIMIT ?2");
            let params = params![after, limit.saturating_add(1)];
            Ok(page(all(db, &sql, params, |row| Ok((row.get("key")?, token(row)?)))?, &request))
        })
        .await
    }

    async fn record_audit(&self, entry: NewAuditEntry, now: Timestamp) -> Result<()> {
        self.write(move |db| {
            let NewAuditEntry { actor, action, subject, origin, details } = entry;
            let sql = "INSERT INTO audit (at, actor, action, subject, origin, details) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
            run(db, sql, params![now, actor, action, subject, origin, details])?;
            Ok(())
        })
        .await
    }

    async fn audit_log(&self, request: PageRequest) -> Result<Page<AuditEntry>> {
        let limit = check_limit(request.limit)?;
        let after = key_of(request.cursor.as_ref())?.unwrap_or_default();
        self.read(move |db| {
            let sql = "SELECT number, at, actor, action, subject, origin, details FROM audit
                WHERE number > ?1 ORDER BY number LIMIT ?2";
            let rows = all(db, sql, params![after, limit.saturating_add(1)], |row| {
                let number = row.get("number")?;
                let entry = NewAuditEntry {
                    actor: row.get("actor")?,
                    action: row.get("action")?,
                    subject: row.get("subject")?,
                    origin: row.get("origin")?,
                    details: row.get("details")?,
                };
                Ok((number, AuditEntry { number: unsigned(number), at: row.get("at")?, entry }))
            })?;
            Ok(page(rows, &request))
        })
        .await
    }
}
