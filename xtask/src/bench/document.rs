//! `docs/performance.md`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::bench::peers::sources;
use crate::bench::results::{Measured, Results};
use crate::bench::rows::Row;
use crate::bench::{growth, machine, plot, prose, start, table, targets, warm};
use crate::command::root;

/// The width of lines in documents.
const WIDTH: usize = 100;

/// Writes the page and its plots. What was not measured here keeps its part of the page.
pub(crate) fn write(rows: &[Row], results: &Results) -> Result<()> {
    let plots = root().join("docs/performance");
    fs::create_dir_all(&plots).with_context(|| format!("cannot create {}", plots.display()))?;
    let page = root().join("docs/performance.md");
    let earlier = fs::read_to_string(&page).unwrap_or_default();
    let mut text = prose::HEAD.to_owned();
    let machine = wrapped(&format!("The numbers below are of {}.", machine::description()));
    let targets = targets::markdown(rows, results, &earlier);
    let versions = wrapped(&versions()?);
    write!(text, "\n{machine}\n\n## The peers\n\n{versions}\n\n## Targets\n\n{targets}\n{}", prose::PROFILE)?;
    for row in rows {
        text += &match results.load(row.name) {
            Some(measured) => section(row, &measured, &plots.join(format!("{}.svg", row.name)))?,
            None => part(&earlier, row.title).map(|part| format!("\n{part}")).unwrap_or_default(),
        };
    }
    let latency = results.text(warm::NAME).map(|latency| format!("\n{}\n", latency.trim_end())).unwrap_or_default();
    for (prose, measured) in [
        (prose::START, start::section(results)),
        (prose::WARM, latency),
        (prose::GROWTH, growth::section(results, &plots)?),
    ] {
        if !measured.is_empty() {
            write!(text, "\n{prose}{measured}")?;
        } else if let Some(part) = part(&earlier, title(prose)) {
            write!(text, "\n{part}")?;
        }
    }
    fs::write(&page, text).with_context(|| format!("cannot write {}", page.display()))?;
    println!("wrote {}", page.display());
    Ok(())
}

/// Returns the title of a part.
fn title(part: &str) -> &str {
    part.lines().next().unwrap_or_default().trim_start_matches("## ")
}

/// Returns a part of a page, with its heading.
fn part<'a>(page: &'a str, title: &str) -> Option<&'a str> {
    let heading = format!("## {title}\n");
    let (before, _) = page.split_once(&format!("\n{heading}"))?;
    let part = page.get(before.len() + 1..)?;
    let end = part.get(heading.len()..)?.find("\n## ").map_or(part.len(), |end| heading.len() + end);
    part.get(..end)
}

fn section(row: &Row, measured: &Measured, plot: &Path) -> Result<String> {
    let mut text = format!("\n## {}\n\n{}\n\n{}", row.title, wrapped(row.about), table::markdown(row, measured));
    if plot::write(row, measured, plot)? {
        writeln!(text, "\n![{}](performance/{}.svg)", row.title, row.name)?;
    }
    let mut absent: Vec<String> = row.left_out.iter().map(|(who, why)| format!("{who}: {why}.")).collect();
    absent.extend(measured.failures.iter().map(|(who, why)| format!("{who}: {}.", why.trim_end_matches('.'))));
    if !absent.is_empty() {
        let absent: String = absent.iter().map(|item| listed(item)).collect();
        write!(text, "\nNot measured:\n\n{absent}")?;
    }
    writeln!(text, "\n`cargo xtask bench compare --only {}`", row.name)?;
    Ok(text)
}

fn listed(item: &str) -> String {
    format!("- {}\n", wrapped(item).replace('\n', "\n  "))
}

/// Returns the pinned versions in one sentence.
fn versions() -> Result<String> {
    let package = fs::read_to_string(sources().join("package.json")).context("cannot read package.json")?;
    let package: serde_json::Value = serde_json::from_str(&package).context("package.json is invalid")?;
    let node = package.get("dependencies").and_then(|packages| packages.as_object());
    let mut names: Vec<String> = node
        .into_iter()
        .flatten()
        .map(|(name, version)| format!("`{name}` {}", version.as_str().unwrap_or_default()))
        .collect();
    let python = fs::read_to_string(sources().join("requirements.txt")).context("cannot read requirements.txt")?;
    let python = python.lines().find_map(|line| line.strip_prefix("claude-agent-sdk=="));
    names.extend(python.map(|version| format!("`claude-agent-sdk` {version} for Python")));
    Ok(format!("Pinned in `benches/peers`: {}.", names.join(", ")))
}

/// Breaks lines at spaces.
fn wrapped(text: &str) -> String {
    let (mut lines, mut line) = (Vec::new(), String::new());
    for word in text.split_whitespace() {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_at_spaces() {
        let text = wrapped(&"word ".repeat(50));
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH && !line.ends_with(' ')), "{text}");
        assert_eq!(text.split_whitespace().count(), 50);
    }

    #[test]
    fn a_part_of_a_page_ends_at_the_next_heading_of_its_level() {
        let page = "# Page\n\n## One\n\ntext\n\n### Below\n\nmore\n\n## Two\n\nlast\n";
        assert_eq!(part(page, "One"), Some("## One\n\ntext\n\n### Below\n\nmore\n"));
        assert_eq!(part(page, "Two"), Some("## Two\n\nlast\n"));
        assert_eq!(part(page, "Below"), None);
        assert_eq!(title("## Two\n\nlast\n"), "Two");
    }

    #[test]
    fn the_page_names_the_pinned_versions() {
        let versions = versions().unwrap();
        for name in ["@anthropic-ai/claude-agent-sdk", "@openai/codex-sdk", "acpx", "claude-agent-sdk"] {
            assert!(versions.contains(&format!("`{name}` ")), "{versions}");
        }
    }
}
