//! Tokens in the store, and the first one.

#[cfg(unix)]
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use teamster_store::{Json, PageRequest, StoreError, Timestamp, Token, TokenId};
use utoipa::ToSchema;
use uuid::Uuid;

use super::identity::Scope;
use super::secret::Secret;
use crate::engine::Gateway;
use crate::event::rfc3339;

/// The file with the first token, in the data directory.
const FIRST_TOKEN_FILE: &str = "token";

/// The owner of the first token and of the fixed one.
pub(super) const OPERATOR: &str = "operator";

/// The largest number of characters of an owner's name.
const LONGEST_OWNER: usize = 200;

/// Why tokens cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AccessError {
    /// The store refuses the operation or cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A value of a new token is invalid.
    #[error("{field} {problem}")]
    Invalid {
        /// The field.
        field: &'static str,
        /// What is wrong, and how to correct it.
        problem: &'static str,
    },
    /// The operating system provides no random numbers.
    #[error("the operating system provides no random numbers: {0}")]
    Random(getrandom::Error),
    /// The document of a token cannot be read or written.
    #[error("the document of a token is invalid: {0}")]
    Document(#[from] serde_json::Error),
    /// The file of the first token cannot be used.
    #[error("cannot {action} {path:?}: {source}; this file stores the first token, and its directory must be writable")]
    File {
        /// What was being done.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The fixed token can be guessed, and others can reach the gateway.
    #[error(
        "the token of TEAMSTER_TOKEN is short and the gateway can be reached from other machines: \
             use at least 16 characters, for example the output of `openssl rand -hex 32`"
    )]
    ShortToken,
}

/// A token to create.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewToken {
    /// Who uses it. It is the author of the messages that are sent with it.
    #[schema(max_length = 200, pattern = r"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$")]
    pub owner: String,
    /// What it permits, at least one.
    #[schema(min_items = 1)]
    pub scopes: Vec<Scope>,
}

/// A token without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenView {
    /// Its id.
    #[schema(value_type = Uuid)]
    pub id: TokenId,
    /// Its owner.
    pub owner: String,
    /// What it permits.
    pub scopes: Vec<Scope>,
    /// When it was created, in RFC 3339.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// When it was revoked, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub revoked_at: Option<String>,
    /// When it expires, in RFC 3339. Only sessions of the page expire.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub expires_at: Option<String>,
}

/// What the store keeps as the scopes of a token.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TokenDocument {
    /// What it permits.
    pub(super) scopes: Vec<Scope>,
    /// The session of the page that it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) session: Option<SessionDocument>,
}

/// What makes a token of the store a session of the page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SessionDocument {
    /// The hash of the token from which it is derived: the session ends with that token.
    pub(super) parent: [u8; 32],
    /// The id of that token. `None` is the fixed token.
    pub(super) parent_id: Option<TokenId>,
    /// When it ends, in milliseconds since 1970.
    pub(super) expires_at: i64,
}

/// The tokens of a gateway's store.
#[derive(Clone, Debug)]
pub struct Tokens {
    gateway: Gateway,
}

/// The first token of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FirstToken {
    /// It was created now, and it is in this file.
    Created {
        /// The secret.
        secret: Secret,
        /// The file.
        file: PathBuf,
    },
    /// The store has tokens. This file has the first one, if it was not removed.
    Exists {
        /// The file.
        file: PathBuf,
    },
}

impl Tokens {
    /// Uses the tokens of a gateway.
    pub fn new(gateway: Gateway) -> Self {
        Self { gateway }
    }

    /// Creates a token. Its secret is returned once and is not stored.
    ///
    /// # Errors
    /// A value is invalid, or the store cannot be used.
    pub async fn create(&self, new: NewToken) -> Result<(TokenView, Secret), AccessError> {
        let secret = Secret::token().map_err(AccessError::Random)?;
        let view = self.add(new, &secret).await?;
        Ok((view, secret))
    }

    /// Adds a token with a secret that was made before.
    async fn add(&self, new: NewToken, secret: &Secret) -> Result<TokenView, AccessError> {
        let owner = new.owner.trim();
        let is_valid = !owner.is_empty() && new.owner.chars().nth(LONGEST_OWNER).is_none();
        if !is_valid || new.owner.chars().any(char::is_control) {
            let problem = "must have 1 to 200 characters, which are no control characters";
            return Err(AccessError::Invalid { field: "owner", problem });
        }
        if new.scopes.is_empty() {
            let problem = "must name at least one of read, send, approve and admin";
            return Err(AccessError::Invalid { field: "scopes", problem });
        }
        let mut scopes = new.scopes;
        scopes.sort_unstable();
        scopes.dedup();
        self.store(owner, TokenDocument { scopes, session: None }, secret).await
    }

