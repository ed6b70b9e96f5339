//! The forms in which findings are listed.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{Check, Finding};

#[derive(Clone, Copy, clap::ValueEnum)]
pub(super) enum CountBy {
    /// A table of crates and checks.
    Crates,
    Files,
    /// The texts of the word check.
    Words,
}

/// The number of findings of each area and check.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Count(pub(super) BTreeMap<(String, Check), usize>);

impl Count {
    pub(super) fn of(findings: &[Finding]) -> Self {
        let mut count = BTreeMap::new();
        for finding in findings {
            *count.entry(finding.key()).or_default() += 1;
        }
        Self(count)
    }

    fn table(&self) -> String {
        let areas: BTreeSet<&String> = self.0.keys().map(|(area, _)| area).collect();
        let number = |area: &str, check| self.0.get(&(area.to_owned(), check)).copied().unwrap_or_default();
        let row = |name: &str, cells: &dyn Fn(Check) -> String| {
            let cells = Check::ALL.map(cells).concat();
            format!("{name:20}{cells}\n")
        };
        let head = row("", &|check| format!("{check:>11}"));
        let body = areas.iter().map(|area| row(area, &|check| format!("{:>11}", number(area, check))));
        let all = row("all", &|check| format!("{:>11}", areas.iter().map(|area| number(area, check)).sum::<usize>()));
        [head, body.collect(), all].concat()
    }
}

/// Prints the findings, or their numbers.
pub(super) fn print(count: Option<CountBy>, findings: &[Finding]) {
    match count {
        None => findings.iter().for_each(|finding| println!("{finding}")),
        Some(CountBy::Crates) => print!("{}", Count::of(findings).table()),
        Some(CountBy::Files) => print_numbers(findings.iter().map(|finding| finding.file.display().to_string())),
        Some(CountBy::Words) => {
            let words = findings.iter().filter(|finding| finding.check == Check::Words);
            print_numbers(words.map(|finding| finding.text.clone()));
        }
    }
}

/// Prints each name with how often it occurs, the most frequent first.
fn print_numbers(names: impl Iterator<Item = String>) {
    let mut numbers = BTreeMap::<String, usize>::new();
    for name in names {
        *numbers.entry(name).or_default() += 1;
    }
    let mut numbers: Vec<_> = numbers.into_iter().collect();
    numbers.sort_by(|(_, one), (_, other)| other.cmp(one));
    for (name, number) in numbers {
        println!("{name}: {number}");
    }
}
