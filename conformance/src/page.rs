//! A person at the gateway's web page, in a real browser that `web/test/person.mjs` drives.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::gateway::TOKEN;
use crate::json_lines::JsonLines;
use crate::output::print;

/// The variable that skips the tests of the page.
pub const WITHOUT_BROWSER: &str = "TEAMSTER_WITHOUT_BROWSER";

/// The time limit of an action. It is longer than that of `person.mjs`, which names what it waits for.
const LIMIT: Duration = Duration::from_secs(75);

/// A browser with the page, signed in as the operator. It is closed when this is dropped.
#[derive(Debug)]
pub struct PagePerson {
    browser: JsonLines,
    /// The browser's profile.
    _home: TempDir,
}

impl PagePerson {
    /// Opens the page of the gateway at this URL. `None` if the variable [`WITHOUT_BROWSER`] is set.
    ///
    /// # Errors
    /// If Chromium or Playwright is not installed, or the page does not open.
    pub async fn open(url: &str) -> Result<Option<Self>> {
        if std::env::var_os(WITHOUT_BROWSER).is_some_and(|value| !value.is_empty()) {
            print(&format!("skipped: {WITHOUT_BROWSER} is set"));
            return Ok(None);
        }
        let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("../web");
        ensure!(
            web.join("node_modules/playwright-core").exists(),
            "Playwright is not installed: run `npm ci --ignore-scripts` in web/, or set {WITHOUT_BROWSER}=1 to skip this test"
        );
        let chromium = std::env::var_os("CHROMIUM").map_or_else(|| PathBuf::from("/usr/bin/chromium"), PathBuf::from);
        let chromium = chromium.to_str().context("the path of Chromium is not UTF-8")?;
        let home = tempfile::tempdir().context("cannot create a directory")?;
        let mut command = Command::new("node");
        command.arg(web.join("test/person.mjs"));
        let path = std::env::var("PATH").context("PATH is not set")?;
        let profile = home.path().to_str().context("the path of a directory is not UTF-8")?;
        let variables =
            [("GATEWAY", url), ("TOKEN", TOKEN), ("CHROMIUM", chromium), ("PATH", &path), ("HOME", profile)];
        let mut browser = JsonLines::start(command, &variables)?;
        let opened = browser.read(LIMIT).await?;
        ensure!(opened == json!("ready"), "the page does not open: {opened}");
        Ok(Some(Self { browser, _home: home }))
    }

    /// Opens the first page, which has a message field for a new conversation.
    pub async fn start(&mut self) -> Result<()> {
        self.act(&json!({"do": "start"})).await.map(drop)
    }

    /// Opens a conversation.
    pub async fn enter(&mut self, conversation: &str) -> Result<()> {
        self.act(&json!({"do": "enter", "conversation": conversation})).await.map(drop)
    }

    /// Writes a message and sends it.
    pub async fn write(&mut self, text: &str) -> Result<()> {
        self.act(&json!({"do": "write", "text": text})).await.map(drop)
    }

    /// Presses the button with this label, when it is there.
    pub async fn press(&mut self, label: &str) -> Result<()> {
        self.act(&json!({"do": "press", "label": label})).await.map(drop)
    }

    /// Waits until an answer of the agent has this text.
    pub async fn sees_answer(&mut self, text: &str) -> Result<()> {
        self.act(&json!({"do": "sees", "text": text})).await.map(drop)
    }

    /// Loads the page again.
    pub async fn reload(&mut self) -> Result<()> {
        self.act(&json!({"do": "reload"})).await.map(drop)
    }

    /// Returns what the conversation shows.
    pub async fn transcript(&mut self) -> Result<String> {
        let shown = self.act(&json!({"do": "transcript"})).await?;
        Ok(shown.as_str().context("no text")?.to_owned())
    }

    async fn act(&mut self, action: &Value) -> Result<Value> {
        self.browser.write(action)?;
        let done = self.browser.read(LIMIT).await?;
        if let Some(problem) = done.get("problem") {
            bail!("{action}: {problem}");
        }
        done.get("result").cloned().with_context(|| format!("{action}: no result: {done}"))
    }
}
