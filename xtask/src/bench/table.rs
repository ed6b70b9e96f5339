//! The table of a row.

use crate::bench::results::Measured;
use crate::bench::rows::Row;
use crate::bench::statistics::number;
use crate::bench::subjects::Subject;

/// Returns the table as Markdown.
pub(crate) fn markdown(row: &Row, measured: &Measured) -> String {
    let mut text = line(heads(row));
    text += &line(std::iter::once("---".to_owned()).chain(heads(row).skip(1).map(|_| "--:".to_owned())));
    for cells in body(row, measured) {
        text += &line(cells);
    }
    text
}

/// Returns the table for a terminal.
pub(crate) fn text(row: &Row, measured: &Measured) -> String {
    let mut lines = vec![heads(row).collect::<Vec<_>>()];
    lines.extend(body(row, measured));
    let widths: Vec<usize> = (0..lines.first().map_or(0, Vec::len))
        .map(|column| {
            lines.iter().filter_map(|cells| cells.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        })
        .collect();
    let mut text = format!("{}\n", row.title);
    for cells in lines {
        let padded: Vec<String> = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        text += padded.join("  ").trim_end();
        text += "\n";
    }
    text.extend(measured.failures.iter().map(|(subject, reason)| format!("{subject}: {reason}\n")));
    text
}

fn heads(row: &Row) -> impl Iterator<Item = String> {
    let ratio = format!("ratio to {}", short(row.baseline));
    let mut heads: Vec<String> = row.columns.iter().map(|column| column.title.to_owned()).collect();
    heads.insert(heads.len().min(1), ratio);
    std::iter::once("subject".to_owned()).chain(heads)
}

fn short(subject: Subject) -> &'static str {
    subject.name.strip_prefix("floor: ").unwrap_or(subject.name)
}

fn body(row: &Row, measured: &Measured) -> Vec<Vec<String>> {
    row.subjects
        .iter()
        .filter(|subject| measured.samples.contains_key(subject.name))
        .map(|subject| {
            let mut cells: Vec<String> = row
                .columns
                .iter()
                .map(|column| {
                    measured.spread(subject.name, column.metric).map_or("–".to_owned(), |spread| spread.to_string())
                })
                .collect();
            cells.insert(cells.len().min(1), ratio(row, measured, *subject).map_or("–".to_owned(), number));
            cells.insert(0, subject.name.to_owned());
            cells
        })
        .collect()
}

/// Returns how many times the baseline's first column a subject's is.
pub(crate) fn ratio(row: &Row, measured: &Measured, subject: Subject) -> Option<f64> {
    let metric = row.columns.first()?.metric;
    let median = |subject: Subject| Some(measured.spread(subject.name, metric)?.median);
    Some(median(subject)? / median(row.baseline)?)
}

fn line(cells: impl IntoIterator<Item = String>) -> String {
    format!("| {} |\n", cells.into_iter().collect::<Vec<_>>().join(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::results::Sample;
    use crate::bench::rows::all;

    fn measured() -> Measured {
        let sample =
            |cpu: f64| Sample::from([("cpu_us_per_event".to_owned(), cpu), ("events_per_s".to_owned(), 1e6 / cpu)]);
        let mut measured = Measured::default();
        measured.samples.insert("floor: typed parsing".to_owned(), vec![sample(0.4), sample(0.5), sample(0.6)]);
        measured.samples.insert("Teamster, library".to_owned(), vec![sample(1.5), sample(1.0), sample(1.25)]);
        measured.failures.insert("acpx".to_owned(), "not installed".to_owned());
        measured
    }

    #[test]
    fn a_table_has_medians_spreads_and_ratios() {
        let row = all().remove(0);
        let text = markdown(&row, &measured());
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "| subject | CPU an event, µs | ratio to typed parsing | events/s | peak memory, MiB |");
        assert_eq!(lines[1], "| --- | --: | --: | --: | --: |");
        assert_eq!(
            lines[2],
            "| floor: typed parsing | 0.50 (0.40–0.60) | 1.00 | 2,000,000 (1,666,667–2,500,000) | – |"
        );
        assert_eq!(lines[3], "| Teamster, library | 1.25 (1.00–1.50) | 2.50 | 800,000 (666,667–1,000,000) | – |");
        assert_eq!(lines.len(), 4);
    }

    #[test]
    fn a_terminal_also_shows_who_is_left_out() {
        let text = text(&all().remove(0), &measured());
        assert!(text.contains("\nTeamster, library     1.25 (1.00–1.50)"), "{text}");
        assert!(text.ends_with("acpx: not installed\n"), "{text}");
    }
}
