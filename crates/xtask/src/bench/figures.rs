//! Figures of one bench: rounds of ours and of the peer, their ratio, and what it must be.

use std::fmt;

/// What a ratio is held against.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Goal {
    /// The ratio is ours to the peer's, and more is better.
    AtLeast { must: f64, aim: f64 },
    /// The ratio is ours to the limit, and less is better.
    AtMost { must: f64, aim: f64 },
}

impl Goal {
    fn verdict(self, ratio: f64) -> &'static str {
        match self {
            Self::AtLeast { must, .. } if ratio < must => "MISSED",
            Self::AtLeast { aim, .. } if ratio < aim => "must met",
            Self::AtMost { must, .. } if ratio > must => "MISSED",
            Self::AtMost { aim, .. } if ratio > aim => "must met",
            _ => "aim met",
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast { must, aim } => write!(f, "≥ {must}, aim ≥ {aim}"),
            Self::AtMost { must, aim } => write!(f, "≤ {must}, aim ≤ {aim}"),
        }
    }
}

/// One measured value of one round.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sample {
    pub(crate) value: f64,
    /// CPU time (user and system) of the server for each request, in microseconds.
    pub(crate) cpu_us: Option<f64>,
}

impl Sample {
    pub(crate) fn of(value: f64) -> Self {
        Self { value, cpu_us: None }
    }
}

/// One line of a table: the same work done by us and by a peer, round by round.
pub(crate) struct Comparison {
    pub(crate) work: String,
    pub(crate) peer: String,
    pub(crate) unit: &'static str,
    pub(crate) goal: Goal,
    /// Whether the values are times or sizes, so that a goal of "at least" compares the peer's with ours.
    pub(crate) less_is_better: bool,
    ours: Vec<Sample>,
    theirs: Vec<Sample>,
}

impl Comparison {
    pub(crate) fn new(work: impl Into<String>, peer: impl Into<String>, unit: &'static str, goal: Goal) -> Self {
        Self {
            work: work.into(),
            peer: peer.into(),
            unit,
            goal,
            less_is_better: false,
            ours: Vec::new(),
            theirs: Vec::new(),
        }
    }

    /// Values are times: the ratio is speed to speed.
    pub(crate) fn of_times(mut self) -> Self {
        self.less_is_better = true;
        self
    }

    pub(crate) fn push(&mut self, ours: Sample, theirs: Sample) {
        self.ours.push(ours);
        self.theirs.push(theirs);
    }

    fn ratios(&self) -> Vec<f64> {
        let pairs = self.ours.iter().zip(&self.theirs);
        let ratio = |(ours, theirs): (&Sample, &Sample)| {
            if self.less_is_better { theirs.value / ours.value } else { ours.value / theirs.value }
        };
        pairs.map(ratio).collect()
    }

    /// The cells of its line in a table of [`HEADER`].
    fn cells(&self) -> Vec<String> {
        let ratios = self.ratios();
        let middle = median(&ratios);
        let (least, most) =
            ratios.iter().fold((f64::INFINITY, 0.0_f64), |(a, b), ratio| (a.min(*ratio), b.max(*ratio)));
        vec![
            self.work.clone(),
            self.peer.clone(),
            format!("{} {}", number(median_of(&self.ours)), self.unit),
            format!("{} {}", number(median_of(&self.theirs)), self.unit),
            format!("**{middle:.2}** ({least:.2} – {most:.2})"),
            self.goal.to_string(),
            self.goal.verdict(middle).to_owned(),
            cpu(&self.ours),
            cpu(&self.theirs),
        ]
    }
}

const HEADER: [&str; 9] = ["work", "beside", "ours", "theirs", "ratio", "goal", "", "CPU µs ours", "theirs"];

/// A Markdown table, padded so that it reads as text too.
pub(crate) fn table(comparisons: &[Comparison]) -> String {
    let mut rows: Vec<Vec<String>> = vec![HEADER.iter().map(ToString::to_string).collect()];
    rows.extend(comparisons.iter().map(Comparison::cells));
    let widths: Vec<usize> = (0..HEADER.len())
        .map(|column| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0))
        .collect();
    let line = |row: &[String]| {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell}{}", " ".repeat(width - cell.chars().count())))
            .collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let mut text = String::new();
    for (at, row) in rows.iter().enumerate() {
        text.push_str(&line(row));
        if at == 0 {
            text.push_str(&line(&widths.iter().map(|width| "-".repeat((*width).max(3))).collect::<Vec<_>>()));
        }
    }
    text
}

/// Whether any comparison misses what it must reach.
pub(crate) fn missed(comparisons: &[Comparison]) -> usize {
    comparisons.iter().filter(|one| one.goal.verdict(median(&one.ratios())) == "MISSED").count()
}

fn median_of(samples: &[Sample]) -> f64 {
    median(&samples.iter().map(|sample| sample.value).collect::<Vec<_>>())
}

fn cpu(samples: &[Sample]) -> String {
    let times: Vec<f64> = samples.iter().filter_map(|sample| sample.cpu_us).collect();
    if times.is_empty() { "–".to_owned() } else { format!("{:.1}", median(&times)) }
}

/// The middle value, or the mean of the two middle ones; NaN of none.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = sorted.len() / 2;
    match (sorted.get(at), sorted.len() % 2) {
        (Some(upper), 0) => sorted.get(at.wrapping_sub(1)).map_or(*upper, |lower| (lower + upper) / 2.0),
        (Some(middle), _) => *middle,
        (None, _) => f64::NAN,
    }
}

/// Three significant digits at least, and thousands apart.
fn number(value: f64) -> String {
    if value < 10.0 {
        return format!("{value:.2}");
    }
    if value < 100.0 {
        return format!("{value:.1}");
    }
    let digits = format!("{value:.0}");
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(&[7.0]), 7.0);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn a_rate_compares_ours_with_theirs_and_a_time_theirs_with_ours() {
        let goal = Goal::AtLeast { must: 0.7, aim: 0.9 };
        let mut rate = Comparison::new("w", "p", "1/s", goal);
        rate.push(Sample::of(80.0), Sample::of(100.0));
        assert_eq!(rate.ratios(), [0.8]);
        let mut time = Comparison::new("w", "p", "ms", goal).of_times();
        time.push(Sample::of(100.0), Sample::of(50.0));
        assert_eq!(time.ratios(), [0.5]);
        assert_eq!(missed(&[rate, time]), 1);
    }

    #[test]
    fn verdicts() {
        let least = Goal::AtLeast { must: 0.7, aim: 0.9 };
        assert_eq!([0.69, 0.7, 0.9].map(|ratio| least.verdict(ratio)), ["MISSED", "must met", "aim met"]);
        let most = Goal::AtMost { must: 2.2, aim: 1.5 };
        assert_eq!([2.21, 2.2, 1.5].map(|ratio| most.verdict(ratio)), ["MISSED", "must met", "aim met"]);
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([1.234, 12.34, 123.4, 1234.0, 1234567.0].map(number), ["1.23", "12.3", "123", "1,234", "1,234,567"]);
    }
}
