//! The ledger: live runs are left alone, and what crashes left is ended and removed, and nothing else.

use std::{
    fs,
    os::unix::{
        fs::{MetadataExt, PermissionsExt, symlink},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use teamster_process::ledger::{Ledger, LedgerError, LeftReason, Refusal, Sweep};

use crate::{BOUND, is_alive, stat};

/// A ledger of its own, and what a crashed host could have left in it.
struct Scene {
    ledger: Ledger,
    home: tempfile::TempDir,
}

/// A run whose host is gone.
struct Crashed {
    path: PathBuf,
    mark: String,
}

fn scene() -> Scene {
    let home = tempfile::tempdir().unwrap();
    Scene { ledger: Ledger::in_directory(home.path().join("ledger")), home }
}

fn start_of(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit(')').next().unwrap().split_whitespace().nth(19).unwrap().parse().unwrap()
}

impl Scene {
    fn runs(&self) -> PathBuf {
        self.home.path().join("ledger/runs")
    }

    /// A directory of a run without an entry.
    fn bare(&self) -> PathBuf {
        static RUNS: AtomicU64 = AtomicU64::new(0);
        for path in [self.home.path().join("ledger"), self.runs()] {
            fs::create_dir_all(&path).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        }
        let path = self.runs().join(format!("{:016}", RUNS.fetch_add(1, Ordering::Relaxed)));
        fs::create_dir(&path).unwrap();
        path
    }

    fn crashed(&self) -> Crashed {
        self.crashed_with(|_| ())
    }

    /// A run with an entry as this version writes it, but for what the test changes.
    fn crashed_with(&self, change: impl FnOnce(&mut Value)) -> Crashed {
        let path = self.bare();
        let name = path.file_name().unwrap().to_str().unwrap();
        let mark = format!("TEAMSTER_TREE_test_{}_{name}", std::process::id());
        let mut entry = entry(&mark);
        change(&mut entry);
        fs::write(path.join("entry.json"), entry.to_string()).unwrap();
        Crashed { path, mark }
    }

    fn is_empty(&self) -> bool {
        fs::read_dir(self.home.path()).unwrap().next().is_none()
    }
}

/// The entry of a run whose host had the number of this process before.
fn entry(mark: &str) -> Value {
    let own = std::process::id();
    json!({
        "version": 1,
        "here": {
            "boot": fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap().trim(),
            "pidNamespace": fs::metadata("/proc/self/ns/pid").unwrap().ino(),
        },
        "label": "claude",
        "mark": mark,
        "began": 1_790_000_000,
        "host": { "pid": own, "start": start_of(own) - 1 },
    })
}

/// A process that is ended with the test, if it was not before. It leads a group of its own.
struct Running(Child);

impl Running {
    fn sh(script: &str, environment: &[(&str, &str)]) -> Self {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).env_clear().env("PATH", "/usr/bin:/bin");
        command.envs(environment.iter().copied()).stdin(Stdio::null()).process_group(0);
        Self(command.spawn().unwrap())
    }

    fn marked(script: &str, run: &Crashed) -> Self {
        Self::sh(script, &[(&run.mark, "1")])
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    fn is_alive(&self) -> bool {
        is_alive(self.pid())
    }

    fn leader(&self) -> Value {
        json!({ "pid": self.pid(), "start": start_of(self.pid()) })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_child(&self.0);
        _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        _ = self.0.wait();
    }
}

/// What a script writes to a file when it is so far.
fn wait_for(path: &Path) -> u32 {
    let began = Instant::now();
    loop {
        match fs::read_to_string(path).ok().and_then(|text| text.strip_suffix('\n')?.parse().ok()) {
            Some(pid) => return pid,
            None => assert!(began.elapsed() < BOUND, "never: {}", path.display()),
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn a_run_is_known_while_it_lives_and_nothing_stays_when_it_has_ended() {
    let scene = scene();
    let run = scene.ledger.register("claude").unwrap();
    let survey = scene.ledger.survey();
    assert_eq!(survey.live.len(), 1);
    assert_eq!(survey.live[0].path, run.path());
    assert_eq!(survey.live[0].label.as_deref(), Some("claude"));
    assert!(survey.live[0].began.unwrap().elapsed().unwrap() < BOUND);
    assert!(survey.leftovers.is_empty() && survey.left.is_empty() && survey.problems.is_empty());
    drop(run);
    assert!(scene.is_empty());
    assert!(scene.ledger.survey().live.is_empty());
}

#[test]
fn a_run_s_directory_and_its_files_are_this_users_alone_and_go_with_it() {
    let scene = scene();
    let run = scene.ledger.register("claude").unwrap();
    let files = run.private_dir().unwrap();
    let file = files.write("secret", b"x").unwrap();
    for path in [&scene.runs(), run.path(), files.path()] {
        assert_eq!(mode(path), 0o700, "{}", path.display());
    }
    assert_eq!([mode(&file), mode(&run.path().join("entry.json"))], [0o600; 2]);
    assert!(files.path().starts_with(run.path()));
    run.remove().unwrap();
    assert!(scene.is_empty());
}

#[test]
fn a_live_run_is_not_swept() {
    let scene = scene();
    let mut run = scene.ledger.register("claude").unwrap();
    let leader = Running::sh("exec sleep 300", &[]);
    run.set_leader(leader.pid()).unwrap();
    let sweep = scene.ledger.sweep();
    assert_eq!((sweep.live, sweep.cleared.len(), sweep.is_clean()), (1, 0, true));
    assert!(leader.is_alive() && run.path().join("entry.json").exists());
}

/// Opens a run's directory and locks it, as a host and whoever inherits from it do.
fn lock(path: &Path) -> fs::File {
    let directory = fs::File::open(path).unwrap();
    directory.try_lock().unwrap();
    directory
}

#[test]
fn a_run_lives_while_a_process_that_inherited_its_lock_does() {
    let scene = scene();
    let run = scene.crashed();
    let keeper = Command::new("sleep").arg("300").stdin(lock(&run.path)).process_group(0).spawn();
    let keeper = Running(keeper.unwrap());
    let sweep = scene.ledger.sweep();
    assert_eq!((sweep.live, sweep.cleared.len()), (1, 0));
    assert!(run.path.exists());
    drop(keeper);
    let sweep = scene.ledger.sweep();
    assert_eq!((sweep.live, sweep.cleared.len()), (0, 1));
    assert!(scene.is_empty());
}

#[test]
fn the_lock_of_a_run_is_the_one_that_sweeps_ask_for() {
    let scene = scene();
    let run = scene.ledger.register("claude").unwrap();
    assert!(fs::File::open(run.path()).unwrap().try_lock().is_err());
    // Duplicates are the same lock.
    fs::File::from(run.lock().try_clone_to_owned().unwrap()).unlock().unwrap();
    assert!(fs::File::open(run.path()).unwrap().try_lock().is_ok());
}

#[test]
fn a_run_lives_while_its_host_does_even_if_that_lost_the_lock() {
    let scene = scene();
    let host = Running::sh("exec sleep 300", &[]);
    let run = scene.crashed_with(|entry| entry["host"] = host.leader());
    let member = Running::marked("exec sleep 300", &run);
    assert_eq!(scene.ledger.sweep().live, 1);
    assert!(member.is_alive());
    drop(host);
    assert_eq!(scene.ledger.sweep().cleared.len(), 1);
    assert!(!member.is_alive());
}

#[test]
fn whoever_is_left_of_a_crashed_run_is_ended_and_its_directory_removed() {
    let scene = scene();
    let told = scene.home.path().join("told");
    let run = scene.crashed();
    fs::create_dir(run.path.join("files")).unwrap();
    fs::write(run.path.join("files/secret"), "x").unwrap();
    // A daemon in a session of its own whose parents are gone, and a descendant without the mark.
    let script = format!(
        "trap '' TERM HUP; (setsid sh -c 'echo $$ >{0}.daemon; while :; do sleep 1; done' &)
         env -i PATH=$PATH sh -c 'echo $$ >{0}.plain; exec sleep 300' & wait",
        told.display()
    );
    let leader = Running::marked(&script, &run);
    let daemon = wait_for(&told.with_extension("daemon"));
    let plain = wait_for(&told.with_extension("plain"));

    let sweep = scene.ledger.sweep();
    assert!(sweep.is_clean(), "{sweep:?}");
    let [cleared] = sweep.cleared.as_slice() else { panic!("{sweep:?}") };
    assert_eq!(cleared.run.path, run.path);
    assert_eq!(cleared.run.label.as_deref(), Some("claude"));
    for pid in [leader.pid(), daemon, plain] {
        assert!(!is_alive(pid), "{pid}");
        assert!(cleared.ended.iter().any(|one| one.pid == pid), "{pid} is told");
    }
    assert!(!scene.home.path().join("ledger").exists());
}

#[test]
fn a_halted_process_of_a_crashed_run_is_ended() {
    let scene = scene();
    let run = scene.crashed();
    let halted = Running::marked("kill -STOP $$; sleep 300", &run);
    wait_until("it halts", || stat(halted.pid()).is_some_and(|(state, ..)| state == "T"));
    assert_eq!(scene.ledger.sweep().cleared[0].ended.len(), 1);
    assert!(!halted.is_alive());
}

#[test]
fn a_daemon_that_moves_on_to_a_new_process_all_the_time_is_ended() {
    let scene = scene();
    let run = scene.crashed();
    let told = scene.home.path().join("told");
    let hop = format!("echo $$ >>{}; sleep 0.02; setsid sh -c \"$HOP\" & exit 0", told.display());
    let _first = Running::sh("eval \"$HOP\"", &[(&run.mark, "1"), ("HOP", &hop)]);
    let hops = || fs::read_to_string(&told).unwrap_or_default().lines().count();
    wait_until("it has moved on", || hops() > 3);
    let sweep = scene.ledger.sweep();
    assert!(sweep.is_clean() && sweep.cleared.len() == 1, "{sweep:?}");
    assert_eq!(bearers(&run.mark), [0; 0]);
}

#[test]
fn a_leader_that_threw_its_environment_away_is_ended_with_its_children() {
    let scene = scene();
    let told = scene.home.path().join("told");
    let leader = Running::sh(&format!("sleep 300 & echo $! >{}; wait", told.display()), &[]);
    let child = wait_for(&told);
    scene.crashed_with(|entry| entry["leader"] = leader.leader());
    assert_eq!(scene.ledger.sweep().cleared[0].ended.len(), 2);
    assert!(!leader.is_alive() && !is_alive(child));
}

#[test]
fn a_process_that_got_the_leaders_number_is_not_hit() {
    let scene = scene();
    let other = Running::sh("exec sleep 300", &[]);
    for start in [start_of(other.pid()) + 1, start_of(other.pid()) - 1] {
        // The host is older than its leader.
        scene.crashed_with(|entry| {
            entry["host"]["start"] = json!(1);
            entry["leader"] = json!({ "pid": other.pid(), "start": start });
        });
        let sweep = scene.ledger.sweep();
        assert!(sweep.is_clean() && sweep.cleared[0].ended.is_empty(), "{sweep:?}");
    }
    assert!(other.is_alive());
    assert!(scene.is_empty());
}

#[test]
fn a_run_of_another_boot_is_removed_and_no_process_is_hit() {
    let scene = scene();
    let other = Running::sh("exec sleep 300", &[("TEAMSTER_TREE_of_another_boot", "1")]);
    scene.crashed_with(|entry| {
        entry["here"]["boot"] = json!("00000000-0000-4000-8000-000000000000");
        entry["mark"] = json!("TEAMSTER_TREE_of_another_boot");
        entry["leader"] = other.leader();
    });
    let sweep = scene.ledger.sweep();
    assert!(sweep.is_clean() && sweep.cleared[0].ended.is_empty(), "{sweep:?}");
    assert!(other.is_alive() && scene.is_empty());
}

#[test]
fn a_run_of_another_process_namespace_is_left_and_told() {
    let scene = scene();
    let run = scene.crashed_with(|entry| entry["here"]["pidNamespace"] = json!(1));
    let sweep = scene.ledger.sweep();
    assert!(matches!(sweep.left.as_slice(), [left] if left.path == run.path
        && matches!(left.reason, LeftReason::OtherNamespace)));
    assert!(!sweep.is_clean() && run.path.join("entry.json").exists());
}

#[test]
fn a_run_of_a_newer_version_is_left_and_told() {
    let scene = scene();
    let run = scene.crashed_with(|entry| *entry = json!({ "version": 2, "marks": [] }));
    let sweep = scene.ledger.sweep();
    assert!(matches!(&sweep.left[0].reason, LeftReason::Newer { version: 2 }));
    assert!(run.path.exists());
}

/// Entries that no host has written so, with a process that each could be taken to mean.
#[test]
fn a_damaged_entry_is_removed_and_no_process_is_hit() {
    let scene = scene();
    let other = Running::sh("exec sleep 300", &[("TEAMSTER_TREE_", "1")]);
    let whole = entry("TEAMSTER_TREE_1").to_string();
    let with = |change: &dyn Fn(&mut Value)| {
        let mut entry = entry("TEAMSTER_TREE_1");
        entry["leader"] = other.leader();
        change(&mut entry);
        entry.to_string().into_bytes()
    };
    let damaged = [
        Vec::new(),
        b"\0\0\0\0".to_vec(),
        whole.as_bytes()[..whole.len() - 10].to_vec(),
        b"[1]".to_vec(),
        with(&|entry| entry["mark"] = json!("PATH")),
        with(&|entry| entry["mark"] = json!("")),
        with(&|entry| entry["mark"] = json!("TEAMSTER_TREE_")),
        with(&|entry| entry["mark"] = json!(null)),
        with(&|entry| entry["leader"]["pid"] = json!(-1)),
        with(&|entry| entry["leader"]["pid"] = json!(1)),
        with(&|entry| entry["leader"]["start"] = json!("1")),
        with(&|entry| entry["host"]["start"] = json!(u64::MAX)),
        with(&|entry| entry["here"] = json!({})),
    ];
    for bytes in damaged {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        fs::write(scene.bare().join("entry.json"), bytes).unwrap();
        let sweep = scene.ledger.sweep();
        assert!(sweep.is_clean() && sweep.cleared.len() == 1, "{text}: {sweep:?}");
        assert!(sweep.cleared[0].ended.is_empty(), "{text}");
        assert!(scene.is_empty());
    }
    assert!(other.is_alive());
}

#[test]
fn an_entry_that_is_no_file_is_damaged() {
    let scene = scene();
    let elsewhere = scene.home.path().join("elsewhere.json");
    let other = Running::sh("exec sleep 300", &[("TEAMSTER_TREE_elsewhere", "1")]);
    fs::write(&elsewhere, entry("TEAMSTER_TREE_elsewhere").to_string()).unwrap();
    symlink(&elsewhere, scene.bare().join("entry.json")).unwrap();
    fs::create_dir(scene.bare().join("entry.json")).unwrap();
    let pipe = Command::new("mkfifo").arg(scene.bare().join("entry.json")).status().unwrap();
    assert!(pipe.success());
    let sweep = scene.ledger.sweep();
    assert!(sweep.is_clean() && sweep.cleared.len() == 3, "{sweep:?}");
    assert!(other.is_alive() && elsewhere.exists());
}

#[test]
fn a_run_that_crashed_before_it_wrote_its_entry_is_removed_when_its_lock_is_free() {
    let scene = scene();
    let path = scene.bare();
    let host = lock(&path);
    assert_eq!(scene.ledger.sweep().live, 1);
    assert!(path.exists());
    drop(host);
    assert_eq!(scene.ledger.sweep().cleared.len(), 1);
    assert!(scene.is_empty());
}

#[test]
fn what_is_no_run_is_left_and_told() {
    let scene = scene();
    let theirs = scene.home.path().join("theirs");
    fs::create_dir(&theirs).unwrap();
    fs::write(theirs.join("entry.json"), entry("TEAMSTER_TREE_1").to_string()).unwrap();
    scene.crashed();
    let link = scene.runs().join("abcdefghijklmnop");
    symlink(&theirs, &link).unwrap();
    fs::write(scene.runs().join("ABCDEFGHIJKLMNOP"), "x").unwrap();
    fs::create_dir(scene.runs().join("notes")).unwrap();
    let sweep = scene.ledger.sweep();
    assert_eq!((sweep.cleared.len(), sweep.left.len()), (1, 3));
    assert!(sweep.left.iter().all(|left| matches!(left.reason, LeftReason::NoRun)));
    assert!(!sweep.is_clean());
    assert!(theirs.join("entry.json").exists() && link.is_symlink());
    assert_eq!(scene.ledger.survey().left.len(), 3);
}

#[test]
fn links_in_a_leftover_are_removed_and_what_they_lead_to_stays() {
    let scene = scene();
    let theirs = scene.home.path().join("theirs");
    fs::create_dir(&theirs).unwrap();
    fs::write(theirs.join("file"), "x").unwrap();
    let run = scene.crashed();
    fs::create_dir(run.path.join("files")).unwrap();
    symlink(&theirs, run.path.join("files/home")).unwrap();
    assert_eq!(scene.ledger.sweep().cleared.len(), 1);
    assert!(!run.path.exists() && theirs.join("file").exists());
}

#[test]
fn looking_at_leftovers_changes_nothing() {
    let scene = scene();
    let run = scene.crashed();
    let member = Running::marked("exec sleep 300", &run);
    let survey = scene.ledger.survey();
    assert_eq!((survey.live.len(), survey.leftovers.len()), (0, 1));
    assert_eq!(survey.leftovers[0].path, run.path);
    assert!(member.is_alive() && run.path.join("entry.json").exists());
}

#[test]
fn a_run_inside_a_crashed_run_is_ended_and_swept_with_it() {
    let scene = scene();
    let outer = scene.crashed();
    let host = Running::marked("exec sleep 300", &outer);
    let inner = scene.crashed_with(|entry| entry["host"] = host.leader());
    let member = Running::sh("exec sleep 300", &[(&outer.mark, "1"), (&inner.mark, "1")]);
    let sweep = scene.ledger.sweep();
    assert!(sweep.is_clean(), "{sweep:?}");
    assert_eq!((sweep.cleared.len(), sweep.live), (2, 0));
    assert!(!host.is_alive() && !member.is_alive() && scene.is_empty());
}

#[test]
fn sweeps_at_once_clear_each_leftover_once() {
    let scene = scene();
    let runs: Vec<_> = (0..30).map(|_| scene.crashed()).collect();
    let members: Vec<_> = runs.iter().step_by(6).map(|run| Running::marked("exec sleep 300", run)).collect();
    let sweeps: Vec<_> = std::thread::scope(|scope| {
        let sweeps: Vec<_> = (0..4).map(|_| scope.spawn(|| scene.ledger.sweep())).collect();
        sweeps.into_iter().map(|sweep| sweep.join().unwrap()).collect()
    });
    let mut cleared: Vec<_> = sweeps.iter().flat_map(|sweep| &sweep.cleared).map(|cleared| &cleared.run.path).collect();
    cleared.sort();
    cleared.dedup();
    assert_eq!(cleared.len(), runs.len());
    assert_eq!(sweeps.iter().map(|sweep| sweep.cleared.len()).sum::<usize>(), runs.len());
    let ended = sweeps.iter().flat_map(|sweep| &sweep.cleared).map(|cleared| cleared.ended.len());
    assert_eq!(ended.sum::<usize>(), members.len());
    assert!(sweeps.iter().all(Sweep::is_clean), "{sweeps:?}");
    assert!(!members.iter().any(Running::is_alive) && scene.is_empty());
}

#[test]
fn runs_that_start_and_end_while_others_sweep_are_not_touched() {
    let scene = scene();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    scene.ledger.sweep();
                    scene.ledger.survey();
                }
            });
        }
        let runs: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let mut run = scene.ledger.register("claude").unwrap();
                        let files = run.private_dir().unwrap();
                        let file = files.write("file", b"x").unwrap();
                        run.set_leader(std::process::id()).unwrap();
                        assert_eq!(fs::read(file).unwrap(), b"x");
                        assert!(run.path().join("entry.json").exists());
                        run.remove().unwrap();
                    }
                })
            })
            .collect();
        let ended: Vec<_> = runs.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        over.store(true, Ordering::Relaxed);
        assert!(ended.iter().all(Result::is_ok));
    });
    assert!(scene.is_empty());
}

