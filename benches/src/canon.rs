//! Canonical forms, on one core, beside SHA-256 of the same text.

use std::hint::black_box;

use countersign_canon::{Json, Limits, jcs};
use countersign_event::{Head, Sealed};
use countersign_vault::SessionKey;

use crate::limit::hash_each;
use crate::measure::{Pair, Result, Spent, middle, rate};
use crate::report::{Report, gigabytes, progress, ratio};
use crate::workload::Workload;

/// Measures the canonical forms of event lines and prints them.
pub(crate) fn section(report: &mut Report<'_>) -> Result<()> {
    progress("canonical forms");
    report.table(
        "Canonical forms of event lines, one core",
        &["what", "speed", "limit", "speed", "ratio"],
    )?;
    let limits = Limits::event();
    let lines = lines(7 * 300)?;
    let texts: Vec<&[u8]> = lines.iter().map(Vec::as_slice).collect();
    let values: Vec<Json> = texts
        .iter()
        .map(|text| Json::admit(text, &limits))
        .collect::<std::result::Result<_, _>>()?;
    row(
        "check that a line is canonical (`jcs::check`)",
        &texts,
        report,
        || {
            Ok(texts
                .iter()
                .try_for_each(|text| jcs::check(black_box(text), &limits))?)
        },
    )?;
    row("admit (`Json::admit`)", &texts, report, || {
        for text in &texts {
            black_box(Json::admit(black_box(text), &limits)?);
        }
        Ok(())
    })?;
    row("write (`Json::to_jcs`)", &texts, report, || {
        for value in &values {
            black_box(black_box(value).to_jcs()?);
        }
        Ok(())
    })
}

struct Canon {
    speed: f64,
    sha256: f64,
}

impl Pair for Canon {
    fn ratio(&self) -> f64 {
        self.speed / self.sha256
    }
}

fn row(
    name: &str,
    texts: &[&[u8]],
    report: &mut Report<'_>,
    mut work: impl FnMut() -> Result<()>,
) -> Result<()> {
    let bytes = texts.iter().map(|text| text.len()).sum::<usize>();
    Spent::on(PASSES / 4, &mut work)?;
    let canon = middle(|| {
        let speed = Spent::on(PASSES, &mut work)?;
        let sha256 = Spent::on(PASSES, || {
            hash_each(black_box(texts));
            Ok(())
        })?;
        let speed_of = |spent: Spent| rate(bytes * PASSES as usize, spent.wall);
        Ok(Canon {
            speed: speed_of(speed),
            sha256: speed_of(sha256),
        })
    })?;
    report.row(&[
        name.to_owned(),
        gigabytes(canon.speed),
        "SHA-256 of the same text".to_owned(),
        gigabytes(canon.sha256),
        ratio(canon.ratio()),
    ])
}

/// The lines of one session.
fn lines(count: usize) -> Result<Vec<Vec<u8>>> {
    let key = SessionKey::generate()?;
    let mut head = Head::GENESIS;
    Workload::new(1)?
        .take(count)
        .map(|draft| {
            let body = key.seal(draft.payload, &draft.scope)?.body;
            let sealed = Sealed::seal(
                draft.event_type,
                draft.ts_unix_ms,
                &body,
                &draft.scope,
                &head,
            )?;
            head = sealed.head();
            Ok(sealed.line().to_vec())
        })
        .collect()
}

const PASSES: u32 = 200;
