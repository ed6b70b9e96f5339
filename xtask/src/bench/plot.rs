//! Bars of a row's first column, with the smallest and the largest value.

use std::path::Path;

use anyhow::{Result, anyhow};
use plotters::coord::combinators::IntoLogRange as _;
use plotters::prelude::{
    BLACK, ChartBuilder, Color as _, IntoDrawingArea as _, IntoFont as _, PathElement, RGBColor, Rectangle, SVGBackend,
    Text, WHITE,
};

use crate::bench::results::Measured;
use crate::bench::rows::Row;
use crate::bench::statistics::{Spread, number};

const WIDTH: u32 = 820;
const BAR: u32 = 34;
const NAMES: u32 = 290;

const OURS: RGBColor = RGBColor(31, 119, 180);
const FLOOR: RGBColor = RGBColor(160, 160, 160);
const PEER: RGBColor = RGBColor(214, 137, 60);

/// A bar with its label.
struct Bar {
    name: String,
    spread: Spread,
    color: RGBColor,
}

/// Writes the plot. Returns `false` if there is nothing to compare.
pub(crate) fn write(row: &Row, measured: &Measured, file: &Path) -> Result<bool> {
    let Some(column) = row.columns.first() else { return Ok(false) };
    let bars: Vec<Bar> = row
        .subjects
        .iter()
        .filter_map(|subject| {
            let spread = measured.spread(subject.name, column.metric).filter(|spread| spread.min > 0.0)?;
            let color = if subject.is_ours() { OURS } else { PEER };
            let color = if subject.is_floor() { FLOOR } else { color };
            Some(Bar { name: subject.name.replace('`', ""), spread, color })
        })
        .collect();
    if bars.len() < 2 {
        return Ok(false);
    }
    draw(&bars, &format!("{}: {}", row.title, column.title), file).map_err(|error| anyhow!("{error}"))?;
    Ok(true)
}

fn draw(bars: &[Bar], title: &str, file: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let count = u32::try_from(bars.len())?;
    let root = SVGBackend::new(file, (WIDTH, 70 + BAR * count)).into_drawing_area();
    root.fill(&WHITE)?;
    let least = bars.iter().map(|bar| bar.spread.min).fold(f64::INFINITY, f64::min) / 1.5;
    let most = bars.iter().map(|bar| bar.spread.max).fold(0.0, f64::max) * 3.0;
    let mut chart = ChartBuilder::on(&root)
        .caption(title, ("sans-serif", 16))
        .margin(8)
        .margin_left(NAMES)
        .x_label_area_size(26)
        .build_cartesian_2d((least..most).log_scale(), 0.0..f64::from(count))?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .light_line_style(WHITE)
        .x_labels(6)
        .x_label_formatter(&|value| number(*value))
        .draw()?;
    for (place, bar) in (0..count).rev().map(f64::from).zip(bars) {
        let Spread { median, min, max } = bar.spread;
        let middle = place + 0.5;
        chart.draw_series([Rectangle::new([(least, place + 0.2), (median, place + 0.8)], bar.color.filled())])?;
        chart.draw_series([PathElement::new([(min, middle), (max, middle)], BLACK)])?;
        let (_, y) = chart.backend_coord(&(least, middle));
        let (x, _) = chart.backend_coord(&(max, middle));
        root.draw(&Text::new(bar.name.clone(), (10, y - 7), ("sans-serif", 14).into_font()))?;
        root.draw(&Text::new(number(median), (x + 6, y - 7), ("sans-serif", 13).into_font()))?;
    }
    root.present()?;
    Ok(())
}

/// A subject's cost by the amount of work.
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
}

impl Line {
    pub(crate) fn at(&self, x: f64) -> Option<f64> {
        self.points.iter().find(|point| point.0.total_cmp(&x).is_eq()).map(|point| point.1)
    }
}

/// Writes lines on logarithmic axes: a linear cost is a straight line that rises as fast as the work.
pub(crate) fn lines(lines: &[Line], title: &str, (x, y): (&str, &str), file: &Path) -> Result<()> {
    draw_lines(lines, title, (x, y), file).map_err(|error| anyhow!("{error}"))
}

fn draw_lines(
    lines: &[Line],
    title: &str,
    (x, y): (&str, &str),
    file: &Path,
) -> Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::new(file, (WIDTH, 420)).into_drawing_area();
    root.fill(&WHITE)?;
    let points = || lines.iter().flat_map(|line| line.points.iter().copied());
    let range = |values: &mut dyn Iterator<Item = f64>| {
        values.fold((f64::INFINITY, 0.0), |(least, most): (f64, f64), value| (least.min(value), most.max(value)))
    };
    let (left, right) = range(&mut points().map(|point| point.0));
    let (bottom, top) = range(&mut points().map(|point| point.1));
    let mut chart = ChartBuilder::on(&root)
        .caption(title, ("sans-serif", 16))
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(80)
        .build_cartesian_2d((left..right * 4.0).log_scale(), (bottom / 1.5..top * 1.5).log_scale())?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .x_desc(x)
        .y_desc(y)
        .x_label_formatter(&|value| number(*value))
        .y_label_formatter(&|value| number(*value))
        .draw()?;
    for (line, color) in lines.iter().zip([OURS, PEER, FLOOR]) {
        chart.draw_series([PathElement::new(line.points.clone(), color.stroke_width(2))])?;
        if let Some(end) = line.points.last() {
            let (x, y) = chart.backend_coord(end);
            root.draw(&Text::new(line.name.clone(), (x + 6, y - 7), ("sans-serif", 13).into_font()))?;
        }
    }
    root.present()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::results::Sample;
    use crate::bench::rows::all;

    #[test]
    fn a_plot_names_every_subject_that_was_measured() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("row.svg");
        let row = all().remove(0);
        let mut measured = Measured::default();
        for (name, cpu) in [("Teamster, library", 1.5), ("floor: typed parsing", 0.4)] {
            measured.samples.insert(name.to_owned(), vec![Sample::from([("cpu_us_per_event".to_owned(), cpu)])]);
        }
        assert!(write(&row, &measured, &file).unwrap());
        let svg = std::fs::read_to_string(&file).unwrap();
        assert!(svg.contains("Teamster, library") && svg.contains("1.50") && !svg.contains("acpx"), "{svg}");
        assert!(!write(&row, &Measured::default(), &file).unwrap());
    }
}
