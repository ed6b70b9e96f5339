//! One merge and its end.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use teamster_config::document::Format;
use teamster_config::{ConfigError, Merge, NotRestoredReason, RestoreOutcome, TargetProblem};

use crate::lab::{Lab, mode};

#[test]
fn a_file_comes_back_byte_for_byte_and_nothing_of_ours_is_left() {
    for format in [Format::Toml, Format::Jsonc] {
        let lab = Lab::new(format);
        let merged = lab.merge("ours").unwrap();
        assert!(lab.text().contains("ours") && lab.text().contains("mine"), "{}", lab.text());
        assert_eq!(merged.restore().unwrap().how, RestoreOutcome::Exactly);
        lab.assert_untouched();
    }
}

#[test]
fn dropping_it_restores_too() {
    let lab = Lab::new(Format::Toml);
    drop(lab.merge("ours").unwrap());
    lab.assert_untouched();
}

#[test]
fn mode_owner_and_extended_attributes_stay() {
    let lab = Lab::new(Format::Jsonc);
    fs::set_permissions(&lab.path, fs::Permissions::from_mode(0o640)).unwrap();
    let before = fs::metadata(&lab.path).unwrap();
    let has_xattrs = rustix::fs::setxattr(&lab.path, "user.note", b"x", rustix::fs::XattrFlags::empty()).is_ok();
    let merged = lab.merge("ours").unwrap();
    for _ in 0..2 {
        let now = fs::metadata(&lab.path).unwrap();
        assert_eq!((mode(&lab.path), now.uid(), now.gid()), (0o640, before.uid(), before.gid()));
        if has_xattrs {
            let mut value = [0_u8; 8];
            assert_eq!(rustix::fs::getxattr(&lab.path, "user.note", &mut value[..]), Ok(1));
        }
        lab.recover_nothing();
    }
    merged.restore().unwrap();
    assert_eq!(mode(&lab.path), 0o640);
}

#[test]
fn a_link_stays_a_link_and_its_file_is_edited() {
    let lab = Lab::new(Format::Jsonc);
    let real = lab.home().join("dotfiles/real.json");
    fs::create_dir(real.parent().unwrap()).unwrap();
    fs::rename(&lab.path, &real).unwrap();
    symlink("dotfiles/real.json", &lab.path).unwrap();
    let merged = lab.merge("ours").unwrap();
    assert!(fs::read_to_string(&real).unwrap().contains("ours"));
    assert_eq!(merged.path(), real.canonicalize().unwrap());
    merged.restore().unwrap();
    assert_eq!(fs::read_link(&lab.path).unwrap(), Path::new("dotfiles/real.json"));
    lab.assert_untouched();
}

#[test]
fn a_file_and_directories_that_were_not_there_are_gone_again() {
    let lab = Lab::new(Format::Jsonc);
    fs::remove_file(&lab.path).unwrap();
    let lab = lab.at(".agent/deep/settings.json");
    let merged = lab.merge("ours").unwrap();
    assert_eq!(mode(&lab.path), 0o600);
    assert_eq!(merged.restore().unwrap().how, RestoreOutcome::Exactly);
    assert!(!lab.home().join(".agent").exists());
    lab.assert_no_journals();
}

#[test]
fn a_file_that_is_made_begins_as_its_program_wants_it() {
    let lab = Lab::new(Format::Jsonc).at("new.json");
    let request = || Merge { template: "{\"schema\": \"x\"}\n".to_owned(), ..lab.request("ours") };
    let merged = lab.journals().merge(&request()).unwrap();
    assert!(lab.text().starts_with("{\"schema\": \"x\", \"servers\": "), "{}", lab.text());
    lab.merge("more").unwrap().restore().unwrap();
    assert!(lab.text().starts_with("{\"schema\": \"x\", \"servers\": "), "{}", lab.text());
    assert_eq!(merged.restore().unwrap().how, RestoreOutcome::Exactly);
    assert!(!lab.path.exists());

    // Whatever somebody has done to it is theirs.
    let merged = lab.journals().merge(&request()).unwrap();
    lab.edit("\n", "\n\n");
    assert_eq!(merged.restore().unwrap().how, RestoreOutcome::EditKept);
    assert_eq!(lab.text(), "{\"schema\": \"x\"}\n\n");
}

