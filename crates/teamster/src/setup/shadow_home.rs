//! Creates a shadow home: a home directory with links to the user's files, and with files of the run.
//!
//! Invariants: no file of the user is changed, except that a folder may be created that the CLI would create itself. Removing
//! the shadow home removes links, and never their targets.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use jsonc_parser::ParseOptions;
use serde_json::Value;
use teamster_agents::launch::{ConditionalDefaults, JsonMerge, ShadowEntry, ShadowHome};
use teamster_types::event::{ErrorCode, Failure};
use teamster_types::text::without_bom;

use super::environment::Environment;
use super::json_merge::merge;

/// Creates the shadow home in a private directory. Returns its path.
pub(crate) fn make(
    shadow_home: &ShadowHome,
    private: &Path,
    environment: &Environment,
    cwd: &Path,
) -> Result<PathBuf, Failure> {
    let variable = |name: &&str| environment.get(std::ffi::OsStr::new(name)).filter(|value| !value.is_empty());
    let home = shadow_home.homes.iter().find_map(variable);
    let theirs = home.map(|home| cwd.join(home).join(shadow_home.folder));
    for folder in shadow_home.kept {
        if let Some(theirs) = &theirs {
            let folder = theirs.join(folder);
            make_all(&folder).map_err(|error| wrong("make", &folder, &error))?;
        }
    }
    let ours = private.join(shadow_home.name);
    new_directory(&ours)?;
    let entries: Vec<_> = shadow_home.entries.iter().map(|(path, entry)| (Path::new(path), entry)).collect();
    fill(theirs.as_deref(), &ours.join(shadow_home.folder), &entries, environment)?;
    Ok(ours)
}

/// Links the content of a folder of the user, except the entries. A folder that contains an entry is created.
fn fill(
    theirs: Option<&Path>,
    ours: &Path,
    entries: &[(&Path, &ShadowEntry)],
    environment: &Environment,
) -> Result<(), Failure> {
    new_directory(ours)?;
    for name in theirs.map(names).unwrap_or_default() {
        if let Some(theirs) = theirs
            && !entries.iter().any(|(path, _)| path.starts_with(&name))
        {
            let link = ours.join(&name);
            symlink(theirs.join(&name), &link).map_err(|error| wrong("link", &link, &error))?;
        }
    }
    let mut filled: Vec<&Path> = Vec::new();
    for (path, entry) in entries {
        let Some(head) = path.iter().next().map(Path::new) else { continue };
        let their_path = theirs.map(|theirs| theirs.join(head));
        if head == *path {
            write(their_path.as_deref(), &ours.join(head), entry, environment)?;
        } else if !filled.contains(&head) {
            filled.push(head);
            let below = entries.iter().filter_map(|(path, entry)| Some((path.strip_prefix(head).ok()?, *entry)));
            fill(their_path.as_deref(), &ours.join(head), &below.collect::<Vec<_>>(), environment)?;
        }
    }
    Ok(())
}

fn names(folder: &Path) -> Vec<std::ffi::OsString> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name()).collect()
}

fn write(theirs: Option<&Path>, ours: &Path, entry: &ShadowEntry, environment: &Environment) -> Result<(), Failure> {
    let content = match entry {
        ShadowEntry::Text(text) => text.clone().into_bytes(),
        ShadowEntry::Copy => match read(theirs)? {
            Some(bytes) => bytes,
            None => return Ok(()),
        },
        ShadowEntry::Append(text) => {
            let mut bytes = read(theirs)?.unwrap_or_default();
            bytes.extend(text.as_bytes());
            bytes
        }
        ShadowEntry::Merge(values) => merged(theirs, values, environment)?.into_bytes(),
    };
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(ours);
    let written = file.and_then(|mut file| {
        // The umask may have removed the owner's own permissions.
        file.set_permissions(Permissions::from_mode(0o600))?;
        file.write_all(&content)
    });
    written.map_err(|error| wrong("write", ours, &error))
}

fn merged(theirs: Option<&Path>, values: &JsonMerge, environment: &Environment) -> Result<String, Failure> {
    let is_set = |defaults: &&ConditionalDefaults| {
        let value = environment.get(std::ffi::OsStr::new(defaults.variable)).filter(|value| !value.is_empty());
        value.is_some_and(|value| defaults.value.is_none_or(|wanted| value == wanted))
    };
    let defaults = values.defaults.iter().find(is_set);
    let mut document = defaults.map_or_else(|| "{}".to_owned(), |defaults| defaults.values.to_string());
    let unusable = |why: String| {
        let path = theirs.unwrap_or(Path::new("")).display();
        Failure::new(ErrorCode::Config, format!("cannot use the settings in {path}: {why}"))
    };
    if let Some(bytes) = read(theirs)? {
        let text = String::from_utf8_lossy(&bytes);
        let text = without_bom(&text);
        // As people write it, with comments and trailing commas.
        let value: Value = jsonc_parser::parse_to_serde_value(text, &ParseOptions::default())
            .map_err(|error| unusable(error.to_string()))?;
        document = merge(&document, &without(value, values).to_string()).map_err(unusable)?;
    }
    merge(&document, &values.overrides.to_string()).map_err(unusable)
}

/// Returns the document without the entries that ours replace completely.
fn without(mut document: Value, values: &JsonMerge) -> Value {
    for name in values.replaced {
        let theirs = document.get_mut(*name).and_then(Value::as_object_mut);
        let ours = values.overrides.get(*name).and_then(Value::as_object);
        if let (Some(theirs), Some(ours)) = (theirs, ours) {
            theirs.retain(|entry, _| !ours.contains_key(entry));
        }
    }
    document
}

