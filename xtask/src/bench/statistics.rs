//! Medians and spreads.

use std::fmt;

/// A median with the smallest and the largest value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// Returns `None` if there are no values.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let upper = *values.get(middle)?;
        let median = if values.len() % 2 == 1 { upper } else { f64::midpoint(*values.get(middle - 1)?, upper) };
        Some(Self { median, min, max })
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({}–{})", number(self.median), number(self.min), number(self.max))
    }
}

/// Returns a number with three digits, or all digits before the point.
pub(crate) fn number(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    let text = format!("{value:.digits$}");
    let (sign, digits) = text.strip_prefix('-').map_or(("", text.as_str()), |digits| ("-", digits));
    let (whole, rest) =
        digits.split_once('.').map_or((digits, String::new()), |(whole, rest)| (whole, format!(".{rest}")));
    format!("{sign}{}{rest}", grouped(whole))
}

/// Separates thousands by commas.
fn grouped(digits: &str) -> String {
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_of_an_even_number_of_values_is_between_the_two_in_the_middle() {
        let spread = Spread::of([4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!(spread, Spread { median: 2.5, min: 1.0, max: 4.0 });
        assert_eq!(Spread::of([7.0, 9.0, 8.0]).unwrap().to_string(), "8.00 (7.00–9.00)");
        assert_eq!(Spread::of([]), None);
    }

    #[test]
    fn numbers_have_three_digits() {
        assert_eq!([0.4217, 12.34, 123.4, 1_234_567.8].map(number), ["0.42", "12.3", "123", "1,234,568"]);
        assert_eq!(number(-1234.0), "-1,234");
    }

    #[test]
    fn a_spread_names_its_ends() {
        assert_eq!(Spread { median: 1.5, min: 1.0, max: 20.0 }.to_string(), "1.50 (1.00–20.0)");
    }
}
