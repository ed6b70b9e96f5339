//! Draws frames of a terminal as an animated SVG: text, colors, no script and no font.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use teamster_terminal::Span;

/// The size of a character cell and the margin, in pixels.
const CELL: (f64, f64) = (8.43, 19.0);
const MARGIN: f64 = 16.0;

/// The terminal has its own background, so that it can be read on light and on dark pages.
const STYLE: &str = "\
text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#e6edf3;white-space:pre}
.dim{fill:#949da6}.bold{font-weight:700}.italic{font-style:italic}.underline{text-decoration:underline}
.red{fill:#ff7b72}.green{fill:#56d364}.yellow{fill:#e3b341}.blue{fill:#79c0ff}.magenta{fill:#d2a8ff}.cyan{fill:#56d4dd}
.inverse{font-weight:700}
";

/// What a terminal shows for some time.
pub(super) struct Frame {
    pub(super) rows: Vec<Vec<Span>>,
    /// How long it is shown, in tenths of a second.
    pub(super) tenths: u32,
}

/// Draws the frames, one after another and again from the first. Without animations, the last is shown.
pub(super) fn draw(title: &str, columns: u16, frames: &[Frame]) -> String {
    let last_row = |frame: &Frame| frame.rows.iter().rposition(|row| !row.is_empty());
    let rows = frames.iter().filter_map(last_row).max().and_then(|row| u16::try_from(row + 1).ok());
    let (width, height) =
        (f64::from(columns) * CELL.0 + 2.0 * MARGIN, f64::from(rows.unwrap_or_default()) * CELL.1 + 2.0 * MARGIN);
    let mut visible: BTreeMap<(u16, &[Span]), Vec<usize>> = BTreeMap::new();
    for (number, frame) in frames.iter().enumerate() {
        for (row, spans) in (0..).zip(&frame.rows).filter(|(_, spans)| !spans.is_empty()) {
            visible.entry((row, spans.as_slice())).or_default().push(number);
        }
    }
    let mut sets: Vec<&Vec<usize>> = visible.values().collect();
    sets.sort();
    sets.dedup();
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" xml:space=\"preserve\" role=\"img\">\n<title>{}</title>\n<style>\n{STYLE}{}</style>\n\
         <rect x=\".5\" y=\".5\" width=\"{:.0}\" height=\"{:.0}\" rx=\"8\" fill=\"#0d1117\" stroke=\"#444c56\"/>\n",
        escaped(title),
        animations(&sets, frames),
        width - 1.0,
        height - 1.0,
    );
    for ((row, spans), numbers) in &visible {
        let class = sets.iter().position(|set| *set == numbers).unwrap_or_default();
        let class = if numbers.len() == frames.len() { String::new() } else { format!(" class=\"f{class}\"") };
        _ = write!(svg, "<text y=\"{:.0}\"{class}>", MARGIN + CELL.1 * (f64::from(*row) + 0.75));
        spans.iter().for_each(|span| svg.push_str(&tspan(span)));
        svg.push_str("</text>\n");
    }
    svg + "</svg>\n"
}

fn tspan(span: &Span) -> String {
    let class = span.style.join(" ");
    let class = if class.is_empty() { class } else { format!(" class=\"{class}\"") };
    let x = MARGIN + f64::from(span.column) * CELL.0;
    format!("<tspan x=\"{x:.1}\"{class}>{}</tspan>", escaped(&span.text))
}

/// Returns the animation of each set of frames: hidden, except in its frames.
fn animations(sets: &[&Vec<usize>], frames: &[Frame]) -> String {
    let total: u32 = frames.iter().map(|frame| frame.tenths).sum();
    let start = |number: usize| frames.iter().take(number).map(|frame| frame.tenths).sum::<u32>();
    let last = frames.len().saturating_sub(1);
    let (mut hidden, mut animated) = (String::new(), String::new());
    for (class, set) in sets.iter().enumerate().filter(|(_, set)| set.len() < frames.len()) {
        if !set.contains(&last) {
            _ = writeln!(hidden, ".f{class}{{visibility:hidden}}");
        }
        let mut steps = String::new();
        let mut was_visible = None;
        for number in 0..frames.len() {
            let is_visible = set.contains(&number);
            if was_visible != Some(is_visible) {
                let value = if is_visible { "visible" } else { "hidden" };
                let percent = 100.0 * f64::from(start(number)) / f64::from(total);
                _ = write!(steps, "{percent:.1}%{{visibility:{value}}}");
            }
            was_visible = Some(is_visible);
        }
        let time = f64::from(total) / 10.0;
        _ = writeln!(
            animated,
            ".f{class}{{animation:f{class} {time:.1}s step-end infinite}}@keyframes f{class}{{{steps}}}"
        );
    }
    format!("{hidden}@media (prefers-reduced-motion:no-preference){{\n{animated}}}\n")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[test]
fn a_row_is_drawn_once_and_shown_in_its_frames() {
    let span = |text: &str, style: &[&'static str]| Span { column: 2, text: text.to_owned(), style: style.to_vec() };
    let frame = |rows: &[Span]| Frame { rows: rows.iter().map(|row| vec![row.clone()]).collect(), tenths: 10 };
    let (same, first, second) = (span("a < b", &[]), span("1", &["red", "bold"]), span("2", &[]));
    let svg = draw("t", 80, &[frame(&[same.clone(), first]), frame(&[same, second])]);
    assert_eq!(svg.matches("a &lt; b").count(), 1);
    assert!(svg.contains("<text y=\"30\"><tspan x=\"32.9\">a &lt; b</tspan></text>"), "{svg}");
    assert!(svg.contains("<text y=\"49\" class=\"f0\"><tspan x=\"32.9\" class=\"red bold\">1</tspan></text>"), "{svg}");
    assert!(svg.contains("@keyframes f0{0.0%{visibility:visible}50.0%{visibility:hidden}}"), "{svg}");
    assert!(svg.contains(".f0{visibility:hidden}") && !svg.contains(".f2{visibility:hidden}"), "{svg}");
}
