# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_teamster_global_optspecs
    string join \n log= log-file= h/help V/version
end

function __fish_teamster_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_teamster_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_teamster_using_subcommand
    set -l cmd (__fish_teamster_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c teamster -n "__fish_teamster_needs_command" -l log -d 'Log to stderr by this filter, such as teamster=debug' -r
complete -c teamster -n "__fish_teamster_needs_command" -l log-file -d 'Append the log to this file instead [--log teamster=debug]' -r -F
complete -c teamster -n "__fish_teamster_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c teamster -n "__fish_teamster_needs_command" -s V -l version -d 'Print version'
complete -c teamster -n "__fish_teamster_needs_command" -f -a "doctor" -d 'Check which agents can run here'
complete -c teamster -n "__fish_teamster_needs_command" -f -a "usage" -d 'Sum tokens and cost of earlier runs'
complete -c teamster -n "__fish_teamster_needs_command" -f -a "config" -d 'Show and edit the configuration'
complete -c teamster -n "__fish_teamster_needs_command" -f -a "replay" -d 'Print a recording (teamster run --record FILE)'
complete -c teamster -n "__fish_teamster_needs_command" -f -a "fake" -d 'Imitate an agent\'s CLI, from a scenario or a recording'
complete -c teamster -n "__fish_teamster_needs_command" -f -a "completions" -d 'Print a shell completion script'
complete -c teamster -n "__fish_teamster_needs_command" -f -a "run" -d 'Run an agent with one prompt'
complete -c teamster -n "__fish_teamster_needs_command" -f -a "chat" -d 'Chat with an agent in the terminal'
complete -c teamster -n "__fish_teamster_needs_command" -f -a "session" -d 'Run a session for a program: JSON commands in, events out'
complete -c teamster -n "__fish_teamster_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c teamster -n "__fish_teamster_using_subcommand doctor" -s a -l agent -d 'Require this agent to run; all agents are checked' -r -f -a "acp\t''
claude\t''
codex\t''
gemini\t''
opencode\t''"
complete -c teamster -n "__fish_teamster_using_subcommand doctor" -l cli-path -d 'Use this program as the chosen agent\'s CLI' -r -F
complete -c teamster -n "__fish_teamster_using_subcommand doctor" -l config -d 'Read definitions of further agents from this TOML file' -r -F
complete -c teamster -n "__fish_teamster_using_subcommand doctor" -l log -d 'Log to stderr by this filter, such as teamster=debug' -r
complete -c teamster -n "__fish_teamster_using_subcommand doctor" -l log-file -d 'Append the log to this file instead [--log teamster=debug]' -r -F
complete -c teamster -n "__fish_teamster_using_subcommand doctor" -l sweep -d 'Kill processes and remove files of crashed runs'
complete -c teamster -n "__fish_teamster_using_subcommand doctor" -l restore -d 'Remove entries of crashed runs from configuration files'
complete -c teamster -n "__fish_teamster_using_subcommand doctor" -s v -l verbose -d 'Print the program, credentials and unsupported options too'
complete -c teamster -n "__fish_teamster_using_subcommand doctor" -l json -d 'Print one JSON document'
complete -c teamster -n "__fish_teamster_using_subcommand doctor" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c teamster -n "__fish_teamster_using_subcommand usage" -l by -d 'Sum by: day (default), agent, model or directory' -r -f -a "day\t''
agent\t''
model\t''
directory\t''"
complete -c teamster -n "__fish_teamster_using_subcommand usage" -l since -d 'Count only later runs: 7d, 12h or 2026-11-24' -r
complete -c teamster -n "__fish_teamster_using_subcommand usage" -l output -d 'Print as: text (default) or json' -r -f -a "text\t''
json\t''"
complete -c teamster -n "__fish_teamster_using_subcommand usage" -l usage-journal -d 'Read this journal instead of the configured one' -r -F
complete -c teamster -n "__fish_teamster_using_subcommand usage" -l profile -d 'Use this profile of the configuration file' -r
complete -c teamster -n "__fish_teamster_using_subcommand usage" -l config -d 'Use this configuration file' -r -F
complete -c teamster -n "__fish_teamster_using_subcommand usage" -l log -d 'Log to stderr by this filter, such as teamster=debug' -r
complete -c teamster -n "__fish_teamster_using_subcommand usage" -l log-file -d 'Append the log to this file instead [--log teamster=debug]' -r -F
complete -c teamster -n "__fish_teamster_using_subcommand usage" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c teamster -n "__fish_teamster_using_subcommand config; and not __fish_seen_subcommand_from show init path edit trust help" -l config -d 'Use this file instead of ~/.config/teamster/config.toml' -r -F
complete -c teamster -n "__fish_teamster_using_subcommand config; and not __fish_seen_subcommand_from show init path edit trust help" -l log -d 'Log to stderr by this filter, such as teamster=debug' -r
complete -c teamster -n "__fish_teamster_using_subcommand config; and not __fish_seen_subcommand_from show init path edit trust help" -l log-file -d 'Append the log to this file instead [--log teamster=debug]' -r -F
complete -c teamster -n "__fish_teamster_using_subcommand config; and not __fish_seen_subcommand_from show init path edit trust help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c teamster -n "__fish_teamster_using_subcommand config; and not __fish_seen_subcommand_from show init path edit trust help" -f -a "show" -d 'Print each setting with its value and its origin'
complete -c teamster -n "__fish_teamster_using_subcommand config; and not __fish_seen_subcommand_from show init path edit trust help" -f -a "init" -d 'Write a configuration file with every setting as a comment'
complete -c teamster -n "__fish_teamster_using_subcommand config; and not __fish_seen_subcommand_from show init path edit trust help" -f -a "path" -d 'Print the path of the configuration file'
complete -c teamster -n "__fish_teamster_using_subcommand config; and not __fish_seen_subcommand_from show init path edit trust help" -f -a "edit" -d 'Open the configuration file in $VISUAL or $EDITOR, then check it'
complete -c teamster -n "__fish_teamster_using_subcommand config; and not __fish_seen_subcommand_from show init path edit trust help" -f -a "trust" -d 'Use the file .teamster.toml of a directory'
complete -c teamster -n "__fish_teamster_using_subcommand config; and not __fish_seen_subcommand_from show init path edit trust help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c teamster -n "__fish_teamster_using_subcommand config; and __fish_seen_subcommand_from show" -l profile -d 'Use this profile' -r
complete -c teamster -n "__fish_teamster_using_subcommand config; and __fish_seen_subcommand_from show" -s C -l cwd -d 'Use the project of this directory' -r -f -a "(__fish_complete_directories)"
complete -c teamster -n "__fish_teamster_using_subcommand config; and __fish_seen_subcommand_from show" -l config -d 'Use this file instead of ~/.config/teamster/config.toml' -r -F
complete -c teamster -n "__fish_teamster_using_subcommand config; and __fish_seen_subcommand_from show" -l log -d 'Log to stderr by this filter, such as teamster=debug' -r
complete -c teamster -n "__fish_teamster_using_subcommand config; and __fish_seen_subcommand_from show" -l log-file -d 'Append the log to this file instead [--log teamster=debug]' -r -F
complete -c teamster -n "__fish_teamster_using_subcommand config; and __fish_seen_subcommand_from show" -l all -d 'Print the settings without a value too'
complete -c teamster -n "__fish_teamster_using_subcommand config; and __fish_seen_subcommand_from show" -l json -d 'Print one JSON document'
complete -c teamster -n "__fish_teamster_using_subcommand config; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c teamster -n "__fish_teamster_using_subcommand config; and __fish_seen_subcommand_from init" -l config -d 'Use this file instead of ~/.config/teamster/config.toml' -r -F
complete -c teamster -n "__fish_teamster_using_subcommand config; and __fish_seen_subcommand_from init" -l log -d 'Log to stderr by this filter, such as teamster=debug' -r
complete -c teamster -n "__fish_teamster_using_subcommand config; and __fish_seen_subcommand_from init" -l log-file -d 'Append the log to this file instead [--log teamster=debug]' -r -F
complete -c teamster -n "__fish_teamster_using_subcommand config; and __fish_seen_subcommand_from init" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c teamster -n "__fish_teamster_using_subcommand config; and __fish_seen_subcommand_from path" -l config -d 'Use this file instead of ~/.config/teamster/config.toml' -r -F
complete -c teamster -n "__fish_teamster_using_subcommand config; and __fish_seen_subcommand_from path" -l log -d 'Log to stderr by this filter, such as teamster=debug' -r
complete -c teamster -n "__fish_teamster_using_subcommand config; and __fish_seen_subcommand_from path" -l log-file -d 'Append the log to this file instead [--log teamster=debug]' -r -F
complete -c teamster -n "__fish_teamster_using_subcommand config; and __fish_seen_subcommand_from path" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c teamster -n "__fish_teamster_using_subcommand config; and __fish_seen_subcommand_from edit" -l config -d 'Use this file instead of ~/.config/teamster/config.toml' -r -F
complete -c teamster -n "__fish_teamster_using_subcommand config; and __fish_seen_subcommand_from edit" -l log -d 'Log to stderr by this filter, such as teamster=debug' -r
complete -c teamster -n "__fish_teamster_using_subcommand config; and __fish_seen_subcommand_from edit" -l log-file -d 'Append the log to this file instead [--log teamster=debug]' -r -F
complete -c teamster -n "__fish_teamster_using_subcommand config; and __fish_seen_subcommand_from edit" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c teamster -n "__fish_teamster_using_subcommand config; and __fish_seen_subcommand_from trust" -l config -d 'Use this file instead of ~/.config/teamster/config.toml' -r -F
complete -c teamster -n "__fish_teamster_using_subcommand config; and __fish_seen_subcommand_from trust" -l log -d 'Log to stderr by this filter, such as teamster=debug' -r
complete -c teamster -n "__fish_teamster_using_subcommand config; and __fish_seen_subcommand_from trust" -l log-file -d 'Append the log to this file instead [--log teamster=debug]' -r -F
complete -c teamster -n "__fish_teamster_using_subcommand config; and __fish_seen_subcommand_from trust" -l remove -d 'Remove the directory from the trusted ones'
complete -c teamster -n "__fish_teamster_using_subcommand config; and __fish_seen_subcommand_from trust" -l list -d 'Print the trusted directories'
complete -c teamster -n "__fish_teamster_using_subcommand config; and __fish_seen_subcommand_from trust" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c teamster -n "__fish_teamster_using_subcommand config; and __fish_seen_subcommand_from help" -f -a "show" -d 'Print each setting with its value and its origin'
complete -c teamster -n "__fish_teamster_using_subcommand config; and __fish_seen_subcommand_from help" -f -a "init" -d 'Write a configuration file with every setting as a comment'
complete -c teamster -n "__fish_teamster_using_subcommand config; and __fish_seen_subcommand_from help" -f -a "path" -d 'Print the path of the configuration file'
complete -c teamster -n "__fish_teamster_using_subcommand config; and __fish_seen_subcommand_from help" -f -a "edit" -d 'Open the configuration file in $VISUAL or $EDITOR, then check it'
complete -c teamster -n "__fish_teamster_using_subcommand config; and __fish_seen_subcommand_from help" -f -a "trust" -d 'Use the file .teamster.toml of a directory'
complete -c teamster -n "__fish_teamster_using_subcommand config; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c teamster -n "__fish_teamster_using_subcommand replay" -l speed -d 'Set the speed factor; 0 means without pauses [default: 1]' -r
complete -c teamster -n "__fish_teamster_using_subcommand replay" -l output -d 'Print as: pretty (default), text, ndjson or json' -r -f -a "pretty\t''
text\t''
ndjson\t''
json\t''"
complete -c teamster -n "__fish_teamster_using_subcommand replay" -l log -d 'Log to stderr by this filter, such as teamster=debug' -r
complete -c teamster -n "__fish_teamster_using_subcommand replay" -l log-file -d 'Append the log to this file instead [--log teamster=debug]' -r -F
complete -c teamster -n "__fish_teamster_using_subcommand replay" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c teamster -n "__fish_teamster_using_subcommand fake" -l agent -d 'Imitate the CLI of claude, codex, gemini or opencode' -r
complete -c teamster -n "__fish_teamster_using_subcommand fake" -l script -d 'Play a scenario, a recording, or the testkit\'s JSON steps' -r -F
complete -c teamster -n "__fish_teamster_using_subcommand fake" -l process -d 'Play this process of the recording [default: 1]' -r
complete -c teamster -n "__fish_teamster_using_subcommand fake" -l speed -d 'Set the speed factor; 0 means without pauses [default: 0]' -r
complete -c teamster -n "__fish_teamster_using_subcommand fake" -l log -d 'Log to stderr by this filter, such as teamster=debug' -r
complete -c teamster -n "__fish_teamster_using_subcommand fake" -l log-file -d 'Append the log to this file instead [--log teamster=debug]' -r -F
complete -c teamster -n "__fish_teamster_using_subcommand fake" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c teamster -n "__fish_teamster_using_subcommand completions" -l log -d 'Log to stderr by this filter, such as teamster=debug' -r
complete -c teamster -n "__fish_teamster_using_subcommand completions" -l log-file -d 'Append the log to this file instead [--log teamster=debug]' -r -F
complete -c teamster -n "__fish_teamster_using_subcommand completions" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c teamster -n "__fish_teamster_using_subcommand run" -s a -l agent -d 'Use this agent' -r -f -a "acp\t''
claude\t''
codex\t''
gemini\t''
opencode\t''"
complete -c teamster -n "__fish_teamster_using_subcommand run" -l profile -d 'Use this profile of the configuration file' -r
complete -c teamster -n "__fish_teamster_using_subcommand run" -s m -l model -d 'Use this model, named as the agent names it' -r
complete -c teamster -n "__fish_teamster_using_subcommand run" -l effort -d 'Set the reasoning effort, named as the agent names it' -r
complete -c teamster -n "__fish_teamster_using_subcommand run" -s C -l cwd -d 'Set the agent\'s working directory' -r -f -a "(__fish_complete_directories)"
complete -c teamster -n "__fish_teamster_using_subcommand run" -s r -l resume -d 'Resume this session' -r
complete -c teamster -n "__fish_teamster_using_subcommand run" -l system-prompt -d 'Replace the agent\'s system prompt' -r
complete -c teamster -n "__fish_teamster_using_subcommand run" -l system-prompt-file -d 'Replace the agent\'s system prompt with a file\'s text' -r -F
complete -c teamster -n "__fish_teamster_using_subcommand run" -l append-system-prompt -d 'Append to the agent\'s system prompt' -r
complete -c teamster -n "__fish_teamster_using_subcommand run" -l append-system-prompt-file -d 'Append a file\'s text to the agent\'s system prompt' -r -F
complete -c teamster -n "__fish_teamster_using_subcommand run" -l schema -d 'Require an answer that matches a schema' -r -F
complete -c teamster -n "__fish_teamster_using_subcommand run" -l mcp-config -d 'Add MCP servers (repeatable)' -r -F
complete -c teamster -n "__fish_teamster_using_subcommand run" -l mcp-delivery -d 'Deliver MCP servers by: auto (default) or merge-restore' -r -f -a "auto\t''
merge-restore\t''"
complete -c teamster -n "__fish_teamster_using_subcommand run" -l permission -d 'Allow: read-only, ask (default), edit or full' -r -f -a "read-only\t''
ask\t''
edit\t''
full\t''"
complete -c teamster -n "__fish_teamster_using_subcommand run" -l allow-tool -d 'Allow this tool (repeatable)' -r
complete -c teamster -n "__fish_teamster_using_subcommand run" -l deny-tool -d 'Deny this tool (repeatable)' -r
complete -c teamster -n "__fish_teamster_using_subcommand run" -l add-dir -d 'Let the agent use this directory too (repeatable)' -r -f -a "(__fish_complete_directories)"
complete -c teamster -n "__fish_teamster_using_subcommand run" -l project-trust -d 'Treat the project as: trusted (default) or untrusted' -r -f -a "trusted\t''
untrusted\t''"
complete -c teamster -n "__fish_teamster_using_subcommand run" -l prompt-mode -d 'Interpret the prompt: agent (default) or literal' -r -f -a "agent\t''
literal\t''"
complete -c teamster -n "__fish_teamster_using_subcommand run" -l max-turns -d 'Stop after this many calls of the model' -r
complete -c teamster -n "__fish_teamster_using_subcommand run" -l max-tokens -d 'Stop a run (or a session\'s turn) after this many tokens' -r
complete -c teamster -n "__fish_teamster_using_subcommand run" -l max-session-tokens -d 'Limit the tokens of all turns of a session' -r
complete -c teamster -n "__fish_teamster_using_subcommand run" -l max-session-budget -d 'Limit the cost of all turns of a session' -r
complete -c teamster -n "__fish_teamster_using_subcommand run" -l max-budget -d 'Stop a run that costs more, in US dollars' -r
complete -c teamster -n "__fish_teamster_using_subcommand run" -l timeout -d 'Stop a run that is silent this long [default: 5m]' -r
complete -c teamster -n "__fish_teamster_using_subcommand run" -l startup-timeout -d 'Stop a run without output after its start [default: 2m]' -r
complete -c teamster -n "__fish_teamster_using_subcommand run" -l tool-timeout -d 'Limit silence while a tool runs [default: 30m]' -r
complete -c teamster -n "__fish_teamster_using_subcommand run" -l deadline -d 'Stop a run that takes longer than this' -r
complete -c teamster -n "__fish_teamster_using_subcommand run" -l grace -d 'Wait this long for the agent to exit [default: 1.5s]' -r
complete -c teamster -n "__fish_teamster_using_subcommand run" -l cli-path -d 'Run this program as the agent\'s CLI' -r -f -a "(__fish_complete_command)"
complete -c teamster -n "__fish_teamster_using_subcommand run" -l config -d 'Use this configuration file' -r -F
complete -c teamster -n "__fish_teamster_using_subcommand run" -l mode -d 'Use the CLI\'s interface: auto (default), exec or spawn' -r -f -a "auto\t''
exec\t''
spawn\t''"
complete -c teamster -n "__fish_teamster_using_subcommand run" -l cli-arg -d 'Pass this argument to the CLI unchanged (repeatable)' -r
complete -c teamster -n "__fish_teamster_using_subcommand run" -l record -d 'Record the CLI\'s input and output in this file' -r -F
complete -c teamster -n "__fish_teamster_using_subcommand run" -l env -d 'Set an environment variable for the CLI (repeatable)' -r
complete -c teamster -n "__fish_teamster_using_subcommand run" -l env-only -d 'Pass only these environment variables on (repeatable)' -r
complete -c teamster -n "__fish_teamster_using_subcommand run" -l keep-key -d 'With --withhold-keys: pass these keys on (repeatable)' -r
complete -c teamster -n "__fish_teamster_using_subcommand run" -l tool-output -d 'Show the output of tools: none, short or full' -r -f -a "none\t''
short\t''
full\t''"
complete -c teamster -n "__fish_teamster_using_subcommand run" -l usage-journal -d 'Append tokens and cost of each run to this file' -r -F
complete -c teamster -n "__fish_teamster_using_subcommand run" -l label -d 'Add this label to every event and log line (repeatable)' -r
complete -c teamster -n "__fish_teamster_using_subcommand run" -l stdin -d 'Use standard input: auto (default), read or ignore' -r -f -a "auto\t''
read\t''
ignore\t''"
complete -c teamster -n "__fish_teamster_using_subcommand run" -l attach -d 'Send this file with the prompt (repeatable)' -r -F
complete -c teamster -n "__fish_teamster_using_subcommand run" -l retries -d 'Retry a run up to N times after a transient failure' -r
complete -c teamster -n "__fish_teamster_using_subcommand run" -l retry-even-after -d 'With --retries: retry even after: prompt or tools' -r -f -a "prompt\t''
tools\t''"
complete -c teamster -n "__fish_teamster_using_subcommand run" -l output -d 'Print as: pretty (default), text, ndjson or json' -r -f -a "pretty\t''
text\t''
ndjson\t''
json\t''"
complete -c teamster -n "__fish_teamster_using_subcommand run" -l log -d 'Log to stderr by this filter, such as teamster=debug' -r
complete -c teamster -n "__fish_teamster_using_subcommand run" -l log-file -d 'Append the log to this file instead [--log teamster=debug]' -r -F
complete -c teamster -n "__fish_teamster_using_subcommand run" -s h -l help -d 'Print help; --help prints more details'
complete -c teamster -n "__fish_teamster_using_subcommand run" -l continue -d 'Resume the newest session of the working directory'
complete -c teamster -n "__fish_teamster_using_subcommand run" -l no-continue
complete -c teamster -n "__fish_teamster_using_subcommand run" -l fork -d 'With --resume or --continue: copy the history into a new session'
complete -c teamster -n "__fish_teamster_using_subcommand run" -l no-fork
complete -c teamster -n "__fish_teamster_using_subcommand run" -l mcp-strict -d 'Ignore MCP servers of the user and of the project'
complete -c teamster -n "__fish_teamster_using_subcommand run" -l no-mcp-strict
complete -c teamster -n "__fish_teamster_using_subcommand run" -l keep-background -d 'Keep background processes after the run'
complete -c teamster -n "__fish_teamster_using_subcommand run" -l no-keep-background
complete -c teamster -n "__fish_teamster_using_subcommand run" -l record-raw -d 'With --record: record the exact bytes, secrets included'
complete -c teamster -n "__fish_teamster_using_subcommand run" -l no-record-raw
complete -c teamster -n "__fish_teamster_using_subcommand run" -l force -d 'With --record: replace an existing file'
complete -c teamster -n "__fish_teamster_using_subcommand run" -l no-force
complete -c teamster -n "__fish_teamster_using_subcommand run" -l require-process-control -d 'Fail if the system prevents full process control'
complete -c teamster -n "__fish_teamster_using_subcommand run" -l no-require-process-control
complete -c teamster -n "__fish_teamster_using_subcommand run" -l withhold-keys -d 'Withhold keys of other services from the CLI'
complete -c teamster -n "__fish_teamster_using_subcommand run" -l no-withhold-keys
complete -c teamster -n "__fish_teamster_using_subcommand run" -l whole-messages -d 'Emit whole messages instead of text deltas'
complete -c teamster -n "__fish_teamster_using_subcommand run" -l no-whole-messages
complete -c teamster -n "__fish_teamster_using_subcommand run" -s q -l quiet -d 'Show no status while the agent works'
complete -c teamster -n "__fish_teamster_using_subcommand run" -l no-quiet
complete -c teamster -n "__fish_teamster_using_subcommand run" -l batch -d 'Use the CLI\'s non-streaming mode'
complete -c teamster -n "__fish_teamster_using_subcommand run" -l no-batch
complete -c teamster -n "__fish_teamster_using_subcommand chat" -s a -l agent -d 'Use this agent' -r -f -a "acp\t''
claude\t''
codex\t''
gemini\t''
opencode\t''"
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l profile -d 'Use this profile of the configuration file' -r
complete -c teamster -n "__fish_teamster_using_subcommand chat" -s m -l model -d 'Use this model, named as the agent names it' -r
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l effort -d 'Set the reasoning effort, named as the agent names it' -r
complete -c teamster -n "__fish_teamster_using_subcommand chat" -s C -l cwd -d 'Set the agent\'s working directory' -r -f -a "(__fish_complete_directories)"
complete -c teamster -n "__fish_teamster_using_subcommand chat" -s r -l resume -d 'Resume this session' -r
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l system-prompt -d 'Replace the agent\'s system prompt' -r
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l system-prompt-file -d 'Replace the agent\'s system prompt with a file\'s text' -r -F
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l append-system-prompt -d 'Append to the agent\'s system prompt' -r
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l append-system-prompt-file -d 'Append a file\'s text to the agent\'s system prompt' -r -F
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l schema -d 'Require an answer that matches a schema' -r -F
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l mcp-config -d 'Add MCP servers (repeatable)' -r -F
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l mcp-delivery -d 'Deliver MCP servers by: auto (default) or merge-restore' -r -f -a "auto\t''
merge-restore\t''"
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l permission -d 'Allow: read-only, ask (default), edit or full' -r -f -a "read-only\t''
ask\t''
edit\t''
full\t''"
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l allow-tool -d 'Allow this tool (repeatable)' -r
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l deny-tool -d 'Deny this tool (repeatable)' -r
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l add-dir -d 'Let the agent use this directory too (repeatable)' -r -f -a "(__fish_complete_directories)"
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l project-trust -d 'Treat the project as: trusted (default) or untrusted' -r -f -a "trusted\t''
untrusted\t''"
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l prompt-mode -d 'Interpret the prompt: agent (default) or literal' -r -f -a "agent\t''
literal\t''"
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l max-turns -d 'Stop after this many calls of the model' -r
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l max-tokens -d 'Stop a run (or a session\'s turn) after this many tokens' -r
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l max-session-tokens -d 'Limit the tokens of all turns of a session' -r
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l max-session-budget -d 'Limit the cost of all turns of a session' -r
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l max-budget -d 'Stop a run that costs more, in US dollars' -r
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l timeout -d 'Stop a run that is silent this long [default: 5m]' -r
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l startup-timeout -d 'Stop a run without output after its start [default: 2m]' -r
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l tool-timeout -d 'Limit silence while a tool runs [default: 30m]' -r
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l deadline -d 'Stop a run that takes longer than this' -r
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l grace -d 'Wait this long for the agent to exit [default: 1.5s]' -r
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l cli-path -d 'Run this program as the agent\'s CLI' -r -f -a "(__fish_complete_command)"
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l config -d 'Use this configuration file' -r -F
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l mode -d 'Use the CLI\'s interface: auto (default), exec or spawn' -r -f -a "auto\t''
exec\t''
spawn\t''"
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l cli-arg -d 'Pass this argument to the CLI unchanged (repeatable)' -r
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l record -d 'Record the CLI\'s input and output in this file' -r -F
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l env -d 'Set an environment variable for the CLI (repeatable)' -r
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l env-only -d 'Pass only these environment variables on (repeatable)' -r
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l keep-key -d 'With --withhold-keys: pass these keys on (repeatable)' -r
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l tool-output -d 'Show the output of tools: none, short or full' -r -f -a "none\t''
short\t''
full\t''"
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l usage-journal -d 'Append tokens and cost of each run to this file' -r -F
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l label -d 'Add this label to every event and log line (repeatable)' -r
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l answer-timeout -d 'Deny a request without an answer in time [default: 5m]' -r
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l keys -d 'Edit with the keys of emacs (default) or vi' -r -f -a "emacs\t''
vi\t''"
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l log -d 'Log to stderr by this filter, such as teamster=debug' -r
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l log-file -d 'Append the log to this file instead [--log teamster=debug]' -r -F
complete -c teamster -n "__fish_teamster_using_subcommand chat" -s h -l help -d 'Print help; --help prints more details'
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l continue -d 'Resume the newest session of the working directory'
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l no-continue
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l fork -d 'With --resume or --continue: copy the history into a new session'
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l no-fork
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l mcp-strict -d 'Ignore MCP servers of the user and of the project'
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l no-mcp-strict
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l keep-background -d 'Keep background processes after the run'
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l no-keep-background
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l record-raw -d 'With --record: record the exact bytes, secrets included'
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l no-record-raw
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l force -d 'With --record: replace an existing file'
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l no-force
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l require-process-control -d 'Fail if the system prevents full process control'
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l no-require-process-control
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l withhold-keys -d 'Withhold keys of other services from the CLI'
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l no-withhold-keys
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l whole-messages -d 'Emit whole messages instead of text deltas'
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l no-whole-messages
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l background-tasks -d 'Allow background commands and subagents between turns'
complete -c teamster -n "__fish_teamster_using_subcommand chat" -l no-background-tasks
complete -c teamster -n "__fish_teamster_using_subcommand session" -s a -l agent -d 'Use this agent' -r -f -a "acp\t''
claude\t''
codex\t''
gemini\t''
opencode\t''"
complete -c teamster -n "__fish_teamster_using_subcommand session" -l profile -d 'Use this profile of the configuration file' -r
complete -c teamster -n "__fish_teamster_using_subcommand session" -s m -l model -d 'Use this model, named as the agent names it' -r
complete -c teamster -n "__fish_teamster_using_subcommand session" -l effort -d 'Set the reasoning effort, named as the agent names it' -r
complete -c teamster -n "__fish_teamster_using_subcommand session" -s C -l cwd -d 'Set the agent\'s working directory' -r -f -a "(__fish_complete_directories)"
complete -c teamster -n "__fish_teamster_using_subcommand session" -s r -l resume -d 'Resume this session' -r
complete -c teamster -n "__fish_teamster_using_subcommand session" -l system-prompt -d 'Replace the agent\'s system prompt' -r
complete -c teamster -n "__fish_teamster_using_subcommand session" -l system-prompt-file -d 'Replace the agent\'s system prompt with a file\'s text' -r -F
complete -c teamster -n "__fish_teamster_using_subcommand session" -l append-system-prompt -d 'Append to the agent\'s system prompt' -r
complete -c teamster -n "__fish_teamster_using_subcommand session" -l append-system-prompt-file -d 'Append a file\'s text to the agent\'s system prompt' -r -F
complete -c teamster -n "__fish_teamster_using_subcommand session" -l schema -d 'Require an answer that matches a schema' -r -F
complete -c teamster -n "__fish_teamster_using_subcommand session" -l mcp-config -d 'Add MCP servers (repeatable)' -r -F
complete -c teamster -n "__fish_teamster_using_subcommand session" -l mcp-delivery -d 'Deliver MCP servers by: auto (default) or merge-restore' -r -f -a "auto\t''
merge-restore\t''"
complete -c teamster -n "__fish_teamster_using_subcommand session" -l permission -d 'Allow: read-only, ask (default), edit or full' -r -f -a "read-only\t''
ask\t''
edit\t''
full\t''"
complete -c teamster -n "__fish_teamster_using_subcommand session" -l allow-tool -d 'Allow this tool (repeatable)' -r
complete -c teamster -n "__fish_teamster_using_subcommand session" -l deny-tool -d 'Deny this tool (repeatable)' -r
complete -c teamster -n "__fish_teamster_using_subcommand session" -l add-dir -d 'Let the agent use this directory too (repeatable)' -r -f -a "(__fish_complete_directories)"
complete -c teamster -n "__fish_teamster_using_subcommand session" -l project-trust -d 'Treat the project as: trusted (default) or untrusted' -r -f -a "trusted\t''
untrusted\t''"
complete -c teamster -n "__fish_teamster_using_subcommand session" -l prompt-mode -d 'Interpret the prompt: agent (default) or literal' -r -f -a "agent\t''
literal\t''"
complete -c teamster -n "__fish_teamster_using_subcommand session" -l max-turns -d 'Stop after this many calls of the model' -r
complete -c teamster -n "__fish_teamster_using_subcommand session" -l max-tokens -d 'Stop a run (or a session\'s turn) after this many tokens' -r
complete -c teamster -n "__fish_teamster_using_subcommand session" -l max-session-tokens -d 'Limit the tokens of all turns of a session' -r
complete -c teamster -n "__fish_teamster_using_subcommand session" -l max-session-budget -d 'Limit the cost of all turns of a session' -r
complete -c teamster -n "__fish_teamster_using_subcommand session" -l max-budget -d 'Stop a run that costs more, in US dollars' -r
complete -c teamster -n "__fish_teamster_using_subcommand session" -l timeout -d 'Stop a run that is silent this long [default: 5m]' -r
complete -c teamster -n "__fish_teamster_using_subcommand session" -l startup-timeout -d 'Stop a run without output after its start [default: 2m]' -r
complete -c teamster -n "__fish_teamster_using_subcommand session" -l tool-timeout -d 'Limit silence while a tool runs [default: 30m]' -r
complete -c teamster -n "__fish_teamster_using_subcommand session" -l deadline -d 'Stop a run that takes longer than this' -r
complete -c teamster -n "__fish_teamster_using_subcommand session" -l grace -d 'Wait this long for the agent to exit [default: 1.5s]' -r
complete -c teamster -n "__fish_teamster_using_subcommand session" -l cli-path -d 'Run this program as the agent\'s CLI' -r -f -a "(__fish_complete_command)"
complete -c teamster -n "__fish_teamster_using_subcommand session" -l config -d 'Use this configuration file' -r -F
complete -c teamster -n "__fish_teamster_using_subcommand session" -l mode -d 'Use the CLI\'s interface: auto (default), exec or spawn' -r -f -a "auto\t''
exec\t''
spawn\t''"
complete -c teamster -n "__fish_teamster_using_subcommand session" -l cli-arg -d 'Pass this argument to the CLI unchanged (repeatable)' -r
complete -c teamster -n "__fish_teamster_using_subcommand session" -l record -d 'Record the CLI\'s input and output in this file' -r -F
complete -c teamster -n "__fish_teamster_using_subcommand session" -l env -d 'Set an environment variable for the CLI (repeatable)' -r
complete -c teamster -n "__fish_teamster_using_subcommand session" -l env-only -d 'Pass only these environment variables on (repeatable)' -r
complete -c teamster -n "__fish_teamster_using_subcommand session" -l keep-key -d 'With --withhold-keys: pass these keys on (repeatable)' -r
complete -c teamster -n "__fish_teamster_using_subcommand session" -l tool-output -d 'Show the output of tools: none, short or full' -r -f -a "none\t''
short\t''
full\t''"
complete -c teamster -n "__fish_teamster_using_subcommand session" -l usage-journal -d 'Append tokens and cost of each run to this file' -r -F
complete -c teamster -n "__fish_teamster_using_subcommand session" -l label -d 'Add this label to every event and log line (repeatable)' -r
complete -c teamster -n "__fish_teamster_using_subcommand session" -l answer-timeout -d 'Deny a request without an answer in time [default: 5m]' -r
complete -c teamster -n "__fish_teamster_using_subcommand session" -l log -d 'Log to stderr by this filter, such as teamster=debug' -r
complete -c teamster -n "__fish_teamster_using_subcommand session" -l log-file -d 'Append the log to this file instead [--log teamster=debug]' -r -F
complete -c teamster -n "__fish_teamster_using_subcommand session" -s h -l help -d 'Print help; --help prints more details'
complete -c teamster -n "__fish_teamster_using_subcommand session" -l continue -d 'Resume the newest session of the working directory'
complete -c teamster -n "__fish_teamster_using_subcommand session" -l no-continue
complete -c teamster -n "__fish_teamster_using_subcommand session" -l fork -d 'With --resume or --continue: copy the history into a new session'
complete -c teamster -n "__fish_teamster_using_subcommand session" -l no-fork
complete -c teamster -n "__fish_teamster_using_subcommand session" -l mcp-strict -d 'Ignore MCP servers of the user and of the project'
complete -c teamster -n "__fish_teamster_using_subcommand session" -l no-mcp-strict
complete -c teamster -n "__fish_teamster_using_subcommand session" -l keep-background -d 'Keep background processes after the run'
complete -c teamster -n "__fish_teamster_using_subcommand session" -l no-keep-background
complete -c teamster -n "__fish_teamster_using_subcommand session" -l record-raw -d 'With --record: record the exact bytes, secrets included'
complete -c teamster -n "__fish_teamster_using_subcommand session" -l no-record-raw
complete -c teamster -n "__fish_teamster_using_subcommand session" -l force -d 'With --record: replace an existing file'
complete -c teamster -n "__fish_teamster_using_subcommand session" -l no-force
complete -c teamster -n "__fish_teamster_using_subcommand session" -l require-process-control -d 'Fail if the system prevents full process control'
complete -c teamster -n "__fish_teamster_using_subcommand session" -l no-require-process-control
complete -c teamster -n "__fish_teamster_using_subcommand session" -l withhold-keys -d 'Withhold keys of other services from the CLI'
complete -c teamster -n "__fish_teamster_using_subcommand session" -l no-withhold-keys
complete -c teamster -n "__fish_teamster_using_subcommand session" -l whole-messages -d 'Emit whole messages instead of text deltas'
complete -c teamster -n "__fish_teamster_using_subcommand session" -l no-whole-messages
complete -c teamster -n "__fish_teamster_using_subcommand session" -l background-tasks -d 'Allow background commands and subagents between turns'
complete -c teamster -n "__fish_teamster_using_subcommand session" -l no-background-tasks
complete -c teamster -n "__fish_teamster_using_subcommand help; and not __fish_seen_subcommand_from doctor usage config replay fake completions run chat session help" -f -a "doctor" -d 'Check which agents can run here'
complete -c teamster -n "__fish_teamster_using_subcommand help; and not __fish_seen_subcommand_from doctor usage config replay fake completions run chat session help" -f -a "usage" -d 'Sum tokens and cost of earlier runs'
complete -c teamster -n "__fish_teamster_using_subcommand help; and not __fish_seen_subcommand_from doctor usage config replay fake completions run chat session help" -f -a "config" -d 'Show and edit the configuration'
complete -c teamster -n "__fish_teamster_using_subcommand help; and not __fish_seen_subcommand_from doctor usage config replay fake completions run chat session help" -f -a "replay" -d 'Print a recording (teamster run --record FILE)'
complete -c teamster -n "__fish_teamster_using_subcommand help; and not __fish_seen_subcommand_from doctor usage config replay fake completions run chat session help" -f -a "fake" -d 'Imitate an agent\'s CLI, from a scenario or a recording'
complete -c teamster -n "__fish_teamster_using_subcommand help; and not __fish_seen_subcommand_from doctor usage config replay fake completions run chat session help" -f -a "completions" -d 'Print a shell completion script'
complete -c teamster -n "__fish_teamster_using_subcommand help; and not __fish_seen_subcommand_from doctor usage config replay fake completions run chat session help" -f -a "run" -d 'Run an agent with one prompt'
complete -c teamster -n "__fish_teamster_using_subcommand help; and not __fish_seen_subcommand_from doctor usage config replay fake completions run chat session help" -f -a "chat" -d 'Chat with an agent in the terminal'
complete -c teamster -n "__fish_teamster_using_subcommand help; and not __fish_seen_subcommand_from doctor usage config replay fake completions run chat session help" -f -a "session" -d 'Run a session for a program: JSON commands in, events out'
complete -c teamster -n "__fish_teamster_using_subcommand help; and not __fish_seen_subcommand_from doctor usage config replay fake completions run chat session help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c teamster -n "__fish_teamster_using_subcommand help; and __fish_seen_subcommand_from config" -f -a "show" -d 'Print each setting with its value and its origin'
complete -c teamster -n "__fish_teamster_using_subcommand help; and __fish_seen_subcommand_from config" -f -a "init" -d 'Write a configuration file with every setting as a comment'
complete -c teamster -n "__fish_teamster_using_subcommand help; and __fish_seen_subcommand_from config" -f -a "path" -d 'Print the path of the configuration file'
complete -c teamster -n "__fish_teamster_using_subcommand help; and __fish_seen_subcommand_from config" -f -a "edit" -d 'Open the configuration file in $VISUAL or $EDITOR, then check it'
complete -c teamster -n "__fish_teamster_using_subcommand help; and __fish_seen_subcommand_from config" -f -a "trust" -d 'Use the file .teamster.toml of a directory'
