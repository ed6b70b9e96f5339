//! The checks of a request, in their order: [`front`], [`authenticated`], [`bounds`].

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::{ConnectInfo, MatchedPath, Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;
use futures::StreamExt as _;
use futures::stream::unfold;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::state::Shared;
use super::{body, responses};
use crate::access::{ClientAddress, Denial, Identity, LimitKey, Method, Scope};

/// Whether the request has an `Origin`, which is this gateway.
#[derive(Clone, Copy)]
struct HasOrigin(bool);

/// The key to which the limits of a request apply.
#[derive(Clone, Copy)]
struct CountsFor(LimitKey);

/// The content types that a form of another site can send.
const FORMS: [&str; 3] = ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"];

/// The interval of checks whether the caller of a stream is still admitted.
const ADMISSION_CHECK: Duration = Duration::from_mins(1);

/// The last frame of a stream whose caller is no longer admitted.
const NOT_ADMITTED: &[u8] = b"event: stream_end\ndata: {\"type\":\"stream_end\",\"code\":\"UNAUTHORIZED\",\
    \"reason\":\"the token was revoked, or the session has ended\"}\n\n";

/// The path that a caller without `read` may use with `GET`: each caller may read its own identity.
const SESSION: &str = "/v1/session";

/// Checks what does not depend on the caller: its rate, `Host` and `Origin`. Sets the headers that all responses have.
pub(super) async fn front(State(shared): State<Arc<Shared>>, mut request: Request, next: Next) -> Response {
    let behind_proxy = shared.gateway.config().behind_proxy;
    let address = ClientAddress::find(request.extensions(), request.headers(), behind_proxy);
    let key = LimitKey::Address(address.limited());
    let response = match shared.rate.check(&key) {
        Err(wait) => responses::too_many("too many requests from this address", wait),
        Ok(()) => match shared.hosts.check(request.uri(), request.headers()) {
            Err(reason) => responses::wrong_origin(reason),
            Ok(has_origin) => {
                let port = request.extensions().get::<ConnectInfo<SocketAddr>>().map_or(0, |peer| peer.0.port());
                let extensions = request.extensions_mut();
                // Handlers and logs see the client, also behind a proxy.
                extensions.insert(ConnectInfo(SocketAddr::new(address.0, port)));
                extensions.insert(address);
                extensions.insert(CountsFor(key));
                extensions.insert(HasOrigin(has_origin));
                next.run(request).await
            }
        },
    };
    with_headers(response)
}

/// Admits callers with a token or a session only.
pub(super) async fn authenticated(State(shared): State<Arc<Shared>>, mut request: Request, next: Next) -> Response {
    let address = request.extensions().get::<ClientAddress>().copied();
    let Some(address) = address else { return responses::forbidden("the address of the client is unknown") };
    let route = route(&request);
    // A revocation from here on ends a stream that this request opens.
    let revocations = shared.gateway.revocations();
    let caller = match shared.authentication.authenticate(request.headers(), address.limited()).await {
        Ok(caller) => caller,
        Err(denial) => {
            let action = "authentication.denied";
            shared.denials.record("unknown", action, denial.name(), &route, address.0).await;
            return responses::denied(&denial);
        }
    };
    let identity = caller.identity.clone();
    let is_change = !request.method().is_safe();
    if matches!(caller.method, Method::Session { .. }) && is_forgeable(&request, is_change) {
        shared.denials.record(&identity.actor(), "authentication.denied", "csrf", &route, address.0).await;
        return responses::forged();
    }
    if let Some(detail) = missing_scope(&identity, is_change, &route) {
        shared.denials.record(&identity.actor(), "authorization.denied", "scope", &route, address.0).await;
        return responses::forbidden(detail);
    }
    let key = identity.limit_key();
    if let Err(wait) = shared.rate.check(&key) {
        return responses::too_many("too many requests with this token", wait);
    }
    if is_change && !request.body().is_end_stream() && is_form(request.headers()) {
        return responses::wrong_media_type();
    }
    let extensions = request.extensions_mut();
    extensions.insert(CountsFor(key));
    extensions.insert(identity);
    extensions.insert(caller);
    let credentials = credentials(request.headers());
    let response = next.run(request).await;
    if response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream")) {
        let admission = Admission { shared, credentials, address, revocations };
        return response.map(|stream| while_admitted(admission, stream));
    }
    response
}

