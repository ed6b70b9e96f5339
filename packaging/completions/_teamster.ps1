
using namespace System.Management.Automation
using namespace System.Management.Automation.Language

Register-ArgumentCompleter -Native -CommandName 'teamster' -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)

    $commandElements = $commandAst.CommandElements
    $command = @(
        'teamster'
        for ($i = 1; $i -lt $commandElements.Count; $i++) {
            $element = $commandElements[$i]
            if ($element -isnot [StringConstantExpressionAst] -or
                $element.StringConstantType -ne [StringConstantType]::BareWord -or
                $element.Value.StartsWith('-') -or
                $element.Value -eq $wordToComplete) {
                break
        }
        $element.Value
    }) -join ';'

    $completions = @(switch ($command) {
        'teamster' {
            [CompletionResult]::new('--log', '--log', [CompletionResultType]::ParameterName, 'Log to stderr by this filter, such as teamster=debug')
            [CompletionResult]::new('--log-file', '--log-file', [CompletionResultType]::ParameterName, 'Append the log to this file instead [--log teamster=debug]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('-V', '-V ', [CompletionResultType]::ParameterName, 'Print version')
            [CompletionResult]::new('--version', '--version', [CompletionResultType]::ParameterName, 'Print version')
            [CompletionResult]::new('doctor', 'doctor', [CompletionResultType]::ParameterValue, 'Check which agents can run here')
            [CompletionResult]::new('usage', 'usage', [CompletionResultType]::ParameterValue, 'Sum tokens and cost of earlier runs')
            [CompletionResult]::new('config', 'config', [CompletionResultType]::ParameterValue, 'Show and edit the configuration')
            [CompletionResult]::new('replay', 'replay', [CompletionResultType]::ParameterValue, 'Print a recording (teamster run --record FILE)')
            [CompletionResult]::new('fake', 'fake', [CompletionResultType]::ParameterValue, 'Imitate an agent''s CLI, from a scenario or a recording')
            [CompletionResult]::new('completions', 'completions', [CompletionResultType]::ParameterValue, 'Print a shell completion script')
            [CompletionResult]::new('run', 'run', [CompletionResultType]::ParameterValue, 'Run an agent with one prompt')
            [CompletionResult]::new('chat', 'chat', [CompletionResultType]::ParameterValue, 'Chat with an agent in the terminal')
            [CompletionResult]::new('session', 'session', [CompletionResultType]::ParameterValue, 'Run a session for a program: JSON commands in, events out')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'teamster;doctor' {
            [CompletionResult]::new('-a', '-a', [CompletionResultType]::ParameterName, 'Require this agent to run; all agents are checked')
            [CompletionResult]::new('--agent', '--agent', [CompletionResultType]::ParameterName, 'Require this agent to run; all agents are checked')
            [CompletionResult]::new('--cli-path', '--cli-path', [CompletionResultType]::ParameterName, 'Use this program as the chosen agent''s CLI')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Read definitions of further agents from this TOML file')
            [CompletionResult]::new('--log', '--log', [CompletionResultType]::ParameterName, 'Log to stderr by this filter, such as teamster=debug')
            [CompletionResult]::new('--log-file', '--log-file', [CompletionResultType]::ParameterName, 'Append the log to this file instead [--log teamster=debug]')
            [CompletionResult]::new('--sweep', '--sweep', [CompletionResultType]::ParameterName, 'Kill processes and remove files of crashed runs')
            [CompletionResult]::new('--restore', '--restore', [CompletionResultType]::ParameterName, 'Remove entries of crashed runs from configuration files')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Print the program, credentials and unsupported options too')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Print the program, credentials and unsupported options too')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print one JSON document')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'teamster;usage' {
            [CompletionResult]::new('--by', '--by', [CompletionResultType]::ParameterName, 'Sum by: day (default), agent, model or directory')
            [CompletionResult]::new('--since', '--since', [CompletionResultType]::ParameterName, 'Count only later runs: 7d, 12h or 2026-11-24')
            [CompletionResult]::new('--output', '--output', [CompletionResultType]::ParameterName, 'Print as: text (default) or json')
            [CompletionResult]::new('--usage-journal', '--usage-journal', [CompletionResultType]::ParameterName, 'Read this journal instead of the configured one')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Use this profile of the configuration file')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Use this configuration file')
            [CompletionResult]::new('--log', '--log', [CompletionResultType]::ParameterName, 'Log to stderr by this filter, such as teamster=debug')
            [CompletionResult]::new('--log-file', '--log-file', [CompletionResultType]::ParameterName, 'Append the log to this file instead [--log teamster=debug]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'teamster;config' {
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Use this file instead of ~/.config/teamster/config.toml')
            [CompletionResult]::new('--log', '--log', [CompletionResultType]::ParameterName, 'Log to stderr by this filter, such as teamster=debug')
            [CompletionResult]::new('--log-file', '--log-file', [CompletionResultType]::ParameterName, 'Append the log to this file instead [--log teamster=debug]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('show', 'show', [CompletionResultType]::ParameterValue, 'Print each setting with its value and its origin')
            [CompletionResult]::new('init', 'init', [CompletionResultType]::ParameterValue, 'Write a configuration file with every setting as a comment')
            [CompletionResult]::new('path', 'path', [CompletionResultType]::ParameterValue, 'Print the path of the configuration file')
            [CompletionResult]::new('edit', 'edit', [CompletionResultType]::ParameterValue, 'Open the configuration file in $VISUAL or $EDITOR, then check it')
            [CompletionResult]::new('trust', 'trust', [CompletionResultType]::ParameterValue, 'Use the file .teamster.toml of a directory')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'teamster;config;show' {
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Use this profile')
            [CompletionResult]::new('-C', '-C ', [CompletionResultType]::ParameterName, 'Use the project of this directory')
            [CompletionResult]::new('--cwd', '--cwd', [CompletionResultType]::ParameterName, 'Use the project of this directory')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Use this file instead of ~/.config/teamster/config.toml')
            [CompletionResult]::new('--log', '--log', [CompletionResultType]::ParameterName, 'Log to stderr by this filter, such as teamster=debug')
            [CompletionResult]::new('--log-file', '--log-file', [CompletionResultType]::ParameterName, 'Append the log to this file instead [--log teamster=debug]')
            [CompletionResult]::new('--all', '--all', [CompletionResultType]::ParameterName, 'Print the settings without a value too')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print one JSON document')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'teamster;config;init' {
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Use this file instead of ~/.config/teamster/config.toml')
            [CompletionResult]::new('--log', '--log', [CompletionResultType]::ParameterName, 'Log to stderr by this filter, such as teamster=debug')
            [CompletionResult]::new('--log-file', '--log-file', [CompletionResultType]::ParameterName, 'Append the log to this file instead [--log teamster=debug]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'teamster;config;path' {
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Use this file instead of ~/.config/teamster/config.toml')
            [CompletionResult]::new('--log', '--log', [CompletionResultType]::ParameterName, 'Log to stderr by this filter, such as teamster=debug')
            [CompletionResult]::new('--log-file', '--log-file', [CompletionResultType]::ParameterName, 'Append the log to this file instead [--log teamster=debug]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'teamster;config;edit' {
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Use this file instead of ~/.config/teamster/config.toml')
            [CompletionResult]::new('--log', '--log', [CompletionResultType]::ParameterName, 'Log to stderr by this filter, such as teamster=debug')
            [CompletionResult]::new('--log-file', '--log-file', [CompletionResultType]::ParameterName, 'Append the log to this file instead [--log teamster=debug]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'teamster;config;trust' {
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Use this file instead of ~/.config/teamster/config.toml')
            [CompletionResult]::new('--log', '--log', [CompletionResultType]::ParameterName, 'Log to stderr by this filter, such as teamster=debug')
            [CompletionResult]::new('--log-file', '--log-file', [CompletionResultType]::ParameterName, 'Append the log to this file instead [--log teamster=debug]')
            [CompletionResult]::new('--remove', '--remove', [CompletionResultType]::ParameterName, 'Remove the directory from the trusted ones')
            [CompletionResult]::new('--list', '--list', [CompletionResultType]::ParameterName, 'Print the trusted directories')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'teamster;config;help' {
            [CompletionResult]::new('show', 'show', [CompletionResultType]::ParameterValue, 'Print each setting with its value and its origin')
            [CompletionResult]::new('init', 'init', [CompletionResultType]::ParameterValue, 'Write a configuration file with every setting as a comment')
            [CompletionResult]::new('path', 'path', [CompletionResultType]::ParameterValue, 'Print the path of the configuration file')
            [CompletionResult]::new('edit', 'edit', [CompletionResultType]::ParameterValue, 'Open the configuration file in $VISUAL or $EDITOR, then check it')
            [CompletionResult]::new('trust', 'trust', [CompletionResultType]::ParameterValue, 'Use the file .teamster.toml of a directory')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'teamster;config;help;show' {
            break
        }
        'teamster;config;help;init' {
            break
        }
        'teamster;config;help;path' {
            break
        }
        'teamster;config;help;edit' {
            break
        }
        'teamster;config;help;trust' {
            break
        }
        'teamster;config;help;help' {
            break
        }
        'teamster;replay' {
            [CompletionResult]::new('--speed', '--speed', [CompletionResultType]::ParameterName, 'Set the speed factor; 0 means without pauses [default: 1]')
            [CompletionResult]::new('--output', '--output', [CompletionResultType]::ParameterName, 'Print as: pretty (default), text, ndjson or json')
            [CompletionResult]::new('--log', '--log', [CompletionResultType]::ParameterName, 'Log to stderr by this filter, such as teamster=debug')
            [CompletionResult]::new('--log-file', '--log-file', [CompletionResultType]::ParameterName, 'Append the log to this file instead [--log teamster=debug]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'teamster;fake' {
            [CompletionResult]::new('--agent', '--agent', [CompletionResultType]::ParameterName, 'Imitate the CLI of claude, codex, gemini or opencode')
            [CompletionResult]::new('--script', '--script', [CompletionResultType]::ParameterName, 'Play a scenario, a recording, or the testkit''s JSON steps')
            [CompletionResult]::new('--process', '--process', [CompletionResultType]::ParameterName, 'Play this process of the recording [default: 1]')
            [CompletionResult]::new('--speed', '--speed', [CompletionResultType]::ParameterName, 'Set the speed factor; 0 means without pauses [default: 0]')
            [CompletionResult]::new('--log', '--log', [CompletionResultType]::ParameterName, 'Log to stderr by this filter, such as teamster=debug')
            [CompletionResult]::new('--log-file', '--log-file', [CompletionResultType]::ParameterName, 'Append the log to this file instead [--log teamster=debug]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'teamster;completions' {
            [CompletionResult]::new('--log', '--log', [CompletionResultType]::ParameterName, 'Log to stderr by this filter, such as teamster=debug')
            [CompletionResult]::new('--log-file', '--log-file', [CompletionResultType]::ParameterName, 'Append the log to this file instead [--log teamster=debug]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'teamster;run' {
            [CompletionResult]::new('-a', '-a', [CompletionResultType]::ParameterName, 'Use this agent')
            [CompletionResult]::new('--agent', '--agent', [CompletionResultType]::ParameterName, 'Use this agent')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Use this profile of the configuration file')
            [CompletionResult]::new('-m', '-m', [CompletionResultType]::ParameterName, 'Use this model, named as the agent names it')
            [CompletionResult]::new('--model', '--model', [CompletionResultType]::ParameterName, 'Use this model, named as the agent names it')
            [CompletionResult]::new('--effort', '--effort', [CompletionResultType]::ParameterName, 'Set the reasoning effort, named as the agent names it')
            [CompletionResult]::new('-C', '-C ', [CompletionResultType]::ParameterName, 'Set the agent''s working directory')
            [CompletionResult]::new('--cwd', '--cwd', [CompletionResultType]::ParameterName, 'Set the agent''s working directory')
            [CompletionResult]::new('-r', '-r', [CompletionResultType]::ParameterName, 'Resume this session')
            [CompletionResult]::new('--resume', '--resume', [CompletionResultType]::ParameterName, 'Resume this session')
            [CompletionResult]::new('--system-prompt', '--system-prompt', [CompletionResultType]::ParameterName, 'Replace the agent''s system prompt')
            [CompletionResult]::new('--system-prompt-file', '--system-prompt-file', [CompletionResultType]::ParameterName, 'Replace the agent''s system prompt with a file''s text')
            [CompletionResult]::new('--append-system-prompt', '--append-system-prompt', [CompletionResultType]::ParameterName, 'Append to the agent''s system prompt')
            [CompletionResult]::new('--append-system-prompt-file', '--append-system-prompt-file', [CompletionResultType]::ParameterName, 'Append a file''s text to the agent''s system prompt')
            [CompletionResult]::new('--schema', '--schema', [CompletionResultType]::ParameterName, 'Require an answer that matches a schema')
            [CompletionResult]::new('--mcp-config', '--mcp-config', [CompletionResultType]::ParameterName, 'Add MCP servers (repeatable)')
            [CompletionResult]::new('--mcp-delivery', '--mcp-delivery', [CompletionResultType]::ParameterName, 'Deliver MCP servers by: auto (default) or merge-restore')
            [CompletionResult]::new('--permission', '--permission', [CompletionResultType]::ParameterName, 'Allow: read-only, ask (default), edit or full')
            [CompletionResult]::new('--allow-tool', '--allow-tool', [CompletionResultType]::ParameterName, 'Allow this tool (repeatable)')
            [CompletionResult]::new('--deny-tool', '--deny-tool', [CompletionResultType]::ParameterName, 'Deny this tool (repeatable)')
            [CompletionResult]::new('--add-dir', '--add-dir', [CompletionResultType]::ParameterName, 'Let the agent use this directory too (repeatable)')
            [CompletionResult]::new('--project-trust', '--project-trust', [CompletionResultType]::ParameterName, 'Treat the project as: trusted (default) or untrusted')
            [CompletionResult]::new('--prompt-mode', '--prompt-mode', [CompletionResultType]::ParameterName, 'Interpret the prompt: agent (default) or literal')
            [CompletionResult]::new('--max-turns', '--max-turns', [CompletionResultType]::ParameterName, 'Stop after this many calls of the model')
            [CompletionResult]::new('--max-tokens', '--max-tokens', [CompletionResultType]::ParameterName, 'Stop a run (or a session''s turn) after this many tokens')
            [CompletionResult]::new('--max-session-tokens', '--max-session-tokens', [CompletionResultType]::ParameterName, 'Limit the tokens of all turns of a session')
            [CompletionResult]::new('--max-session-budget', '--max-session-budget', [CompletionResultType]::ParameterName, 'Limit the cost of all turns of a session')
            [CompletionResult]::new('--max-budget', '--max-budget', [CompletionResultType]::ParameterName, 'Stop a run that costs more, in US dollars')
            [CompletionResult]::new('--timeout', '--timeout', [CompletionResultType]::ParameterName, 'Stop a run that is silent this long [default: 5m]')
            [CompletionResult]::new('--startup-timeout', '--startup-timeout', [CompletionResultType]::ParameterName, 'Stop a run without output after its start [default: 2m]')
            [CompletionResult]::new('--tool-timeout', '--tool-timeout', [CompletionResultType]::ParameterName, 'Limit silence while a tool runs [default: 30m]')
            [CompletionResult]::new('--deadline', '--deadline', [CompletionResultType]::ParameterName, 'Stop a run that takes longer than this')
            [CompletionResult]::new('--grace', '--grace', [CompletionResultType]::ParameterName, 'Wait this long for the agent to exit [default: 1.5s]')
            [CompletionResult]::new('--cli-path', '--cli-path', [CompletionResultType]::ParameterName, 'Run this program as the agent''s CLI')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Use this configuration file')
            [CompletionResult]::new('--mode', '--mode', [CompletionResultType]::ParameterName, 'Use the CLI''s interface: auto (default), exec or spawn')
            [CompletionResult]::new('--cli-arg', '--cli-arg', [CompletionResultType]::ParameterName, 'Pass this argument to the CLI unchanged (repeatable)')
            [CompletionResult]::new('--record', '--record', [CompletionResultType]::ParameterName, 'Record the CLI''s input and output in this file')
            [CompletionResult]::new('--env', '--env', [CompletionResultType]::ParameterName, 'Set an environment variable for the CLI (repeatable)')
            [CompletionResult]::new('--env-only', '--env-only', [CompletionResultType]::ParameterName, 'Pass only these environment variables on (repeatable)')
            [CompletionResult]::new('--keep-key', '--keep-key', [CompletionResultType]::ParameterName, 'With --withhold-keys: pass these keys on (repeatable)')
            [CompletionResult]::new('--tool-output', '--tool-output', [CompletionResultType]::ParameterName, 'Show the output of tools: none, short or full')
            [CompletionResult]::new('--usage-journal', '--usage-journal', [CompletionResultType]::ParameterName, 'Append tokens and cost of each run to this file')
            [CompletionResult]::new('--label', '--label', [CompletionResultType]::ParameterName, 'Add this label to every event and log line (repeatable)')
            [CompletionResult]::new('--stdin', '--stdin', [CompletionResultType]::ParameterName, 'Use standard input: auto (default), read or ignore')
            [CompletionResult]::new('--attach', '--attach', [CompletionResultType]::ParameterName, 'Send this file with the prompt (repeatable)')
            [CompletionResult]::new('--retries', '--retries', [CompletionResultType]::ParameterName, 'Retry a run up to N times after a transient failure')
            [CompletionResult]::new('--retry-even-after', '--retry-even-after', [CompletionResultType]::ParameterName, 'With --retries: retry even after: prompt or tools')
            [CompletionResult]::new('--output', '--output', [CompletionResultType]::ParameterName, 'Print as: pretty (default), text, ndjson or json')
            [CompletionResult]::new('--log', '--log', [CompletionResultType]::ParameterName, 'Log to stderr by this filter, such as teamster=debug')
            [CompletionResult]::new('--log-file', '--log-file', [CompletionResultType]::ParameterName, 'Append the log to this file instead [--log teamster=debug]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help; --help prints more details')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help; --help prints more details')
            [CompletionResult]::new('--continue', '--continue', [CompletionResultType]::ParameterName, 'Resume the newest session of the working directory')
            [CompletionResult]::new('--no-continue', '--no-continue', [CompletionResultType]::ParameterName, 'no-continue')
            [CompletionResult]::new('--fork', '--fork', [CompletionResultType]::ParameterName, 'With --resume or --continue: copy the history into a new session')
            [CompletionResult]::new('--no-fork', '--no-fork', [CompletionResultType]::ParameterName, 'no-fork')
            [CompletionResult]::new('--mcp-strict', '--mcp-strict', [CompletionResultType]::ParameterName, 'Ignore MCP servers of the user and of the project')
            [CompletionResult]::new('--no-mcp-strict', '--no-mcp-strict', [CompletionResultType]::ParameterName, 'no-mcp-strict')
            [CompletionResult]::new('--keep-background', '--keep-background', [CompletionResultType]::ParameterName, 'Keep background processes after the run')
            [CompletionResult]::new('--no-keep-background', '--no-keep-background', [CompletionResultType]::ParameterName, 'no-keep-background')
            [CompletionResult]::new('--record-raw', '--record-raw', [CompletionResultType]::ParameterName, 'With --record: record the exact bytes, secrets included')
            [CompletionResult]::new('--no-record-raw', '--no-record-raw', [CompletionResultType]::ParameterName, 'no-record-raw')
            [CompletionResult]::new('--force', '--force', [CompletionResultType]::ParameterName, 'With --record: replace an existing file')
            [CompletionResult]::new('--no-force', '--no-force', [CompletionResultType]::ParameterName, 'no-force')
            [CompletionResult]::new('--require-process-control', '--require-process-control', [CompletionResultType]::ParameterName, 'Fail if the system prevents full process control')
            [CompletionResult]::new('--no-require-process-control', '--no-require-process-control', [CompletionResultType]::ParameterName, 'no-require-process-control')
            [CompletionResult]::new('--withhold-keys', '--withhold-keys', [CompletionResultType]::ParameterName, 'Withhold keys of other services from the CLI')
            [CompletionResult]::new('--no-withhold-keys', '--no-withhold-keys', [CompletionResultType]::ParameterName, 'no-withhold-keys')
            [CompletionResult]::new('--whole-messages', '--whole-messages', [CompletionResultType]::ParameterName, 'Emit whole messages instead of text deltas')
            [CompletionResult]::new('--no-whole-messages', '--no-whole-messages', [CompletionResultType]::ParameterName, 'no-whole-messages')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Show no status while the agent works')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Show no status while the agent works')
            [CompletionResult]::new('--no-quiet', '--no-quiet', [CompletionResultType]::ParameterName, 'no-quiet')
            [CompletionResult]::new('--batch', '--batch', [CompletionResultType]::ParameterName, 'Use the CLI''s non-streaming mode')
            [CompletionResult]::new('--no-batch', '--no-batch', [CompletionResultType]::ParameterName, 'no-batch')
            break
        }
        'teamster;chat' {
            [CompletionResult]::new('-a', '-a', [CompletionResultType]::ParameterName, 'Use this agent')
            [CompletionResult]::new('--agent', '--agent', [CompletionResultType]::ParameterName, 'Use this agent')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Use this profile of the configuration file')
            [CompletionResult]::new('-m', '-m', [CompletionResultType]::ParameterName, 'Use this model, named as the agent names it')
            [CompletionResult]::new('--model', '--model', [CompletionResultType]::ParameterName, 'Use this model, named as the agent names it')
            [CompletionResult]::new('--effort', '--effort', [CompletionResultType]::ParameterName, 'Set the reasoning effort, named as the agent names it')
            [CompletionResult]::new('-C', '-C ', [CompletionResultType]::ParameterName, 'Set the agent''s working directory')
            [CompletionResult]::new('--cwd', '--cwd', [CompletionResultType]::ParameterName, 'Set the agent''s working directory')
            [CompletionResult]::new('-r', '-r', [CompletionResultType]::ParameterName, 'Resume this session')
            [CompletionResult]::new('--resume', '--resume', [CompletionResultType]::ParameterName, 'Resume this session')
            [CompletionResult]::new('--system-prompt', '--system-prompt', [CompletionResultType]::ParameterName, 'Replace the agent''s system prompt')
            [CompletionResult]::new('--system-prompt-file', '--system-prompt-file', [CompletionResultType]::ParameterName, 'Replace the agent''s system prompt with a file''s text')
            [CompletionResult]::new('--append-system-prompt', '--append-system-prompt', [CompletionResultType]::ParameterName, 'Append to the agent''s system prompt')
            [CompletionResult]::new('--append-system-prompt-file', '--append-system-prompt-file', [CompletionResultType]::ParameterName, 'Append a file''s text to the agent''s system prompt')
            [CompletionResult]::new('--schema', '--schema', [CompletionResultType]::ParameterName, 'Require an answer that matches a schema')
            [CompletionResult]::new('--mcp-config', '--mcp-config', [CompletionResultType]::ParameterName, 'Add MCP servers (repeatable)')
            [CompletionResult]::new('--mcp-delivery', '--mcp-delivery', [CompletionResultType]::ParameterName, 'Deliver MCP servers by: auto (default) or merge-restore')
            [CompletionResult]::new('--permission', '--permission', [CompletionResultType]::ParameterName, 'Allow: read-only, ask (default), edit or full')
            [CompletionResult]::new('--allow-tool', '--allow-tool', [CompletionResultType]::ParameterName, 'Allow this tool (repeatable)')
            [CompletionResult]::new('--deny-tool', '--deny-tool', [CompletionResultType]::ParameterName, 'Deny this tool (repeatable)')
            [CompletionResult]::new('--add-dir', '--add-dir', [CompletionResultType]::ParameterName, 'Let the agent use this directory too (repeatable)')
            [CompletionResult]::new('--project-trust', '--project-trust', [CompletionResultType]::ParameterName, 'Treat the project as: trusted (default) or untrusted')
            [CompletionResult]::new('--prompt-mode', '--prompt-mode', [CompletionResultType]::ParameterName, 'Interpret the prompt: agent (default) or literal')
            [CompletionResult]::new('--max-turns', '--max-turns', [CompletionResultType]::ParameterName, 'Stop after this many calls of the model')
            [CompletionResult]::new('--max-tokens', '--max-tokens', [CompletionResultType]::ParameterName, 'Stop a run (or a session''s turn) after this many tokens')
            [CompletionResult]::new('--max-session-tokens', '--max-session-tokens', [CompletionResultType]::ParameterName, 'Limit the tokens of all turns of a session')
            [CompletionResult]::new('--max-session-budget', '--max-session-budget', [CompletionResultType]::ParameterName, 'Limit the cost of all turns of a session')
            [CompletionResult]::new('--max-budget', '--max-budget', [CompletionResultType]::ParameterName, 'Stop a run that costs more, in US dollars')
            [CompletionResult]::new('--timeout', '--timeout', [CompletionResultType]::ParameterName, 'Stop a run that is silent this long [default: 5m]')
            [CompletionResult]::new('--startup-timeout', '--startup-timeout', [CompletionResultType]::ParameterName, 'Stop a run without output after its start [default: 2m]')
            [CompletionResult]::new('--tool-timeout', '--tool-timeout', [CompletionResultType]::ParameterName, 'Limit silence while a tool runs [default: 30m]')
            [CompletionResult]::new('--deadline', '--deadline', [CompletionResultType]::ParameterName, 'Stop a run that takes longer than this')
            [CompletionResult]::new('--grace', '--grace', [CompletionResultType]::ParameterName, 'Wait this long for the agent to exit [default: 1.5s]')
            [CompletionResult]::new('--cli-path', '--cli-path', [CompletionResultType]::ParameterName, 'Run this program as the agent''s CLI')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Use this configuration file')
            [CompletionResult]::new('--mode', '--mode', [CompletionResultType]::ParameterName, 'Use the CLI''s interface: auto (default), exec or spawn')
            [CompletionResult]::new('--cli-arg', '--cli-arg', [CompletionResultType]::ParameterName, 'Pass this argument to the CLI unchanged (repeatable)')
            [CompletionResult]::new('--record', '--record', [CompletionResultType]::ParameterName, 'Record the CLI''s input and output in this file')
            [CompletionResult]::new('--env', '--env', [CompletionResultType]::ParameterName, 'Set an environment variable for the CLI (repeatable)')
            [CompletionResult]::new('--env-only', '--env-only', [CompletionResultType]::ParameterName, 'Pass only these environment variables on (repeatable)')
            [CompletionResult]::new('--keep-key', '--keep-key', [CompletionResultType]::ParameterName, 'With --withhold-keys: pass these keys on (repeatable)')
            [CompletionResult]::new('--tool-output', '--tool-output', [CompletionResultType]::ParameterName, 'Show the output of tools: none, short or full')
            [CompletionResult]::new('--usage-journal', '--usage-journal', [CompletionResultType]::ParameterName, 'Append tokens and cost of each run to this file')
            [CompletionResult]::new('--label', '--label', [CompletionResultType]::ParameterName, 'Add this label to every event and log line (repeatable)')
            [CompletionResult]::new('--answer-timeout', '--answer-timeout', [CompletionResultType]::ParameterName, 'Deny a request without an answer in time [default: 5m]')
            [CompletionResult]::new('--keys', '--keys', [CompletionResultType]::ParameterName, 'Edit with the keys of emacs (default) or vi')
            [CompletionResult]::new('--log', '--log', [CompletionResultType]::ParameterName, 'Log to stderr by this filter, such as teamster=debug')
            [CompletionResult]::new('--log-file', '--log-file', [CompletionResultType]::ParameterName, 'Append the log to this file instead [--log teamster=debug]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help; --help prints more details')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help; --help prints more details')
            [CompletionResult]::new('--continue', '--continue', [CompletionResultType]::ParameterName, 'Resume the newest session of the working directory')
            [CompletionResult]::new('--no-continue', '--no-continue', [CompletionResultType]::ParameterName, 'no-continue')
            [CompletionResult]::new('--fork', '--fork', [CompletionResultType]::ParameterName, 'With --resume or --continue: copy the history into a new session')
            [CompletionResult]::new('--no-fork', '--no-fork', [CompletionResultType]::ParameterName, 'no-fork')
            [CompletionResult]::new('--mcp-strict', '--mcp-strict', [CompletionResultType]::ParameterName, 'Ignore MCP servers of the user and of the project')
            [CompletionResult]::new('--no-mcp-strict', '--no-mcp-strict', [CompletionResultType]::ParameterName, 'no-mcp-strict')
            [CompletionResult]::new('--keep-background', '--keep-background', [CompletionResultType]::ParameterName, 'Keep background processes after the run')
            [CompletionResult]::new('--no-keep-background', '--no-keep-background', [CompletionResultType]::ParameterName, 'no-keep-background')
            [CompletionResult]::new('--record-raw', '--record-raw', [CompletionResultType]::ParameterName, 'With --record: record the exact bytes, secrets included')
            [CompletionResult]::new('--no-record-raw', '--no-record-raw', [CompletionResultType]::ParameterName, 'no-record-raw')
            [CompletionResult]::new('--force', '--force', [CompletionResultType]::ParameterName, 'With --record: replace an existing file')
            [CompletionResult]::new('--no-force', '--no-force', [CompletionResultType]::ParameterName, 'no-force')
            [CompletionResult]::new('--require-process-control', '--require-process-control', [CompletionResultType]::ParameterName, 'Fail if the system prevents full process control')
            [CompletionResult]::new('--no-require-process-control', '--no-require-process-control', [CompletionResultType]::ParameterName, 'no-require-process-control')
            [CompletionResult]::new('--withhold-keys', '--withhold-keys', [CompletionResultType]::ParameterName, 'Withhold keys of other services from the CLI')
            [CompletionResult]::new('--no-withhold-keys', '--no-withhold-keys', [CompletionResultType]::ParameterName, 'no-withhold-keys')
            [CompletionResult]::new('--whole-messages', '--whole-messages', [CompletionResultType]::ParameterName, 'Emit whole messages instead of text deltas')
            [CompletionResult]::new('--no-whole-messages', '--no-whole-messages', [CompletionResultType]::ParameterName, 'no-whole-messages')
            [CompletionResult]::new('--background-tasks', '--background-tasks', [CompletionResultType]::ParameterName, 'Allow background commands and subagents between turns')
            [CompletionResult]::new('--no-background-tasks', '--no-background-tasks', [CompletionResultType]::ParameterName, 'no-background-tasks')
            break
        }
        'teamster;session' {
            [CompletionResult]::new('-a', '-a', [CompletionResultType]::ParameterName, 'Use this agent')
            [CompletionResult]::new('--agent', '--agent', [CompletionResultType]::ParameterName, 'Use this agent')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Use this profile of the configuration file')
            [CompletionResult]::new('-m', '-m', [CompletionResultType]::ParameterName, 'Use this model, named as the agent names it')
            [CompletionResult]::new('--model', '--model', [CompletionResultType]::ParameterName, 'Use this model, named as the agent names it')
            [CompletionResult]::new('--effort', '--effort', [CompletionResultType]::ParameterName, 'Set the reasoning effort, named as the agent names it')
            [CompletionResult]::new('-C', '-C ', [CompletionResultType]::ParameterName, 'Set the agent''s working directory')
            [CompletionResult]::new('--cwd', '--cwd', [CompletionResultType]::ParameterName, 'Set the agent''s working directory')
            [CompletionResult]::new('-r', '-r', [CompletionResultType]::ParameterName, 'Resume this session')
            [CompletionResult]::new('--resume', '--resume', [CompletionResultType]::ParameterName, 'Resume this session')
            [CompletionResult]::new('--system-prompt', '--system-prompt', [CompletionResultType]::ParameterName, 'Replace the agent''s system prompt')
            [CompletionResult]::new('--system-prompt-file', '--system-prompt-file', [CompletionResultType]::ParameterName, 'Replace the agent''s system prompt with a file''s text')
            [CompletionResult]::new('--append-system-prompt', '--append-system-prompt', [CompletionResultType]::ParameterName, 'Append to the agent''s system prompt')
            [CompletionResult]::new('--append-system-prompt-file', '--append-system-prompt-file', [CompletionResultType]::ParameterName, 'Append a file''s text to the agent''s system prompt')
            [CompletionResult]::new('--schema', '--schema', [CompletionResultType]::ParameterName, 'Require an answer that matches a schema')
            [CompletionResult]::new('--mcp-config', '--mcp-config', [CompletionResultType]::ParameterName, 'Add MCP servers (repeatable)')
            [CompletionResult]::new('--mcp-delivery', '--mcp-delivery', [CompletionResultType]::ParameterName, 'Deliver MCP servers by: auto (default) or merge-restore')
            [CompletionResult]::new('--permission', '--permission', [CompletionResultType]::ParameterName, 'Allow: read-only, ask (default), edit or full')
            [CompletionResult]::new('--allow-tool', '--allow-tool', [CompletionResultType]::ParameterName, 'Allow this tool (repeatable)')
            [CompletionResult]::new('--deny-tool', '--deny-tool', [CompletionResultType]::ParameterName, 'Deny this tool (repeatable)')
            [CompletionResult]::new('--add-dir', '--add-dir', [CompletionResultType]::ParameterName, 'Let the agent use this directory too (repeatable)')
            [CompletionResult]::new('--project-trust', '--project-trust', [CompletionResultType]::ParameterName, 'Treat the project as: trusted (default) or untrusted')
            [CompletionResult]::new('--prompt-mode', '--prompt-mode', [CompletionResultType]::ParameterName, 'Interpret the prompt: agent (default) or literal')
            [CompletionResult]::new('--max-turns', '--max-turns', [CompletionResultType]::ParameterName, 'Stop after this many calls of the model')
            [CompletionResult]::new('--max-tokens', '--max-tokens', [CompletionResultType]::ParameterName, 'Stop a run (or a session''s turn) after this many tokens')
            [CompletionResult]::new('--max-session-tokens', '--max-session-tokens', [CompletionResultType]::ParameterName, 'Limit the tokens of all turns of a session')
            [CompletionResult]::new('--max-session-budget', '--max-session-budget', [CompletionResultType]::ParameterName, 'Limit the cost of all turns of a session')
            [CompletionResult]::new('--max-budget', '--max-budget', [CompletionResultType]::ParameterName, 'Stop a run that costs more, in US dollars')
            [CompletionResult]::new('--timeout', '--timeout', [CompletionResultType]::ParameterName, 'Stop a run that is silent this long [default: 5m]')
            [CompletionResult]::new('--startup-timeout', '--startup-timeout', [CompletionResultType]::ParameterName, 'Stop a run without output after its start [default: 2m]')
            [CompletionResult]::new('--tool-timeout', '--tool-timeout', [CompletionResultType]::ParameterName, 'Limit silence while a tool runs [default: 30m]')
            [CompletionResult]::new('--deadline', '--deadline', [CompletionResultType]::ParameterName, 'Stop a run that takes longer than this')
            [CompletionResult]::new('--grace', '--grace', [CompletionResultType]::ParameterName, 'Wait this long for the agent to exit [default: 1.5s]')
            [CompletionResult]::new('--cli-path', '--cli-path', [CompletionResultType]::ParameterName, 'Run this program as the agent''s CLI')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Use this configuration file')
            [CompletionResult]::new('--mode', '--mode', [CompletionResultType]::ParameterName, 'Use the CLI''s interface: auto (default), exec or spawn')
            [CompletionResult]::new('--cli-arg', '--cli-arg', [CompletionResultType]::ParameterName, 'Pass this argument to the CLI unchanged (repeatable)')
            [CompletionResult]::new('--record', '--record', [CompletionResultType]::ParameterName, 'Record the CLI''s input and output in this file')
            [CompletionResult]::new('--env', '--env', [CompletionResultType]::ParameterName, 'Set an environment variable for the CLI (repeatable)')
            [CompletionResult]::new('--env-only', '--env-only', [CompletionResultType]::ParameterName, 'Pass only these environment variables on (repeatable)')
            [CompletionResult]::new('--keep-key', '--keep-key', [CompletionResultType]::ParameterName, 'With --withhold-keys: pass these keys on (repeatable)')
            [CompletionResult]::new('--tool-output', '--tool-output', [CompletionResultType]::ParameterName, 'Show the output of tools: none, short or full')
            [CompletionResult]::new('--usage-journal', '--usage-journal', [CompletionResultType]::ParameterName, 'Append tokens and cost of each run to this file')
            [CompletionResult]::new('--label', '--label', [CompletionResultType]::ParameterName, 'Add this label to every event and log line (repeatable)')
            [CompletionResult]::new('--answer-timeout', '--answer-timeout', [CompletionResultType]::ParameterName, 'Deny a request without an answer in time [default: 5m]')
            [CompletionResult]::new('--log', '--log', [CompletionResultType]::ParameterName, 'Log to stderr by this filter, such as teamster=debug')
            [CompletionResult]::new('--log-file', '--log-file', [CompletionResultType]::ParameterName, 'Append the log to this file instead [--log teamster=debug]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help; --help prints more details')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help; --help prints more details')
            [CompletionResult]::new('--continue', '--continue', [CompletionResultType]::ParameterName, 'Resume the newest session of the working directory')
            [CompletionResult]::new('--no-continue', '--no-continue', [CompletionResultType]::ParameterName, 'no-continue')
            [CompletionResult]::new('--fork', '--fork', [CompletionResultType]::ParameterName, 'With --resume or --continue: copy the history into a new session')
            [CompletionResult]::new('--no-fork', '--no-fork', [CompletionResultType]::ParameterName, 'no-fork')
            [CompletionResult]::new('--mcp-strict', '--mcp-strict', [CompletionResultType]::ParameterName, 'Ignore MCP servers of the user and of the project')
            [CompletionResult]::new('--no-mcp-strict', '--no-mcp-strict', [CompletionResultType]::ParameterName, 'no-mcp-strict')
            [CompletionResult]::new('--keep-background', '--keep-background', [CompletionResultType]::ParameterName, 'Keep background processes after the run')
            [CompletionResult]::new('--no-keep-background', '--no-keep-background', [CompletionResultType]::ParameterName, 'no-keep-background')
            [CompletionResult]::new('--record-raw', '--record-raw', [CompletionResultType]::ParameterName, 'With --record: record the exact bytes, secrets included')
            [CompletionResult]::new('--no-record-raw', '--no-record-raw', [CompletionResultType]::ParameterName, 'no-record-raw')
            [CompletionResult]::new('--force', '--force', [CompletionResultType]::ParameterName, 'With --record: replace an existing file')
            [CompletionResult]::new('--no-force', '--no-force', [CompletionResultType]::ParameterName, 'no-force')
            [CompletionResult]::new('--require-process-control', '--require-process-control', [CompletionResultType]::ParameterName, 'Fail if the system prevents full process control')
            [CompletionResult]::new('--no-require-process-control', '--no-require-process-control', [CompletionResultType]::ParameterName, 'no-require-process-control')
            [CompletionResult]::new('--withhold-keys', '--withhold-keys', [CompletionResultType]::ParameterName, 'Withhold keys of other services from the CLI')
            [CompletionResult]::new('--no-withhold-keys', '--no-withhold-keys', [CompletionResultType]::ParameterName, 'no-withhold-keys')
            [CompletionResult]::new('--whole-messages', '--whole-messages', [CompletionResultType]::ParameterName, 'Emit whole messages instead of text deltas')
            [CompletionResult]::new('--no-whole-messages', '--no-whole-messages', [CompletionResultType]::ParameterName, 'no-whole-messages')
            [CompletionResult]::new('--background-tasks', '--background-tasks', [CompletionResultType]::ParameterName, 'Allow background commands and subagents between turns')
            [CompletionResult]::new('--no-background-tasks', '--no-background-tasks', [CompletionResultType]::ParameterName, 'no-background-tasks')
            break
        }
        'teamster;help' {
            [CompletionResult]::new('doctor', 'doctor', [CompletionResultType]::ParameterValue, 'Check which agents can run here')
            [CompletionResult]::new('usage', 'usage', [CompletionResultType]::ParameterValue, 'Sum tokens and cost of earlier runs')
            [CompletionResult]::new('config', 'config', [CompletionResultType]::ParameterValue, 'Show and edit the configuration')
            [CompletionResult]::new('replay', 'replay', [CompletionResultType]::ParameterValue, 'Print a recording (teamster run --record FILE)')
            [CompletionResult]::new('fake', 'fake', [CompletionResultType]::ParameterValue, 'Imitate an agent''s CLI, from a scenario or a recording')
            [CompletionResult]::new('completions', 'completions', [CompletionResultType]::ParameterValue, 'Print a shell completion script')
            [CompletionResult]::new('run', 'run', [CompletionResultType]::ParameterValue, 'Run an agent with one prompt')
            [CompletionResult]::new('chat', 'chat', [CompletionResultType]::ParameterValue, 'Chat with an agent in the terminal')
            [CompletionResult]::new('session', 'session', [CompletionResultType]::ParameterValue, 'Run a session for a program: JSON commands in, events out')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'teamster;help;doctor' {
            break
        }
        'teamster;help;usage' {
            break
        }
        'teamster;help;config' {
            [CompletionResult]::new('show', 'show', [CompletionResultType]::ParameterValue, 'Print each setting with its value and its origin')
            [CompletionResult]::new('init', 'init', [CompletionResultType]::ParameterValue, 'Write a configuration file with every setting as a comment')
            [CompletionResult]::new('path', 'path', [CompletionResultType]::ParameterValue, 'Print the path of the configuration file')
            [CompletionResult]::new('edit', 'edit', [CompletionResultType]::ParameterValue, 'Open the configuration file in $VISUAL or $EDITOR, then check it')
            [CompletionResult]::new('trust', 'trust', [CompletionResultType]::ParameterValue, 'Use the file .teamster.toml of a directory')
            break
        }
        'teamster;help;config;show' {
            break
        }
        'teamster;help;config;init' {
            break
        }
        'teamster;help;config;path' {
            break
        }
        'teamster;help;config;edit' {
            break
        }
        'teamster;help;config;trust' {
            break
        }
        'teamster;help;replay' {
            break
        }
        'teamster;help;fake' {
            break
        }
        'teamster;help;completions' {
            break
        }
        'teamster;help;run' {
            break
        }
        'teamster;help;chat' {
            break
        }
        'teamster;help;session' {
            break
        }
        'teamster;help;help' {
            break
        }
    })

    $completions.Where{ $_.CompletionText -like "$wordToComplete*" } |
        Sort-Object -Property ListItemText
}