#[test]
fn a_directory_of_ours_that_somebody_uses_meanwhile_stays() {
    let lab = Lab::new(Format::Jsonc).at(".agent/settings.json");
    let merged = lab.merge("ours").unwrap();
    let theirs = lab.home().join(".agent/theirs");
    fs::write(&theirs, "x").unwrap();
    assert_eq!(merged.restore().unwrap().how, RestoreOutcome::Exactly);
    assert!(theirs.exists() && !lab.path.exists());
}

#[test]
fn a_directory_that_was_there_stays_even_if_it_is_empty() {
    let lab = Lab::new(Format::Jsonc).at(".agent/settings.json");
    fs::create_dir(lab.home().join(".agent")).unwrap();
    lab.merge("ours").unwrap().restore().unwrap();
    assert!(lab.home().join(".agent").exists());
}

#[test]
fn what_somebody_adds_meanwhile_stays_and_ours_goes() {
    for format in [Format::Toml, Format::Jsonc] {
        let lab = Lab::new(format);
        let merged = lab.merge("ours").unwrap();
        lab.edit("mine", "yours");
        assert_eq!(merged.restore().unwrap().how, RestoreOutcome::EditKept);
        assert_eq!(lab.text(), lab.original.replace("mine", "yours"));
        lab.assert_no_journals();
    }
}

#[test]
fn a_file_that_we_made_stays_if_somebody_put_something_into_it() {
    let lab = Lab::new(Format::Jsonc).at("new.json");
    let merged = lab.merge("ours").unwrap();
    fs::write(&lab.path, lab.text().replacen('{', "{\n  \"theirs\": 1,", 1)).unwrap();
    assert_eq!(merged.restore().unwrap().how, RestoreOutcome::EditKept);
    assert!(lab.text().contains("theirs") && !lab.text().contains("ours"), "{}", lab.text());
}

#[test]
fn an_entry_that_somebody_changed_is_left_and_named() {
    let lab = Lab::new(Format::Jsonc);
    let merged = lab.merge("ours").unwrap();
    lab.edit("server-of-ours", "theirs");
    let restored = merged.restore().unwrap();
    assert_eq!((restored.how, restored.changed), (RestoreOutcome::EditKept, vec!["ours".to_owned()]));
    assert!(lab.text().contains("theirs"));
}

#[test]
fn a_file_that_somebody_broke_is_left_and_the_original_is_kept() {
    for format in [Format::Toml, Format::Jsonc] {
        let lab = Lab::new(format);
        let merged = lab.merge("ours").unwrap();
        fs::write(&lab.path, "{ [ broken").unwrap();
        let RestoreOutcome::NotRestored { reason: NotRestoredReason::Unreadable(_), original: Some(original) } =
            merged.restore().unwrap().how
        else {
            panic!("it was not left");
        };
        assert_eq!(fs::read_to_string(&original).unwrap(), lab.original);
        assert_eq!((mode(&original), lab.text().as_str()), (0o600, "{ [ broken"));
        assert!(lab.journals().recover().restored.is_empty());
    }
}

#[test]
fn a_file_that_somebody_removed_stays_removed_and_the_original_is_kept() {
    let lab = Lab::new(Format::Toml);
    let merged = lab.merge("ours").unwrap();
    fs::remove_file(&lab.path).unwrap();
    let RestoreOutcome::NotRestored { reason: NotRestoredReason::Deleted, original: Some(original) } =
        merged.restore().unwrap().how
    else {
        panic!("it was not left");
    };
    assert_eq!(fs::read_to_string(original).unwrap(), lab.original);
    assert!(!lab.path.exists());
}

#[test]
fn a_file_that_we_made_and_somebody_removed_is_as_it_was() {
    let lab = Lab::new(Format::Jsonc).at("new/new.json");
    let merged = lab.merge("ours").unwrap();
    fs::remove_file(&lab.path).unwrap();
    assert_eq!(merged.restore().unwrap().how, RestoreOutcome::Exactly);
    assert!(!lab.home().join("new").exists());
}

#[test]
fn something_else_in_its_place_is_left() {
    let lab = Lab::new(Format::Toml);
    let merged = lab.merge("ours").unwrap();
    fs::remove_file(&lab.path).unwrap();
    fs::create_dir(&lab.path).unwrap();
    let restored = merged.restore().unwrap();
    assert!(
        matches!(
            restored.how,
            RestoreOutcome::NotRestored {
                reason: NotRestoredReason::NotAFile(TargetProblem::NotAFile),
                original: Some(_)
            }
        ),
        "{restored:?}"
    );
}

