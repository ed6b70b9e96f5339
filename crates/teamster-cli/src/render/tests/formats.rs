//! The formats for programs, and the error messages of failed runs.

use super::*;

#[test]
fn a_failure_is_written_with_a_hint() {
    let session = |result: &mut RunResult| result.session_id = Some("67c9c3e6".into());
    let crash = |result: &mut RunResult| result.stderr = Some("one\n\n\u{1b}[31mtwo\u{1b}[0m\nthree\n".into());
    let cases = [
        failed(ErrorCode::CliNotFound, "no program \"claude\" in PATH", |_| {}),
        failed(ErrorCode::MaxTurns, "Reached maximum number of turns (1)", session),
        failed(ErrorCode::MaxTurns, "Reached maximum number of turns (1)", |_| {}),
        failed(ErrorCode::Overloaded, "the vendor is\n\n overloaded", |_| {}),
        failed(ErrorCode::CliExit, "the CLI exited with code 3 before its result: three", crash),
        failed(ErrorCode::Protocol, "the CLI ended without a result", |_| {}),
        failed(ErrorCode::Aborted, "the run was aborted", session),
    ];
    let output: String = cases.iter().map(|events| streams(Format::Ndjson, PAGE, events).1).collect();
    assert_snapshot!(anstream::adapter::strip_str(&output).to_string(), @r#"
    error: claude is not installed [CLI_NOT_FOUND]
     hint: npm install -g @anthropic-ai/claude-code; or name the program with --cli-path
    error: Reached maximum number of turns (1) [MAX_TURNS]
     hint: raise --max-turns, or resume: teamster run --agent claude --resume 67c9c3e6 'continue'
    error: Reached maximum number of turns (1) [MAX_TURNS]
     hint: raise --max-turns
    error: the vendor is overloaded [OVERLOADED]
     hint: the failure may be transient: try again later
    error: the CLI exited with code 3 before its result: three [CLI_EXIT]
     hint: last lines of the CLI's stderr:
       one
       two
    error: the CLI ended without a result [PROTOCOL]
    interrupted: the run was aborted [ABORTED]
     hint: to resume: teamster run --agent claude --resume 67c9c3e6 'continue'
    "#);
}

#[test]
fn every_known_error_code_is_written_with_its_message() {
    for code in ErrorCode::KNOWN {
        let (_, output) = streams(Format::Json, PAGE, &failed(code.clone(), "it failed", |_| {}));
        assert!(output.contains(code.as_str()) && output.contains("it failed"), "{code}: {output}");
    }
}

#[test]
fn structured_output_is_shown_once() {
    let document = json!({"name": "Ada", "age": 36});
    let end = |final_text: &str| {
        let (document, final_text) = (document.clone(), final_text.to_owned());
        done(|result| (result.structured_output, result.final_text) = (Some(document.into()), final_text.into()))
    };
    let output = [text("1", "{\"name\":\"Ada\",\"age\":36}"), end("{\"name\":\"Ada\",\"age\":36}")];
    assert_eq!(pretty(&output), "{\"name\":\"Ada\",\"age\":36}\n");
    let unsaid = [text("1", "Here it is."), end("Here it is.")];
    assert_eq!(pretty(&unsaid), "Here it is.\n\n{\n  \"age\": 36,\n  \"name\": \"Ada\"\n}\n");
    assert_eq!(streams(Format::Text, PAGE, &unsaid).0, "{\"age\":36,\"name\":\"Ada\"}\n");
}

#[test]
fn text_prints_only_the_final_answer() {
    let events = [init(), text("1", "Let me see."), text("2", "All green."), done(answered)];
    assert_eq!(streams(Format::Text, PAGE, &events), ("All green.\n".to_owned(), String::new()));
    let (out, err) = streams(Format::Text, PAGE, &failed(ErrorCode::Auth, "no key", answered));
    assert_eq!(out, "", "a failed run has no answer");
    assert!(err.contains("no key"), "{err}");
}

#[test]
fn text_is_exact_in_a_file_and_escaped_on_a_terminal() {
    let output = |terminal| {
        let end = done(|result| result.final_text = "a\u{1b}[2Jb\r\n".into());
        streams(Format::Text, Screen { width: 72, terminal, styles: false }, &[end]).0
    };
    assert_eq!(output(false), "a\u{1b}[2Jb\r\n\n");
    assert_eq!(output(true), "a⟦ESC⟧[2Jb⟦CR⟧\n\n");
}

#[test]
fn ndjson_prints_the_events_and_json_the_result() {
    let mut events = vec![
        init(),
        text("1", "tricky \u{9b}2J \u{1b}[2J \u{7f} text\u{2028}\u{2029}\u{85}\u{202e}\u{2066}"),
        result("a", None),
    ];
    events.extend(failed(ErrorCode::Auth, "no key", answered));
    let (lines, _) = streams(Format::Ndjson, PAGE, &events);
    let read: Vec<Event> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(read, events);
    let (document, _) = streams(Format::Json, PAGE, &events);
    let Some(Event::Done(end)) = events.last() else { panic!("no done") };
    assert_eq!(serde_json::from_str::<RunResult>(&document).unwrap(), end.result);
    for character in lines.chars().chain(document.chars()) {
        let divides = matches!(character, '\u{2028}'..='\u{202e}' | '\u{2066}');
        assert!(character == '\n' || !character.is_control() && !divides, "{character:?}");
    }
}
