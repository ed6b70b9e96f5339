//! The calls for tokens, sessions of the page, and the audit log.

use axum::extract::{FromRequestParts, Json, State};
use axum::http::header::SET_COOKIE;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::IntoResponse;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use teamster_store::{AuditEntry, TokenId};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Protection;
use super::audit::audit_from;
use super::extract::{Authenticated, Body, Id, Params, complete};
use super::problem::{Problem, ProblemCode, Result};
use super::wire::{List, Time, document, list, page};
use crate::access::{
    AccessError, Authenticated as Caller, Method, NewToken, Scope, TokenView, Tokens, create_session, no_cookie,
};

/// Returns the calls for tokens, sessions and the audit log.
pub(super) fn router(protection: Protection) -> OpenApiRouter {
    OpenApiRouter::default()
        .routes(routes!(create, tokens))
        .routes(routes!(revoke))
        .routes(routes!(log_in, session, log_out))
        .routes(routes!(audit_log))
        .with_state(protection)
}

/// A new token, with its secret.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CreatedToken {
    #[serde(flatten)]
    token: TokenView,
    /// The secret. It is not shown again.
    secret: String,
}

/// Who the caller is.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SessionView {
    /// The owner of its token.
    owner: String,
    /// What it may do.
    scopes: Vec<Scope>,
    /// The token. It is absent for the operator's fixed token.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<uuid::Uuid>)]
    token_id: Option<TokenId>,
    /// When a new session ends, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
}

/// An entry of the audit log.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AuditView {
    /// Its number. Later entries have larger numbers.
    number: u64,
    /// When it happened.
    at: Time,
    /// Who did it: `token:ID`, `owner:NAME` or `unknown`.
    actor: String,
    /// What was done.
    action: String,
    /// On what: an id, or the path of a denied request.
    subject: String,
    /// The address of the client.
    origin: String,
    /// Other values.
    #[schema(value_type = Object)]
    details: Box<RawValue>,
}

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct PageParams {
    /// The number of items.
    #[param(minimum = 1, maximum = 500, default = 50)]
    limit: Option<u32>,
    /// The position of the page: `nextCursor` of the page before.
    #[param(pattern = "^[0-9]{1,18}$")]
    cursor: Option<String>,
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        let caller = parts.extensions.get::<Self>().cloned();
        caller.ok_or_else(|| Problem::new(ProblemCode::Unauthorized, "send the header `Authorization: Bearer TOKEN`"))
    }
}

impl From<AccessError> for Problem {
    fn from(error: AccessError) -> Self {
        match error {
            AccessError::Store(error) => error.into(),
            AccessError::Invalid { field, problem } => Self::invalid(field, problem),
            other => Self::internal(&other),
        }
    }
}

/// Creates a token. The response has its secret, which is not shown again. Needs the scope `admin`.
#[utoipa::path(post, path = "/v1/tokens", tag = "access", operation_id = "createToken", request_body = NewToken,
    responses((status = 201, description = "The token with its secret.", body = CreatedToken)))]
async fn create(
    State(protection): State<Protection>,
    caller: Authenticated,
    Body(new): Body<NewToken>,
) -> Result<impl IntoResponse> {
    caller.require(Scope::Admin)?;
    let created = complete(async move {
        let gateway = protection.gateway();
        let (token, secret) = Tokens::new(gateway.clone()).create(new).await?;
        audit_from(gateway, &caller, "token.create", &token.id.to_string()).await;
        Ok(CreatedToken { token, secret: secret.expose().to_owned() })
    });
    Ok((StatusCode::CREATED, Json(created.await?)))
}

/// Lists tokens and sessions in the order of their creation, without secrets. Needs the scope `admin`.
#[utoipa::path(get, path = "/v1/tokens", tag = "access", operation_id = "listTokens", params(PageParams),
    responses((status = 200, description = "A page of tokens.", body = List<TokenView>)))]
async fn tokens(
    State(protection): State<Protection>,
    caller: Authenticated,
    Params(PageParams { limit, cursor }): Params<PageParams>,
) -> Result<Json<List<TokenView>>> {
    caller.require(Scope::Admin)?;
    let (items, next_cursor) = Tokens::new(protection.gateway().clone()).list(page(limit, cursor)?).await?;
    Ok(Json(List { items, next_cursor }))
}

/// Revokes a token and its sessions, at once. Needs the scope `admin`.
#[utoipa::path(delete, path = "/v1/tokens/{id}", tag = "access", operation_id = "revokeToken", params(("id" = uuid::Uuid, Path, description = "The token.")),
    responses((status = 200, description = "The revoked token.", body = TokenView)))]
