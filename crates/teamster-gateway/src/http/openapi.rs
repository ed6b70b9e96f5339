//! The description of the API in `OpenAPI` 3.1, made from the code.

use std::collections::BTreeSet;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse as _;
use axum::routing::get;
use serde_json::{Value, json};
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{ContentBuilder, InfoBuilder, OpenApi, Ref, ResponseBuilder};
use utoipa::{PartialSchema as _, ToSchema as _};

use super::problem::{ProblemCode, ProblemFields};

const DESCRIPTION: &str = "Durable conversations with agents. Errors are problems (RFC 9457) with a stable `code`. Lists \
    take `limit` and `cursor`, and return `items` and, unless the page is the last one, `nextCursor`. Absent fields are \
    omitted. Times are in RFC 3339, in UTC. A token is not bound to the conversations of its owner: one with the scope read \
    reads all of them, and one with the scope send sends to, changes and deletes all of them.";

/// The name of the security scheme.
const SCHEME: &str = "token";

/// The place of the schemas in the description.
const SCHEMAS: &str = "/components/schemas";

/// Completes the description: its title, the token of the protected calls, the problems of all calls, and the agents.
pub(super) fn describe(mut protected: OpenApi, mut open: OpenApi, agents: &[&str]) -> Value {
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
    components.schemas.insert(ProblemFields::name().into_owned(), ProblemFields::schema());
    components.schemas.insert(ProblemCode::name().into_owned(), ProblemCode::schema());
    let mut description = serde_json::to_value(protected).unwrap_or_default();
    remove_nulls(&mut description);
    add_conditions(&mut description, agents);
    description
}

/// Returns the route of the description.
pub(super) fn route(description: &Value) -> Router {
    let text = description.to_string();
    let handler = move || std::future::ready(([(CONTENT_TYPE, "application/json")], text.clone()).into_response());
    Router::new().route("/v1/openapi.json", get(handler))
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let PathItem { get, put, post, delete, patch, .. } = item;
    [get, put, post, delete, patch].into_iter().flatten()
}

fn add_problem(operation: &mut Operation) {
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name(ProblemFields::name()))).build();
    let response = ResponseBuilder::new()
        .description("What is wrong, and how to correct it.")
        .content("application/problem+json", content)
        .build();
    operation.responses.responses.insert("default".to_owned(), response.into());
}

/// Removes `null` from parameters and responses: an absent value is omitted there. In a body, `null` means the same as absent.
/// Responses without a description get the usual one.
fn remove_nulls(description: &mut Value) {
    let mut bodies = BTreeSet::new();
    for operation in description["paths"].as_object().into_iter().flat_map(|paths| paths.values()) {
        for operation in operation.as_object().into_iter().flat_map(|operations| operations.values()) {
            collect_references(&operation["requestBody"], description, &mut bodies);
        }
    }
    let paths = description["paths"].as_object_mut().into_iter().flat_map(|paths| paths.values_mut());
    for operation in paths.filter_map(Value::as_object_mut).flat_map(|operations| operations.values_mut()) {
        if let Some(parameters) = operation.get_mut("parameters") {
            without_null(parameters);
        }
        let responses = operation.get_mut("responses").and_then(Value::as_object_mut);
        for response in
            responses.into_iter().flat_map(|responses| responses.values_mut()).filter_map(Value::as_object_mut)
        {
            response.entry("description").or_insert_with(|| json!("The result."));
        }
    }
    if let Some(schemas) = description.pointer_mut(SCHEMAS).and_then(Value::as_object_mut) {
        schemas.iter_mut().filter(|(name, _)| !bodies.contains(*name)).for_each(|(_, schema)| without_null(schema));
    }
}

/// Collects the names of the schemas that a value refers to.
fn collect_references(value: &Value, description: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect_references(item, description, names)),
        Value::Object(fields) => {
            let reference = fields.get("$ref").and_then(Value::as_str);
            if let Some(name) = reference.and_then(|name| name.strip_prefix("#/components/schemas/"))
                && names.insert(name.to_owned())
            {
                let schema = description.pointer(SCHEMAS).and_then(|schemas| schemas.get(name));
                collect_references(schema.unwrap_or(&Value::Null), description, names);
            }
            fields.values().for_each(|field| collect_references(field, description, names));
        }
        _ => {}
    }
}

fn without_null(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(without_null),
        Value::Object(fields) => {
            if let Some(Value::Array(types)) = fields.get_mut("type") {
                types.retain(|name| name != "null");
                if let [single] = types.as_slice() {
                    let single = single.clone();
                    fields.insert("type".to_owned(), single);
                }
            }
            if let Some(Value::Array(variants)) = fields.get_mut("oneOf") {
                variants.retain(|variant| variant["type"] != "null");
                if let [Value::Object(single)] = variants.as_slice() {
                    let single = single.clone();
                    fields.remove("oneOf");
                    // The description of the field is better than that of its type.
                    for (name, field) in single {
                        fields.entry(name).or_insert(field);
                    }
                }
            }
            fields.values_mut().for_each(without_null);
        }
        _ => {}
    }
}

/// Adds what the types cannot express: which agents there are, and which fields depend on each other.
fn add_conditions(description: &mut Value, agents: &[&str]) {
    let Some(schemas) = description.pointer_mut(SCHEMAS).and_then(Value::as_object_mut) else { return };
    for name in ["NewConversation", "ConversationUpdate"] {
        if let Some(agent) = schemas.get_mut(name).and_then(|schema| schema.pointer_mut("/properties/agent")) {
            let names = agents.iter().map(|agent| json!(agent)).chain([Value::Null]);
            agent["enum"] = Value::Array(names.collect());
        }
    }
    if let Some(message) = schemas.get_mut("NewMessage") {
        message["anyOf"] = json!([
            { "properties": { "text": { "pattern": "\\S" } }, "required": ["text"] },
            { "properties": { "attachments": { "minItems": 1 } }, "required": ["attachments"] },
        ]);
    }
    if let Some(schedule) = schemas.get_mut("ScheduleRequest") {
        let only = |set: &str, unset: &str| json!({ "properties": { set: { "type": "string" }, unset: { "type": "null" } }, "required": [set] });
        schedule["oneOf"] = json!([only("cron", "at"), only("at", "cron")]);
    }
}
