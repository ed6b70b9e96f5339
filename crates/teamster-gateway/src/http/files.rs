//! Uploads and downloads of attachments. A file is named by the hash of its content.

use axum::extract::State as Extract;
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::extract::{Authenticated, Id, Upload, complete};
use super::problem::{Problem, ProblemCode, Result};
use super::state::State;
use crate::access::Scope;

/// An uploaded file.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct UploadedFile {
    /// The hash of its content: SHA-256 in hexadecimal digits. A message names the file by it.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    hash: String,
    /// The size in bytes.
    size: u64,
}

/// The hash in a path.
pub(super) struct Hash(String);

impl std::str::FromStr for Hash {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> std::result::Result<Self, Self::Err> {
        Ok(Self(text.to_owned()))
    }
}

/// Uploads a file for later messages.
#[utoipa::path(post, path = "/v1/files", tag = "files", operation_id = "uploadFile",
    request_body(content = Vec<u8>, content_type = "application/octet-stream", description = "The content of the file."),
    responses((status = 201, body = UploadedFile)))]
pub(super) async fn upload(
    Extract(api): State,
    caller: Authenticated,
    Upload(content): Upload,
) -> Result<(StatusCode, axum::Json<UploadedFile>)> {
    caller.require(Scope::Send)?;
    if content.is_empty() {
        return Err(Problem::new(ProblemCode::InvalidRequest, "the file is empty: send its content as the body"));
    }
    let size = u64::try_from(content.len()).unwrap_or(u64::MAX);
    let gateway = api.gateway.clone();
    let hash = complete(async move {
        let stored = gateway.attachments().put(content.into()).await;
        stored.map_err(|error| match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                Problem::new(ProblemCode::DiskFull, "the gateway has no free space; the operator must free space")
            }
            _ => Problem::internal(&error),
        })
    });
    Ok((StatusCode::CREATED, axum::Json(UploadedFile { hash: hash.await?, size })))
}

/// Downloads a file. A browser never shows it, because its content is that of a sender.
#[utoipa::path(get, path = "/v1/files/{hash}", tag = "files", operation_id = "downloadFile",
    params(("hash" = String, Path, pattern = "^[0-9a-f]{64}$", description = "The hash of the content.")),
    responses((status = 200, body = Vec<u8>, content_type = "application/octet-stream")))]
pub(super) async fn download(Extract(api): State, caller: Authenticated, Id(Hash(hash)): Id<Hash>) -> Result<Response> {
    caller.require(Scope::Read)?;
    let content = api.gateway.attachments().get(&hash).await.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Problem::new(ProblemCode::NotFound, "there is no file with this hash"),
        _ => Problem::internal(&error),
    })?;
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream"),
        (header::CONTENT_DISPOSITION, "attachment"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (header::CACHE_CONTROL, "private, max-age=31536000, immutable"),
    ];
    Ok((headers, content).into_response())
}