async fn revoke(
    State(protection): State<Protection>,
    caller: Authenticated,
    Id(id): Id<TokenId>,
) -> Result<Json<TokenView>> {
    caller.require(Scope::Admin)?;
    let revoked = complete(async move {
        let gateway = protection.gateway();
        let token = Tokens::new(gateway.clone()).revoke(id).await?;
        audit_from(gateway, &caller, "token.revoke", &id.to_string()).await;
        Ok(token)
    });
    Ok(Json(revoked.await?))
}

/// Starts a session of the page: sets a cookie with the rights of the token in `Authorization`.
#[utoipa::path(post, path = "/v1/session", tag = "access", operation_id = "logIn",
    responses((status = 201, description = "The session. The header `Set-Cookie` has its secret.", body = SessionView)))]
async fn log_in(
    State(protection): State<Protection>,
    caller: Caller,
    from: Authenticated,
) -> Result<impl IntoResponse> {
    if let Err(wait) = protection.check_new_session(caller.identity.limit_key()) {
        let problem = Problem::new(ProblemCode::RateLimited, "too many sessions were started with this token");
        return Err(problem.retry_after(wait.as_secs().saturating_add(1)));
    }
    let started = complete(async move {
        let gateway = protection.gateway();
        let tokens = Tokens::new(gateway.clone());
        let created = create_session(&tokens, &caller, gateway.now(), protection.is_https()).await?;
        let needs_token =
            || Problem::new(ProblemCode::Forbidden, "a session starts with a token, not with another session");
        let session = created.ok_or_else(needs_token)?;
        audit_from(gateway, &from, "session.start", &session.view.id.to_string()).await;
        Ok((view(&caller, session.view.expires_at), session.cookie))
    });
    let (view, cookie) = started.await?;
    Ok((StatusCode::CREATED, [(SET_COOKIE, cookie)], Json(view)))
}

/// Returns who the caller is.
#[utoipa::path(get, path = "/v1/session", tag = "access", operation_id = "getSession",
    responses((status = 200, description = "The caller.", body = SessionView)))]
async fn session(caller: Caller) -> Json<SessionView> {
    Json(view(&caller, None))
}

/// Ends the session of the page, and deletes its cookie.
#[utoipa::path(delete, path = "/v1/session", tag = "access", operation_id = "logOut",
    responses((status = 204, description = "The session has ended.")))]
async fn log_out(State(protection): State<Protection>, caller: Caller, from: Authenticated) -> Result<Response> {
    let Method::Session { id } = caller.method else {
        let detail = "only the session of the page can be ended; a token is revoked with DELETE /v1/tokens/ID";
        return Err(Problem::new(ProblemCode::Forbidden, detail));
    };
    let is_https = protection.is_https();
    let ended = complete(async move {
        Tokens::new(protection.gateway().clone()).revoke(id).await?;
        audit_from(protection.gateway(), &from, "session.end", &id.to_string()).await;
        Ok(())
    });
    ended.await?;
    let cookie: HeaderValue = no_cookie(is_https);
    Ok((StatusCode::NO_CONTENT, [(SET_COOKIE, cookie)]).into_response())
}

/// Lists the audit log, the oldest entry first. Needs the scope `admin`.
#[utoipa::path(get, path = "/v1/audit", tag = "access", operation_id = "listAudit", params(PageParams),
    responses((status = 200, description = "A page of the audit log.", body = List<AuditView>)))]
async fn audit_log(
    State(protection): State<Protection>,
    caller: Authenticated,
    Params(PageParams { limit, cursor }): Params<PageParams>,
) -> Result<Json<List<AuditView>>> {
    caller.require(Scope::Admin)?;
    let found = protection.gateway().store().audit_log(page(limit, cursor)?).await?;
    Ok(Json(list(found, audit_view)?))
}

fn audit_view(entry: AuditEntry) -> Result<AuditView> {
    let AuditEntry { number, at, entry } = entry;
    let details = document(&entry.details)?;
    let (actor, action, subject, origin) = (entry.actor, entry.action, entry.subject, entry.origin);
    Ok(AuditView { number, at: Time(at), actor, action, subject, origin, details })
}

fn view(caller: &Caller, expires_at: Option<String>) -> SessionView {
    let identity = &caller.identity;
    SessionView { owner: identity.owner.clone(), scopes: identity.scopes.clone(), token_id: identity.token, expires_at }
}
