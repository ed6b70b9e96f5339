//! The description of the API in OpenAPI 3.1, made from the code.

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse as _;
use axum::routing::get;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{ContentBuilder, InfoBuilder, OpenApi, Ref, ResponseBuilder};
use utoipa::{PartialSchema as _, ToSchema as _};

use super::problem::{Problem, ProblemCode};

const DESCRIPTION: &str = "Durable conversations with agents. Errors are problems (RFC 9457) with a stable `code`. Lists \
    take `limit` and `cursor`, and return `items` and, unless the page is the last one, `nextCursor`. Absent fields are \
    omitted. Times are in RFC 3339, in UTC.";

/// The name of the security scheme.
const SCHEME: &str = "token";

/// Completes the description: its title, the token of the protected calls, and the problems of all calls.
pub(super) fn describe(mut protected: OpenApi, mut open: OpenApi) -> OpenApi {
    for operation in protected.paths.paths.values_mut().flat_map(operations) {
        operation.security = Some(vec![SecurityRequirement::new(SCHEME, Vec::<String>::new())]);
        add_problem(operation);
    }
    open.paths.paths.values_mut().flat_map(operations).for_each(add_problem);
    protected.merge(open);
    protected.info = InfoBuilder::new()
        .title("Teamster gateway")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(DESCRIPTION))
        .build();
    let components = protected.components.get_or_insert_default();
    let token = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
    components.add_security_scheme(SCHEME, SecurityScheme::Http(token));
    components.schemas.insert(Problem::name().into_owned(), Problem::schema());
    components.schemas.insert(ProblemCode::name().into_owned(), ProblemCode::schema());
    protected
}

/// Returns the route of the description.
pub(super) fn route(openapi: &OpenApi) -> Router {
    let text = openapi.to_json().unwrap_or_default();
    let handler = move || std::future::ready(([(CONTENT_TYPE, "application/json")], text.clone()).into_response());
    Router::new().route("/v1/openapi.json", get(handler))
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let PathItem { get, put, post, delete, patch, .. } = item;
    [get, put, post, delete, patch].into_iter().flatten()
}

fn add_problem(operation: &mut Operation) {
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name(Problem::name()))).build();
    let response = ResponseBuilder::new()
        .description("What is wrong, and how to correct it.")
        .content("application/problem+json", content)
        .build();
    operation.responses.responses.insert("default".to_owned(), response.into());
}
