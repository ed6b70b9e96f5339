//! Forms of agents and MCP servers: converts a form to questions, and answers to the form's result.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use teamster_types::event::{QuestionItem, QuestionOption};

/// The id of the question for a form without fields.
const CONFIRM: &str = "confirm";
const YES: &str = "Accept";

/// A form: an object with fields of simple types.
#[derive(Debug)]
pub(in crate::agent) struct Form {
    message: String,
    fields: Vec<Field>,
}

#[derive(Debug)]
struct Field {
    name: String,
    words: Option<String>,
    shape: Shape,
    required: bool,
}

#[derive(Debug)]
enum Shape {
    Text,
    Number,
    Integer,
    Boolean,
    /// Labels with their values.
    One(Vec<(String, Value)>),
    Many(Vec<(String, Value)>),
}

impl Form {
    /// Reads a form; `None` if the type of a field is unknown.
    pub(in crate::agent) fn read(message: &str, schema: &Value) -> Option<Self> {
        let none = Map::new();
        let properties = schema.get("properties").map_or(Some(&none), Value::as_object)?;
        let required: Vec<&str> =
            schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        let field = |(name, schema): (&String, &Value)| {
            let words = schema.get("description").or_else(|| schema.get("title")).and_then(Value::as_str);
            Some(Field {
                name: name.clone(),
                words: words.map(str::to_owned),
                shape: Shape::read(schema)?,
                required: required.contains(&name.as_str()),
            })
        };
        let fields = properties.iter().map(field).collect::<Option<_>>()?;
        Some(Self { message: message.to_owned(), fields })
    }

    pub(in crate::agent) fn questions(&self) -> Vec<QuestionItem> {
        if self.fields.is_empty() {
            let options = vec![QuestionOption::new(YES), QuestionOption::new("Decline")];
            return vec![QuestionItem::new(CONFIRM, self.message.clone(), options)];
        }
        let item = |field: &Field| {
            let (labels, multiple) = field.shape.choices();
            let text = match &field.words {
                Some(words) => format!("{}\n{words}", self.message),
                None => self.message.clone(),
            };
            let options = labels.into_iter().map(QuestionOption::new).collect();
            QuestionItem::new(field.name.clone(), text, options).with_multiple(multiple)
        };
        self.fields.iter().map(item).collect()
    }

    /// Returns the result of the form; `None` if the answers do not match it.
    pub(in crate::agent) fn filled(&self, chosen: &BTreeMap<String, Vec<String>>) -> Option<Value> {
        if self.fields.is_empty() {
            let accepts = chosen.get(CONFIRM).is_some_and(|labels| labels.iter().any(|label| label == YES));
            return accepts.then(|| Value::Object(Map::new()));
        }
        let mut content = Map::new();
        for field in &self.fields {
            match chosen.get(&field.name).filter(|answers| !answers.is_empty()) {
                Some(answers) => {
                    content.insert(field.name.clone(), field.shape.value(answers)?);
                }
                None if field.required => return None,
                None => {}
            }
        }
        Some(Value::Object(content))
    }
}

impl Shape {
    fn read(schema: &Value) -> Option<Self> {
        Some(match schema.get("type").and_then(Value::as_str)? {
            "string" => choices(schema).map_or(Self::Text, Self::One),
            "number" => Self::Number,
            "integer" => Self::Integer,
            "boolean" => Self::Boolean,
            "array" => Self::Many(choices(schema.get("items")?)?),
            _ => return None,
        })
    }

    fn choices(&self) -> (Vec<String>, Option<bool>) {
        let labels = |choices: &[(String, Value)]| choices.iter().map(|(label, _)| label.clone()).collect();
        match self {
            Self::Text | Self::Number | Self::Integer => (Vec::new(), None),
            Self::Boolean => (vec!["true".to_owned(), "false".to_owned()], None),
            Self::One(choices) => (labels(choices), None),
            Self::Many(choices) => (labels(choices), Some(true)),
        }
    }

