//! Tools that cannot be offered, and schemas known at run time.

use super::*;

#[tokio::test]
async fn a_schema_known_at_run_time_is_listed_and_its_required_members_are_checked() {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    let tool = || {
        Tool::with_schema("weather", "Returns the weather", schema.clone(), |input, _call| async move {
            Ok::<_, String>(format!("rain in {}", input["city"].as_str().unwrap_or("?")))
        })
    };
    let tools = served(tool()).await;
    let listed = response(&tools, &request("tools/list", &json!({}))).await;
    assert_eq!(listed["result"]["tools"][0]["inputSchema"], schema);
    let (result, failed) = called(tool(), "weather", json!({"city": "Oslo"})).await;
    assert_eq!((&result["content"][0]["text"], failed), (&json!("rain in Oslo"), false));
    let (result, failed) = called(tool(), "weather", json!({"town": "Oslo"})).await;
    assert!(failed && result["content"][0]["text"].as_str().unwrap().contains("`city`"), "{result}");
}

#[tokio::test]
async fn a_schema_that_does_not_describe_an_object_is_rejected() {
    for (schema, problem) in [
        (json!("object"), "no JSON object"),
        (json!({}), "no `type`"),
        (json!({"type": "string"}), "not \"object\""),
        (json!({"type": "object", "properties": []}), "`properties`"),
        (json!({"type": "object", "properties": {"a": "string"}}), "\"a\" has no schema"),
        (json!({"type": "object", "required": "a"}), "`required`"),
    ] {
        let tool = Tool::with_schema("t", "", schema, |_, _| async { Ok::<_, String>(()) });
        let error = ToolServer::new("s").with(tool).serve().await.unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
}

#[tokio::test]
async fn a_tool_that_cannot_be_offered_is_rejected_by_name() {
    let tool = |name: &str| Tool::new(name, "", |Nothing {}| async { Ok::<_, String>(()) });
    for name in ["", "two words", "ü", "a.b", &"x".repeat(49)] {
        let error = ToolServer::new("s").with(tool(name)).serve().await.unwrap_err();
        assert!(matches!(&error, ServeError::Tool { name: wrong, .. } if wrong == name), "{error}");
    }
    let error = ToolServer::new("s").with(tool("a")).with(tool("b")).with(tool("a")).serve().await.unwrap_err();
    assert_eq!(error.to_string(), r#"the tool "a" cannot be offered: there are two of this name"#);
    let number = Tool::new("n", "", |_: i64| async { Ok::<_, String>(()) });
    let error = ToolServer::new("s").with(number).serve().await.unwrap_err();
    assert!(error.to_string().contains("must be a struct"), "{error}");
}
