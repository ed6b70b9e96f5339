//! `teamster sessions`, and how `--resume` finds a session.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use insta::assert_snapshot;
use serde_json::Value;
use tempfile::TempDir;

use crate::command::{ANSWER, command, ended};
use crate::screen::{SIZES, Size, Terminal};

/// The id in the recorded run of the agent.
const FIRST: &str = "67c9c3e6-c7de-48a2-bc6b-8c0c662932f4";
const SECOND: &str = "67c9d000-861b-4c99-8ee9-b9763d77fa36";
const CODEX: &str = "01a20c62-1822-7a41-bdb3-5d77a3890650";

/// Stores its arguments, and answers one prompt in the session that is resumed.
fn agent() -> String {
    let resumed = r#"printf '%s\n' "$@" | sed -n 's/^--resume=//p'"#;
    let answer = ANSWER.replace(r#"cat "$CAPTURE""#, &format!(r#"sed "s/{FIRST}/${{id:-{FIRST}}}/g" "$CAPTURE""#));
    format!(r#"echo "$@" > "$ARGV"; id=$({resumed}); {answer}"#)
}

/// A home with stored sessions of its directory `app`: two of Claude Code, one of Codex.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        fs::create_dir(home.app()).unwrap();
        home.store_claude(FIRST, "Fix the failing test", 3 * 3600);
        home.store_claude(SECOND, "Explain **this** code, please", 60 * 5);
        let rollout = format!(".codex/sessions/2026/11/24/rollout-2026-11-24T07-08-05-{CODEX}.jsonl");
        home.store(&rollout, "codex", "Write the changelog", 26 * 3600);
        home
    }

    /// The working directory.
    fn app(&self) -> PathBuf {
        self.0.path().canonicalize().unwrap().join("app")
    }

    fn store_claude(&self, id: &str, prompt: &str, age: u64) {
        let folder = self.app().to_string_lossy().replace(|character: char| !character.is_ascii_alphanumeric(), "-");
        self.store(&format!(".claude/projects/{folder}/{id}.jsonl"), "claude", prompt, age);
    }

    /// Stores a recorded session of two turns that was changed this many seconds ago.
    fn store(&self, name: &str, agent: &str, prompt: &str, age: u64) {
        let captures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../teamster-agents/tests/captures/sessions");
        let recorded = fs::read_to_string(captures.join(agent).with_extension("jsonl")).unwrap();
        // Without times in the content, that of the file counts.
        let content = recorded
            .replace("/home/user/project", &self.app().to_string_lossy())
            .replace("\"timestamp\"", "\"then\"")
            .replace("First prompt: read the *file*", prompt);
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        let changed = SystemTime::now() - Duration::from_secs(age);
        fs::File::options().write(true).open(&path).unwrap().set_modified(changed).unwrap();
    }

    fn command(&self, name: &str, args: &[&str]) -> Command {
        let mut command = command(name, &agent(), args);
        command.env("HOME", self.0.path()).env("TERM", "xterm").env("ARGV", self.0.path().join("argv"));
        command.current_dir(self.app());
        command
    }

    fn terminal(&self, name: &str, args: &[&str], size: Size) -> Terminal {
        Terminal::start(&self.command(name, args), size)
    }

    /// Returns the arguments of the agent.
    fn argv(&self) -> String {
        fs::read_to_string(self.0.path().join("argv")).unwrap_or_default()
    }

    /// Returns the screen for a snapshot.
    fn screen(&self, terminal: &Terminal) -> String {
        terminal.snapshot().replace(&*self.app().to_string_lossy(), "APP")
    }
}

#[test]
fn the_list_fits_the_terminal() {
    let home = Home::new();
    for (size, args) in [(SIZES[0], &[][..]), (SIZES[1], &["--all"]), (SIZES[0], &["--all", "--limit", "1"])] {
        let mut terminal = home.terminal("sessions", args, size);
        assert_eq!(terminal.wait_for_exit(), 0);
        assert_snapshot!(format!("list_{}{}", size.0, args.concat()), home.screen(&terminal));
    }
}

