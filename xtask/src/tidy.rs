//! `cargo xtask tidy`: checks of the source text that no compiler makes.

mod baseline;
mod imports;
mod links;
mod modules;
mod report;
mod sizes;
mod source;
mod words;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Context, Result, anyhow, bail};

use crate::command::root;
use baseline::Baseline;
use modules::FileModules;
use report::{Count, CountBy};
use source::{Finding, Source};

/// Check the source text: import loops, sizes of files and functions, words, links of pages
///
/// Fails if an area has more findings of a kind than `xtask/tidy-baseline.txt` permits.
/// With paths or `--count`, it lists what it finds and does not fail.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// List the findings of these files and folders
    paths: Vec<PathBuf>,
    /// Print numbers of findings: of each crate, each file or each word
    #[arg(long, value_name = "WHAT", num_args = 0..=1, require_equals = true, default_missing_value = "crates")]
    count: Option<CountBy>,
    /// Make today's numbers the permitted ones
    #[arg(long, conflicts_with_all = ["paths", "count"])]
    update_baseline: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    if args.count.is_none() && args.paths.is_empty() && !args.update_baseline {
        return check_against_baseline();
    }
    let mut findings = find()?;
    if args.update_baseline {
        return baseline::write(&Count::of(&findings));
    }
    let is_in_paths = |file: &Path| args.paths.is_empty() || args.paths.iter().any(|path| file.starts_with(path));
    findings.retain(|finding| is_in_paths(&finding.file));
    report::print(args.count, &findings);
    Ok(())
}

/// Fails if an area has more findings of a check than the baseline permits, and prints them.
pub(crate) fn check_against_baseline() -> Result<()> {
    let findings = find()?;
    let (baseline, count) = (Baseline::read()?, Count::of(&findings));
    let excess = baseline.excess(&count);
    for finding in findings.iter().filter(|finding| excess.contains_key(&finding.key())) {
        println!("{finding}");
    }
    for ((area, check), (found, permitted)) in &excess {
        println!("{area}: {found} findings of the check `{check}`, and the baseline permits {permitted}");
    }
    if !excess.is_empty() {
        bail!("the source text has new findings");
    }
    if baseline.can_shrink(&count) {
        println!("There are fewer findings than the baseline permits: run `cargo xtask tidy --update-baseline`.");
    }
    Ok(())
}

/// Runs every check on all files, on all processors.
fn find() -> Result<Vec<Finding>> {
    let sources = source::list()?;
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let parts: Vec<Result<Part<'_>>> = thread::scope(|scope| {
        let sources = sources.as_slice();
        let part = |first| Part::of(sources.iter().skip(first).step_by(threads));
        let workers: Vec<_> = (0..threads).map(|first| scope.spawn(move || part(first))).collect();
        let results =
            workers.into_iter().map(|worker| worker.join().map_err(|_| anyhow!("a check panicked")).flatten());
        results.collect()
    });
    let mut all = Part::default();
    for part in parts {
        let part = part?;
        all.findings.extend(part.findings);
        all.modules.extend(part.modules);
    }
    all.findings.extend(imports::check(&all.modules)?);
    all.findings.sort();
    Ok(all.findings)
}

/// What one thread found in its files.
#[derive(Default)]
struct Part<'a> {
    findings: Vec<Finding>,
    modules: BTreeMap<&'a Path, FileModules>,
}

impl<'a> Part<'a> {
    fn of(sources: impl Iterator<Item = &'a Source>) -> Result<Self> {
        let mut part = Self::default();
        for source in sources {
            if source.is_rust() {
                let syntax =
                    syn::parse_file(&source.text).with_context(|| format!("cannot parse {}", source.path.display()))?;
                part.findings.extend(sizes::check(source, &syntax));
                part.findings.extend(words::check_rust(source, &syntax));
                part.modules.insert(&source.path, FileModules::of(&syntax.items));
            } else if source.is_typescript() {
                part.findings.extend(sizes::check_length(source));
            } else {
                part.findings.extend(words::check_page(source));
                part.findings.extend(links::check(source, &root()));
            }
        }
        Ok(part)
    }
}
