//! One merge, and what restores the file.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use teamster_config::document::Format;
use teamster_config::{ConfigError, Merge, NotRestoredReason, RestoreOutcome, TargetProblem};

use crate::test_env::{TestEnv, mode};

#[test]
fn a_file_is_restored_byte_for_byte_and_no_other_file_remains() {
    for format in [Format::Toml, Format::Jsonc] {
        let env = TestEnv::new(format);
        let merged = env.merge("ours").unwrap();
        assert!(env.text().contains("ours") && env.text().contains("mine"), "{}", env.text());
        assert_eq!(merged.restore().unwrap().how, RestoreOutcome::Exactly);
        env.assert_untouched();
    }
}

#[test]
fn dropping_a_merge_restores_the_file() {
    let env = TestEnv::new(Format::Toml);
    drop(env.merge("ours").unwrap());
    env.assert_untouched();
}

#[test]
fn mode_owner_and_extended_attributes_are_kept() {
    let env = TestEnv::new(Format::Jsonc);
    fs::set_permissions(&env.path, fs::Permissions::from_mode(0o640)).unwrap();
    let before = fs::metadata(&env.path).unwrap();
    let has_xattrs = rustix::fs::setxattr(&env.path, "user.note", b"x", rustix::fs::XattrFlags::empty()).is_ok();
    let merged = env.merge("ours").unwrap();
    for _ in 0..2 {
        let now = fs::metadata(&env.path).unwrap();
        assert_eq!((mode(&env.path), now.uid(), now.gid()), (0o640, before.uid(), before.gid()));
        if has_xattrs {
            let mut value = [0_u8; 8];
            assert_eq!(rustix::fs::getxattr(&env.path, "user.note", &mut value[..]), Ok(1));
        }
        env.assert_nothing_to_recover();
    }
    merged.restore().unwrap();
    assert_eq!(mode(&env.path), 0o640);
}

#[test]
fn a_link_stays_a_link_and_its_file_is_edited() {
    let env = TestEnv::new(Format::Jsonc);
    let real = env.home().join("dotfiles/real.json");
    fs::create_dir(real.parent().unwrap()).unwrap();
    fs::rename(&env.path, &real).unwrap();
    symlink("dotfiles/real.json", &env.path).unwrap();
    let merged = env.merge("ours").unwrap();
    assert!(fs::read_to_string(&real).unwrap().contains("ours"));
    assert_eq!(merged.path(), real.canonicalize().unwrap());
    merged.restore().unwrap();
    assert_eq!(fs::read_link(&env.path).unwrap(), Path::new("dotfiles/real.json"));
    env.assert_untouched();
}

#[test]
fn a_new_file_and_its_new_directories_are_removed() {
    let env = TestEnv::new(Format::Jsonc);
    fs::remove_file(&env.path).unwrap();
    let env = env.at(".agent/deep/settings.json");
    let merged = env.merge("ours").unwrap();
    assert_eq!(mode(&env.path), 0o600);
    assert_eq!(merged.restore().unwrap().how, RestoreOutcome::Exactly);
    assert!(!env.home().join(".agent").exists());
    env.assert_restore_log_is_empty();
}

#[test]
fn a_new_file_starts_with_the_template() {
    let env = TestEnv::new(Format::Jsonc).at("new.json");
    let request = || Merge { template: "{\"schema\": \"x\"}\n".to_owned(), ..env.request("ours") };
    let merged = env.restore_log().merge(&request()).unwrap();
    assert!(env.text().starts_with("{\"schema\": \"x\", \"servers\": "), "{}", env.text());
    env.merge("more").unwrap().restore().unwrap();
    assert!(env.text().starts_with("{\"schema\": \"x\", \"servers\": "), "{}", env.text());
    assert_eq!(merged.restore().unwrap().how, RestoreOutcome::Exactly);
    assert!(!env.path.exists());

    // An edited file belongs to the user.
    let merged = env.restore_log().merge(&request()).unwrap();
    env.edit("\n", "\n\n");
    assert_eq!(merged.restore().unwrap().how, RestoreOutcome::EditKept);
    assert_eq!(env.text(), "{\"schema\": \"x\"}\n\n");
}

#[test]
fn a_new_directory_that_is_used_meanwhile_is_kept() {
    let env = TestEnv::new(Format::Jsonc).at(".agent/settings.json");
    let merged = env.merge("ours").unwrap();
    let theirs = env.home().join(".agent/theirs");
    fs::write(&theirs, "x").unwrap();
    assert_eq!(merged.restore().unwrap().how, RestoreOutcome::Exactly);
    assert!(theirs.exists() && !env.path.exists());
}

#[test]
fn an_empty_directory_that_existed_is_kept() {
    let env = TestEnv::new(Format::Jsonc).at(".agent/settings.json");
    fs::create_dir(env.home().join(".agent")).unwrap();
    env.merge("ours").unwrap().restore().unwrap();
    assert!(env.home().join(".agent").exists());
}

