//! Several merges into one file at once, and damaged restore logs. They run in one process, since each open file has its own lock.

use std::fs;
use std::thread;

use serde_json::json;
use teamster_config::document::Format;
use teamster_config::{ConfigError, RestoreOutcome};

use crate::test_env::TestEnv;

#[test]
fn each_merge_removes_its_own_entries_and_the_last_one_restores_the_file_in_either_order() {
    for format in [Format::Toml, Format::Jsonc] {
        for first_ends_first in [true, false] {
            let env = TestEnv::new(format);
            let (a, b) = (env.merge("alpha").unwrap(), env.merge("beta").unwrap());
            assert!(env.text().contains("alpha") && env.text().contains("beta"));
            let (ends, stays, removed, kept) =
                if first_ends_first { (a, b, "alpha", "beta") } else { (b, a, "beta", "alpha") };
            assert_eq!(ends.restore().unwrap().how, RestoreOutcome::Shared);
            assert!(!env.text().contains(removed) && env.text().contains(kept), "{}", env.text());
            assert_eq!(stays.restore().unwrap().how, RestoreOutcome::Exactly);
            env.assert_untouched();
        }
    }
}

#[test]
fn an_edit_between_two_merges_is_kept() {
    for format in [Format::Toml, Format::Jsonc] {
        let env = TestEnv::new(format);
        let a = env.merge("alpha").unwrap();
        env.edit("mine", "yours");
        let b = env.merge("beta").unwrap();
        env.edit("note", "remark");
        assert_eq!(a.restore().unwrap().how, RestoreOutcome::Shared);
        env.edit("yours", "theirs");
        assert_eq!(b.restore().unwrap().how, RestoreOutcome::EditKept);
        assert_eq!(env.text(), env.original.replace("mine", "theirs").replace("note", "remark"));
        env.assert_restore_log_is_empty();
    }
}

#[test]
fn an_equal_entry_is_shared_and_a_different_one_of_that_name_is_rejected_with_its_owner() {
    let env = TestEnv::new(Format::Jsonc);
    let (a, b) = (env.merge("alpha").unwrap(), env.merge("alpha").unwrap());
    let mut other = env.request("alpha");
    other.entries.insert("alpha".to_owned(), json!({"command": "another"}));
    let before = env.text();
    let error = env.restore_log().merge(&other).unwrap_err();
    assert!(matches!(&error, ConfigError::Taken { name, .. } if name == "alpha"), "{error:?}");
    assert!(error.to_string().contains(&format!("run of alpha (process {})", std::process::id())), "{error}");
    assert_eq!(env.text(), before);
    a.restore().unwrap();
    assert_eq!(env.text(), before);
    b.restore().unwrap();
    env.assert_untouched();
}

#[test]
fn a_deleted_file_is_created_again_for_the_next_merge_and_the_original_is_kept() {
    let env = TestEnv::new(Format::Jsonc);
    let a = env.merge("alpha").unwrap();
    fs::remove_file(&env.path).unwrap();
    let b = env.merge("beta").unwrap();
    assert!(env.text().contains("alpha") && env.text().contains("beta"));
    a.restore().unwrap();
    assert_eq!(b.restore().unwrap().how, RestoreOutcome::Exactly);
    assert!(!env.path.exists());
    let kept: Vec<_> = fs::read_dir(env.restore_log().directory().join("kept")).unwrap().collect();
    assert_eq!(fs::read_to_string(kept[0].as_ref().unwrap().path()).unwrap(), env.original);
}

#[test]
fn many_merges_at_once_restore_the_file() {
    let env = TestEnv::new(Format::Toml);
    thread::scope(|scope| {
        for worker in 0..8 {
            let env = &env;
            scope.spawn(move || {
                for round in 0..6 {
                    let name = format!("w{worker}r{round}");
                    let merged = env.merge(&name).unwrap();
                    assert!(env.text().contains(&name));
                    merged.restore().unwrap();
                }
            });
        }
    });
    env.assert_untouched();
}

#[test]
fn a_survey_reports_live_merges_and_changes_nothing() {
    let env = TestEnv::new(Format::Toml);
    let merged = env.merge("alpha").unwrap();
    let before = env.text();
    let survey = env.restore_log().survey();
    assert_eq!(survey.live, [env.path.canonicalize().unwrap()]);
    assert!(survey.leftovers.is_empty() && survey.problems.is_empty());
    assert_eq!(env.text(), before);
    assert_eq!(env.restore_log().recover().live, 1);
    assert_eq!(env.text(), before);
    merged.restore().unwrap();
    assert!(env.restore_log().survey().live.is_empty());
}

#[test]
fn a_missing_journal_is_reported_and_the_file_is_not_changed() {
    let env = TestEnv::new(Format::Toml);
    let merged = env.merge("alpha").unwrap();
    fs::remove_dir_all(env.restore_log().directory()).unwrap();
    let before = env.text();
    assert!(matches!(merged.restore(), Err(ConfigError::Journal { .. })));
    assert_eq!(env.text(), before);
}

#[test]
fn a_journal_of_a_newer_version_is_not_changed() {
    let env = TestEnv::new(Format::Toml);
    let merged = env.merge("alpha").unwrap();
    let journal = env.journal();
    let text = fs::read_to_string(&journal).unwrap().replace("\"version\":1", "\"version\":99");
    fs::write(&journal, text).unwrap();
    let before = env.text();
    let error = merged.restore().unwrap_err();
    assert!(error.to_string().contains("newer version"), "{error}");
    assert_eq!(env.restore_log().recover().problems.len(), 1);
    assert_eq!((env.text(), journal.exists()), (before, true));
}
