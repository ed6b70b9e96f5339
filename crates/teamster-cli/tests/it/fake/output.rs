//! The output of the one-shot interfaces: text, a document or lines.

use serde_json::Value;

use super::{FILES, ScenarioDir, events, of, run_fake};

#[test]
fn claudes_one_shot_interface_prints_text_a_document_or_lines() {
    let scenario = ScenarioDir::with(
        "[[turns]]\nsteps = [{ run = { command = \"ls\", ask = true } }, { say = \"You said: {prompt}\" }]\n",
    );
    for args in [&["-p"][..], &["--print", "--output-format", "text"], &["-p", "--output-format=text"]] {
        let end = run_fake(&scenario, "claude", args, "hi");
        assert_eq!((end.code, end.out.as_str()), (Some(0), "You said: hi\n"), "{args:?} {}", end.err);
    }
    assert_eq!(
        run_fake(&scenario, "claude", &["-p", "--model", "opus", "by argument"], "").out,
        "You said: by argument\n"
    );
    let end = run_fake(&scenario, "claude", &["-p", "--output-format", "json"], "hi");
    let document: Value = serde_json::from_str(&end.out).unwrap();
    assert_eq!((&document["type"], &document["result"]), (&"result".into(), &"You said: hi".into()));
    // The one-shot interface cannot request permission.
    assert_eq!(document["permission_denials"][0]["tool_name"], "Bash");
    let end = run_fake(&scenario, "claude", &["-p", "--output-format", "json", "--verbose"], "hi");
    let document: Vec<Value> = serde_json::from_str(&end.out).unwrap();
    assert_eq!((&document[0]["type"], &document.last().unwrap()["type"]), (&"system".into(), &"result".into()));
    let end = run_fake(&scenario, "claude", &["-p", "--output-format", "stream-json", "--verbose"], "hi");
    assert_eq!(events(&end).last().unwrap()["result"], "You said: hi");
    assert!(!end.out.contains("stream_event") && !end.out.contains("control_request"), "{}", end.out);
    for (args, input, reason) in [
        (&["-p", "--output-format", "stream-json"][..], "hi", "requires --verbose"),
        (&["-p"], "", "Input must be provided"),
    ] {
        let end = run_fake(&scenario, "claude", args, input);
        assert_eq!((end.code, end.out.as_str()), (Some(1), ""), "{args:?}");
        assert!(end.err.contains(reason), "{}", end.err);
    }
}

#[test]
fn geminis_one_shot_interface_prints_text_or_a_document() {
    let scenario = ScenarioDir::with("[[turns]]\nsteps = [{ think = \"Hm.\" }, { say = \"You said: {prompt}\" }]\n");
    assert_eq!(run_fake(&scenario, "gemini", &["--prompt", "hi"], "").out, "You said: hi\n");
    let end = run_fake(&scenario, "gemini", &["-o", "json"], "hi");
    let document: Value = serde_json::from_str(&end.out).unwrap();
    assert_eq!(document["response"], "You said: hi");
    assert_eq!(document["stats"]["models"]["gemini-2.5-flash"]["tokens"]["candidates"], 80);
}

#[test]
fn a_batch_run_of_a_scenario_prints_one_document() {
    let scenario = ScenarioDir::with(FILES);
    for agent in ["claude", "gemini"] {
        let end = scenario.run(agent, &["--batch"]);
        assert_eq!(end.code, Some(0), "{agent}: {} {}", end.err, end.out);
        let events = events(&end);
        let result = &events.last().unwrap()["result"];
        assert!(result["finalText"].as_str().unwrap().ends_with("You said: hi"), "{agent}: {result}");
        assert_eq!(result["usage"]["outputTokens"], 200, "{agent}: {result}");
        assert!(of(&events, "warning").is_empty(), "{agent}: {}", end.out);
    }
    let scenario = ScenarioDir::with("[[turns]]\nsteps = [{ fail = { status = 401, message = \"It is so.\" } }]\n");
    for agent in ["claude", "gemini"] {
        let end = scenario.run(agent, &["--batch"]);
        assert_eq!(of(&events(&end), "error")[0]["code"], "AUTH", "{agent}: {}", end.out);
    }
}