#[test]
fn an_edit_of_the_user_is_kept_and_the_entries_are_removed() {
    for format in [Format::Toml, Format::Jsonc] {
        let env = TestEnv::new(format);
        let merged = env.merge("ours").unwrap();
        env.edit("mine", "yours");
        assert_eq!(merged.restore().unwrap().how, RestoreOutcome::EditKept);
        assert_eq!(env.text(), env.original.replace("mine", "yours"));
        env.assert_restore_log_is_empty();
    }
}

#[test]
fn a_new_file_is_kept_if_the_user_has_edited_it() {
    let env = TestEnv::new(Format::Jsonc).at("new.json");
    let merged = env.merge("ours").unwrap();
    fs::write(&env.path, env.text().replacen('{', "{\n  \"theirs\": 1,", 1)).unwrap();
    assert_eq!(merged.restore().unwrap().how, RestoreOutcome::EditKept);
    assert!(env.text().contains("theirs") && !env.text().contains("ours"), "{}", env.text());
}

#[test]
fn an_entry_that_the_user_changed_is_kept_and_named() {
    let env = TestEnv::new(Format::Jsonc);
    let merged = env.merge("ours").unwrap();
    env.edit("server-of-ours", "theirs");
    let restored = merged.restore().unwrap();
    assert_eq!((restored.how, restored.changed), (RestoreOutcome::EditKept, vec!["ours".to_owned()]));
    assert!(env.text().contains("theirs"));
}

#[test]
fn a_file_that_became_invalid_is_not_changed_and_the_original_is_kept() {
    for format in [Format::Toml, Format::Jsonc] {
        let env = TestEnv::new(format);
        let merged = env.merge("ours").unwrap();
        fs::write(&env.path, "{ [ broken").unwrap();
        let RestoreOutcome::NotRestored { reason: NotRestoredReason::Unreadable(_), original: Some(original) } =
            merged.restore().unwrap().how
        else {
            panic!("the file was restored");
        };
        assert_eq!(fs::read_to_string(&original).unwrap(), env.original);
        assert_eq!((mode(&original), env.text().as_str()), (0o600, "{ [ broken"));
        assert!(env.restore_log().recover().restored.is_empty());
    }
}

#[test]
fn a_file_that_the_user_deleted_is_not_created_and_the_original_is_kept() {
    let env = TestEnv::new(Format::Toml);
    let merged = env.merge("ours").unwrap();
    fs::remove_file(&env.path).unwrap();
    let RestoreOutcome::NotRestored { reason: NotRestoredReason::Deleted, original: Some(original) } =
        merged.restore().unwrap().how
    else {
        panic!("the file was restored");
    };
    assert_eq!(fs::read_to_string(original).unwrap(), env.original);
    assert!(!env.path.exists());
}

#[test]
fn a_new_file_that_the_user_deleted_counts_as_restored() {
    let env = TestEnv::new(Format::Jsonc).at("new/new.json");
    let merged = env.merge("ours").unwrap();
    fs::remove_file(&env.path).unwrap();
    assert_eq!(merged.restore().unwrap().how, RestoreOutcome::Exactly);
    assert!(!env.home().join("new").exists());
}

#[test]
fn a_directory_with_the_name_of_the_file_is_not_changed() {
    let env = TestEnv::new(Format::Toml);
    let merged = env.merge("ours").unwrap();
    fs::remove_file(&env.path).unwrap();
    fs::create_dir(&env.path).unwrap();
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
fn a_file_that_cannot_be_edited_is_rejected_and_no_other_file_remains() {
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
        let env = TestEnv::new(Format::Toml);
        prepare(&env.path);
        let error = env.merge("ours").unwrap_err();
        assert!(matches!(error, ConfigError::Target { problem, .. } if problem == expected), "{expected:?}: {error:?}");
        env.assert_restore_log_is_empty();
    }
}

#[test]
fn a_path_through_a_file_is_rejected() {
    let env = TestEnv::new(Format::Toml);
    let error = env.at("config/below/it").merge("ours").unwrap_err();
    assert!(matches!(error, ConfigError::Io { .. } | ConfigError::Target { .. }), "{error:?}");
}

#[test]
fn the_error_names_a_directory_in_which_no_file_can_be_created() {
    let env = TestEnv::new(Format::Jsonc).at("/proc/self/settings.json");
    let error = env.merge("ours").unwrap_err();
    assert!(matches!(&error, ConfigError::Io { path, .. } if path.starts_with("/proc")), "{error:?}");
    env.assert_restore_log_is_empty();
}

#[test]
fn a_document_that_cannot_contain_entries_is_rejected_and_not_changed() {
    let env = TestEnv::new(Format::Jsonc);
    fs::write(&env.path, "{\"servers\": null}").unwrap();
    let error = env.merge("ours").unwrap_err();
    assert!(
        matches!(error, ConfigError::Document { .. }) && error.to_string().contains("\"servers\" is null"),
        "{error}"
    );
    assert_eq!(env.text(), "{\"servers\": null}");
    env.assert_restore_log_is_empty();
}

