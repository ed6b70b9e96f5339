//! Several who need entries in one file at once, and what comes after a crash. (In one process: each lock is an open file's
//! own.)

use std::fs;
use std::thread;

use serde_json::json;
use teamster_config::document::Format;
use teamster_config::{ConfigError, RestoreOutcome};

use crate::lab::Lab;

#[test]
fn each_takes_out_its_own_and_the_last_brings_the_original_back_in_either_order() {
    for format in [Format::Toml, Format::Jsonc] {
        for first_leaves_first in [true, false] {
            let lab = Lab::new(format);
            let (a, b) = (lab.merge("alpha").unwrap(), lab.merge("beta").unwrap());
            assert!(lab.text().contains("alpha") && lab.text().contains("beta"));
            let (leaves, stays, gone, there) =
                if first_leaves_first { (a, b, "alpha", "beta") } else { (b, a, "beta", "alpha") };
            assert_eq!(leaves.restore().unwrap().how, RestoreOutcome::Shared);
            assert!(!lab.text().contains(gone) && lab.text().contains(there), "{}", lab.text());
            assert_eq!(stays.restore().unwrap().how, RestoreOutcome::Exactly);
            lab.assert_untouched();
        }
    }
}

#[test]
fn an_edit_between_two_merges_is_part_of_what_comes_back() {
    for format in [Format::Toml, Format::Jsonc] {
        let lab = Lab::new(format);
        let a = lab.merge("alpha").unwrap();
        lab.edit("mine", "yours");
        let b = lab.merge("beta").unwrap();
        lab.edit("note", "remark");
        assert_eq!(a.restore().unwrap().how, RestoreOutcome::Shared);
        lab.edit("yours", "theirs");
        assert_eq!(b.restore().unwrap().how, RestoreOutcome::EditKept);
        assert_eq!(lab.text(), lab.original.replace("mine", "theirs").replace("note", "remark"));
        lab.assert_no_journals();
    }
}

#[test]
fn the_same_entry_is_shared_and_another_of_that_name_is_refused_with_the_name_of_who_has_it() {
    let lab = Lab::new(Format::Jsonc);
    let (a, b) = (lab.merge("alpha").unwrap(), lab.merge("alpha").unwrap());
    let mut other = lab.request("alpha");
    other.entries.insert("alpha".to_owned(), json!({"command": "another"}));
    let before = lab.text();
    let error = lab.journals().merge(&other).unwrap_err();
    assert!(matches!(&error, ConfigError::Taken { name, .. } if name == "alpha"), "{error:?}");
    assert!(error.to_string().contains(&format!("run of alpha (process {})", std::process::id())), "{error}");
    assert_eq!(lab.text(), before);
    a.restore().unwrap();
    assert_eq!(lab.text(), before);
    b.restore().unwrap();
    lab.assert_untouched();
}

#[test]
fn what_one_of_them_removed_is_made_anew_for_the_next_and_their_original_is_kept() {
    let lab = Lab::new(Format::Jsonc);
    let a = lab.merge("alpha").unwrap();
    fs::remove_file(&lab.path).unwrap();
    let b = lab.merge("beta").unwrap();
    assert!(lab.text().contains("alpha") && lab.text().contains("beta"));
    a.restore().unwrap();
    assert_eq!(b.restore().unwrap().how, RestoreOutcome::Exactly);
    assert!(!lab.path.exists());
    let kept: Vec<_> = fs::read_dir(lab.journals().directory().join("kept")).unwrap().collect();
    assert_eq!(fs::read_to_string(kept[0].as_ref().unwrap().path()).unwrap(), lab.original);
}

#[test]
fn many_at_once_leave_the_file_as_it_was() {
    let lab = Lab::new(Format::Toml);
    thread::scope(|scope| {
        for worker in 0..8 {
            let lab = &lab;
            scope.spawn(move || {
                for round in 0..6 {
                    let name = format!("w{worker}r{round}");
                    let merged = lab.merge(&name).unwrap();
                    assert!(lab.text().contains(&name));
                    merged.restore().unwrap();
                }
            });
        }
    });
    lab.assert_untouched();
}

#[test]
fn a_survey_tells_what_lives_and_changes_nothing() {
    let lab = Lab::new(Format::Toml);
    let merged = lab.merge("alpha").unwrap();
    let before = lab.text();
    let survey = lab.journals().survey();
    assert_eq!(survey.live, [lab.path.canonicalize().unwrap()]);
    assert!(survey.leftovers.is_empty() && survey.problems.is_empty());
    assert_eq!(lab.text(), before);
    assert_eq!(lab.journals().recover().live, 1);
    assert_eq!(lab.text(), before);
    merged.restore().unwrap();
    assert!(lab.journals().survey().live.is_empty());
}

#[test]
fn journals_that_vanished_are_told_and_nothing_is_guessed() {
    let lab = Lab::new(Format::Toml);
    let merged = lab.merge("alpha").unwrap();
    fs::remove_dir_all(lab.journals().directory()).unwrap();
    let before = lab.text();
    assert!(matches!(merged.restore(), Err(ConfigError::Journal { .. })));
    assert_eq!(lab.text(), before);
}

#[test]
fn a_journal_of_a_newer_version_is_left_alone() {
    let lab = Lab::new(Format::Toml);
    let merged = lab.merge("alpha").unwrap();
    let journal = lab.journal();
    let text = fs::read_to_string(&journal).unwrap().replace("\"version\":1", "\"version\":99");
    fs::write(&journal, text).unwrap();
    let before = lab.text();
    let error = merged.restore().unwrap_err();
    assert!(error.to_string().contains("newer version"), "{error}");
    assert_eq!(lab.journals().recover().problems.len(), 1);
    assert_eq!((lab.text(), journal.exists()), (before, true));
}
