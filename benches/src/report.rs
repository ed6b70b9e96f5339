//! What a measured program prints: one line of JSON with numbers by name.

use std::collections::BTreeMap;

/// Numbers by name.
#[derive(Debug, Default)]
pub struct Report(BTreeMap<String, f64>);

impl Report {
    /// Adds a number.
    #[must_use]
    pub fn with(mut self, name: &str, number: f64) -> Self {
        self.0.insert(name.to_owned(), number);
        self
    }

    /// Adds the number of events, and the median and the 99th percentile of their latencies in the second half of each run, in
    /// microseconds. The first half includes the start.
    #[must_use]
    pub fn with_latencies(self, runs: &[Vec<u64>]) -> Self {
        let events: usize = runs.iter().map(Vec::len).sum();
        let mut latencies: Vec<u64> = runs.iter().flat_map(|run| run.iter().skip(run.len() / 2)).copied().collect();
        latencies.sort_unstable();
        self.with("p50_us", microseconds(percentile(&latencies, 50)))
            .with("p99_us", microseconds(percentile(&latencies, 99)))
            .with("events", float(events as u64))
    }

    /// Returns the line.
    #[must_use]
    pub fn line(&self) -> String {
        serde_json::to_string(&self.0).unwrap_or_default()
    }
}

/// Returns the value below which `percent` of the sorted values are; 0 if there are none.
#[must_use]
pub fn percentile(sorted: &[u64], percent: usize) -> u64 {
    let last = sorted.len().saturating_sub(1);
    sorted.get(last * percent / 100).copied().unwrap_or_default()
}

/// Returns the median; 0 if there are no values.
#[must_use]
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// Returns nanoseconds as microseconds.
#[must_use]
pub fn microseconds(nanoseconds: u64) -> f64 {
    float(nanoseconds) / 1e3
}

/// Returns nanoseconds as milliseconds.
#[must_use]
pub fn milliseconds(nanoseconds: u64) -> f64 {
    float(nanoseconds) / 1e6
}

/// Returns KiB as MiB.
#[must_use]
pub fn mebibytes(kib: u64) -> f64 {
    float(kib) / 1024.0
}

/// Returns the number as a float. Numbers here are far below 2^53.
#[expect(clippy::cast_precision_loss, reason = "numbers here are far below 2^53")]
#[must_use]
pub fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let sorted: Vec<u64> = (1..=100).collect();
        assert_eq!((percentile(&sorted, 50), percentile(&sorted, 99)), (50, 99));
        assert_eq!((percentile(&[7], 99), percentile(&[], 50)), (7, 0));
    }

    #[test]
    fn a_report_is_one_line_of_json() {
        let report = Report::default()
            .with("wall_ms", 1.5)
            .with_latencies(&[vec![9000, 3000], vec![9000, 9000, 9000, 1000, 2000, 2000]]);
        assert_eq!(report.line(), r#"{"events":8.0,"p50_us":2.0,"p99_us":2.0,"wall_ms":1.5}"#);
    }
}
