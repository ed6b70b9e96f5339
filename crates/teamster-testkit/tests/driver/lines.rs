//! Output of a CLI that is not part of its protocol.

use serde_json::json;
use teamster::event::{Event, WarningCode};
use teamster_testkit::fake::Script;

use crate::test_env::{TestEnv, agent, success_end};

async fn survives(noise: Script, malformed: usize) {
    let env = TestEnv::new();
    let stream = env.play(&agent(&env).then(noise).then(success_end("Hello"))).await;
    stream.assert_success("Hello");
    assert_eq!(stream.warnings(&WarningCode::MalformedLine).len(), malformed);
}

#[tokio::test]
async fn text_between_the_lines_causes_a_warning() {
    survives(Script::new().text("Warning: something\n(node:1) hint é…\n"), 2).await;
}

#[tokio::test]
async fn bytes_that_are_not_utf8_cause_a_warning() {
    survives(Script::new().bytes(b"\xff\xfe\x80 noise\n".as_slice()), 1).await;
}

#[tokio::test]
async fn nul_bytes_cause_a_warning() {
    survives(Script::new().bytes(b"\0\0\0\n{\"type\":\0}\n".as_slice()), 2).await;
}

#[tokio::test]
async fn json_that_is_not_an_object_causes_a_warning() {
    survives(Script::new().text("42\n\"text\"\nnull\ntrue\n"), 4).await;
}

#[tokio::test]
async fn empty_lines_are_ignored() {
    survives(Script::new().text("\n\r\n \t\n\n"), 0).await;
}

#[tokio::test]
async fn lines_of_unknown_types_are_ignored() {
    survives(Script::new().line(json!({"type": "surprise", "data": [1, 2]})), 0).await;
}

#[tokio::test]
async fn lines_that_end_with_crlf_are_read() {
    let env = TestEnv::new();
    let mut script = agent(&env);
    for step in success_end("Hello").steps() {
        let step = serde_json::to_value(step).unwrap();
        script = match step.get("line") {
            Some(line) => script.text(format!("{line}\r\n")),
            None => script,
        };
    }
    let stream = env.play(&script).await;
    stream.assert_success("Hello");
    assert!(stream.warnings(&WarningCode::MalformedLine).is_empty());
}

#[tokio::test]
async fn a_line_in_many_small_pieces_is_one_line() {
    let env = TestEnv::new();
    let line = json!({"type": "assistant", "message": {
        "id": "msg_1", "content": [{"type": "text", "text": "añb漢字👩‍💻"}]}})
    .to_string();
    let pieces = line.as_bytes().chunks(3).fold(agent(&env), Script::bytes);
    let stream = env.play(&pieces.text("\n").claude_result("-").read_to_end()).await;
    stream.assert_success("añb漢字👩‍💻");
}

#[tokio::test]
async fn invalid_utf8_in_a_string_replaces_a_character_and_not_the_line() {
    let env = TestEnv::new();
    let mut line = br#"{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"a"#.to_vec();
    line.extend(b"\xff");
    line.extend(br#"b"}]}}"#);
    line.extend(b"\n");
    let stream = env.play(&agent(&env).bytes(line).claude_result("-").read_to_end()).await;
    stream.assert_success("a\u{fffd}b");
}

#[tokio::test]
async fn a_line_that_is_too_long_is_skipped_and_the_next_one_is_intact() {
    let env = TestEnv::new();
    let mut request = env.request(&agent(&env).long_line(200_000).then(success_end("Hello")));
    request.limits.max_line_bytes = 100_000;
    let stream = env.finish(request).await;
    stream.assert_success("Hello");
    let warning = stream.warnings(&WarningCode::LineTooLong)[0];
    assert!(warning.message.contains("200000") && warning.message.contains("100000"), "{}", warning.message.as_str());
}

#[tokio::test]
async fn a_line_of_70_megabytes_is_skipped_and_the_next_one_is_intact() {
    let env = TestEnv::new();
    let stream = env.play(&agent(&env).long_line(70 << 20).then(success_end("Hello"))).await;
    stream.assert_success("Hello");
    assert_eq!(stream.warnings(&WarningCode::LineTooLong).len(), 1);
}

#[tokio::test]
async fn a_line_of_11_megabytes_is_read() {
    let env = TestEnv::new();
    let text = "0123456789".repeat(1_100_000);
    let whole = json!({"type": "assistant", "message": {"id": "m", "content": [{"type": "text", "text": text}]}});
    let stream = env.play(&agent(&env).line(whole).claude_result("-").read_to_end()).await;
    stream.assert_success(&text);
}

#[tokio::test]
async fn a_long_line_without_a_newline_causes_a_warning() {
    let env = TestEnv::new();
    let script = agent(&env).claude_text("Hello").claude_result("Hello").text("x".repeat(2000));
    let mut request = env.request(&script);
    request.limits.max_line_bytes = 1500;
    let stream = env.finish(request).await;
    stream.assert_success("Hello");
    assert_eq!(stream.warnings(&WarningCode::LineTooLong).len(), 1);
}

#[tokio::test]
async fn the_end_of_25_megabytes_on_stderr_is_kept() {
    let env = TestEnv::new();
    let line = format!("{{n}} {}", "e".repeat(100));
    let script = Script::new().stderr_lines(250_000, line).then(agent(&env)).then(success_end("Hello"));
    let stream = env.play(&script).await;
    stream.assert_success("Hello");
    let stderr = stream.result().stderr.as_deref().unwrap();
    assert!(stderr.len() <= 64 << 10, "{}", stderr.len());
    assert!(stderr.lines().last().unwrap().starts_with("249999 "));
}

#[tokio::test]
async fn text_before_and_after_noise_keeps_its_order() {
    let env = TestEnv::new();
    let script = agent(&env).claude_text("one").text("noise\n").claude_text("two").then(success_end("three"));
    let stream = env.play(&script).await;
    let kinds: String = stream
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Text(delta) => Some(delta.text.as_str()),
            Event::Warning(_) => Some("!"),
            _ => None,
        })
        .collect();
    assert_eq!(kinds, "one!twothree");
}

#[tokio::test]
async fn endless_noise_is_counted_and_not_repeated() {
    let env = TestEnv::new();
    let script = Script::new().claude_init().text("noise\n".repeat(20_000)).claude_text("Hello").claude_result("Hello");
    let stream = env.play(&script.read_to_end()).await;
    stream.assert_success("Hello");
    let warnings = stream.warnings(&WarningCode::MalformedLine);
    assert_eq!(warnings.len(), 101);
    assert_eq!(warnings[100].data.as_ref().unwrap()["omitted"], 19_900);
}
