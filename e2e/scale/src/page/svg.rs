//! Small charts as SVG, drawn from numbers alone: the same numbers give the same text.

use std::fmt::Write as _;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 320.0;
/// Left, right, top, bottom.
const MARGINS: [f64; 4] = [60.0, 150.0, 40.0, 44.0];
/// Colours that differ without red and green.
const COLOURS: [&str; 8] = [
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#999999", "#f0e442",
];

/// A named series of values at the positions of a chart.
pub(crate) struct Series {
    pub(crate) name: String,
    /// Position and value.
    pub(crate) points: Vec<(f64, f64)>,
}

/// A chart in the making.
pub(crate) struct Chart {
    text: String,
    most: (f64, f64),
}

/// The colour of a series.
fn colour(index: usize) -> &'static str {
    let index = index.checked_rem(COLOURS.len()).unwrap_or(0);
    COLOURS.get(index).copied().unwrap_or("#000000")
}

/// A round number that is not below this one.
fn round_up(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let unit = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0];
    let fits = steps.into_iter().find(|step| step * unit >= value);
    fits.unwrap_or(10.0) * unit
}

/// A number without needless zeros.
pub(crate) fn short(value: f64) -> String {
    if (value - value.round()).abs() < 1e-9 {
        format!("{value:.0}")
    } else {
        format!("{value:.1}")
    }
}

impl Chart {
    /// With a title, a name of each axis, and the largest position and value.
    fn new(title: &str, (below, left): (&str, &str), most: (f64, f64)) -> Self {
        let [from_left, from_right, top, bottom] = MARGINS;
        let mut chart = Self {
            text: String::new(),
            most: (most.0, round_up(most.1)),
        };
        let middle = (from_left + WIDTH - from_right) / 2.0;
        chart.add(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"11\">"
        ));
        chart.add(format_args!("<title>{title}</title>"));
        chart.add(format_args!(
            "<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#ffffff\"/>"
        ));
        chart.label((from_left, 22.0), "start", &format!("{title}: {left}"));
        chart.label((middle, HEIGHT - 8.0), "middle", below);
        for part in [0.0, 0.25, 0.5, 0.75, 1.0] {
            let value = chart.most.1 * part;
            let y = chart.y(value);
            chart.add(format_args!(
                "<path d=\"M{from_left} {y:.1}H{:.1}\" stroke=\"#dddddd\"/>",
                WIDTH - from_right
            ));
            chart.label((from_left - 6.0, y + 4.0), "end", &short(value));
        }
        debug_assert!(top < HEIGHT - bottom, "no room");
        chart
    }

    fn add(&mut self, part: std::fmt::Arguments<'_>) {
        // Writing to a text cannot fail.
        writeln!(self.text, "{part}").ok();
    }

    fn label(&mut self, (x, y): (f64, f64), anchor: &str, text: &str) {
        self.add(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"#333333\">{text}</text>"
        ));
    }

    fn x(&self, position: f64) -> f64 {
        let [left, right, ..] = MARGINS;
        left + position / self.most.0.max(1e-9) * (WIDTH - left - right)
    }

    fn y(&self, value: f64) -> f64 {
        let [.., top, bottom] = MARGINS;
        HEIGHT - bottom - value / self.most.1 * (HEIGHT - top - bottom)
    }

    fn legend(&mut self, names: impl Iterator<Item = String>) {
        let [_, right, top, _] = MARGINS;
        let x = WIDTH - right + 12.0;
        let mut y = top;
        for (index, name) in names.enumerate() {
            let fill = colour(index);
            self.add(format_args!(
                "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"10\" height=\"10\" fill=\"{fill}\"/>",
                y - 9.0
            ));
            self.label((x + 16.0, y), "start", &name);
            y += 18.0;
        }
    }

    fn tick(&mut self, position: f64, text: &str) {
        let [.., bottom] = MARGINS;
        self.label((self.x(position), HEIGHT - bottom + 16.0), "middle", text);
    }

    fn finish(mut self) -> String {
        self.text.push_str("</svg>\n");
        self.text
    }
}

