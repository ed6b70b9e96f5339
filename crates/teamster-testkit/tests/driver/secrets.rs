//! The secrets that an agent gets, and the guarantee that they are not exposed.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use serde_json::json;
use teamster::backend::{Backend, BackendConfig};
use teamster::event::{ErrorCode, WarningCode};
use teamster::request::{Inherit, McpServer};
use teamster::{RunRequest, Runtime};
use teamster_testkit::fake::Script;

use crate::test_env::{TestEnv, agent, bounded, is_text, read_until, rest_after, success_end};

/// One secret from each source.
const INHERITED: &str = "secret-of-the-host";
const SET: &str = "secret-of-the-request";
const MCP: &str = "secret-of-a-server";
const HEADER: &str = "secret-of-a-header";
const SECRETS: [&str; 4] = [INHERITED, SET, MCP, HEADER];

/// A runtime whose environment contains a secret and other variables.
fn test_env(variables: &[(&str, &str)]) -> TestEnv {
    let own = [("PATH", "/usr/bin:/bin"), ("HOME", "/nowhere"), ("HOST_TOKEN", INHERITED)];
    let variables = own.iter().chain(variables).map(|(name, value)| (OsString::from(name), OsString::from(value)));
    TestEnv::with_runtime(Runtime::builder().environment(variables).build())
}

/// A request with a secret in every field that may contain one.
fn secretive(env: &TestEnv, script: &Script) -> RunRequest {
    let mut request = env.request(script);
    request.env.insert("API_KEY".into(), SET.into());
    request.mcp_servers = BTreeMap::from([
        ("one".into(), McpServer::stdio("server").env("WHO", MCP)),
        ("two".into(), McpServer::http("http://127.0.0.1:1").bearer_token(HEADER)),
    ]);
    request
}

#[tokio::test]
async fn no_warning_error_or_diagnostic_contains_a_secret() {
    let env = test_env(&[]);
    let secrets = SECRETS.join(" and ");
    let line = json!({"type": "mystery", "why": secrets}).to_string();
    let cut_short = format!("{}{INHERITED}", "x".repeat(108));
    let script = agent(&env).text(format!("not JSON: {secrets}\n{cut_short}\n{line}\n"));
    let script = script.stderr(format!("cannot continue: {secrets}\n{secrets}")).exit(3);
    let stream = env.finish(secretive(&env, &script)).await;
    let all = serde_json::to_string(&stream.events).unwrap();
    // Not even the common prefix of the secrets.
    assert!(!all.contains("secret-of"), "{all}");
    let redacted = "[redacted HOST_TOKEN] and [redacted API_KEY] and [redacted WHO] and [redacted Authorization]";
    let stderr = stream.result().stderr.as_deref().unwrap();
    assert_eq!(stderr, format!("cannot continue: {redacted}\n{redacted}"));
    assert!(stream.assert_failed(&ErrorCode::CliExit).ends_with(redacted));
    let warnings = stream.warnings(&WarningCode::MalformedLine);
    let lines: Vec<_> =
        warnings.iter().map(|warning| warning.data.as_ref().unwrap()["line"].as_str().unwrap()).collect();
    assert_eq!(lines[0], format!("not JSON: {redacted}"));
    assert!(lines[1].starts_with("xxx"), "{}", lines[1]);
}

#[tokio::test]
async fn output_of_the_model_is_passed_on_unchanged() {
    let env = test_env(&[]);
    env.finish(secretive(&env, &agent(&env).then(success_end(INHERITED)))).await.assert_success(INHERITED);
}

#[tokio::test]
async fn a_secret_truncated_at_its_start_in_the_diagnostics_is_redacted() {
    let env = test_env(&[]);
    let mut request = secretive(&env, &agent(&env).stderr(format!("{INHERITED} at the end")).exit(3));
    request.limits.stderr_bytes = "-of-the-host at the end".len();
    let stream = env.finish(request).await;
    assert_eq!(stream.result().stderr.as_deref(), Some("[redacted HOST_TOKEN] at the end"));
}

/// Returns the names of a running agent's environment variables.
async fn variables(env: &TestEnv, request: RunRequest) -> Vec<String> {
    let mut run = env.start(request);
    let events = read_until(&mut run, is_text).await;
    let environment = fs::read(format!("/proc/{}/environ", env.pid("agent").await)).unwrap();
    run.control().abort();
    rest_after(events, &mut run).await.assert_aborted();
    let variables = environment.split(|byte| *byte == 0).map(|variable| String::from_utf8_lossy(variable).into_owned());
    variables.filter_map(|variable| Some(variable.split_once('=')?.0.to_owned())).collect()
}

fn speaking(env: &TestEnv) -> Script {
    agent(env).claude_text("Hello").hang()
}

#[tokio::test]
async fn only_named_variables_are_inherited() {
    let env = test_env(&[("WANTED", "1"), ("MY_A", "1"), ("OTHER", "1"), ("ANTHROPIC_API_KEY", "0123456789")]);
    let mut request = secretive(&env, &speaking(&env));
    request.inherit = Inherit::Only(vec!["WANTED".into(), "MY_*".into()]);
    let names = variables(&env, request).await;
    for name in ["PATH", "HOME", "PWD", "WANTED", "MY_A", "API_KEY"] {
        assert!(names.iter().any(|other| other == name), "{name} of {names:?}");
    }
    for name in ["OTHER", "HOST_TOKEN", "ANTHROPIC_API_KEY"] {
        assert!(!names.iter().any(|other| other == name), "{name} of {names:?}");
    }
}

#[tokio::test]
async fn keys_of_other_vendors_are_withheld_unless_the_request_sets_them() {
    let env = test_env(&[
        ("ANTHROPIC_API_KEY", "own"),
        ("OPENAI_API_KEY", "other"),
        ("GEMINI_API_KEY", "other"),
        ("OTHER", "1"),
    ]);
    let mut request = secretive(&env, &speaking(&env));
    request.env.insert("GEMINI_API_KEY".into(), "wanted".into());
    request.inherit = Inherit::WithholdKeys { keep: Vec::new() };
    let names = variables(&env, request).await;
    for name in ["ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OTHER"] {
        assert!(names.iter().any(|other| other == name), "{name} of {names:?}");
    }
    assert!(!names.iter().any(|name| name == "OPENAI_API_KEY"), "{names:?}");
}

/// The captured log.
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
async fn no_log_contains_a_secret_or_a_prompt() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber =
        tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(move || writer.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let env = test_env(&[]);
    let mut request = secretive(&env, &agent(&env).stderr(INHERITED).claude_text("Hello").hang());
    request.prompt = "the-prompt-itself".into();
    request.system_prompt = Some("the-system-prompt".into());
    // A user of the library may log these as well.
    let runtime = Arc::new(Runtime::builder().environment([]).build());
    let backend = Backend::create("claude", BackendConfig::new(request.clone()).with_runtime(runtime)).unwrap();
    tracing::info!(?request, runtime = ?env.runtime, ?backend, "about to start");
    let mut run = env.start(request);
    let events = read_until(&mut run, is_text).await;
    tracing::info!(?run, control = ?run.control(), "running");
    run.control().abort();
    rest_after(events, &mut run).await.assert_aborted();
    bounded("shutdown", env.runtime.wait_idle()).await;
    let logged = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(logged.contains("about to start") && logged.contains("API_KEY"), "{logged}");
    for hidden in SECRETS.iter().chain(&["the-prompt-itself", "the-system-prompt"]) {
        assert!(!logged.contains(hidden), "{hidden}: {logged}");
    }
}
