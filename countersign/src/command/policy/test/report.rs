//! What the tests gave, for people and for programs.

use countersign_canon::Json;
use countersign_policy::rego::testing::Coverage;

use crate::output::{Table, visible};

/// All results.
#[derive(Default)]
pub(super) struct Report {
    pub(super) results: Vec<Result>,
    pub(super) coverage: Vec<Coverage>,
}

/// One test or case.
pub(super) struct Result {
    pub(super) place: String,
    pub(super) name: String,
    pub(super) failure: Option<String>,
}

impl Report {
    /// Adds what was reached of a file; files may be tested several times.
    pub(super) fn cover(&mut self, file: Coverage) {
        let Some(known) = self
            .coverage
            .iter_mut()
            .find(|known| known.file == file.file)
        else {
            self.coverage.push(file);
            return;
        };
        known.missed.extend(file.missed);
        known.covered.extend(file.covered);
        known.missed.retain(|line| !known.covered.contains(line));
    }

    /// Whether everything is as it must be, and if not, why.
    pub(super) fn verdict(&self, threshold: Option<f64>) -> std::result::Result<(), String> {
        let (covered, lines) = self.lines();
        let failed = self.failed();
        match threshold {
            _ if self.results.is_empty() => Err("there is no test".to_owned()),
            _ if failed > 0 => Err(format!("{failed} of {} test(s) failed", self.results.len())),
            Some(_) if lines == 0 => Err("no policy was covered".to_owned()),
            Some(least) if (covered as f64) * 100.0 < least * (lines as f64) => Err(format!(
                "coverage is {}, which is below {least} %",
                percentage(covered, lines)
            )),
            _ => Ok(()),
        }
    }

    pub(super) fn text(&self) -> String {
        let mut lines: Vec<String> = self
            .results
            .iter()
            .filter_map(|result| {
                let failure = result.failure.as_ref()?;
                Some(visible(&format!(
                    "FAILED ✗  {}: {}: {failure}",
                    result.place, result.name
                )))
            })
            .collect();
        let failed = self.failed();
        lines.push(format!(
            "{} passed, {failed} failed",
            self.results.len() - failed
        ));
        if !self.coverage.is_empty() {
            lines.push(String::new());
            lines.push(self.table().text());
        }
        lines.join("\n")
    }

    fn table(&self) -> Table {
        let mut table = Table::new(&["COVERAGE", "LINES", "FILE", "NOT COVERED"]);
        for file in &self.coverage {
            let (covered, lines) = count(file);
            table.row([
                percentage(covered, lines),
                lines.to_string(),
                file.file.clone(),
                ranges(file.missed.iter().copied()),
            ]);
        }
        let (covered, lines) = self.lines();
        let total = [
            percentage(covered, lines),
            lines.to_string(),
            "total".to_owned(),
        ];
        table.row(total);
        table
    }

    pub(super) fn json(&self) -> Json {
        let failed = self.failed();
        let results = self.results.iter().map(|result| {
            let failure = result.failure.as_deref().map_or(Json::Null, Json::from);
            Json::object([
                ("place", Json::from(result.place.as_str())),
                ("name", Json::from(result.name.as_str())),
                ("failure", failure),
            ])
        });
        let numbers = |lines: &std::collections::BTreeSet<u64>| {
            Json::Array(lines.iter().copied().map(Json::from).collect())
        };
        let coverage = self.coverage.iter().map(|file| {
            Json::object([
                ("file", Json::from(file.file.as_str())),
                ("covered", numbers(&file.covered)),
                ("not_covered", numbers(&file.missed)),
            ])
        });
        let (covered, lines) = self.lines();
        Json::object([
            ("passed", Json::from((self.results.len() - failed) as u64)),
            ("failed", Json::from(failed as u64)),
            ("results", Json::Array(results.collect())),
            ("coverage", Json::Array(coverage.collect())),
            ("lines", Json::from(lines)),
            ("lines_covered", Json::from(covered)),
        ])
    }

    fn failed(&self) -> usize {
        self.results
            .iter()
            .filter(|result| result.failure.is_some())
            .count()
    }

    /// How many lines are covered, and how many there are.
    fn lines(&self) -> (u64, u64) {
        self.coverage
            .iter()
            .map(count)
            .fold((0, 0), |(covered, lines), (c, l)| (covered + c, lines + l))
    }
}

fn count(file: &Coverage) -> (u64, u64) {
    let covered = file.covered.len() as u64;
    (covered, covered + file.missed.len() as u64)
}

/// Rounded down, so that only all is 100.0 %.
fn percentage(covered: u64, lines: u64) -> String {
    match (covered * 1000).checked_div(lines) {
        Some(per_mille) => format!("{}.{} %", per_mille / 10, per_mille % 10),
        None => "–".to_owned(),
    }
}

/// `3, 7-9`
fn ranges(lines: impl Iterator<Item = u64>) -> String {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for line in lines {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == line => *last = line,
            _ => ranges.push((line, line)),
        }
    }
    let text = |(first, last): (u64, u64)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    ranges.into_iter().map(text).collect::<Vec<_>>().join(", ")
}
