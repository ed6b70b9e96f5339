//! Every pair of options of `run` and of `session`: both take effect, or the command line is rejected, or a warning names
//! the option without an effect.
//!
//! The options come from clap's definition. A new option fails [`every_option_is_in_the_table`] until it has a row.

use std::collections::{BTreeMap, BTreeSet};

use clap::{Args as _, FromArgMatches as _};
use insta::assert_snapshot;
use serde_json::{Value, json};
use teamster::Registry;

use super::*;
use crate::args::SessionArgs;

/// The options with an example. It needs one of the options in the last list.
const ROWS: &[(&str, &[&str], &[&str])] = &[
    ("add_dir", &["--add-dir=/d"], &[]),
    ("agent", &["--agent=other"], &["config"]),
    ("allow_tool", &["--allow-tool=A"], &[]),
    ("answer_timeout", &["--answer-timeout=7s"], &[]),
    ("append_system_prompt", &["--append-system-prompt=a"], &[]),
    ("append_system_prompt_file", &["--append-system-prompt-file=text"], &[]),
    ("attach", &["--attach=a.png"], &[]),
    ("background_tasks", &["--background-tasks"], &[]),
    ("batch", &["--batch"], &[]),
    ("cli_arg", &["--cli-arg=-c"], &[]),
    ("cli_path", &["--cli-path=x"], &[]),
    ("config", &["--config=config.toml"], &[]),
    ("continue_last", &["--continue"], &[]),
    ("cwd", &["--cwd=/c"], &[]),
    ("deadline", &["--deadline=1h"], &[]),
    ("deny_tool", &["--deny-tool=B"], &[]),
    ("effort", &["--effort=high"], &[]),
    ("env", &["--env=A=1"], &[]),
    ("env_only", &["--env-only=A"], &[]),
    ("force", &["--force"], &["record"]),
    ("fork", &["--fork"], &["resume", "continue_last"]),
    ("grace", &["--grace=3s"], &[]),
    ("keep_background", &["--keep-background"], &[]),
    ("keep_key", &["--keep-key=A"], &["withhold_keys"]),
    ("label", &["--label=a=b"], &[]),
    ("max_budget", &["--max-budget=1"], &[]),
    ("max_session_budget", &["--max-session-budget=2"], &[]),
    ("max_session_tokens", &["--max-session-tokens=20"], &[]),
    ("max_tokens", &["--max-tokens=10"], &[]),
    ("max_turns", &["--max-turns=3"], &[]),
    ("mcp_config", &["--mcp-config={\"s\":{\"command\":\"x\"}}"], &[]),
    ("mcp_delivery", &["--mcp-delivery=merge-restore"], &[]),
    ("mcp_strict", &["--mcp-strict"], &[]),
    ("mode", &["--mode=spawn"], &[]),
    ("model", &["--model=m"], &[]),
    ("output", &["--output=json"], &[]),
    ("permission", &["--permission=edit"], &[]),
    ("project_trust", &["--project-trust=untrusted"], &[]),
    ("prompt_mode", &["--prompt-mode=literal"], &[]),
    ("quiet", &["--quiet"], &[]),
    ("record", &["--record=r"], &[]),
    ("record_raw", &["--record-raw"], &["record"]),
    ("require_process_control", &["--require-process-control"], &[]),
    ("resume", &["--resume=67c9c3e6-c7de-48a2-bc6b-8c0c662932f4"], &[]),
    ("retries", &["--retries=1"], &[]),
    ("retry_even_after", &["--retry-even-after=tools"], &["retries"]),
    ("schema", &["--schema={\"type\":\"object\"}"], &[]),
    ("startup_timeout", &["--startup-timeout=4s"], &[]),
    ("stdin", &["--stdin=ignore"], &[]),
    ("system_prompt", &["--system-prompt=s"], &[]),
    ("system_prompt_file", &["--system-prompt-file=text"], &[]),
    ("timeout", &["--timeout=5s"], &[]),
    ("tool_output", &["--tool-output=full"], &[]),
    ("verbose", &["--verbose"], &[]),
    ("tool_timeout", &["--tool-timeout=6s"], &[]),
    ("usage_journal", &["--usage-journal=u.ndjson"], &[]),
    ("whole_messages", &["--whole-messages"], &[]),
    ("withhold_keys", &["--withhold-keys"], &[]),
];

