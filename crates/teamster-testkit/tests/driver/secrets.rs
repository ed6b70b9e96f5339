//! Which secrets an agent gets, and that nobody tells them to others.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use serde_json::json;
use teamster::event::{ErrorCode, WarningCode};
use teamster::request::{Inherit, McpServer};
use teamster::{Backend, Registry, RunRequest, Runtime};
use teamster_testkit::fake::Script;

use crate::lab::{Lab, agent, bounded, good_end, is_text, read_until, rest_after};

/// By the places that they come from.
const INHERITED: &str = "secret-of-the-host";
const SET: &str = "secret-of-the-request";
const MCP: &str = "secret-of-a-server";
const HEADER: &str = "secret-of-a-header";
const SECRETS: [&str; 4] = [INHERITED, SET, MCP, HEADER];

/// A runtime whose environment has a secret and other variables.
fn lab(variables: &[(&str, &str)]) -> Lab {
    let own = [("PATH", "/usr/bin:/bin"), ("HOME", "/nowhere"), ("HOST_TOKEN", INHERITED)];
    let variables = own.iter().chain(variables).map(|(name, value)| (OsString::from(name), OsString::from(value)));
    Lab::with_runtime(Runtime::with_environment(Registry::default(), variables))
}

/// A request with secrets in every place that takes them.
fn secretive(lab: &Lab, script: &Script) -> RunRequest {
    let mut request = lab.request(script);
    request.env.insert("API_KEY".into(), SET.into());
    request.mcp_servers = BTreeMap::from([
        ("one".into(), McpServer::stdio("server").env("WHO", MCP)),
        ("two".into(), McpServer::http("http://127.0.0.1:1").bearer_token(HEADER)),
    ]);
    request
}

#[tokio::test]
async fn no_warning_error_or_diagnostic_tells_a_secret() {
    let lab = lab(&[]);
    let said = SECRETS.join(" and ");
    let line = json!({"type": "mystery", "why": said}).to_string();
    let cut_short = format!("{}{INHERITED}", "x".repeat(108));
    let script = agent(&lab).text(format!("not JSON: {said}\n{cut_short}\n{line}\n"));
    let script = script.stderr(format!("cannot go on: {said}\n{said}")).exit(3);
    let told = lab.finish(secretive(&lab, &script)).await;
    let all = serde_json::to_string(&told.events).unwrap();
    // Not even the beginning that all of them have.
    assert!(!all.contains("secret-of"), "{all}");
    let redacted = "[redacted HOST_TOKEN] and [redacted API_KEY] and [redacted WHO] and [redacted Authorization]";
    let stderr = told.result().stderr.as_deref().unwrap();
    assert_eq!(stderr, format!("cannot go on: {redacted}\n{redacted}"));
    assert!(told.failed(&ErrorCode::CliExit).ends_with(redacted));
    let warnings = told.warnings(&WarningCode::MalformedLine);
    let lines: Vec<_> =
        warnings.iter().map(|warning| warning.data.as_ref().unwrap()["line"].as_str().unwrap()).collect();
    assert_eq!(lines[0], format!("not JSON: {redacted}"));
    assert!(lines[1].starts_with("xxx"), "{}", lines[1]);
}

#[tokio::test]
async fn what_the_model_says_is_passed_on_as_it_is() {
    let lab = lab(&[]);
    lab.finish(secretive(&lab, &agent(&lab).then(good_end(INHERITED)))).await.is_good(INHERITED);
}

#[tokio::test]
async fn a_secret_that_lost_its_head_in_the_diagnostics_is_not_told() {
    let lab = lab(&[]);
    let mut request = secretive(&lab, &agent(&lab).stderr(format!("{INHERITED} at the end")).exit(3));
    request.limits.stderr_bytes = "-of-the-host at the end".len();
    let told = lab.finish(request).await;
    assert_eq!(told.result().stderr.as_deref(), Some("[redacted HOST_TOKEN] at the end"));
}

/// The names of a running agent's variables.
async fn variables(lab: &Lab, request: RunRequest) -> Vec<String> {
    let mut run = lab.start(request);
    let events = read_until(&mut run, is_text).await;
    let environment = fs::read(format!("/proc/{}/environ", lab.pid("agent").await)).unwrap();
    run.control().abort();
    rest_after(events, &mut run).await.is_aborted();
    let variables = environment.split(|byte| *byte == 0).map(|variable| String::from_utf8_lossy(variable).into_owned());
    variables.filter_map(|variable| Some(variable.split_once('=')?.0.to_owned())).collect()
}

fn speaking(lab: &Lab) -> Script {
    agent(lab).claude_text("Hello").hang()
}

#[tokio::test]
async fn only_variables_that_are_named_are_inherited() {
    let lab = lab(&[("WANTED", "1"), ("MY_A", "1"), ("OTHER", "1"), ("ANTHROPIC_API_KEY", "0123456789")]);
    let mut request = secretive(&lab, &speaking(&lab));
    request.inherit = Inherit::Only(vec!["WANTED".into(), "MY_*".into()]);
    let names = variables(&lab, request).await;
    for name in ["PATH", "HOME", "PWD", "WANTED", "MY_A", "API_KEY"] {
        assert!(names.iter().any(|other| other == name), "{name} of {names:?}");
    }
    for name in ["OTHER", "HOST_TOKEN", "ANTHROPIC_API_KEY"] {
        assert!(!names.iter().any(|other| other == name), "{name} of {names:?}");
    }
}

#[tokio::test]
async fn keys_of_others_are_withheld_and_the_requests_own_are_not() {
    let lab =
        lab(&[("ANTHROPIC_API_KEY", "own"), ("OPENAI_API_KEY", "other"), ("GEMINI_API_KEY", "other"), ("OTHER", "1")]);
    let mut request = secretive(&lab, &speaking(&lab));
    request.env.insert("GEMINI_API_KEY".into(), "wanted".into());
    request.inherit = Inherit::WithholdKeys { keep: Vec::new() };
    let names = variables(&lab, request).await;
    for name in ["ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OTHER"] {
        assert!(names.iter().any(|other| other == name), "{name} of {names:?}");
    }
    assert!(!names.iter().any(|name| name == "OPENAI_API_KEY"), "{names:?}");
}

/// What is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn no_log_tells_a_secret_or_a_prompt() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber =
        tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(move || writer.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let lab = lab(&[]);
    let mut request = secretive(&lab, &agent(&lab).stderr(INHERITED).claude_text("Hello").hang());
    request.prompt = "the-prompt-itself".into();
    request.system_prompt = Some("the-system-prompt".into());
    // As a user of the library may well do.
    let backend = Backend::new(Arc::new(Runtime::with_environment(Registry::default(), [])), "claude", request.clone());
    tracing::info!(?request, runtime = ?lab.runtime, ?backend, "about to start");
    let mut run = lab.start(request);
    let events = read_until(&mut run, is_text).await;
    tracing::info!(?run, control = ?run.control(), "running");
    run.control().abort();
    rest_after(events, &mut run).await.is_aborted();
    bounded("shutdown", lab.runtime.shutdown()).await;
    let logged = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(logged.contains("about to start") && logged.contains("API_KEY"), "{logged}");
    for hidden in SECRETS.iter().chain(&["the-prompt-itself", "the-system-prompt"]) {
        assert!(!logged.contains(hidden), "{hidden}: {logged}");
    }
}
