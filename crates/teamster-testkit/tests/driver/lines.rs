//! What a CLI may write instead of its protocol.

use serde_json::json;
use teamster::event::{Event, WarningCode};
use teamster_testkit::fake::Script;

use crate::lab::{Lab, agent, good_end};

async fn survives(noise: Script, malformed: usize) {
    let lab = Lab::new();
    let told = lab.play(&agent(&lab).then(noise).then(good_end("Hello"))).await;
    told.is_good("Hello");
    assert_eq!(told.warnings(&WarningCode::MalformedLine).len(), malformed);
}

#[tokio::test]
async fn text_between_the_lines_is_a_warning() {
    survives(Script::new().text("Warning: something\n(node:1) hint é…\n"), 2).await;
}

#[tokio::test]
async fn bytes_that_are_no_text_are_a_warning() {
    survives(Script::new().bytes(b"\xff\xfe\x80 noise\n".as_slice()), 1).await;
}

#[tokio::test]
async fn nul_bytes_are_a_warning() {
    survives(Script::new().bytes(b"\0\0\0\n{\"type\":\0}\n".as_slice()), 2).await;
}

#[tokio::test]
async fn json_that_is_no_object_is_a_warning() {
    survives(Script::new().text("42\n\"text\"\nnull\ntrue\n"), 4).await;
}

#[tokio::test]
async fn empty_lines_are_nothing() {
    survives(Script::new().text("\n\r\n \t\n\n"), 0).await;
}

#[tokio::test]
async fn lines_of_unknown_types_are_nothing() {
    survives(Script::new().line(json!({"type": "surprise", "data": [1, 2]})), 0).await;
}

#[tokio::test]
async fn lines_that_end_as_on_windows_are_read() {
    let lab = Lab::new();
    let mut script = agent(&lab);
    for step in good_end("Hello").steps() {
        let step = serde_json::to_value(step).unwrap();
        script = match step.get("line") {
            Some(line) => script.text(format!("{line}\r\n")),
            None => script,
        };
    }
    let told = lab.play(&script).await;
    told.is_good("Hello");
    assert!(told.warnings(&WarningCode::MalformedLine).is_empty());
}

#[tokio::test]
async fn a_line_in_many_small_pieces_is_one_line() {
    let lab = Lab::new();
    let line = json!({"type": "assistant", "message": {
        "id": "msg_1", "content": [{"type": "text", "text": "añb漢字👩‍💻"}]}})
    .to_string();
    let pieces = line.as_bytes().chunks(3).fold(agent(&lab), Script::bytes);
    let told = lab.play(&pieces.text("\n").claude_result("-").read_to_end()).await;
    told.is_good("añb漢字👩‍💻");
}

#[tokio::test]
async fn bytes_that_are_no_text_cost_a_character_and_not_the_line() {
    let lab = Lab::new();
    let mut line = br#"{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"a"#.to_vec();
    line.extend(b"\xff");
    line.extend(br#"b"}]}}"#);
    line.extend(b"\n");
    let told = lab.play(&agent(&lab).bytes(line).claude_result("-").read_to_end()).await;
    told.is_good("a\u{fffd}b");
}

#[tokio::test]
async fn a_line_that_is_too_long_is_skipped_and_the_next_one_is_intact() {
    let lab = Lab::new();
    let mut request = lab.request(&agent(&lab).long_line(200_000).then(good_end("Hello")));
    request.limits.max_line_bytes = 100_000;
    let told = lab.finish(request).await;
    told.is_good("Hello");
    let warning = told.warnings(&WarningCode::LineTooLong)[0];
    assert!(warning.message.contains("200000") && warning.message.contains("100000"), "{}", warning.message.as_str());
}

#[tokio::test]
async fn a_line_of_70_megabytes_is_skipped_and_the_next_one_is_intact() {
    let lab = Lab::new();
    let told = lab.play(&agent(&lab).long_line(70 << 20).then(good_end("Hello"))).await;
    told.is_good("Hello");
    assert_eq!(told.warnings(&WarningCode::LineTooLong).len(), 1);
}

#[tokio::test]
async fn a_line_of_11_megabytes_is_read() {
    let lab = Lab::new();
    let text = "0123456789".repeat(1_100_000);
    let whole = json!({"type": "assistant", "message": {"id": "m", "content": [{"type": "text", "text": text}]}});
    let told = lab.play(&agent(&lab).line(whole).claude_result("-").read_to_end()).await;
    told.is_good(&text);
}

#[tokio::test]
async fn a_long_line_without_its_end_is_a_warning() {
    let lab = Lab::new();
    let script = agent(&lab).claude_text("Hello").claude_result("Hello").text("x".repeat(2000));
    let mut request = lab.request(&script);
    request.limits.max_line_bytes = 1500;
    let told = lab.finish(request).await;
    told.is_good("Hello");
    assert_eq!(told.warnings(&WarningCode::LineTooLong).len(), 1);
}

#[tokio::test]
async fn of_25_megabytes_on_stderr_the_end_is_kept() {
    let lab = Lab::new();
    let line = format!("{{n}} {}", "e".repeat(100));
    let script = Script::new().stderr_lines(250_000, line).then(agent(&lab)).then(good_end("Hello"));
    let told = lab.play(&script).await;
    told.is_good("Hello");
    let stderr = told.result().stderr.as_deref().unwrap();
    assert!(stderr.len() <= 64 << 10, "{}", stderr.len());
    assert!(stderr.lines().last().unwrap().starts_with("249999 "));
}

#[tokio::test]
async fn the_agents_own_words_come_before_and_after_noise_in_their_order() {
    let lab = Lab::new();
    let script = agent(&lab).claude_text("one").text("noise\n").claude_text("two").then(good_end("three"));
    let told = lab.play(&script).await;
    let kinds: String = told
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
async fn noise_without_an_end_is_counted_and_not_repeated() {
    let lab = Lab::new();
    let script = Script::new().claude_init().text("noise\n".repeat(20_000)).claude_text("Hello").claude_result("Hello");
    let told = lab.play(&script.read_to_end()).await;
    told.is_good("Hello");
    let warnings = told.warnings(&WarningCode::MalformedLine);
    assert_eq!(warnings.len(), 101);
    assert_eq!(warnings[100].data.as_ref().unwrap()["omitted"], 19_900);
}