/// The pairs with one effect in common: what they change.
const COMBINED: &[(&str, &str, &str)] = &[
    ("continue_last", "fork", r#"{"/conversation":"forkNewest"}"#),
    ("fork", "resume", r#"{"/conversation/fork":"67c9c3e6-c7de-48a2-bc6b-8c0c662932f4"}"#),
    ("keep_key", "withhold_keys", r#"{"/inherit/withholdKeys/keep":["A"]}"#),
];

/// The pairs that are rejected by every agent. All other pairs take effect.
const REFUSED: &[(&str, &str)] = &[
    ("append_system_prompt", "append_system_prompt_file"),
    ("attach", "batch"),
    ("background_tasks", "mode"),
    // `tools` also allows what batch output cannot show.
    ("batch", "retries"),
    ("batch", "whole_messages"),
    ("continue_last", "resume"),
    ("env_only", "keep_key"),
    ("env_only", "withhold_keys"),
    ("quiet", "verbose"),
    ("system_prompt", "system_prompt_file"),
];

/// The options that have their effect before the plan: `profile` selects values, which have their own rows.
const ELSEWHERE: [&str; 2] = ["help", "profile"];

/// The commands under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    Run,
    Session,
}

impl Subject {
    fn definition(self) -> clap::Command {
        let command = clap::Command::new("teamster").no_binary_name(true);
        match self {
            Self::Run => RunArgs::augment_args(command),
            Self::Session => SessionArgs::augment_args(command),
        }
    }

    fn ids(self) -> Vec<String> {
        let definition = self.definition();
        let options =
            definition.get_arguments().filter(|arg| arg.get_long().is_some_and(|long| !ELSEWHERE.contains(&long)));
        options.map(|arg| arg.get_id().to_string()).collect()
    }
}

fn row(id: &str) -> &'static (&'static str, &'static [&'static str], &'static [&'static str]) {
    ROWS.iter().find(|(name, _, _)| *name == id).unwrap_or_else(|| panic!("{id} has no row"))
}

/// Returns what these options change of a plan without options.
fn effect(subject: Subject, definition: &clap::Command, ids: &[&str]) -> Result<(Value, RunRequest), String> {
    let is_met = |needed: &[&str]| needed.iter().any(|id| ids.contains(id));
    let missing = |id: &&str| row(id).2.first().filter(|_| !is_met(row(id).2)).copied();
    let needed: BTreeSet<&str> = ids.iter().copied().chain(ids.iter().filter_map(missing)).collect();
    let options = needed.iter().flat_map(|id| row(id).1).copied();
    let words: Vec<&str> = options.chain((subject == Subject::Run).then_some("hi")).collect();
    let matches = definition.clone().try_get_matches_from(words).map_err(|error| error.to_string())?;
    let files: Vec<(&str, &[u8])> =
        vec![("text", b"from a file"), ("config.toml", b"[agents.other]\ncommand = 'other'\nprotocol = 'acp'\n")];
    let mut inputs = TestInputs { files, stdin: Some(b"piped"), ..TestInputs::default() };
    let (plan, format) = match subject {
        Subject::Run => {
            let plan =
                plan_run(RunArgs::from_arg_matches(&matches).unwrap(), &mut inputs).map_err(|e| e.to_string())?;
            let RunPlan { agent, runtime, request, format, progress, tool_output, usage_journal, .. } = plan;
            (
                SessionPlan {
                    agent,
                    runtime,
                    request,
                    tool_output,
                    resumed: None,
                    usage_journal,
                    saved_rules: SavedRules::default(),
                },
                Some((format, progress)),
            )
        }
        Subject::Session => {
            let args = SessionArgs::from_arg_matches(&matches).unwrap();
            let (background_tasks, timeout) = (args.background_tasks, Duration::ZERO);
            let mut plan = plan_session(args.conversation, timeout, &mut inputs).map_err(|e| e.to_string())?;
            plan.request.background_tasks = background_tasks;
            plan.request.validate_session().map_err(|error| error.to_string())?;
            (plan, None)
        }
    };
    let agents: Vec<&str> = plan.runtime.registry().names().collect();
    let mut changed = changed_fields(&plan.agent, &plan.request);
    changed["registry"] = json!(agents);
    changed["format"] = json!(format.map(|(format, _)| format!("{format:?}")));
    changed["toolOutput"] = json!(plan.tool_output.map(|amount| format!("{amount:?}")));
    changed["progress"] = json!(format.map(|(_, progress)| format!("{progress:?}")));
    changed["usageJournal"] = json!(plan.usage_journal);
    changed["record"] = json!({ "file": plan.request.record, "raw": plan.request.record_raw });
    changed["record"]["force"] = json!(plan.request.record_overwrite);
    changed["control"] = json!(format!("{:?}", plan.runtime).contains("requires_process_control: true"));
    Ok((changed, plan.request))
}