#[test]
fn a_directory_that_others_could_use_is_refused() {
    let scene = scene();
    let ledger = scene.home.path().join("ledger");
    let elsewhere = scene.home.path().join("elsewhere");
    let refusal = || match scene.ledger.register("claude") {
        Err(LedgerError::Refused { path, reason }) if path == ledger => reason,
        other => panic!("{other:?}"),
    };
    fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, &ledger).unwrap();
    assert_eq!(refusal(), Refusal::NoDirectory);
    fs::remove_file(&ledger).unwrap();

    fs::create_dir(&ledger).unwrap();
    fs::set_permissions(&ledger, fs::Permissions::from_mode(0o750)).unwrap();
    assert_eq!(refusal(), Refusal::Open);
    assert!(!scene.ledger.sweep().is_clean(), "something of ours may be in there");
    fs::remove_dir(&ledger).unwrap();

    fs::set_permissions(scene.home.path(), fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(refusal(), Refusal::Parent);
    // As /tmp is.
    fs::set_permissions(scene.home.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    assert!(scene.ledger.register("claude").is_ok());
    assert_eq!(fs::read_dir(elsewhere).unwrap().count(), 0);
}

#[test]
fn a_ledger_that_cannot_be_made_is_an_error_that_names_it() {
    let ledger = Ledger::in_directory("/proc/ledger");
    let error = ledger.register("claude").unwrap_err();
    assert!(error.to_string().contains("/proc/ledger"), "{error}");
    assert!(std::error::Error::source(&error).is_some());
    assert!(ledger.sweep().is_clean());
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < BOUND, "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn bearers(mark: &str) -> Vec<u32> {
    crate::alive_with(&format!("{mark}=1"))
}