#[test]
fn programs_get_whole_ids_and_one_document() {
    let home = Home::new();
    let end = ended(home.command("sessions", &[]));
    assert_eq!((end.code, end.err.as_str()), (Some(0), ""));
    for id in [FIRST, SECOND, CODEX] {
        assert!(end.out.contains(id), "{}", end.out);
    }
    let document = ended(home.command("sessions", &["--output", "json", "--agent", "codex"])).out;
    let document: Value = serde_json::from_str(&document).unwrap();
    let session = &document["sessions"][0];
    assert_eq!((&session["id"], &session["title"]), (&CODEX.into(), &"Write the changelog".into()));
    assert_eq!((&session["agent"], &session["turns"]), (&"codex".into(), &2.into()));
    assert_eq!(session["directory"], home.app().to_string_lossy().into_owned());
    assert_eq!((document["sessions"].as_array().unwrap().len(), &document["hasMore"]), (1, &false.into()));
}

#[test]
fn a_file_that_is_no_session_is_named_once_and_hides_no_other() {
    let home = Home::new();
    let other = "00000000-861b-4c99-8ee9-b9763d77fa36";
    home.store_claude(other, "x", 0);
    let file = fs::read_dir(home.0.path().join(".claude/projects")).unwrap().next().unwrap().unwrap().path();
    fs::write(file.join(other).with_extension("jsonl"), [0xff, 0x1b, b'[']).unwrap();
    let end = ended(home.command("sessions", &[]));
    assert_eq!((end.code, end.out.lines().count()), (Some(0), 4));
    assert!(
        end.err.ends_with("jsonl: it is not a session of Claude Code\n") && end.err.lines().count() == 1,
        "{}",
        end.err
    );
}

#[test]
fn a_directory_without_sessions_leads_to_the_list_of_all() {
    let home = Home::new();
    let mut command = home.command("sessions", &[]);
    command.current_dir("/");
    let end = ended(command);
    assert_eq!((end.code, end.out.as_str()), (Some(0), ""));
    assert_eq!(end.err, "no sessions in /; to list those of all directories: teamster sessions --all\n");
    let end = ended(home.command("sessions", &["--agent", "clade"]));
    assert_eq!(end.code, Some(2));
}

