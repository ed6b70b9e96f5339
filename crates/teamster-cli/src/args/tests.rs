mod packaging;

use insta::assert_snapshot;

use super::*;

#[test]
fn session_rejects_options_that_apply_to_runs_only() {
    for option in [&["--retries", "1"][..], &["--batch"], &["--output", "json"], &["--attach", "a"], &["hello"]] {
        let argv: Vec<&str> = std::iter::once(&"session").chain(option).copied().collect();
        assert!(help_or_error(&argv).starts_with("error: unexpected argument"), "{option:?}");
    }
}

/// Returns clap's help or error text, wrapped at 80 columns.
fn help_or_error(argv: &[&str]) -> String {
    let argv = std::iter::once("teamster").chain(argv.iter().copied());
    let error = command().term_width(80).try_get_matches_from(argv).expect_err("help, or an error");
    error.render().to_string()
}

#[test]
fn the_clap_definition_is_valid() {
    command().debug_assert();
}

#[test]
fn short_help_fits_one_screen() {
    for command in AGENT_COMMANDS {
        let help = help_or_error(&[command, "-h"]);
        assert_snapshot!(format!("{command}_short_help"), help);
        assert!(help.lines().count() <= 46, "{} lines", help.lines().count());
        assert!(help.lines().all(|line| line.chars().count() <= 80), "{help}");
    }
}

#[test]
fn long_help_is_complete() {
    let help = help_or_error(&["run", "--help"]);
    assert_snapshot!("run_long_help", help);
    for command in ["chat", "session"] {
        assert_snapshot!(format!("{command}_long_help"), help_or_error(&[command, "--help"]));
    }
}

