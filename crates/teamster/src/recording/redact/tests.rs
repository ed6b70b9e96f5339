use teamster_types::event::{Failure, RunResult, Warning, WarningCode};

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};

use super::*;

fn redactor(variables: &[(&str, &str)]) -> Redactor {
    let variables = variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
    Redactor::of(&variables, &Launch::new("x"), &RunRequest::new("x"))
}

fn check(variables: &[(&str, &str)], text: &str, expected: &str) {
    assert_eq!(redactor(variables).text(text), expected);
}

#[test]
fn a_secret_is_replaced_by_its_name_everywhere() {
    let key = [("ANTHROPIC_API_KEY", "sk-ant-0123456789")];
    check(&key, "no secret", "no secret");
    check(&key, "sk-ant-0123456789", "[redacted ANTHROPIC_API_KEY]");
    check(
        &key,
        "a sk-ant-0123456789 b\n\"sk-ant-0123456789\"",
        "a [redacted ANTHROPIC_API_KEY] b\n\"[redacted ANTHROPIC_API_KEY]\"",
    );
}

#[test]
fn of_overlapping_secrets_the_longest_is_replaced() {
    let keys = [("A_TOKEN", "12345678"), ("B_TOKEN", "1234567890")];
    check(&keys, "x 1234567890 12345678 x", "x [redacted B_TOKEN] [redacted A_TOKEN] x");
}

#[test]
fn a_value_shorter_than_eight_bytes_is_not_a_secret() {
    check(&[("A_TOKEN", "1234567")], "1234567", "1234567");
    check(&[("A_TOKEN", " 12345678\n")], "12345678", "[redacted A_TOKEN]");
}

#[test]
fn passwords_in_urls_keys_in_json_and_headers_are_secrets() {
    check(&[("DATABASE_URL", "postgres://me:hunter2hunter2@db/x")], "hunter2hunter2@db", "[redacted DATABASE_URL]@db");
    check(&[("SOME_URL", "https://host/a:b@c")], "https://host/a:b@c", "https://host/a:b@c");
    let config = r#"{"provider": {"x": [{"apiKey": "0123456789", "baseURL": "http://host"}]}, "model": "some-model"}"#;
    check(&[("CONFIG", config)], "0123456789 some-model http://host", "[redacted CONFIG] some-model http://host");
    check(
        &[("A_HEADERS", "X-Who: somevalue\nAuthorization: Bearer 0123456789")],
        "0123456789",
        "[redacted Authorization]",
    );
    check(&[("CONFIG", "{no json")], "{no json", "{no json");
}

#[test]
fn every_value_of_an_mcp_server_is_a_secret() {
    use teamster_types::request::McpServer;

    let mut request = RunRequest::new("x");
    let document = r#"{"a": {"command": "x", "env": {"WHERE": "somewhere"}},
        "b": {"type": "http", "url": "https://me:passwords@host", "headers": {"X-Who": "Bearer somevalue"}},
        "c": {"url": "https://host", "bearerToken": "t0ken-of-c"}}"#;
    request.mcp_servers = McpServer::from_json(document, |_| None).unwrap();
    let redactor = Redactor::of(&BTreeMap::new(), &Launch::new("x"), &request);
    let text = redactor.text("somewhere passwords somevalue t0ken-of-c");
    assert_eq!(text, "[redacted WHERE] [redacted b] [redacted X-Who] [redacted Authorization]");
}

#[test]
fn secrets_of_the_launch_are_known() {
    let mut launch = Launch::new("x");
    launch.env("A_TOKEN", "0123456789");
    let redactor = Redactor::of(&BTreeMap::new(), &launch, &RunRequest::new("x"));
    assert_eq!(redactor.text("0123456789"), "[redacted A_TOKEN]");
}

#[test]
fn a_part_of_a_secret_at_a_cut_is_replaced_too() {
    let key = [("A_TOKEN", "0123456789abcdef")];
    check(&key, "3456789abcdef and so on", "[redacted A_TOKEN] and so on");
    check(&key, "it says 0123456789ab", "it says [redacted A_TOKEN]");
    check(&key, "it says 0123456789ab…", "it says [redacted A_TOKEN]…");
    check(&key, "it says 0123456789ab...", "it says [redacted A_TOKEN]...");
    check(
        &key,
        "3456789abcdef 0123456789abcdef 0123456789",
        "[redacted A_TOKEN] [redacted A_TOKEN] [redacted A_TOKEN]",
    );
    check(&key, "89abcdef", "[redacted A_TOKEN]");
    check(&key, "9abcdef", "9abcdef");
    check(&[("A_TOKEN", "ääääää")], "äää ääää", "äää [redacted A_TOKEN]");
}

