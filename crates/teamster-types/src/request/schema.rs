//! Checks that a JSON value is a JSON Schema, by the form of its keywords.
//!
//! It is not a validator: it finds what a person mistypes, such as `"type": "strin"` or `"properties": []`. Keywords that it does
//! not know are allowed, as the standard requires.

use serde_json::{Map, Value};

/// Why a value is not a JSON Schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SchemaError {
    /// It is not an object.
    NotAnObject,
    /// A keyword has an invalid value.
    Keyword {
        /// The keyword, as a JSON pointer.
        at: String,
        why: String,
    },
}

/// The form of a keyword's value.
#[derive(Clone, Copy)]
enum Form {
    Type,
    Schema,
    /// A schema; in older drafts also a list of schemas.
    SchemaOrList,
    SchemaByName,
    Schemas,
    Names,
    List,
    Count,
    Number,
    /// A number; in draft 4 a boolean.
    NumberOrBoolean,
    Text,
    Boolean,
    Any,
}

const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "object", "array", "null"];

const KEYWORDS: &[(&str, Form)] = &[
    ("type", Form::Type),
    ("properties", Form::SchemaByName),
    ("patternProperties", Form::SchemaByName),
    ("dependentSchemas", Form::SchemaByName),
    ("$defs", Form::SchemaByName),
    ("definitions", Form::SchemaByName),
    ("additionalProperties", Form::Schema),
    ("unevaluatedProperties", Form::Schema),
    ("propertyNames", Form::Schema),
    ("items", Form::SchemaOrList),
    ("additionalItems", Form::Schema),
    ("unevaluatedItems", Form::Schema),
    ("contains", Form::Schema),
    ("not", Form::Schema),
    ("if", Form::Schema),
    ("then", Form::Schema),
    ("else", Form::Schema),
    ("allOf", Form::Schemas),
    ("anyOf", Form::Schemas),
    ("oneOf", Form::Schemas),
    ("prefixItems", Form::Schemas),
    ("required", Form::Names),
    ("enum", Form::List),
    ("const", Form::Any),
    ("minLength", Form::Count),
    ("maxLength", Form::Count),
    ("minItems", Form::Count),
    ("maxItems", Form::Count),
    ("minContains", Form::Count),
    ("maxContains", Form::Count),
    ("minProperties", Form::Count),
    ("maxProperties", Form::Count),
    ("minimum", Form::Number),
    ("maximum", Form::Number),
    ("multipleOf", Form::Number),
    ("exclusiveMinimum", Form::NumberOrBoolean),
    ("exclusiveMaximum", Form::NumberOrBoolean),
    ("uniqueItems", Form::Boolean),
    ("pattern", Form::Text),
    ("format", Form::Text),
    ("title", Form::Text),
    ("description", Form::Text),
    ("$ref", Form::Text),
    ("$dynamicRef", Form::Text),
    ("$id", Form::Text),
    ("$schema", Form::Text),
    ("$comment", Form::Text),
];

/// Checks the schema of an answer.
///
/// # Errors
/// The value is not an object, or the first keyword with a value of the wrong form.
pub(super) fn validate(schema: &Value) -> Result<(), SchemaError> {
    let Value::Object(keywords) = schema else { return Err(SchemaError::NotAnObject) };
    if !keywords.is_empty() && !keywords.keys().any(|key| form_of(key).is_some()) {
        let why = "none of its keys is a keyword of JSON Schema; an object with one text is \
                   {\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"}},\"required\":[\"name\"]}";
        return Err(invalid("#", why));
    }
    object("#", keywords)
}

fn form_of(keyword: &str) -> Option<Form> {
    KEYWORDS.iter().find(|(name, _)| *name == keyword).map(|(_, form)| *form)
}

fn invalid(at: &str, why: impl Into<String>) -> SchemaError {
    SchemaError::Keyword { at: at.to_owned(), why: why.into() }
}

fn object(at: &str, keywords: &Map<String, Value>) -> Result<(), SchemaError> {
    keywords.iter().try_for_each(|(keyword, value)| match form_of(keyword) {
        Some(form) => check(&format!("{at}/{}", keyword.replace('~', "~0").replace('/', "~1")), form, value),
        None => Ok(()),
    })
}

fn subschema(at: &str, value: &Value) -> Result<(), SchemaError> {
    match value {
        Value::Object(keywords) => object(at, keywords),
        Value::Bool(_) => Ok(()),
        _ => Err(invalid(at, "a schema is needed: an object, true or false")),
    }
}