/// Returns the members of `changed` that differ from `base`, by path.
fn difference(base: &Value, changed: &Value) -> BTreeMap<String, Value> {
    fn leaves(path: &str, value: &Value, found: &mut BTreeMap<String, Value>) {
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                fields.iter().for_each(|(name, value)| leaves(&format!("{path}/{name}"), value, found));
            }
            _ => _ = found.insert(path.to_owned(), value.clone()),
        }
    }
    let (mut old, mut new) = (BTreeMap::new(), BTreeMap::new());
    leaves("", base, &mut old);
    leaves("", changed, &mut new);
    new.retain(|path, value| old.get(path) != Some(value));
    new
}

fn pairs(subject: Subject) -> Vec<(String, String)> {
    let mut ids = subject.ids();
    ids.sort();
    let pairs =
        ids.iter().enumerate().flat_map(|(at, first)| ids.iter().skip(at + 1).map(move |second| (first, second)));
    pairs.map(|(first, second)| (first.clone(), second.clone())).collect()
}

#[test]
fn every_option_is_in_the_table() {
    let known: BTreeSet<String> = ROWS.iter().map(|(id, _, _)| (*id).to_owned()).collect();
    let defined = [Subject::Run, Subject::Session].into_iter().flat_map(Subject::ids).collect();
    assert_eq!(known, defined);
}

#[test]
fn every_pair_of_options_takes_effect_or_is_rejected_as_the_table_states() {
    for subject in [Subject::Run, Subject::Session] {
        let definition = subject.definition();
        let (base, _) = effect(subject, &definition, &[]).unwrap();
        let single = |id: &str| match effect(subject, &definition, &[id]) {
            Ok((changed, _)) => difference(&base, &changed),
            Err(error) => panic!("{id}: {error}"),
        };
        let singles: BTreeMap<String, _> = subject.ids().into_iter().map(|id| (id.clone(), single(&id))).collect();
        for (first, second) in pairs(subject) {
            let is_refused = REFUSED.contains(&(&first, &second));
            match effect(subject, &definition, &[&first, &second]) {
                Err(error) => assert!(is_refused, "{subject:?} rejects --{first} with --{second}: {error}"),
                Ok((changed, _)) => {
                    assert!(!is_refused, "{subject:?} accepts --{first} with --{second}");
                    let found = difference(&base, &changed);
                    let combined = COMBINED.iter().find(|(one, other, _)| (*one, *other) == (&first, &second));
                    let merged: BTreeMap<_, _> =
                        singles[&first].clone().into_iter().chain(singles[&second].clone()).collect();
                    assert!(
                        !singles[&first].is_empty() && !singles[&second].is_empty(),
                        "no effect: {first} or {second}"
                    );
                    let expected = combined.map_or(merged, |(_, _, text)| serde_json::from_str(text).unwrap());
                    assert_eq!(found, expected, "{subject:?} with --{first} and --{second}");
                }
            }
        }
    }
}