#[test]
fn no_part_of_a_secret_is_left_wherever_a_text_is_cut() {
    const SECRET: &str = "0123456789abcdef";
    let text = format!("in front {SECRET} between {SECRET} behind");
    let redactor = redactor(&[("A_TOKEN", SECRET)]);
    for start in 0..text.len() {
        for end in start..text.len() {
            let cut = text.get(start..end).unwrap();
            // A text from the inside of a secret alone cannot be recognized.
            if SECRET.contains(cut) {
                continue;
            }
            let redacted = redactor.text(cut);
            let pieces = (0..=SECRET.len() - SHORTEST).filter_map(|from| SECRET.get(from..from + SHORTEST));
            let left: Vec<_> = pieces.filter(|piece| redacted.contains(piece)).collect();
            assert!(left.is_empty(), "{left:?} of {cut:?} in {redacted:?}");
        }
    }
}

#[test]
fn a_secret_with_json_escapes_is_found_in_a_quoted_line() {
    check(&[("A_TOKEN", "pass\"word\\x")], r#"{"error":"pass\"word\\x"}"#, r#"{"error":"[redacted A_TOKEN]"}"#);
}

#[test]
fn warnings_errors_and_diagnostics_are_redacted_and_nothing_else() {
    let redactor = redactor(&[("A_TOKEN", "0123456789")]);
    let warning = Warning::new(WarningCode::Notice, "0123456789").with("line", "x 0123456789").with("n", 1);
    let failure = Failure::new(teamster_types::event::ErrorCode::Auth, "bad key 0123456789");
    let mut result = RunResult::default();
    result.text = "0123456789".into();
    result.stderr = Some("0123456789".into());
    let mut events = [
        warning.into(),
        Event::Error(Box::new(failure)),
        Event::Done(Box::new(teamster_types::event::Done::new(result))),
    ];
    for event in &mut events {
        redactor.event(event);
    }
    let text = serde_json::to_string(&events).unwrap();
    assert_eq!(text.matches("0123456789").count(), 1, "{text}");
    assert_eq!(text.matches("[redacted A_TOKEN]").count(), 4, "{text}");
    let Event::Done(done) = &events[2] else { panic!("{text}") };
    assert_eq!(done.result.text, "0123456789");
}

#[test]
fn debug_output_shows_no_secret() {
    let shown = format!("{:?}", redactor(&[("A_TOKEN", "0123456789")]));
    assert!(shown.starts_with("Redactor { forms: ") && !shown.contains("0123"), "{shown}");
}

const PEM: &str = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nBKcwggSjAgEAAoIBAQC7\nVJTU\n-----END PRIVATE KEY-----\n";

#[test]
fn a_secret_of_several_lines_is_found_whole_line_by_line_and_with_other_line_ends() {
    let lines = ["-----BEGIN PRIVATE KEY-----", "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", "BKcwggSjAgEAAoIBAQC7"];
    let crlf = PEM.replace('\n', "\r\n");
    let escaped = PEM.replace('\n', "\\n");
    for learned in [PEM, &crlf, &escaped] {
        let redactor = redactor(&[("DEPLOY_KEY", learned)]);
        let json = serde_json::to_string(PEM).unwrap();
        let twice = serde_json::to_string(&json).unwrap();
        for text in [PEM, &crlf, &json, &twice, &serde_json::to_string(&crlf).unwrap()] {
            let redacted = redactor.text(text);
            assert!(!redacted.contains("VJTU"), "{redacted}");
            assert!(lines.iter().all(|line| !redacted.contains(line)), "{redacted}");
        }
        for line in lines {
            assert_eq!(redactor.text(&format!("> {line} <")), "> [redacted DEPLOY_KEY] <");
        }
    }
}

#[test]
fn a_secret_is_found_in_its_common_encodings() {
    let secret = "pass word/+?ä-0123";
    let redactor = redactor(&[("A_TOKEN", secret)]);
    for before in ["", "u", "us", "user:"] {
        for after in ["", "x", "xy"] {
            let text = format!("{before}{secret}{after}");
            for encoded in [BASE64_STANDARD.encode(&text), BASE64_URL_SAFE_NO_PAD.encode(&text)] {
                let redacted = redactor.text(&encoded).into_owned();
                assert!(redacted.contains("[redacted A_TOKEN]") && redacted.len() < 30, "{encoded}: {redacted}");
            }
        }
    }
    for encoded in
        ["pass%20word%2F%2B%3F%C3%A4-0123", "pass+word%2F%2B%3F%C3%A4-0123", "pass%20word%2f%2b%3f%c3%a4-0123"]
    {
        assert_eq!(redactor.text(encoded), "[redacted A_TOKEN]");
    }
    assert_eq!(redactor.text("7061737320776f72642f2b3fc3a42d30313233"), "[redacted A_TOKEN]");
}

#[test]
fn a_secret_is_found_whatever_a_json_writer_escapes() {
    let secret = "pa/ss<w&ö>'=rd\u{1f511}";
    let ascii = r"pa/ss<w&\u00f6>'=rd\ud83d\udd11";
    let go = r"pa/ss\u003cw\u0026ö\u003e'=rd\u{1f511}".replace("\\u{1f511}", "\u{1f511}");
    let gson = go.replace('\'', r"\u0027").replace('=', r"\u003d");
    for written in [ascii.to_owned(), ascii.replace('/', r"\/"), secret.replace('/', r"\/"), go, gson] {
        check(&[("A_TOKEN", secret)], &format!("{{\"a\":\"{written}\"}}"), "{\"a\":\"[redacted A_TOKEN]\"}");
        let twice = serde_json::json!({"text": format!("{{\"a\":\"{written}\"}}")}).to_string();
        check(&[("A_TOKEN", secret)], &twice, "{\"text\":\"{\\\"a\\\":\\\"[redacted A_TOKEN]\\\"}\"}");
    }
}

#[test]
fn a_secret_is_found_whatever_a_url_writer_escapes() {
    let secret = "pa/s s(w)+rd=*";
    for written in [
        "pa%2Fs%20s%28w%29%2Brd%3D%2A",
        "pa%2fs%20s%28w%29%2brd%3d%2a",
        "pa/s%20s%28w%29%2Brd%3D%2A",
        "pa%2Fs+s%28w%29%2Brd%3D%2A",
        "pa%2Fs%20s(w)%2Brd%3D*",
        "pa/s%20s(w)+rd=*",
    ] {
        check(&[("A_TOKEN", secret)], &format!("?a={written}&b"), "?a=[redacted A_TOKEN]&b");
    }
}

#[test]
fn a_secret_is_found_in_base64_wrapped_at_the_usual_widths() {
    let secret = "sk-ant-0123456789-abcdefghijklmnop";
    let redactor = redactor(&[("A_TOKEN", secret)]);
    for before in 0..80 {
        let text = format!("{}{secret} and more of it", "x".repeat(before));
        let encoded = BASE64_STANDARD.encode(text);
        for end in ["\n", "\r\n"] {
            let lines: Vec<_> = encoded.as_bytes().chunks(76).map(|line| str::from_utf8(line).unwrap()).collect();
            let redacted = redactor.text(&lines.join(end)).replace(end, "");
            assert!(redacted.contains("[redacted A_TOKEN]"), "{before}: {redacted}");
            // At most the characters at its ends, which depend on the text around it.
            let left = redacted.replace("[redacted A_TOKEN]", "").len();
            assert!(left <= encoded.len() - secret.len() * 8 / 6 + 2, "{before}: {redacted}");
        }
    }
}

#[test]
fn a_secret_broken_over_lines_is_replaced_with_only_its_line_breaks() {
    let key = [("A_TOKEN", "0123456789abcdef")];
    check(&key, "a 01234567\n89abcdef b\nnext", "a [redacted A_TOKEN] b\nnext");
    check(&key, "0123\r\n4567\r\n89abcdef\r\nx", "[redacted A_TOKEN]\r\nx");
    check(&key, "0123456789abcdef\n0123456789abcdef\nx", "[redacted A_TOKEN]\n[redacted A_TOKEN]\nx");
    check(&key, "no\nsecret\n\nhere", "no\nsecret\n\nhere");
}