#[test]
fn a_file_that_cannot_be_edited_is_refused_and_nothing_is_left_behind() {
    type Prepare = fn(&Path);
    let cases: [(Prepare, TargetProblem); 6] = [
        (|path| fs::set_permissions(path, fs::Permissions::from_mode(0o444)).unwrap(), TargetProblem::ReadOnly),
        (|path| fs::hard_link(path, path.with_extension("again")).unwrap(), TargetProblem::HardLinks),
        (|path| fs::remove_file(path).and_then(|()| fs::create_dir(path)).unwrap(), TargetProblem::NotAFile),
        (|path| fs::remove_file(path).and_then(|()| symlink("/nowhere", path)).unwrap(), TargetProblem::DanglingLink),
        (
            |path| fs::File::options().write(true).open(path).unwrap().set_len((16 << 20) + 1).unwrap(),
            TargetProblem::TooLarge,
        ),
        (
            |path| {
                fs::remove_file(path).unwrap();
                rustix::fs::mknodat(
                    rustix::fs::CWD,
                    path,
                    rustix::fs::FileType::Fifo,
                    rustix::fs::Mode::from_raw_mode(0o600),
                    0,
                )
                .unwrap();
            },
            TargetProblem::NotAFile,
        ),
    ];
    for (prepare, expected) in cases {
        let lab = Lab::new(Format::Toml);
        prepare(&lab.path);
        let error = lab.merge("ours").unwrap_err();
        assert!(matches!(error, ConfigError::Target { problem, .. } if problem == expected), "{expected:?}: {error:?}");
        lab.assert_no_journals();
    }
}

#[test]
fn a_path_through_a_file_is_refused() {
    let lab = Lab::new(Format::Toml);
    let error = lab.at("config/below/it").merge("ours").unwrap_err();
    assert!(matches!(error, ConfigError::Io { .. } | ConfigError::Target { .. }), "{error:?}");
}

#[test]
fn a_directory_in_which_nothing_can_be_made_is_named() {
    let lab = Lab::new(Format::Jsonc).at("/proc/self/settings.json");
    let error = lab.merge("ours").unwrap_err();
    assert!(matches!(&error, ConfigError::Io { path, .. } if path.starts_with("/proc")), "{error:?}");
    lab.assert_no_journals();
}

#[test]
fn a_document_that_cannot_take_entries_is_refused_and_stays() {
    let lab = Lab::new(Format::Jsonc);
    fs::write(&lab.path, "{\"servers\": null}").unwrap();
    let error = lab.merge("ours").unwrap_err();
    assert!(
        matches!(error, ConfigError::Document { .. }) && error.to_string().contains("\"servers\" is null"),
        "{error}"
    );
    assert_eq!(lab.text(), "{\"servers\": null}");
    lab.assert_no_journals();
}

#[test]
fn journals_are_this_users_alone_and_a_directory_that_others_enter_is_refused() {
    let lab = Lab::new(Format::Toml);
    let merged = lab.merge("ours").unwrap();
    let mut directories = vec![lab.journals().directory().to_owned()];
    while let Some(directory) = directories.pop() {
        assert_eq!(mode(&directory), 0o700);
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else {
                assert_eq!(mode(&path), 0o600, "{path:?}");
            }
        }
    }
    merged.restore().unwrap();
    fs::set_permissions(lab.journals().directory(), fs::Permissions::from_mode(0o755)).unwrap();
    assert!(matches!(lab.merge("ours"), Err(ConfigError::Refused { .. })));
    assert_eq!(lab.journals().recover().problems.len(), 1);
    assert_eq!(lab.text(), lab.original);
}

#[test]
fn no_value_is_shown() {
    let lab = Lab::new(Format::Toml);
    let merged = lab.merge("ours").unwrap();
    let shown = format!("{:?} {merged:?} {:?}", lab.request("ours"), lab.journals());
    assert!(!shown.contains("server-of-ours"), "{shown}");
}