    /// Stores a token.
    pub(super) async fn store(
        &self,
        owner: &str,
        document: TokenDocument,
        secret: &Secret,
    ) -> Result<TokenView, AccessError> {
        let token = Token {
            id: TokenId::new(Uuid::now_v7()),
            hash: secret.hash(),
            owner: owner.to_owned(),
            scopes: Json::of(&document)?,
            created_at: self.gateway.now(),
            revoked_at: None,
        };
        let view = view(&token)?;
        self.gateway.store().add_token(token).await?;
        Ok(view)
    }

    /// Returns a token by the hash of its secret, also a revoked one.
    pub(super) async fn by_hash(&self, hash: [u8; 32]) -> Result<Option<(Token, TokenDocument)>, AccessError> {
        let Some(token) = self.gateway.store().token_by_hash(hash).await? else {
            return Ok(None);
        };
        let document = token.scopes.to()?;
        Ok(Some((token, document)))
    }

    /// Lists tokens in the order of their creation.
    ///
    /// # Errors
    /// The store cannot be used, or the cursor is not one of this list.
    pub async fn list(&self, page: PageRequest) -> Result<(Vec<TokenView>, Option<String>), AccessError> {
        let page = self.gateway.store().tokens(page).await?;
        let views = page.items.iter().map(view).collect::<Result<_, _>>()?;
        Ok((views, page.next.map(|cursor| cursor.as_str().to_owned())))
    }

    /// Returns whether a token was ever created. Sessions of the page are ignored.
    async fn is_any(&self) -> Result<bool, AccessError> {
        let mut page = PageRequest::first(100);
        loop {
            let found = self.gateway.store().tokens(page).await?;
            for token in &found.items {
                if token.scopes.to::<TokenDocument>()?.session.is_none() {
                    return Ok(true);
                }
            }
            let Some(cursor) = found.next else { return Ok(false) };
            page = PageRequest { limit: 100, cursor: Some(cursor) };
        }
    }

    /// Revokes a token, and with it the sessions that were derived from it. A later call keeps the time of the first
    /// one.
    ///
    /// # Errors
    /// The token does not exist, or the store cannot be used.
    pub async fn revoke(&self, id: TokenId) -> Result<TokenView, AccessError> {
        let revoked = self.gateway.store().revoke_token(id, self.gateway.now()).await?;
        self.gateway.announce_revocation();
        view(&revoked)
    }
}

fn view(token: &Token) -> Result<TokenView, AccessError> {
    let document: TokenDocument = token.scopes.to()?;
    Ok(TokenView {
        id: token.id,
        owner: token.owner.clone(),
        scopes: document.scopes,
        created_at: rfc3339(token.created_at),
        revoked_at: token.revoked_at.map(rfc3339),
        expires_at: document.session.map(|session| rfc3339(Timestamp::from_millis(session.expires_at))),
    })
}

/// Creates the first token if the store has none or its file is missing: with all scopes, in a file of the data directory that
/// only this user can read. A backup of the store does not contain the file.
///
/// The token is stored before its file is written. After a crash in between, the next start creates another one.
///
/// # Errors
/// The file cannot be written, or the store cannot be used.
pub async fn first_token(gateway: &Gateway) -> Result<FirstToken, AccessError> {
    let file = gateway.config().data_dir.join(FIRST_TOKEN_FILE);
    let tokens = Tokens::new(gateway.clone());
    if tokens.is_any().await? && file.exists() {
        return Ok(FirstToken::Exists { file });
    }
    let secret = Secret::token().map_err(AccessError::Random)?;
    tokens.add(NewToken { owner: OPERATOR.to_owned(), scopes: vec![Scope::Admin] }, &secret).await?;
    let (path, text) = (file.clone(), format!("{}\n", secret.expose()));
    let written = tokio::task::spawn_blocking(move || write_private(&path, &text)).await;
    written.map_err(io::Error::other).and_then(|written| written).map_err(|source| AccessError::File {
        action: "write",
        path: file.clone(),
        source,
    })?;
    Ok(FirstToken::Created { secret, file })
}

/// Replaces a file by one that only this user can read. The text is never in a file with other permissions.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let directory = path.parent().ok_or_else(|| io::Error::other("the file has no directory"))?;
    std::fs::create_dir_all(directory)?;
    // A temporary file is created with mode 0600, under a name that cannot be guessed.
    let mut file = tempfile::Builder::new().prefix(".token-").tempfile_in(directory)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    sync_directory(directory)
}

#[cfg(unix)]
fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

#[cfg(not(unix))]
fn sync_directory(_directory: &Path) -> io::Result<()> {
    Ok(())
}