/// Lines over positions with names.
pub(crate) fn lines(title: &str, axes: (&str, &str), ticks: &[String], series: &[Series]) -> String {
    let most = largest(series, |(_, value)| value);
    let last = largest(series, |(position, _)| position).max(1.0);
    let mut chart = Chart::new(title, axes, (last, most));
    for (index, Series { points, .. }) in series.iter().enumerate() {
        let stroke = colour(index);
        let path: Vec<String> = points
            .iter()
            .map(|(position, value)| format!("{:.1} {:.1}", chart.x(*position), chart.y(*value)))
            .collect();
        chart.add(format_args!(
            "<path d=\"M{}\" fill=\"none\" stroke=\"{stroke}\" stroke-width=\"2\"/>",
            path.join("L")
        ));
        for (position, value) in points {
            let (x, y) = (chart.x(*position), chart.y(*value));
            chart.add(format_args!(
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{stroke}\"/>"
            ));
        }
    }
    for (index, tick) in ticks.iter().enumerate() {
        chart.tick(position(index), tick);
    }
    chart.legend(series.iter().map(|series| series.name.clone()));
    chart.finish()
}

/// The position of the value at an index.
pub(crate) fn position(index: usize) -> f64 {
    f64::from(u32::try_from(index).unwrap_or(u32::MAX))
}

/// Groups of bars, one for each tick with a bar for each series.
pub(crate) fn bars(title: &str, axes: (&str, &str), ticks: &[String], series: &[Series]) -> String {
    let most = largest(series, |(_, value)| value);
    let groups = position(ticks.len()).max(1.0);
    let mut chart = Chart::new(title, axes, (groups, most));
    let width = 0.7 / position(series.len()).max(1.0);
    for (index, Series { points, .. }) in series.iter().enumerate() {
        let fill = colour(index);
        for (group, value) in points {
            let left = chart.x(group + 0.15 + width * position(index));
            let right = chart.x(group + 0.15 + width * position(index + 1));
            let (top, bottom) = (chart.y(*value), chart.y(0.0));
            chart.add(format_args!(
                "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{fill}\"/>",
                right - left,
                bottom - top
            ));
        }
    }
    for (index, tick) in ticks.iter().enumerate() {
        chart.tick(position(index) + 0.5, tick);
    }
    chart.legend(series.iter().map(|series| series.name.clone()));
    chart.finish()
}

/// Areas on top of each other; all series have the same positions.
pub(crate) fn areas(title: &str, axes: (&str, &str), ticks: &[(f64, String)], series: &[Series]) -> String {
    let positions: Vec<f64> = series
        .first()
        .map(|first| first.points.iter().map(|(x, _)| *x).collect())
        .unwrap_or_default();
    let mut below = vec![0.0; positions.len()];
    let totals = (0..positions.len()).map(|at| {
        let values = series.iter().filter_map(|series| series.points.get(at));
        values.map(|(_, value)| value).sum::<f64>()
    });
    let most = totals.fold(0.0, f64::max);
    let last = positions.last().copied().unwrap_or(1.0);
    let mut chart = Chart::new(title, axes, (last, most));
    for (index, Series { points, .. }) in series.iter().enumerate() {
        let values = points.iter().map(|(_, value)| value);
        let above: Vec<f64> = below.iter().zip(values).map(|(below, value)| below + value).collect();
        let point = |(x, y): (&f64, &f64)| format!("{:.1} {:.1}", chart.x(*x), chart.y(*y));
        let upper = positions.iter().zip(&above).map(point);
        let lower = positions.iter().zip(&below).rev().map(point);
        let path: Vec<String> = upper.chain(lower).collect();
        chart.add(format_args!(
            "<path d=\"M{}Z\" fill=\"{}\"/>",
            path.join("L"),
            colour(index)
        ));
        below = above;
    }
    for (at, tick) in ticks {
        chart.tick(*at, tick);
    }
    chart.legend(series.iter().map(|series| series.name.clone()));
    chart.finish()
}

fn largest(series: &[Series], of: fn((f64, f64)) -> f64) -> f64 {
    let points = series.iter().flat_map(|series| series.points.iter().copied());
    points.map(of).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_round_numbers() {
        for (value, round) in [(0.0, 1.0), (0.7, 1.0), (19.0, 20.0), (21.0, 25.0), (600.0, 1000.0)] {
            assert!((round_up(value) - round).abs() < 1e-9, "{value}: {}", round_up(value));
        }
    }

    #[test]
    fn areas_are_stacked_and_largest_values_touch_the_top() {
        let series = |name: &str, values: [f64; 2]| Series {
            name: name.to_owned(),
            points: vec![(0.0, values[0]), (1.0, values[1])],
        };
        let chart = areas(
            "A",
            ("s", "hosts"),
            &[],
            &[series("a", [4.0, 0.0]), series("b", [6.0, 10.0])],
        );
        // Both together are ten, which is the top.
        assert_eq!(chart.matches("<path d=\"M60.0").count(), 2, "{chart}");
        assert!(chart.contains("M60.0 40.0L490.0 40.0L490.0 276.0"), "{chart}");
    }
}