/// Returns how an agent takes a request: its warnings, or its rejection.
fn answer_of(agent: &str, request: &RunRequest, is_session: bool) -> Result<BTreeSet<String>, String> {
    let registry = Registry::default();
    let agent = registry.get(agent).unwrap();
    let mut request = request.clone();
    request.cwd.get_or_insert_with(|| "/project".into());
    request.attachments.iter_mut().for_each(|file| {
        *file = Attachment::Data { name: "a.png".to_owned(), data: b"\x89PNG\r\n\x1a\n".to_vec() };
    });
    let checked = agent.capabilities().map_or(Ok(Vec::new()), |can| can.check(agent.name(), &request));
    let warnings = checked.map_err(|error| error.to_string())?;
    let has_process = is_session && agent.plan_session(&request).map_err(|error| error.to_string())?.is_some();
    if !has_process {
        "x".clone_into(&mut request.prompt);
        agent.plan(&request).map_err(|error| error.to_string())?;
    }
    Ok(warnings.into_iter().map(|warning| warning.message.into_string()).collect())
}

#[test]
fn an_agent_rejects_or_warns_about_a_pair_if_it_does_so_for_one_option_or_as_listed() {
    let mut listed = Vec::new();
    for subject in [Subject::Run, Subject::Session] {
        let definition = subject.definition();
        let request = |ids: &[&str]| effect(subject, &definition, ids).map(|(_, request)| request);
        let ids: Vec<String> = subject.ids().into_iter().filter(|id| id != "agent").collect();
        let requests: BTreeMap<_, _> = ids.iter().map(|id| (id.clone(), request(&[id]).unwrap())).collect();
        let pairs: Vec<_> = pairs(subject)
            .into_iter()
            .filter(|(first, second)| requests.contains_key(first) && requests.contains_key(second))
            .filter_map(|(first, second)| Some((request(&[&first, &second]).ok()?, first, second)))
            .collect();
        for agent in ["claude", "codex", "gemini", "opencode"] {
            let single = |id: &String| answer_of(agent, &requests[id], subject == Subject::Session);
            let singles: BTreeMap<_, _> = ids.iter().map(|id| (id, single(id))).collect();
            for (request, first, second) in &pairs {
                let (Ok(one), Ok(other)) = (&singles[first], &singles[second]) else { continue };
                match answer_of(agent, request, subject == Subject::Session) {
                    Ok(warnings) => assert_eq!(warnings, one | other, "{agent}: {first} and {second}"),
                    Err(error) => listed.push(format!("{subject:?} {agent} {first} {second}: {error}")),
                }
            }
        }
    }
    assert_snapshot!(listed.join("\n"), @r"
    Run claude batch max_tokens: claude does not support max_tokens: only streaming output reports tokens in time
    Run claude batch prompt_mode: claude does not support a literal prompt in batch or exec mode: plain text is always interpreted; use streaming output in mode auto
    Run claude max_tokens whole_messages: claude does not support max_tokens: only streaming output reports tokens in time
    Run codex batch max_tokens: codex does not support max_tokens in exec mode: it reports tokens only at the end of the run
    Run codex cli_arg max_tokens: codex does not support max_tokens in exec mode: it reports tokens only at the end of the run
    Run gemini mcp_config project_trust: gemini does not support mcp_servers with project_trust=untrusted: the CLI starts no server there
    Run opencode cli_arg schema: opencode does not support schema: `opencode run` cannot enforce a schema; the server interface can
    Run opencode keep_background schema: opencode does not support schema: `opencode run` cannot enforce a schema; the server interface can
    Session claude max_tokens whole_messages: claude does not support max_tokens: only streaming output reports tokens in time
    Session codex cli_arg max_tokens: codex does not support max_tokens in exec mode: it reports tokens only at the end of the run
    Session gemini mcp_config project_trust: gemini does not support mcp_servers with project_trust=untrusted: the CLI starts no server there
    Session opencode cli_arg schema: opencode does not support schema: `opencode run` cannot enforce a schema; the server interface can
    Session opencode keep_background schema: opencode does not support schema: `opencode run` cannot enforce a schema; the server interface can
    ");
}