#[test]
fn in_a_project_a_link_that_leads_out_of_it_is_refused_whatever_part_of_the_path_it_is() {
    let lab = Lab::new(Format::Jsonc);
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("settings.json"), "{}").unwrap();
    let project = lab.home().join("project");
    fs::create_dir_all(project.join("deep")).unwrap();
    symlink(outside.path(), project.join("out")).unwrap();
    symlink(outside.path().join("settings.json"), project.join("deep/settings.json")).unwrap();
    symlink("../..", project.join("deep/up")).unwrap();
    symlink("out", project.join("chain")).unwrap();
    let journals = lab.journals();
    for path in ["out/settings.json", "out/new.json", "deep/settings.json", "deep/up/config", "chain/settings.json"] {
        let merge = Merge { path: project.join(path), within: Some(project.clone()), ..lab.request("ours") };
        let refused = journals.merge(&merge).unwrap_err();
        assert!(
            matches!(refused, ConfigError::Target { problem: TargetProblem::ForeignLink, .. }),
            "{path}: {refused:?}"
        );
    }
    assert_eq!(fs::read_to_string(outside.path().join("settings.json")).unwrap(), "{}");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
}

#[test]
fn in_a_project_the_users_own_link_to_something_in_it_is_followed_and_one_of_another_user_is_not() {
    let lab = Lab::new(Format::Jsonc);
    let project = lab.home().join("project");
    fs::create_dir_all(project.join("real")).unwrap();
    fs::write(project.join("real/settings.json"), &lab.original).unwrap();
    symlink("real", project.join("link")).unwrap();
    symlink(project.canonicalize().unwrap().join("real"), project.join("absolute")).unwrap();
    for name in ["link", "absolute"] {
        let path = project.join(name).join("settings.json");
        let merge = Merge { path, within: Some(project.clone()), ..lab.request("ours") };
        lab.journals().merge(&merge).unwrap().restore().unwrap();
        assert_eq!(fs::read_to_string(project.join("real/settings.json")).unwrap(), lab.original);
    }
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::lchown(project.join("link"), Some(65534), None).unwrap();
        let path = project.join("link/settings.json");
        let merge = Merge { path, within: Some(project.clone()), ..lab.request("ours") };
        let refused = lab.journals().merge(&merge).unwrap_err();
        assert!(matches!(refused, ConfigError::Target { problem: TargetProblem::ForeignLink, .. }), "{refused:?}");
    }
}

#[test]
fn a_directory_of_a_project_that_becomes_a_link_after_the_merge_is_not_followed_at_the_end() {
    let lab = Lab::new(Format::Jsonc);
    let project = lab.home().join("project");
    fs::create_dir_all(project.join(".agent")).unwrap();
    let path = project.join(".agent/settings.json");
    fs::write(&path, &lab.original).unwrap();
    let merge = Merge { path: path.clone(), within: Some(project.clone()), ..lab.request("ours") };
    let merged = lab.journals().merge(&merge).unwrap();
    let with_entries = fs::read_to_string(&path).unwrap();
    fs::rename(project.join(".agent"), lab.home().join("elsewhere")).unwrap();
    symlink(lab.home().join("elsewhere"), project.join(".agent")).unwrap();
    // Not even what is called like a temporary file of ours is removed there.
    let journals = fs::read_dir(lab.journals().directory()).unwrap();
    let journal = journals.map(|entry| entry.unwrap().path().join("journal.json")).find(|path| path.exists()).unwrap();
    let journal: serde_json::Value = serde_json::from_slice(&fs::read(journal).unwrap()).unwrap();
    let name: OsString = serde_json::from_value(journal["temporary"].clone()).unwrap();
    let namesake = lab.home().join("elsewhere").join(name);
    fs::write(&namesake, "a stranger's").unwrap();
    let restored = merged.restore().unwrap();
    assert!(namesake.exists());
    let RestoreOutcome::NotRestored {
        reason: NotRestoredReason::NotAFile(TargetProblem::ForeignLink),
        original: Some(original),
    } = restored.how
    else {
        panic!("{restored:?}");
    };
    assert_eq!(fs::read_to_string(original).unwrap(), lab.original);
    assert_eq!(fs::read_to_string(lab.home().join("elsewhere/settings.json")).unwrap(), with_entries);
}

#[test]
fn a_hard_link_to_the_file_made_meanwhile_is_reported() {
    let lab = Lab::new(Format::Jsonc);
    let merged = lab.merge("ours").unwrap();
    fs::hard_link(&lab.path, lab.home().join("other-name")).unwrap();
    let restored = merged.restore().unwrap();
    assert!(restored.other_names && restored.how == RestoreOutcome::Exactly, "{restored:?}");
    assert!(fs::read_to_string(lab.home().join("other-name")).unwrap().contains("ours"));
    assert_eq!(lab.text(), lab.original);
    assert!(!lab.merge("ours").unwrap().restore().unwrap().other_names);
}