#[test]
fn the_start_of_an_id_resumes_its_session_and_shows_the_last_exchange() {
    let home = Home::new();
    let mut terminal = home.terminal("run", &["--resume", "67c9c", "continue"], SIZES[0]);
    assert_eq!(terminal.wait_for_exit(), 0);
    assert!(home.argv().contains(&format!("--resume={FIRST}")), "{}", home.argv());
    let shown = home.screen(&terminal);
    let (exchange, _) = shown.split_once("claude 2.1.197").unwrap();
    assert_snapshot!(exchange.trim_end(), @r"
    session 00000000-0000-0000-0000-000000000000, 2 turns, 3 h ago
    > Second prompt
      Answer to the *second* prompt.
    ");
}

#[test]
fn on_a_pipe_and_with_quiet_the_last_exchange_is_not_shown() {
    let home = Home::new();
    let end = ended(home.command("run", &["--resume", "67c9c", "continue"]));
    assert_eq!(end.code, Some(0));
    assert!(!end.out.contains("Second prompt") && home.argv().contains(FIRST), "{}", end.out);
    let mut terminal = home.terminal("run", &["--quiet", "--continue", "continue"], SIZES[0]);
    assert_eq!(terminal.wait_for_exit(), 0);
    assert!(!terminal.text().contains("Second prompt"), "{}", terminal.text());
}

#[test]
fn continue_shows_the_last_exchange_of_the_newest_session() {
    let home = Home::new();
    let mut terminal = home.terminal("chat", &["--continue"], SIZES[0]);
    terminal.wait_for("Answer to the *second* prompt.");
    assert!(terminal.text().contains(&format!("session {SECOND}, 2 turns, 5 min ago")), "{}", terminal.text());
    terminal.press("\u{4}");
    assert_eq!(terminal.wait_for_exit(), 0);
}

#[test]
fn a_start_that_fits_two_sessions_is_refused_with_both() {
    let home = Home::new();
    for name in ["run", "chat"] {
        let mut terminal = home.terminal(name, &["--resume", "67c9", "hi"], SIZES[0]);
        assert_eq!(terminal.wait_for_exit(), 2);
        assert_snapshot!("ambiguous", home.screen(&terminal));
    }
    assert_eq!(home.argv(), "", "nothing was started");
}

#[test]
fn a_session_of_another_agent_is_named_with_the_options_that_resume_it() {
    let end = ended(Home::new().command("run", &["--resume", "01a20c62", "hi"]));
    assert_eq!(end.code, Some(2));
    assert!(end.err.contains(&format!(" hint: --agent codex --resume {CODEX}\n")), "{}", end.err);
}

#[test]
fn an_id_that_is_not_stored_is_left_to_the_agent() {
    let home = Home::new();
    let end = ended(home.command("run", &["--resume", "ffffffff-861b-4c99-8ee9-b9763d77fa36", "hi"]));
    assert!(home.argv().contains("--resume=ffffffff"), "{} {}", home.argv(), end.err);
}

#[test]
fn without_an_id_a_list_opens_in_which_a_session_is_chosen() {
    let home = Home::new();
    for (keys, chosen) in [("\u{1b}[B\r", FIRST), ("\r", SECOND), ("2\r", FIRST)] {
        let mut terminal = home.terminal("chat", &["--resume"], SIZES[0]);
        terminal.wait_for("Enter: resume");
        if keys == "\r" {
            assert_snapshot!("picker", terminal.styled_snapshot());
        }
        terminal.press(keys);
        terminal.wait_for("Ctrl-D quits");
        terminal.wait_for(&format!("session {chosen}, 2 turns"));
        assert!(!terminal.text().contains("Enter: resume"), "the list is gone: {}", terminal.text());
        terminal.press("\u{4}");
        assert_eq!(terminal.wait_for_exit(), 0);
        assert!(!terminal.is_raw());
    }
}

#[test]
fn a_list_that_is_left_starts_nothing() {
    let home = Home::new();
    for key in ["\u{1b}", "\u{3}", "q"] {
        let mut terminal = home.terminal("run", &["--resume", "--", "hi"], SIZES[0]);
        terminal.wait_for("Enter: resume");
        terminal.press(key);
        assert_eq!(terminal.wait_for_exit(), 2);
        assert_eq!((terminal.text().trim(), home.argv().as_str()), ("error: no session was chosen", ""));
        assert!(!terminal.is_raw());
    }
}

#[test]
fn a_missing_prompt_is_reported_before_a_session_is_chosen() {
    let home = Home::new();
    let mut terminal = home.terminal("run", &["--resume"], SIZES[0]);
    assert_eq!(terminal.wait_for_exit(), 2);
    assert!(terminal.text().starts_with("error: there is no prompt"), "{}", terminal.text());
}

#[test]
fn a_word_that_resume_took_as_an_id_is_named_if_there_is_no_prompt() {
    let home = Home::new();
    let mut terminal = home.terminal("run", &["--resume", "hm"], SIZES[0]);
    assert_eq!(terminal.wait_for_exit(), 2);
    let text = terminal.text();
    assert!(text.starts_with("error: there is no prompt: \"hm\" is taken as the session id of --resume"), "{text}");
    for way in ["teamster run --resume ID hm", "teamster run hm --resume"] {
        assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains(way), "{text}");
    }
}

#[test]
fn on_a_terminal_that_cannot_move_its_cursor_a_number_is_typed() {
    let home = Home::new();
    let mut command = home.command("run", &["--resume", "--", "hi"]);
    command.env("TERM", "dumb");
    let mut terminal = Terminal::start(&command, SIZES[0]);
    terminal.wait_for("a number (empty = none): ");
    terminal.press("7\n");
    terminal.wait_for("choose from 1 to 2");
    terminal.press("2\n");
    assert_eq!(terminal.wait_for_exit(), 0);
    assert!(home.argv().contains(&format!("--resume={FIRST}")), "{}", home.argv());
}

#[test]
fn without_a_terminal_and_an_id_the_command_that_lists_the_ids_is_named() {
    let end = ended(Home::new().command("run", &["--resume", "--", "hi"]));
    assert_eq!(end.code, Some(2));
    assert!(end.err.contains("teamster sessions --agent claude"), "{}", end.err);
}

#[test]
fn a_chat_lists_the_sessions_and_resumes_one_by_the_start_of_its_id() {
    let home = Home::new();
    let mut terminal = home.terminal("chat", &[], SIZES[1]);
    terminal.wait_for("Ctrl-D quits");
    terminal.press("/sessions\r");
    terminal.wait_for("Write the changelog");
    terminal.press("/resume 67c9\r");
    terminal.wait_for("several sessions of claude");
    terminal.press("/resume 67c9d\r");
    terminal.wait_for(&format!("session {SECOND}, 2 turns"));
    terminal.wait_for("Answer to the *second* prompt.");
    assert_snapshot!(home.screen(&terminal));
    terminal.press("\u{4}");
    assert_eq!(terminal.wait_for_exit(), 0);
}