fn read(path: Option<&Path>) -> Result<Option<Vec<u8>>, Failure> {
    let Some(path) = path else { return Ok(None) };
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(wrong("read", path, &error)),
    }
}

fn new_directory(path: &Path) -> Result<(), Failure> {
    let made = DirBuilder::new().mode(0o700).create(path);
    let made = made.and_then(|()| fs::set_permissions(path, Permissions::from_mode(0o700)));
    made.map_err(|error| wrong("make", path, &error))
}

/// Creates a folder of the user and its parents, with the permissions of the umask for others and all for the owner.
fn make_all(folder: &Path) -> io::Result<()> {
    let missing: Vec<_> = folder.ancestors().take_while(|path| !path.exists()).collect();
    for path in missing.into_iter().rev() {
        match fs::create_dir(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Err(_) => {}
            Ok(()) => {
                let mode = fs::symlink_metadata(path)?.permissions().mode() & 0o7777;
                if mode & 0o700 != 0o700 {
                    fs::set_permissions(path, Permissions::from_mode(mode | 0o700))?;
                }
            }
        }
    }
    Ok(())
}

fn wrong(what: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::new(ErrorCode::SpawnFailed, format!("cannot {what} {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use teamster_process::PrivateDir;

    use super::*;

    fn shadow_home(entries: Vec<(&'static str, ShadowEntry)>) -> ShadowHome {
        ShadowHome { name: "home", homes: &["AGENT_HOME", "HOME"], folder: ".agent", kept: &["kept"], entries }
    }

    fn made(home: &Path, shadow_home: &ShadowHome) -> Result<(PrivateDir, PathBuf), Failure> {
        let environment = Environment::from([("HOME".into(), home.into()), ("URL".into(), "x".into())]);
        let private = PrivateDir::create(Some(home), "run").unwrap();
        let made = make(shadow_home, private.path(), &environment, home)?;
        Ok((private, made.join(".agent")))
    }

    #[test]
    fn the_shadow_home_shows_the_users_files_and_never_removes_them() {
        let home = PrivateDir::create(None, "shadow-home-test").unwrap();
        let theirs = home.path().join(".agent");
        fs::create_dir_all(theirs.join("commands/deep")).unwrap();
        fs::write(theirs.join("login.json"), "token").unwrap();
        fs::write(theirs.join("commands/mine"), "mine").unwrap();
        fs::write(theirs.join("notes.md"), "theirs\n").unwrap();
        let settings = "\u{feff}{ // why\n \"a\": {\"b\": 1, \"c\": \"//x\\\"\"}, /* * */ \"d\": [1],
            \"servers\": {\"one\": {\"command\": \"theirs\"}, \"two\": {\"command\": \"theirs\"}} }";
        fs::write(theirs.join("settings.json"), settings).unwrap();
        let values = JsonMerge {
            overrides: json!({"a": {"b": 2}, "d": [2], "servers": {"one": {"url": "ours"}}}),
            replaced: &["servers"],
            defaults: vec![
                ConditionalDefaults { variable: "NONE", value: None, values: json!({"f": 1}) },
                ConditionalDefaults { variable: "URL", value: Some("y"), values: json!({"f": 2}) },
                ConditionalDefaults { variable: "URL", value: None, values: json!({"a": {"c": "under", "e": 3}}) },
            ],
        };
        let entries = vec![
            ("settings.json", ShadowEntry::Merge(values)),
            ("notes.md", ShadowEntry::Append("ours".to_owned())),
            ("commands/ours", ShadowEntry::Text("ours".to_owned())),
            ("missing.json", ShadowEntry::Copy),
        ];
        let (private, ours) = made(home.path(), &shadow_home(entries)).unwrap();

        assert_eq!(fs::read_to_string(ours.join("login.json")).unwrap(), "token");
        assert_eq!(fs::read_to_string(ours.join("notes.md")).unwrap(), "theirs\nours");
        assert_eq!(fs::read_to_string(ours.join("commands/mine")).unwrap(), "mine");
        assert_eq!(fs::read_to_string(ours.join("commands/ours")).unwrap(), "ours");
        assert!(!ours.join("missing.json").exists());
        let servers = json!({"one": {"url": "ours"}, "two": {"command": "theirs"}});
        let read: Value = serde_json::from_slice(&fs::read(ours.join("settings.json")).unwrap()).unwrap();
        assert_eq!(read, json!({"a": {"b": 2, "c": "//x\"", "e": 3}, "d": [2], "servers": servers}));
        fs::write(ours.join("kept/session"), "kept").unwrap();
        drop(private);

        assert_eq!(fs::read_to_string(theirs.join("kept/session")).unwrap(), "kept");
        assert_eq!(fs::read_to_string(theirs.join("settings.json")).unwrap(), settings);
        assert_eq!(fs::read_to_string(theirs.join("notes.md")).unwrap(), "theirs\n");
        assert!(theirs.join("commands/deep").is_dir() && !theirs.join("commands/ours").exists());
    }

    #[test]
    fn unreadable_settings_are_not_replaced() {
        let home = PrivateDir::create(None, "shadow-home-test").unwrap();
        fs::create_dir(home.path().join(".agent")).unwrap();
        for broken in ["{", "[]"] {
            fs::write(home.path().join(".agent/settings.json"), broken).unwrap();
            let values = JsonMerge { overrides: json!({}), replaced: &[], defaults: Vec::new() };
            let failure =
                made(home.path(), &shadow_home(vec![("settings.json", ShadowEntry::Merge(values))])).unwrap_err();
            assert_eq!(failure.code, ErrorCode::Config);
        }
    }
}
