//! A strict reader of the text format of Prometheus, version 0.0.4.

use std::collections::BTreeMap;

/// Returns the samples by name and labels, as they are written. Panics at what the format does not permit.
pub(crate) fn parse(text: &str) -> BTreeMap<String, f64> {
    let mut kinds: BTreeMap<String, String> = BTreeMap::new();
    let mut samples = BTreeMap::new();
    assert!(text.ends_with('\n'), "the last line has an end");
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert!(kinds.insert(name.to_owned(), kind.to_owned()).is_none(), "two types: {line}");
        } else if let Some(rest) = line.strip_prefix("# HELP ") {
            assert!(rest.split_once(' ').is_some_and(|(_, help)| !help.is_empty()), "{line}");
        } else {
            assert!(!line.starts_with('#'), "{line}");
            let (series, value) = line.rsplit_once(' ').unwrap();
            let value: f64 = value.parse().unwrap_or_else(|_| panic!("{line}"));
            check_series(series, &kinds);
            assert!(samples.insert(series.to_owned(), value).is_none(), "two samples: {line}");
        }
    }
    check_buckets(&samples);
    samples
}

fn check_series(series: &str, kinds: &BTreeMap<String, String>) {
    let name = series.split('{').next().unwrap();
    assert!(name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_' || letter == ':'), "{series}");
    let base = |ending: &str| name.strip_suffix(ending).and_then(|base| kinds.get(base));
    let is_histogram =
        ["_bucket", "_sum", "_count"].iter().any(|ending| base(ending).is_some_and(|kind| kind == "histogram"));
    assert!(is_histogram || kinds.contains_key(name), "a sample without a type: {series}");
    let Some(labels) = series.strip_prefix(name).filter(|labels| !labels.is_empty()) else { return };
    let mut rest = labels.strip_prefix('{').and_then(|labels| labels.strip_suffix('}')).unwrap();
    while !rest.is_empty() {
        let (label, value) = rest.split_once("=\"").unwrap();
        assert!(
            !label.is_empty() && label.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_'),
            "{series}"
        );
        let end = end_of_value(value).unwrap_or_else(|| panic!("{series}"));
        rest = value.get(end + 1..).unwrap();
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
}

/// Returns the place of the closing quotation mark.
fn end_of_value(value: &str) -> Option<usize> {
    let mut escaped = false;
    value.char_indices().find_map(|(place, letter)| {
        let is_end = letter == '"' && !escaped;
        escaped = letter == '\\' && !escaped;
        is_end.then_some(place)
    })
}

/// The buckets of a histogram are cumulative, and the last one has all observations.
fn check_buckets(samples: &BTreeMap<String, f64>) {
    for (series, all) in samples.iter().filter(|(series, _)| series.contains("_count")) {
        let (name, labels) = series.split_once("_count").unwrap();
        let labels = labels.trim_matches(['{', '}']);
        let buckets = samples.iter().filter_map(|(bucket, count)| {
            let inside = bucket.strip_prefix(name)?.strip_prefix("_bucket{")?.strip_suffix('}')?;
            let bound = inside.split("le=\"").nth(1)?.split('"').next()?;
            let others: Vec<_> = inside.split(',').filter(|label| !label.starts_with("le=")).collect();
            let bound: f64 = if bound == "+Inf" { f64::INFINITY } else { bound.parse().ok()? };
            (others.join(",") == labels).then_some((bound, *count))
        });
        let mut buckets: Vec<_> = buckets.collect();
        buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
        assert!(buckets.is_sorted_by(|one, other| one.1 <= other.1), "{series}: {buckets:?}");
        assert_eq!(buckets.last(), Some(&(f64::INFINITY, *all)), "{series}");
    }
}