/// The caller of a stream.
struct Admission {
    shared: Arc<Shared>,
    credentials: HeaderMap,
    address: ClientAddress,
    revocations: watch::Receiver<()>,
}

impl Admission {
    /// Waits until the caller is no longer admitted: its token was revoked, or its session has ended.
    async fn ended(mut self) {
        loop {
            // Another process may revoke the token in the store, and a session expires.
            if let Ok(Err(_)) = timeout(ADMISSION_CHECK, self.revocations.changed()).await {
                sleep(ADMISSION_CHECK).await;
            }
            let admitted = self.shared.authentication.authenticate(&self.credentials, self.address.limited()).await;
            if matches!(admitted, Err(Denial::Revoked | Denial::Expired | Denial::Unknown)) {
                return;
            }
        }
    }
}

/// Ends a stream when its caller is no longer admitted.
fn while_admitted(admission: Admission, stream: Body) -> Body {
    let state = Some((stream.into_data_stream(), Box::pin(admission.ended())));
    Body::from_stream(unfold(state, async |state| {
        let (mut stream, mut ended) = state?;
        tokio::select! {
            biased;
            () = &mut ended => Some((Ok(Bytes::from_static(NOT_ADMITTED)), None)),
            chunk = stream.next() => chunk.map(|chunk| (chunk, Some((stream, ended)))),
        }
    }))
}

/// Returns the headers that prove the identity of a caller.
fn credentials(headers: &HeaderMap) -> HeaderMap {
    let names = [header::AUTHORIZATION, header::COOKIE];
    let all = names.iter().flat_map(|name| headers.get_all(name).iter().map(|value| (name.clone(), value.clone())));
    let mut found = HeaderMap::new();
    for (name, value) in all {
        found.append(name, value);
    }
    found
}

/// Limits concurrent requests, and the size of bodies and the time in which they arrive.
///
/// The permit of a request is released when its response starts, so an event stream does not hold one.
pub(super) async fn bounds(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let limits = &shared.gateway.config().limits;
    // The routes have limits of their own, which are not higher.
    let largest = limits.body_bytes.max(limits.attachment_bytes);
    if let Some(length) = request.headers().get(CONTENT_LENGTH) {
        match length.to_str().ok().and_then(|length| length.parse::<u64>().ok()) {
            Some(length) if usize::try_from(length).is_ok_and(|length| length <= largest) => {}
            // A length that is not a number is refused when the request is read, so this number has too many digits.
            Some(_) | None => return responses::too_large(largest),
        }
    }
    let key = request.extensions().get::<CountsFor>().map_or(LimitKey::Fixed, |key| key.0);
    let Some(_permit) = shared.concurrency.enter(key).await else {
        return responses::too_many("too many requests at the same time", Duration::from_secs(1));
    };
    next.run(request.map(body::in_time)).await
}

/// Returns whether another site may have caused a request that carries the cookie.
fn is_forgeable(request: &Request, is_change: bool) -> bool {
    let site = request.headers().get("sec-fetch-site").map(HeaderValue::as_bytes);
    if site.is_some_and(|site| site != b"same-origin" && site != b"none") {
        return true;
    }
    let has_origin = request.extensions().get::<HasOrigin>().is_some_and(|origin| origin.0);
    is_change && !(has_origin && request.headers().contains_key(responses::CSRF_HEADER))
}

/// Returns the reason why the caller may make no call with this method. Handlers check the scope of their call as well.
fn missing_scope(identity: &Identity, is_change: bool, route: &str) -> Option<String> {
    if route == SESSION {
        return None;
    }
    let may_change = [Scope::Send, Scope::Approve].into_iter().any(|scope| identity.has(scope));
    match is_change {
        true if may_change => None,
        true => Some("the token may only read: it has neither the scope send nor approve".to_owned()),
        false => identity.require(Scope::Read).err().map(|error| error.to_string()),
    }
}

/// Returns the template of the path.
fn route(request: &Request) -> String {
    let matched = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    matched.unwrap_or("unknown path").to_owned()
}

/// Returns whether a form of another site can send this content type. It returns true for a missing one.
fn is_form(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(CONTENT_TYPE).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return true };
    let essence = value.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim();
    essence.is_empty() || FORMS.iter().any(|form| essence.eq_ignore_ascii_case(form))
}

fn with_headers(mut response: Response) -> Response {
    const DEFAULTS: [(HeaderName, &str); 4] = [
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (CACHE_CONTROL, "no-store"),
    ];
    for (name, value) in DEFAULTS {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}
