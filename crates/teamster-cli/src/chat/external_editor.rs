//! Opens `$EDITOR` with the text of the input box.

use std::io::{self, Read as _, Seek as _, Write as _};

use teamster::text::without_bom;
use tempfile::NamedTempFile;
use tokio::process::Command;

use super::backend::Backend;
use super::state::{Chat, End};
use crate::printable::{Printable, printable};
use crate::signals::Signal;
use crate::terminal::KeyReader;

impl<B: Backend> Chat<'_, B> {
    /// Lets the person edit the text in an editor. The terminal belongs to the editor meanwhile.
    pub(super) async fn edit_externally(&mut self) -> Result<(), End> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
        let editor = variable("VISUAL").or_else(|| variable("EDITOR")).unwrap_or_else(|| "vi".to_owned());
        let file = match self.text_file() {
            Ok(file) => file,
            Err(error) => {
                self.notify(printable!("cannot write the text for the editor: {}", Printable::error(&error)));
                return Ok(());
            }
        };
        self.leave_terminal().await?;
        let edited = self.run_editor(&editor, file).await;
        self.return_to_terminal()?;
        match edited? {
            Ok(text) => self.input.set_text(text.strip_suffix('\n').unwrap_or(&text)),
            Err(error) => self.notify(printable!("{}: {}", &editor, Printable::error(&error))),
        }
        Ok(())
    }

    fn text_file(&self) -> io::Result<NamedTempFile> {
        let mut file = tempfile::Builder::new().prefix("teamster-").suffix(".md").tempfile()?;
        file.write_all(self.input.text().as_bytes())?;
        Ok(file)
    }

    /// Stops reading keys, erases the live area and restores the settings of the terminal.
    pub(super) async fn leave_terminal(&mut self) -> Result<(), End> {
        if let Some(keys) = self.keys.take() {
            for (at, input) in keys.stop() {
                self.receive(at, input)?;
            }
        }
        let paused = self.page.pause();
        self.wait_for_writer(paused).await?;
        self.terminal.restore();
        Ok(())
    }

    pub(super) fn return_to_terminal(&mut self) -> Result<(), End> {
        self.terminal.apply();
        self.keys = Some(KeyReader::start(self.page.is_live()).map_err(|_| End::NoTerminal)?);
        self.page.resume();
        Ok(())
    }

    /// Runs the editor, and returns the edited text. The first result is the end of the conversation.
    async fn run_editor(&mut self, editor: &str, mut file: NamedTempFile) -> Result<io::Result<String>, End> {
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(format!("{editor} \"$1\"")).arg("sh").arg(file.path()).kill_on_drop(true);
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => return Ok(Err(error)),
        };
        let status = loop {
            tokio::select! {
                status = child.wait() => break status,
                // Ctrl-C is for the editor.
                signal = self.signals.next() => if signal == Signal::Terminate {
                    self.on_signal(signal)?;
                },
            }
        };
        Ok(status.and_then(|status| {
            if !status.success() {
                return Err(io::Error::other("the editor failed, so the text stays as it was"));
            }
            // Some editors replace the file.
            let mut text = String::new();
            match std::fs::File::open(file.path()) {
                Ok(mut replaced) => replaced.read_to_string(&mut text)?,
                Err(_) => file.rewind().and_then(|()| file.read_to_string(&mut text))?,
            };
            Ok(without_bom(&text).to_owned())
        }))
    }
}