#[test]
fn a_shell_completes_ids_agents_profiles_and_models() {
    let home = Home::new();
    let config = home.0.path().join(".config/teamster/config.toml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    fs::write(&config, "[profiles.review]\nmodel = 'm'\n[agents.mine]\ncommand = 'x'\nprotocol = 'acp'\n").unwrap();
    let completed = |words: &[&str]| {
        let mut command = home.command("--", &[&["teamster"], words].concat());
        command.env("COMPLETE", "fish");
        ended(command).out
    };
    let ids = completed(&["chat", "--agent", "claude", "--resume", "67c9"]);
    assert_eq!(
        ids,
        format!("{SECOND}\tclaude: Explain **this** code, please\n{FIRST}\tclaude: Fix the failing test\n")
    );
    assert_eq!(completed(&["run", "--resume", "01"]), format!("{CODEX}\tcodex: Write the changelog\n"));
    assert_eq!(completed(&["run", "--agent", "mi"]), "mine\n");
    // Newer sessions do not hide an old one whose id is typed.
    for number in 0..60 {
        home.store_claude(&format!("7{number:07}-0000-4000-8000-000000000000"), "New", 0);
    }
    assert_eq!(completed(&["run", "--resume", "01"]), format!("{CODEX}\tcodex: Write the changelog\n"));
    assert_eq!(completed(&["run", "--profile", "re"]), "review\n");
    assert_eq!(completed(&["run", "--agent", "codex", "--model", "g"]), "gpt-5.5\n");
    assert_eq!(completed(&["sessions", "--agent", "co"]), "codex\n");
}

#[test]
fn continue_passes_the_id_of_the_newest_session_and_notes_a_newer_one_of_another_agent() {
    let home = Home::new();
    let end = ended(home.command("run", &["--continue", "hi"]));
    assert_eq!((end.code, end.err.contains("newer session")), (Some(0), false), "{}", end.err);
    assert!(home.argv().contains(&format!("--resume={SECOND}")), "{}", home.argv());
    for (agent, note) in [
        ("codex", "claude has a newer session in this directory: --agent claude --continue\n"),
        ("gemini", "gemini has no session in this directory, but claude has: --agent claude --continue\n"),
    ] {
        let mut command = home.command("run", &["--agent", agent, "--continue", "hi"]);
        command.env("FAKE_CLI", "exit 1");
        let end = ended(command);
        assert!(end.err.contains(note), "{}", end.err);
    }
}

#[test]
fn a_session_of_another_directory_is_refused_with_the_way_to_it() {
    let home = Home::new();
    let other = home.0.path().canonicalize().unwrap().join("other");
    fs::create_dir(&other).unwrap();
    let app = home.app().to_string_lossy().into_owned();
    for (name, agent, id, code) in
        [("run", "claude", FIRST, 1), ("run", "codex", CODEX.get(..9).unwrap(), 1), ("session", "codex", CODEX, 2)]
    {
        let mut command = home.command(name, &["--agent", agent, "--resume", id]);
        if name == "run" {
            command.arg("hi");
        }
        command.current_dir(&other);
        let end = ended(command);
        assert_eq!(end.code, Some(code), "{name} {agent}: {}", end.err);
        assert!(end.err.contains(&format!("belongs to the directory {app}")), "{}", end.err);
        assert!(end.err.contains(&format!("hint: resume it in its directory: add -C {app}\n")), "{}", end.err);
    }
    assert_eq!(home.argv(), "", "nothing was started");
}

#[test]
fn a_directory_that_does_not_exist_is_an_error_unless_it_has_sessions() {
    let home = Home::new();
    let end = ended(home.command("sessions", &["-C", "/no/such"]));
    assert_eq!((end.code, end.out.as_str()), (Some(2), ""));
    assert!(end.err.contains("the directory /no/such of --cwd does not exist"), "{}", end.err);
    let app = home.app();
    let mut command = home.command("sessions", &["-C", app.to_str().unwrap()]);
    command.current_dir("/");
    fs::remove_dir(&app).unwrap();
    assert_eq!(ended(command).out.lines().count(), 4);
}
