//! What was measured, kept below `target` so that a single row can be measured anew.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::json;

use crate::bench::statistics::Spread;

/// Numbers by name, from one process.
pub(crate) type Sample = BTreeMap<String, f64>;

/// The samples of a row's subjects.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Measured {
    pub(crate) samples: BTreeMap<String, Vec<Sample>>,
    /// Why a subject has no samples.
    pub(crate) failures: BTreeMap<String, String>,
}

impl Measured {
    /// Adds the samples and failures of further rounds.
    pub(crate) fn append(&mut self, other: Self) {
        for (subject, samples) in other.samples {
            self.samples.entry(subject).or_default().extend(samples);
        }
        self.failures.extend(other.failures);
    }

    /// Returns the spread of a number of a subject.
    pub(crate) fn spread(&self, subject: &str, metric: &str) -> Option<Spread> {
        Spread::of(self.samples.get(subject)?.iter().filter_map(|sample| sample.get(metric).copied()))
    }
}

pub(crate) struct Results(PathBuf);

impl Results {
    pub(crate) fn in_directory(directory: PathBuf) -> Result<Self> {
        fs::create_dir_all(&directory).with_context(|| format!("cannot create {}", directory.display()))?;
        Ok(Self(directory))
    }

    pub(crate) fn save(&self, row: &str, measured: &Measured) -> Result<()> {
        let text = json!({ "samples": measured.samples, "failures": measured.failures }).to_string();
        let file = self.file(row);
        fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))
    }

    /// Returns the last results of a row, if it was ever measured here.
    pub(crate) fn load(&self, row: &str) -> Option<Measured> {
        let value: serde_json::Value = serde_json::from_str(&fs::read_to_string(self.file(row)).ok()?).ok()?;
        let samples = serde_json::from_value(value.get("samples")?.clone()).ok()?;
        let failures = serde_json::from_value(value.get("failures")?.clone()).ok()?;
        Some(Measured { samples, failures })
    }

    /// Returns a text that was measured by another command.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.0.join(format!("{name}.txt"))).ok()
    }

    pub(crate) fn save_text(&self, name: &str, text: &str) -> Result<()> {
        fs::write(self.0.join(format!("{name}.txt")), text).context("cannot write a result")
    }

    fn file(&self, row: &str) -> PathBuf {
        self.0.join(format!("{row}.json"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_read_back() {
        let directory = tempfile::tempdir().unwrap();
        let results = Results::in_directory(directory.path().join("results")).unwrap();
        let mut measured = Measured::default();
        measured.samples.insert("library".into(), vec![Sample::from([("cpu".into(), 1.5)])]);
        measured.failures.insert("peer".into(), "not installed".into());
        results.save("burst", &measured).unwrap();
        assert_eq!(results.load("burst"), Some(measured));
        assert_eq!(results.load("other"), None);
    }
}
