//! The environment of a process: what it inherits, and what its request and its agent set.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use teamster_agents::agent::{Capabilities, WITHHELD_KEYS};
use teamster_agents::launch::{Arg, Launch};
use teamster_process::{ENV_MARKER_PREFIX, LEDGER_VARIABLE};
use teamster_types::event::{ErrorCode, Failure};
use teamster_types::request::{BASE_VARIABLES, Inherit, RunRequest, env_name_matches};

use super::json_merge::merge;
use crate::registry::Registry;

pub(crate) type Environment = BTreeMap<OsString, OsString>;

/// What the request lets the agent inherit from the host's environment.
pub(crate) fn inherited(
    host: &Environment,
    request: &RunRequest,
    agent: Option<&Capabilities>,
    registry: &Registry,
) -> Environment {
    let stays = |name: &OsStr| match &request.inherit {
        Inherit::WithholdKeys { keep } => !name.to_str().is_some_and(|name| {
            is_key(name, registry)
                && !is_any(keep, name)
                && !agent.is_some_and(|agent| agent.owns_key(name, request, |switch| value(host, request, switch)))
        }),
        // A name that is not valid UTF-8 cannot be in the request's list.
        Inherit::Only(names) => name.to_str().is_some_and(|name| {
            let home = agent.map_or(&[][..], |agent| agent.home_variables);
            is_any(BASE_VARIABLES, name) || is_any(home, name) || is_ours(name) || is_any(names, name)
        }),
        _ => true,
    };
    host.iter().filter(|(name, _)| stays(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Returns the environment of a program that is only asked for its version. It needs no keys.
pub(crate) fn without_keys(host: &Environment, registry: &Registry) -> Environment {
    let stays = |name: &OsStr| !name.to_str().is_some_and(|name| is_key(name, registry));
    host.iter().filter(|(name, _)| stays(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The markers of the process trees that this program itself runs in, by which their supervisors find what this program leaves,
/// and the ledger's directory, in case the agent starts Teamster.
fn is_ours(name: &str) -> bool {
    name.starts_with(ENV_MARKER_PREFIX) || name == LEDGER_VARIABLE
}

fn is_key(name: &str, registry: &Registry) -> bool {
    let known = |agent: &str| registry.get(agent).ok().and_then(|agent| agent.capabilities());
    is_any(WITHHELD_KEYS, name) || registry.names().filter_map(known).any(|capabilities| capabilities.knows_key(name))
}

fn is_any(patterns: &[impl AsRef<str>], name: &str) -> bool {
    patterns.iter().any(|pattern| env_name_matches(pattern.as_ref(), name))
}

fn value(host: &Environment, request: &RunRequest, name: &str) -> Option<String> {
    let inherited = || host.get(OsStr::new(name)).map(|value| value.to_string_lossy().into_owned());
    request.env.get(name).cloned().or_else(inherited)
}

/// Adds the variables of the launch to the inherited ones.
pub(crate) fn for_process(
    inherited: Environment,
    launch: &Launch,
    cwd: &Path,
    resolve: impl Fn(&Arg) -> Result<OsString, Failure>,
) -> Result<Environment, Failure> {
    let mut environment = inherited;
    // As a shell's `cd` does. Some CLIs trust PWD more than the working directory.
    environment.insert("PWD".into(), cwd.into());
    for (name, value) in &launch.env {
        match value {
            Some(value) => environment.insert(name.into(), resolve(value)?),
            None => environment.remove(OsStr::new(name)),
        };
    }
    for (name, ours) in &launch.json_env {
        let wrong = |why: String| {
            Failure::new(ErrorCode::Config, format!("the variable {name} must hold a JSON object: {why}"))
        };
        let theirs = environment.get(OsStr::new(name)).filter(|text| !text.is_empty());
        let theirs =
            theirs.map_or(Some("{}"), |text| text.to_str()).ok_or_else(|| wrong("it is not UTF-8".to_owned()))?;
        let value = merge(theirs, ours).map_err(wrong)?;
        environment.insert(name.into(), value.into());
    }
    Ok(environment)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of the variables that an agent inherits.
    fn names(agent: &str, variables: &[(&str, &str)], change: impl FnOnce(&mut RunRequest)) -> Vec<String> {
        let host = variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
        let mut request = RunRequest::new("x");
        change(&mut request);
        let registry = Registry::default();
        let capabilities = registry.get(agent).unwrap().capabilities();
        inherited(&host, &request, capabilities, &registry)
            .into_keys()
            .map(|name| name.into_string().unwrap())
            .collect()
    }

    const KEYS: &[(&str, &str)] = &[
        ("ANTHROPIC_API_KEY", "a"),
        ("ANTHROPIC_BASE_URL", "u"),
        ("AWS_REGION", "r"),
        ("AWS_SECRET_ACCESS_KEY", "w"),
        ("CLAUDE_CODE_OAUTH_TOKEN", "c"),
        ("EDITOR", "vi"),
        ("GEMINI_API_KEY", "g"),
        ("GITHUB_TOKEN", "h"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/g"),
        ("HF_TOKEN", "f"),
        ("NEW_VENDOR_API_KEY", "n"),
        ("OPENAI_API_KEY", "o"),
        ("OPENCODE_AUTH_CONTENT", "{}"),
        ("PATH", "/bin"),
    ];

    fn withheld(agent: &str, extra: &[(&str, &str)], change: impl FnOnce(&mut RunRequest)) -> Vec<String> {
        let variables = [KEYS, extra].concat();
        let stay = names(agent, &variables, |request| {
            request.inherit = Inherit::WithholdKeys { keep: Vec::new() };
            change(request);
        });
        let gone = KEYS.iter().map(|(name, _)| (*name).to_owned()).filter(|name| !stay.contains(name));
        gone.collect()
    }

    #[test]
    fn everything_is_inherited_by_default() {
        assert_eq!(names("claude", KEYS, |_| {}).len(), KEYS.len());
    }

    #[test]
    fn keys_that_are_not_an_agents_own_are_withheld_and_nothing_else() {
        let all_but = |own: &[&str]| -> Vec<String> {
            let others = ["ANTHROPIC_BASE_URL", "AWS_REGION", "EDITOR", "PATH"];
            let names = KEYS.iter().map(|(name, _)| *name);
            names.filter(|name| !own.contains(name) && !others.contains(name)).map(str::to_owned).collect()
        };
        let claude = ["ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"];
        assert_eq!(withheld("claude", &[], |_| {}), all_but(&claude));
        assert_eq!(withheld("codex", &[], |_| {}), all_but(&["OPENAI_API_KEY"]));
        let gemini = ["GEMINI_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS"];
        assert_eq!(withheld("gemini", &[], |_| {}), all_but(&gemini));
        for (model, own) in [
            ("anthropic/claude", &["ANTHROPIC_API_KEY"][..]),
            ("amazon-bedrock/claude", &["AWS_SECRET_ACCESS_KEY"]),
            ("google/gemini", &gemini),
            ("github-copilot/gpt", &["GITHUB_TOKEN"]),
            ("new-vendor/model", &["NEW_VENDOR_API_KEY"]),
            ("other/model", &[]),
        ] {
            let own = [own, &["OPENCODE_AUTH_CONTENT"]].concat();
            assert_eq!(
                withheld("opencode", &[], |request| request.model = Some(model.into())),
                all_but(&own),
                "{model}"
            );
        }
    }

    #[test]
    fn the_keys_of_an_enabled_cloud_are_kept() {
        let bedrock = |value| [("CLAUDE_CODE_USE_BEDROCK", value)];
        let key = "AWS_SECRET_ACCESS_KEY".to_owned();
        assert!(!withheld("claude", &bedrock("1"), |_| {}).contains(&key));
        for off in ["", "0", "false"] {
            assert!(withheld("claude", &bedrock(off), |_| {}).contains(&key), "{off:?}");
        }
        let by_request = |request: &mut RunRequest| {
            request.env.insert("CLAUDE_CODE_USE_BEDROCK".into(), "1".into());
        };
        assert!(!withheld("claude", &[], by_request).contains(&key));
    }

    #[test]
    fn keys_that_are_named_stay() {
        let keep = |request: &mut RunRequest| {
            request.inherit = Inherit::WithholdKeys { keep: vec!["GITHUB_TOKEN".into(), "AWS_*".into()] };
        };
        let gone = withheld("claude", &[], keep);
        assert!(!gone.contains(&"GITHUB_TOKEN".to_owned()) && !gone.contains(&"AWS_SECRET_ACCESS_KEY".to_owned()));
        assert!(gone.contains(&"OPENAI_API_KEY".to_owned()));
    }

    #[test]
    fn only_named_and_indispensable_variables_are_inherited() {
        let more = [
            ("CLAUDE_CONFIG_DIR", "/c"),
            ("CODEX_HOME", "/x"),
            ("HOME", "/h"),
            ("LC_ALL", "C"),
            ("TEAMSTER_TREE_1_2_3", "1"),
            ("XDG_DATA_HOME", "/d"),
            ("MY_A", "1"),
            ("MY_B", "2"),
            ("https_proxy", "http://p"),
        ];
        let variables = [KEYS, &more].concat();
        let only = |names: &[&str]| Inherit::Only(names.iter().map(|name| (*name).to_owned()).collect());
        let base =
            ["CLAUDE_CONFIG_DIR", "HOME", "LC_ALL", "PATH", "TEAMSTER_TREE_1_2_3", "XDG_DATA_HOME", "https_proxy"];
        assert_eq!(names("claude", &variables, |request| request.inherit = only(&[])), base);
        let found =
            names("claude", &variables, |request| request.inherit = only(&["ANTHROPIC_API_KEY", "MY_*", "NONE"]));
        let mut expected = [&base[..], &["ANTHROPIC_API_KEY", "MY_A", "MY_B"]].concat();
        expected.sort_unstable();
        assert_eq!(found, expected);
    }
}