#[cfg(feature = "serve")]
#[test]
fn the_command_lists_its_subcommands() {
    assert_snapshot!(help_or_error(&["--help"]), @r"
    Run AI agent CLIs with one interface

    Usage: teamster [OPTIONS] <COMMAND>

    Commands:
      run            Run an agent with one prompt
      chat           Chat with an agent in the terminal
      session        Run a session for a program: JSON commands in, events out
      sessions       List the sessions that can be resumed
      doctor         Check which agents can run here
      usage          Sum tokens and cost of earlier runs
      serve          Run the gateway: an HTTP API and channels for agents
      send           Send a message to a gateway and show the answer
      conversations  List the conversations of a gateway
      tail           Follow a conversation of a gateway
      approve        Answer permission requests of agents in a gateway
      store          Back up and restore the store of a gateway
      config         Show and edit the configuration
      replay         Print a recording (teamster run --record FILE)
      fake           Imitate an agent's CLI, from a scenario or a recording
      man            Show the manual page of teamster, or of one of its commands
      completions    Print a shell completion script
      help           Print this message or the help of the given subcommand(s)

    Options:
      -h, --help
              Print help (see a summary with '-h')

      -V, --version
              Print version

    Output:
          --log <FILTER>
              Log to stderr by this filter, such as teamster=debug

          --log-file <FILE>
              Append the log to this file instead [--log teamster=debug]
    ");
}

#[test]
fn options_that_exclude_each_other_are_rejected() {
    let cases: &[&[&str]] = &[
        &["--resume", "a", "--continue", "hi"],
        &["--fork", "hi"],
        &["--retry-even-after", "tools", "hi"],
        &["--system-prompt", "a", "--system-prompt-file", "b", "hi"],
        &["--append-system-prompt", "a", "--append-system-prompt-file", "b", "hi"],
        &["--batch", "--whole-messages", "hi"],
        &["--batch", "--attach", "a", "hi"],
        &["--env-only", "A", "--withhold-keys", "hi"],
        &["--keep-key", "A", "hi"],
        &["hi", "--", "ho"],
    ];
    let lines: Vec<String> = cases.iter().map(|argv| first_line(argv)).collect();
    assert_snapshot!(lines.join("\n"), @r"
    error: the argument '--resume [<ID>]' cannot be used with '--continue'
    error: the following required arguments were not provided:   <--resume [<ID>]|--continue>
    error: the following required arguments were not provided:   --retries <N>
    error: the argument '--system-prompt <TEXT>' cannot be used with '--system-prompt-file <FILE>'
    error: the argument '--append-system-prompt <TEXT>' cannot be used with '--append-system-prompt-file <FILE>'
    error: the argument '--batch' cannot be used with '--whole-messages'
    error: the argument '--batch' cannot be used with '--attach <FILE>'
    error: the argument '--env-only <NAME,...>' cannot be used with '--withhold-keys'
    error: the following required arguments were not provided:   --withhold-keys
    error: the argument '[PROMPT]' cannot be used with '[WORD AFTER --]...'
    ");
}

#[test]
fn an_invalid_value_is_rejected_with_one_line() {
    let cases: &[&[&str]] = &[
        &["--permission", "all", "hi"],
        &["--output", "xml", "hi"],
        &["--timeout", "90", "hi"],
        &["--timeout", "soon", "hi"],
        &["--max-turns", "0", "hi"],
        &["--max-turns", "-1", "hi"],
        &["--max-budget", "-1", "hi"],
        &["--max-budget", "inf", "hi"],
        &["--env", "NAME", "hi"],
        &["--env", "=value", "hi"],
        &["--cwd", "", "hi"],
        &["--retries", "101", "hi"],
        &["--retries", "-1", "hi"],
        &["--retries", "1", "--retry-even-after", "all", "hi"],
        &["--allow-tool", "Bash(", "hi"],
        &["--deny-tool", "Bash(rm:*", "hi"],
        &["--allow-tool", "Read, Edit", "hi"],
        &["--retry", "3", "hi"],
        &["two", "words"],
    ];
    let lines: Vec<String> = cases.iter().map(|argv| first_line(argv)).collect();
    assert_snapshot!(lines.join("\n"), @r"
    error: invalid value 'all' for '--permission <MODE>'   [possible values: read-only, ask, edit, full]
    error: invalid value 'xml' for '--output <FORMAT>'   [possible values: pretty, text, ndjson, json]
    error: invalid value '90' for '--timeout <DURATION>': time unit needed, for example 90sec or 90ms (write 500ms, 90s, 5m, 1h30m, or 0)
    error: invalid value 'soon' for '--timeout <DURATION>': expected number at 0 (write 500ms, 90s, 5m, 1h30m, or 0)
    error: invalid value '0' for '--max-turns <N>': a whole number from 1 is needed
    error: invalid value '-1' for '--max-turns <N>': a whole number from 1 is needed
    error: invalid value '-1' for '--max-budget <USD>': a positive amount of US dollars is needed, such as 0.5
    error: invalid value 'inf' for '--max-budget <USD>': a positive amount of US dollars is needed, such as 0.5
    error: invalid value 'NAME' for '--env <NAME=VALUE>': NAME=VALUE is needed
    error: invalid value '=value' for '--env <NAME=VALUE>': NAME=VALUE is needed
    error: a value is required for '--cwd <DIR>' but none was supplied
    error: invalid value '101' for '--retries <N>': a whole number up to 100 is needed
    error: invalid value '-1' for '--retries <N>': a whole number up to 100 is needed
    error: invalid value 'all' for '--retry-even-after <WHAT>'   [possible values: prompt, tools]
    error: invalid value 'Bash(' for '--allow-tool <RULE>': the closing bracket is missing; use TOOL, TOOL(WORDS:*), TOOL(PATTERN) or mcp__SERVER__TOOL
    error: invalid value 'Bash(rm:*' for '--deny-tool <RULE>': the closing bracket is missing; use TOOL, TOOL(WORDS:*), TOOL(PATTERN) or mcp__SERVER__TOOL
    error: invalid value 'Read, Edit' for '--allow-tool <RULE>': the tool's name contains a space, a bracket, a quote or a comma; use TOOL, TOOL(WORDS:*), TOOL(PATTERN) or mcp__SERVER__TOOL
    error: unexpected argument '--retry' found
    error: unexpected argument 'words' found
    ");
}

fn first_line(argv: &[&str]) -> String {
    let argv: Vec<&str> = std::iter::once("run").chain(argv.iter().copied()).collect();
    help_or_error(&argv).lines().take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}
