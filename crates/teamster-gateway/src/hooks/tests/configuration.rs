//! Tests of the configuration of hooks.

use super::*;

#[test]
fn an_invalid_configuration_is_refused_with_the_key_that_is_wrong() {
    let url = || webhook("https://example.org/");
    let problem = |config: HookConfig| config.check().unwrap_err().to_string();
    for (config, expected) in [
        (HookConfig { name: String::new(), ..shell("x") }, "hook \"\": name must"),
        (HookConfig { events: Vec::new(), ..shell("x") }, "hook \"check\": events must"),
        (HookConfig { command: Vec::new(), ..shell("x") }, "hook \"check\": command or url"),
        (HookConfig { url: url().url, ..shell("x") }, "hook \"check\": command or url"),
        (HookConfig { url: Some("ftp://example.org".to_owned()), ..url() }, "hook \"check\": url must"),
        (HookConfig { secret: None, ..url() }, "hook \"check\": secret must"),
        (HookConfig { secret_env: Some("X".to_owned()), ..url() }, "hook \"check\": secret must"),
        (HookConfig { secret: url().secret, ..shell("x") }, "hook \"check\": secret signs"),
        (HookConfig { timeout: Duration::ZERO, ..shell("x") }, "hook \"check\": timeout must"),
        (
            closed(HookConfig { events: vec![HookEventKind::TurnFinished], ..shell("x") }),
            "hook \"check\": on_failure can",
        ),
    ] {
        let problem = problem(config);
        assert!(problem.starts_with(expected), "{problem}");
    }
    assert_eq!(url().check(), Ok(()));
    let twice = hooks(vec![shell("x"), shell("x")]);
    assert!(twice.check().unwrap_err().to_string().contains("two hooks"));
    let missing = HookConfig { command: vec!["no-such-program".to_owned()], ..shell("") };
    assert!(hooks(vec![missing]).check().is_err());
}

#[test]
fn a_configuration_is_read_from_toml_and_shows_no_secret() {
    let text = r#"
        name = "audit"
        events = ["turn_finished", "delivery_failed"]
        url = "https://example.org/hook"
        secret = "a long enough s3cret"
        timeout = "3s"
    "#;
    let config: HookConfig = toml::from_str(text).unwrap();
    assert_eq!((config.timeout, config.on_failure), (Duration::from_secs(3), OnFailure::Open));
    assert_eq!(config.check(), Ok(()));
    assert!(!format!("{config:?}{}", serde_json::to_string(&config).unwrap()).contains("s3cret"));
    let error = toml::from_str::<HookConfig>("name = 'x'\ntimout = '3s'").unwrap_err();
    assert!(error.to_string().contains("timout"), "{error}");
}