#[test]
fn only_the_user_can_read_the_restore_log_and_a_directory_that_others_can_enter_is_rejected() {
    let env = TestEnv::new(Format::Toml);
    let merged = env.merge("ours").unwrap();
    let mut directories = vec![env.restore_log().directory().to_owned()];
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
    fs::set_permissions(env.restore_log().directory(), fs::Permissions::from_mode(0o755)).unwrap();
    assert!(matches!(env.merge("ours"), Err(ConfigError::Refused { .. })));
    assert_eq!(env.restore_log().recover().problems.len(), 1);
    assert_eq!(env.text(), env.original);
}

#[test]
fn debug_output_contains_no_value() {
    let env = TestEnv::new(Format::Toml);
    let merged = env.merge("ours").unwrap();
    let shown = format!("{:?} {merged:?} {:?}", env.request("ours"), env.restore_log());
    assert!(!shown.contains("server-of-ours"), "{shown}");
}

#[test]
fn a_link_that_leads_out_of_a_project_is_rejected_in_any_part_of_the_path() {
    let env = TestEnv::new(Format::Jsonc);
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("settings.json"), "{}").unwrap();
    let project = env.home().join("project");
    fs::create_dir_all(project.join("deep")).unwrap();
    symlink(outside.path(), project.join("out")).unwrap();
    symlink(outside.path().join("settings.json"), project.join("deep/settings.json")).unwrap();
    symlink("../..", project.join("deep/up")).unwrap();
    symlink("out", project.join("chain")).unwrap();
    let journals = env.restore_log();
    for path in ["out/settings.json", "out/new.json", "deep/settings.json", "deep/up/config", "chain/settings.json"] {
        let merge = Merge { path: project.join(path), within: Some(project.clone()), ..env.request("ours") };
        let rejected = journals.merge(&merge).unwrap_err();
        assert!(
            matches!(rejected, ConfigError::Target { problem: TargetProblem::ForeignLink, .. }),
            "{path}: {rejected:?}"
        );
    }
    assert_eq!(fs::read_to_string(outside.path().join("settings.json")).unwrap(), "{}");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
}

#[test]
fn a_link_within_a_project_is_followed_only_if_the_user_owns_it() {
    let env = TestEnv::new(Format::Jsonc);
    let project = env.home().join("project");
    fs::create_dir_all(project.join("real")).unwrap();
    fs::write(project.join("real/settings.json"), &env.original).unwrap();
    symlink("real", project.join("link")).unwrap();
    symlink(project.canonicalize().unwrap().join("real"), project.join("absolute")).unwrap();
    for name in ["link", "absolute"] {
        let path = project.join(name).join("settings.json");
        let merge = Merge { path, within: Some(project.clone()), ..env.request("ours") };
        env.restore_log().merge(&merge).unwrap().restore().unwrap();
        assert_eq!(fs::read_to_string(project.join("real/settings.json")).unwrap(), env.original);
    }
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::lchown(project.join("link"), Some(65534), None).unwrap();
        let path = project.join("link/settings.json");
        let merge = Merge { path, within: Some(project.clone()), ..env.request("ours") };
        let refused = env.restore_log().merge(&merge).unwrap_err();
        assert!(matches!(refused, ConfigError::Target { problem: TargetProblem::ForeignLink, .. }), "{refused:?}");
    }
}

#[test]
fn a_directory_that_becomes_a_link_after_the_merge_is_not_followed() {
    let env = TestEnv::new(Format::Jsonc);
    let project = env.home().join("project");
    fs::create_dir_all(project.join(".agent")).unwrap();
    let path = project.join(".agent/settings.json");
    fs::write(&path, &env.original).unwrap();
    let merge = Merge { path: path.clone(), within: Some(project.clone()), ..env.request("ours") };
    let merged = env.restore_log().merge(&merge).unwrap();
    let with_entries = fs::read_to_string(&path).unwrap();
    fs::rename(project.join(".agent"), env.home().join("elsewhere")).unwrap();
    symlink(env.home().join("elsewhere"), project.join(".agent")).unwrap();
    // A file with the name of the temporary file is not removed there.
    let journals = fs::read_dir(env.restore_log().directory()).unwrap();
    let journal = journals.map(|entry| entry.unwrap().path().join("journal.json")).find(|path| path.exists()).unwrap();
    let journal: serde_json::Value = serde_json::from_slice(&fs::read(journal).unwrap()).unwrap();
    let name: OsString = serde_json::from_value(journal["temporary"].clone()).unwrap();
    let namesake = env.home().join("elsewhere").join(name);
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
    assert_eq!(fs::read_to_string(original).unwrap(), env.original);
    assert_eq!(fs::read_to_string(env.home().join("elsewhere/settings.json")).unwrap(), with_entries);
}

#[test]
fn a_hard_link_that_was_created_after_the_merge_is_reported() {
    let env = TestEnv::new(Format::Jsonc);
    let merged = env.merge("ours").unwrap();
    fs::hard_link(&env.path, env.home().join("other-name")).unwrap();
    let restored = merged.restore().unwrap();
    assert!(restored.other_names && restored.how == RestoreOutcome::Exactly, "{restored:?}");
    assert!(fs::read_to_string(env.home().join("other-name")).unwrap().contains("ours"));
    assert_eq!(env.text(), env.original);
    assert!(!env.merge("ours").unwrap().restore().unwrap().other_names);
}
