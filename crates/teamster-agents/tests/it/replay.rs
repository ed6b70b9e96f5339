//! Replays all recorded runs through the protocol and the transcript.
//!
//! The events of each run are compared with a snapshot. Review a changed snapshot like code: it changes the output for users.

use std::collections::BTreeSet;
use std::fs;
use std::panic::catch_unwind;
use std::path::Path;

use serde_json::value::RawValue;
use teamster_testkit::check::{check, check_ndjson};

use crate::capture::Capture;
use crate::drive::{events, replay, replay_with};
use crate::render::render;
use crate::subject::{SUBJECTS, Subject};

/// Runs a check on each capture of each agent, and panics with all failures.
pub(crate) fn for_each_capture(check: impl Fn(&Subject, &Capture) -> Result<(), String>) {
    for_each_capture_of(SUBJECTS, check);
}

/// Like [`for_each_capture`], for the captures of these agents.
pub(crate) fn for_each_capture_of(subjects: &[Subject], check: impl Fn(&Subject, &Capture) -> Result<(), String>) {
    let mut failures = Vec::new();
    for subject in subjects {
        for capture in subject.captures() {
            let failure = check(subject, &capture).err();
            failures.extend(failure.map(|why| format!("{} {}: {why}", subject.agent.name(), capture.name)));
        }
    }
    assert!(failures.is_empty(), "{} captures fail:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn every_recorded_run_follows_the_rules_of_the_stream() {
    for_each_capture(|subject, capture| {
        check(&events(&replay(subject, capture)))
            .map_err(|violations| violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
    });
}

#[test]
fn a_delta_that_is_recognized_by_its_shape_is_emitted_like_one_that_is_read_as_json() {
    for_each_capture(|subject, capture| {
        // No line has the shape of the one before it: every other one has a space.
        let mut has_space = false;
        let changed = |line: &[u8]| {
            has_space = !has_space;
            match line.strip_prefix(b"{") {
                Some(rest) if has_space && serde_json::from_slice::<&RawValue>(line).is_ok() => [b"{ ", rest].concat(),
                _ => line.to_vec(),
            }
        };
        if events(&replay_with(subject, capture, changed)) == events(&replay(subject, capture)) {
            Ok(())
        } else {
            Err("other events were emitted".to_owned())
        }
    });
}

#[test]
fn every_recorded_run_is_printed_and_read_back_without_loss() {
    for_each_capture(|subject, capture| {
        let events = events(&replay(subject, capture));
        let text: String = events.iter().map(|event| serde_json::to_string(event).unwrap() + "\n").collect();
        match check_ndjson(&text) {
            Ok(read) if read == events => Ok(()),
            Ok(_) => Err("other events were read back".to_owned()),
            Err(violations) => Err(violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")),
        }
    });
}

#[test]
fn every_recorded_run_matches_its_snapshot() {
    for_each_capture(|subject, capture| {
        let text = render(capture, &replay(subject, capture));
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path(format!("../snapshots/{}", subject.agent.name()));
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        let compare = || settings.bind(|| insta::assert_snapshot!(capture.name.as_str(), text));
        catch_unwind(std::panic::AssertUnwindSafe(compare)).map_err(|_| "see above".to_owned())
    });
}

#[test]
fn every_snapshot_has_a_capture() {
    for subject in SUBJECTS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots").join(subject.agent.name());
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let snapshots: BTreeSet<_> = names.filter_map(|name| Some(name.strip_suffix(".snap")?.to_owned())).collect();
        let captures: BTreeSet<_> = subject.captures().into_iter().map(|capture| capture.name).collect();
        assert_eq!(snapshots, captures);
    }
}
