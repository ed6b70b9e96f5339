//! The findings that are permitted until they are repaired: a number for each area and check, which may only shrink.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::report::Count;
use super::source::Check;
use crate::command::root;

pub(super) struct Baseline(BTreeMap<(String, Check), usize>);

/// For an area and a check: what was found, and what is permitted.
type Excess = BTreeMap<(String, Check), (usize, usize)>;

fn file() -> PathBuf {
    root().join("xtask/tidy-baseline.txt")
}

/// Replaces the baseline.
pub(super) fn write(count: &Count) -> Result<()> {
    let mut text = String::new();
    for ((area, check), number) in &count.0 {
        writeln!(text, "{area} {check} {number}")?;
    }
    fs::write(file(), text).context("cannot write the baseline")
}

impl Baseline {
    pub(super) fn read() -> Result<Self> {
        Self::parse(&fs::read_to_string(file()).context("cannot read the baseline")?)
    }

    /// Parses lines such as `teamster-cli words 12`.
    fn parse(text: &str) -> Result<Self> {
        let line = |line: &str| {
            let mut fields = line.split(' ');
            let area = fields.next()?.to_owned();
            let name = fields.next()?;
            let check = Check::ALL.into_iter().find(|check| check.to_string() == name)?;
            Some(((area, check), fields.next()?.parse().ok()?))
        };
        let lines = text.lines().map(|text| line(text).with_context(|| format!("the baseline has a bad line: {text}")));
        Ok(Self(lines.collect::<Result<_>>()?))
    }

    /// Returns the areas and checks with more findings than permitted.
    pub(super) fn excess(&self, count: &Count) -> Excess {
        let permitted = |key| self.0.get(key).copied().unwrap_or_default();
        let all = count.0.iter().map(|(key, found)| (key.clone(), (*found, permitted(key))));
        all.filter(|(_, (found, permitted))| found > permitted).collect()
    }

    /// Whether something is permitted that is not found anymore.
    pub(super) fn can_shrink(&self, count: &Count) -> bool {
        self.0.iter().any(|(key, permitted)| count.0.get(key).copied().unwrap_or_default() < *permitted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_more_findings_than_permitted_are_an_excess() {
        let baseline = Baseline::parse("docs links 2\nxtask words 1\n").unwrap();
        let docs = ("docs".to_owned(), Check::Links);
        let xtask = ("xtask".to_owned(), Check::Words);
        let same = Count(BTreeMap::from([(docs.clone(), 2), (xtask.clone(), 1)]));
        assert!(baseline.excess(&same).is_empty() && !baseline.can_shrink(&same));

        let one_repaired = Count(BTreeMap::from([(docs.clone(), 1), (xtask.clone(), 1)]));
        assert!(baseline.excess(&one_repaired).is_empty() && baseline.can_shrink(&one_repaired));

        let one_new = Count(BTreeMap::from([(docs, 1), (xtask.clone(), 2)]));
        assert_eq!(baseline.excess(&one_new), Excess::from([(xtask, (2, 1))]));
    }

    #[test]
    fn a_line_that_is_not_understood_is_an_error() {
        assert!(Baseline::parse("xtask wording 1").is_err());
    }
}