fn check(at: &str, form: Form, value: &Value) -> Result<(), SchemaError> {
    let require = |is_right: bool, why: &str| if is_right { Ok(()) } else { Err(invalid(at, why)) };
    let each = |values: &[Value]| {
        values.iter().enumerate().try_for_each(|(index, value)| subschema(&format!("{at}/{index}"), value))
    };
    match (form, value) {
        (Form::Any, _) => Ok(()),
        (Form::Type, Value::Array(names)) if !names.is_empty() => names.iter().try_for_each(|name| type_name(at, name)),
        (Form::Type, name) => type_name(at, name),
        (Form::SchemaOrList, Value::Array(values)) => each(values),
        (Form::Schema | Form::SchemaOrList, value) => subschema(at, value),
        (Form::SchemaByName, Value::Object(schemas)) => {
            schemas.iter().try_for_each(|(name, schema)| subschema(&format!("{at}/{name}"), schema))
        }
        (Form::SchemaByName, _) => Err(invalid(at, "an object is needed: each name with its schema")),
        (Form::Schemas, Value::Array(values)) if !values.is_empty() => each(values),
        (Form::Schemas, _) => Err(invalid(at, "a list of schemas is needed")),
        (Form::Names, Value::Array(names)) if names.iter().all(Value::is_string) => Ok(()),
        (Form::Names, _) => Err(invalid(at, "a list of names is needed")),
        (Form::List, value) => require(value.is_array(), "a list of values is needed"),
        (Form::Count, value) => {
            // A count may be written as 2.0.
            let is_count = value.as_f64().is_some_and(|count| count >= 0.0 && count.fract() == 0.0);
            require(is_count, "a whole number from 0 is needed")
        }
        (Form::Number, value) => require(value.is_number(), "a number is needed"),
        (Form::NumberOrBoolean, value) => require(value.is_number() || value.is_boolean(), "a number is needed"),
        (Form::Text, value) => require(value.is_string(), "a text is needed"),
        (Form::Boolean, value) => require(value.is_boolean(), "true or false is needed"),
    }
}

fn type_name(at: &str, name: &Value) -> Result<(), SchemaError> {
    if name.as_str().is_some_and(|name| TYPES.contains(&name)) {
        return Ok(());
    }
    Err(invalid(at, format!("{name} is not a type; the types are {}", TYPES.join(", "))))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_that_is_no_schema_is_rejected_with_its_place() {
        for (schema, at) in [
            (json!({"type": "strin"}), "#/type"),
            (json!({"type": []}), "#/type"),
            (json!({"type": ["string", "nul"]}), "#/type"),
            (json!({"properties": []}), "#/properties"),
            (json!({"properties": {"a": "string"}}), "#/properties/a"),
            (json!({"properties": {"a": {"items": {"type": "text"}}}}), "#/properties/a/items/type"),
            (json!({"required": "a"}), "#/required"),
            (json!({"anyOf": []}), "#/anyOf"),
            (json!({"anyOf": [{}, {"minLength": -1}]}), "#/anyOf/1/minLength"),
            (json!({"enum": "a"}), "#/enum"),
            (json!({"uniqueItems": 1}), "#/uniqueItems"),
            (json!({"pattern": 1}), "#/pattern"),
            (json!({"minimum": "1"}), "#/minimum"),
            (json!({"name": "string"}), "#"),
        ] {
            match validate(&schema) {
                Err(SchemaError::Keyword { at: found, .. }) => assert_eq!(found, at, "{schema}"),
                other => panic!("{schema}: {other:?}"),
            }
        }
        assert_eq!(validate(&json!([])), Err(SchemaError::NotAnObject));
    }

    #[test]
    fn schemas_of_every_draft_are_accepted() {
        for schema in [
            json!({}),
            json!({"type": "object", "properties": {"type": {"type": "string"}}, "required": ["type"]}),
            json!({"type": ["string", "null"], "maxLength": 2.0, "x-vendor": [1]}),
            json!({"items": [{"type": "string"}, true], "additionalItems": false}),
            json!({"minimum": 1, "exclusiveMinimum": true}),
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"const": null, "enum": []}}}),
            json!({"prefixItems": [{"not": {}}], "if": {}, "then": {"anyOf": [{}]}, "else": false}),
        ] {
            assert_eq!(validate(&schema), Ok(()), "{schema}");
        }
    }
}
