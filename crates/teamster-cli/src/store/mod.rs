//! `teamster store`: backups of the gateway's store, and their restoration.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::ValueHint;
use teamster_store::{SqliteOptions, SqliteStore, StoreError};

use crate::config::ConfigError;
use crate::exit;
use crate::plan::SystemInputs;
use crate::printable::{Printable, printable};
use crate::render::write_error;
use crate::runtime::{Threads, run_command};
use crate::serve::data_dir::{self, DataDirError};
use crate::serve::{self, ServeArgs};

/// Back up and restore the store of a gateway
#[derive(Debug, clap::Args)]
pub(crate) struct StoreArgs {
    #[command(subcommand)]
    action: Action,

    /// Use the store in this data directory of a gateway
    #[arg(long, value_name = "DIR", global = true, value_hint = ValueHint::DirPath)]
    data_dir: Option<PathBuf>,

    /// Use this store: the path of an SQLite file
    #[arg(long, value_name = "URL", global = true, value_hint = ValueHint::FilePath)]
    store: Option<String>,

    /// Use this configuration file
    #[arg(long, value_name = "FILE", global = true, value_hint = ValueHint::FilePath)]
    config: Option<PathBuf>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Write a consistent copy to a new file, while the gateway runs
    ///
    /// The copy is checked before it gets its name. It does not contain attachments: copy the subdirectory files of the
    /// data directory as well.
    Backup {
        /// The new file
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        file: PathBuf,
    },
    /// Replace the store with a copy, while no gateway runs
    ///
    /// The present store is kept beside the restored one, with the suffix .before-restore.
    Restore {
        /// The copy
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        file: PathBuf,
    },
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
enum StoreCommandError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    #[error("there is no store at {}: name the data directory of the gateway with --data-dir", .0.to_string_lossy())]
    Missing(PathBuf),
    #[error("{} exists, from an earlier restore: move it to another place first", .0.to_string_lossy())]
    Kept(PathBuf),
    #[error("cannot {action} {}: {source}", path.to_string_lossy())]
    File { action: &'static str, path: PathBuf, source: io::Error },
}

/// Runs the command and returns its exit code. `definition` is that of all commands.
pub(crate) fn main(args: StoreArgs, definition: &clap::Command) -> u8 {
    let StoreArgs { action, data_dir, store, config } = args;
    let args = ServeArgs { data_dir, config, store, ..ServeArgs::default() };
    let (directory, store) = match serve::locations(&args, definition, &SystemInputs) {
        Ok(locations) => locations,
        Err(error) => return report_config(&error),
    };
    run_command(Threads::Main, async move {
        let result = match action {
            Action::Backup { file } => backup(&store, &file).await,
            Action::Restore { file } => restore(&directory, &store, &file).await,
        };
        Ok(match result {
            Ok(text) if text.write_line(&mut anstream::stdout()).is_ok() => exit::SUCCESS,
            Ok(_) => exit::NO_READER,
            Err(error) => {
                write_error(&mut anstream::stderr(), &Printable::error(&error), None);
                exit::FAILURE
            }
        })
    })
}

fn report_config(error: &ConfigError) -> u8 {
    write_error(&mut anstream::stderr(), &Printable::error(error), None);
    exit::USAGE
}

async fn backup(store: &Path, copy: &Path) -> Result<Printable, StoreCommandError> {
    if !store.exists() {
        return Err(StoreCommandError::Missing(store.to_owned()));
    }
    let opened = SqliteStore::open(store, SqliteOptions::default()).await?;
    let result = opened.backup(copy).await;
    opened.close().await;
    result?;
    Ok(printable!("written and checked: {}", copy))
}

/// Replaces the store. The copy is checked first, and is complete beside the store before the store is moved away.
async fn restore(directory: &Path, store: &Path, copy: &Path) -> Result<Printable, StoreCommandError> {
    if !copy.exists() {
        return Err(StoreCommandError::Missing(copy.to_owned()));
    }
    let is_new = !directory.exists();
    // No gateway can start during the restore.
    let lock = data_dir::open(directory)?;
    let restored = replace(store, copy).await;
    if is_new && restored.is_err() {
        // It has only the files of the lock. A later gateway would otherwise find a directory without a store.
        _ = fs::remove_dir_all(directory);
    }
    drop(lock);
    restored
}

/// Puts a copy in the place of the store.
async fn replace(store: &Path, copy: &Path) -> Result<Printable, StoreCommandError> {
    let fresh = beside(store, ".restored");
    let kept = beside(store, ".before-restore");
    if kept.exists() {
        return Err(StoreCommandError::Kept(kept));
    }
    let file_error = |action: &'static str, path: &Path| {
        let path = path.to_owned();
        move |source| StoreCommandError::File { action, path, source }
    };
    remove(&fresh).map_err(file_error("remove", &fresh))?;
    fs::copy(copy, &fresh).map_err(file_error("copy", copy))?;
    if let Err(error) = check(&fresh).await {
        // The file is only a copy of one that the user has.
        _ = remove(&fresh);
        return Err(error.in_file(copy).into());
    }
    fs::File::open(&fresh).and_then(|file| file.sync_all()).map_err(file_error("write", &fresh))?;
    if store.exists() {
        // Its last transactions go from its log into the file. A store that cannot be opened is kept with its log.
        if let Ok(old) = SqliteStore::open(store, SqliteOptions::default()).await {
            old.close().await;
        }
        // Until the next step there is a complete store under the old name.
        fs::hard_link(store, &kept).map_err(file_error("keep", store))?;
    }
    for ending in ["-wal", "-shm"] {
        move_if_present(&beside(store, ending), &beside(&kept, ending)).map_err(file_error("move", store))?;
        move_if_present(&beside(&fresh, ending), &beside(store, ending)).map_err(file_error("move", &fresh))?;
    }
    fs::rename(&fresh, store).map_err(file_error("move", &fresh))?;
    let parent = store.parent().unwrap_or(Path::new("/"));
    fs::File::open(parent).and_then(|parent| parent.sync_all()).map_err(file_error("write", parent))?;
    let text = printable!("restored: {}", store);
    Ok(if kept.exists() { printable!("{}\nthe earlier store: {}", text, &kept) } else { text })
}

/// Checks a whole store. Opening it migrates an older one, and refuses a newer one and other files.
async fn check(store: &Path) -> Result<(), StoreError> {
    let opened = SqliteStore::open(store, SqliteOptions::default()).await?;
    let checked = opened.check().await;
    opened.close().await;
    checked
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

fn move_if_present(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Removes a file and the files of its transactions, if they exist.
fn remove(path: &Path) -> io::Result<()> {
    for ending in ["-wal", "-shm", ""] {
        match fs::remove_file(beside(path, ending)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