    fn value(&self, answers: &[String]) -> Option<Value> {
        let first = answers.first()?;
        let of = |choices: &[(String, Value)], answer: &String| {
            choices.iter().find(|(label, value)| label == answer || value == answer).map(|(_, value)| value.clone())
        };
        match self {
            Self::Text => Some(first.as_str().into()),
            Self::Number => first.trim().parse::<serde_json::Number>().ok().map(Value::Number),
            Self::Integer => first.trim().parse::<i64>().ok().map(Value::from),
            Self::Boolean => first.trim().parse::<bool>().ok().map(Value::from),
            Self::One(choices) => of(choices, first),
            Self::Many(choices) => {
                answers.iter().map(|answer| of(choices, answer)).collect::<Option<Vec<_>>>().map(Value::Array)
            }
        }
    }
}

/// Reads the choices of a field: `enum`, optionally with names, or `oneOf` or `anyOf` of constants with titles.
fn choices(schema: &Value) -> Option<Vec<(String, Value)>> {
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let names = schema.get("enumNames").and_then(Value::as_array);
        let name = |place: usize| names.and_then(|names| names.get(place)).and_then(Value::as_str);
        let choice =
            |(place, value): (usize, &Value)| Some((name(place).or_else(|| value.as_str())?.to_owned(), value.clone()));
        return values.iter().enumerate().map(choice).collect();
    }
    let constants = schema.get("oneOf").or_else(|| schema.get("anyOf"))?.as_array()?;
    let choice = |constant: &Value| {
        let value = constant.get("const")?;
        Some((constant.get("title").and_then(Value::as_str).or_else(|| value.as_str())?.to_owned(), value.clone()))
    };
    constants.iter().map(choice).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn chosen(answers: &[(&str, &[&str])]) -> BTreeMap<String, Vec<String>> {
        let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        answers.iter().map(|(name, answers)| ((*name).to_owned(), texts(answers))).collect()
    }

    #[test]
    fn each_field_is_a_question_and_the_answers_are_converted_by_the_schema() {
        let schema = json!({"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string"},
            "age": {"type": "integer", "title": "Age"},
            "sure": {"type": "boolean"},
            "size": {"type": "string", "enum": ["s", "l"], "enumNames": ["Small", "Large"]},
            "tags": {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]}},
        }});
        let form = Form::read("Who?", &schema).unwrap();
        let question = |id: &str| {
            let question = form.questions().into_iter().find(|question| question.id == id).unwrap();
            serde_json::to_value(question).unwrap()
        };
        assert_eq!(question("age"), json!({"id": "age", "text": "Who?\nAge", "options": []}));
        let size = json!({"id": "size", "text": "Who?", "options": [{"label": "Small"}, {"label": "Large"}]});
        assert_eq!(question("size"), size);
        assert_eq!(question("tags")["multiple"], true);
        let answers = chosen(&[("name", &["Ann"]), ("age", &["42"]), ("size", &["Large"]), ("tags", &["A", "b"])]);
        let filled = json!({"name": "Ann", "age": 42, "size": "l", "tags": ["a", "b"]});
        assert_eq!(form.filled(&answers), Some(filled));
        let wrong: [&[(&str, &[&str])]; 3] =
            [&[("age", &["42"])], &[("name", &["x"]), ("age", &["old"])], &[("name", &[])]];
        for wrong in wrong {
            assert_eq!(form.filled(&chosen(wrong)), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_form_without_fields_is_a_yes_or_no_question() {
        let form = Form::read("Continue?", &json!({"type": "object", "properties": {}})).unwrap();
        assert_eq!(form.questions().len(), 1);
        assert_eq!(form.filled(&chosen(&[("confirm", &["Accept"])])), Some(json!({})));
        assert_eq!(form.filled(&chosen(&[("confirm", &["Decline"])])), None);
        assert_eq!(form.filled(&chosen(&[])), None);
    }

    #[test]
    fn a_form_with_an_unknown_type_of_field_is_not_read() {
        assert!(Form::read("?", &json!({"properties": {"x": {"type": "object"}}})).is_none());
        assert!(Form::read("?", &json!({"properties": 1})).is_none());
    }
}
