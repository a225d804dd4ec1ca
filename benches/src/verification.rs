//! Verification, beside SHA-256 of what the hashes cover.

use std::collections::HashMap;
use std::hint::black_box;

use countersign_event::Scope;
use countersign_store::{Filter, Reader};
use countersign_vault::SessionKey;
use countersign_verify::database::verify_database;
use countersign_verify::{
    Expectation, Kept, Opener, Openings, Report as Verified, Selection, verify_stream, verify_text,
};

use crate::growth::Grown;
use crate::limit::hash_all;
use crate::measure::{Pair, Result, Spent, middle, rate};
use crate::report::{Report, gigabytes, progress, ratio, thousands};

/// Measures verification of a log and prints it.
pub(crate) fn section(grown: &Grown, report: &mut Report<'_>) -> Result<()> {
    let Grown { bench, export } = grown;
    report.table(
        &format!("Verification of {} events, all cores", export.events),
        &[
            "what",
            "events/s",
            "speed",
            "limit",
            "speed",
            "ratio, wall clock",
            "ratio, processor time",
        ],
    )?;
    progress("verification of a stream");
    let lines_only = "SHA-256 of the lines";
    row("export, in memory", lines_only, &of_text(export)?, report)?;
    row(
        "export, as a stream",
        lines_only,
        &of_stream(export)?,
        report,
    )?;
    progress("verification against a checkpoint");
    let checkpoint = bench.store().publish(None)?.checkpoint;
    let kept = Kept {
        size: checkpoint.size,
        root: checkpoint.root,
        sessions: None,
    };
    row(
        "export, in memory, against a checkpoint",
        "SHA-256 of the lines, the leaves and the nodes",
        &of_tree(kept, export)?,
        report,
    )?;

    let database = bench.folder().database();
    let selection = Selection::default();
    let expectation = Expectation::default();
    let keys = Keys::of(bench.store().reader())?;
    let with_ciphertexts = "SHA-256 of the lines and the ciphertexts";
    for (name, opener) in [
        ("database, content stays sealed", None),
        (
            "database, sealed content opened",
            Some(&keys as &dyn Opener),
        ),
    ] {
        progress(name);
        let verify = || {
            good(
                verify_database(&database, &selection, &expectation, opener, &mut |_| ()),
                export,
            )
        };
        row(
            name,
            with_ciphertexts,
            &verification(export, &export.all_texts(), verify)?,
            report,
        )?;
    }
    Ok(())
}

/// Verification of an export where it is, and its limit.
pub(crate) fn of_text(export: &Export) -> Result<Verification> {
    let verify = || {
        let (selection, expectation) = (Selection::default(), Expectation::default());
        let text = black_box(export.stream.as_slice());
        good(
            verify_text(text, &selection, &expectation, &mut |_| ()),
            export,
        )
    };
    verification(export, &export.covered_texts(), verify)
}

/// Verification of an export against a checkpoint, and its limit.
fn of_tree(kept: Kept, export: &Export) -> Result<Verification> {
    let expectation = Expectation {
        checkpoint: Some(kept),
        ..Expectation::default()
    };
    let verify = || {
        let text = black_box(export.stream.as_slice());
        let selection = Selection::default();
        good(
            verify_text(text, &selection, &expectation, &mut |_| ()),
            export,
        )
    };
    // A leaf has a hash, and so has, but for one, a node.
    let mut texts = export.covered_texts();
    for _ in 0..export.events {
        texts.extend([[0; 33].as_slice(), [1; 65].as_slice()]);
    }
    verification(export, &texts, verify)
}

/// Verification of an export that is read, and its limit.
pub(crate) fn of_stream(export: &Export) -> Result<Verification> {
    let verify = || {
        let (selection, expectation) = (Selection::default(), Expectation::default());
        let stream = black_box(export.stream.as_slice());
        good(
            verify_stream(stream, &selection, &expectation, &mut |_| ())?,
            export,
        )
    };
    verification(export, &export.covered_texts(), verify)
}

/// What a log gives to a verifier, in memory.
#[derive(Default)]
pub(crate) struct Export {
    events: usize,
    stream: Vec<u8>,
    /// What the hash of each line covers: the line without its hash.
    covered: Vec<Vec<u8>>,
    ciphertexts: Vec<Vec<u8>>,
}

impl Export {
    pub(crate) fn of(reader: &Reader) -> Result<Self> {
        let mut export = Self::default();
        reader.each(&Filter::default(), 0, |event| {
            export.events += 1;
            export.stream.extend_from_slice(&event.line);
            export.stream.push(b'\n');
            export.covered.push(without_hash(event.line));
            export.ciphertexts.extend(event.ciphertext);
            Ok::<_, countersign_store::Error>(())
        })?;
        Ok(export)
    }

    fn covered_texts(&self) -> Vec<&[u8]> {
        self.covered.iter().map(Vec::as_slice).collect()
    }

    fn all_texts(&self) -> Vec<&[u8]> {
        self.covered
            .iter()
            .chain(&self.ciphertexts)
            .map(Vec::as_slice)
            .collect()
    }
}

/// The hash is the second member, right after the type.
fn without_hash(mut line: Vec<u8>) -> Vec<u8> {
    const MEMBER: &[u8] = b"\"hash\":\"";
    if let Some(start) = line.windows(MEMBER.len()).position(|bytes| bytes == MEMBER) {
        line.drain(start..start + MEMBER.len() + 64 + "\",".len());
    }
    line
}

/// Verification and hashing of the same events.
pub(crate) struct Verification {
    events: usize,
    bytes: usize,
    verify: Spent,
    hash: Spent,
}

impl Pair for Verification {
    fn ratio(&self) -> f64 {
        self.hash.wall.as_secs_f64() / self.verify.wall.as_secs_f64()
    }
}

impl Verification {
    pub(crate) fn rate(&self) -> f64 {
        rate(self.events, self.verify.wall)
    }

    pub(crate) fn limit_rate(&self) -> f64 {
        rate(self.events, self.hash.wall)
    }

    fn cpu_ratio(&self) -> f64 {
        self.hash.cpu.as_secs_f64() / self.verify.cpu.as_secs_f64()
    }
}

fn verification(
    export: &Export,
    texts: &[&[u8]],
    mut verify: impl FnMut() -> Result<()>,
) -> Result<Verification> {
    let bytes = texts.iter().map(|text| text.len()).sum::<usize>();
    // The processor time comes in steps of 10 ms, so short work is repeated.
    let passes = ENOUGH_EVENTS.div_ceil(export.events);
    let times = u32::try_from(passes)?;
    verify()?;
    middle(|| {
        Ok(Verification {
            events: export.events * passes,
            bytes: bytes * passes,
            verify: Spent::on(times, &mut verify)?,
            hash: Spent::on(times, || {
                hash_all(black_box(texts));
                Ok(())
            })?,
        })
    })
}

fn row(name: &str, limit: &str, verified: &Verification, report: &mut Report<'_>) -> Result<()> {
    report.row(&[
        name.to_owned(),
        thousands(verified.rate()),
        gigabytes(rate(verified.bytes, verified.verify.wall)),
        limit.to_owned(),
        gigabytes(rate(verified.bytes, verified.hash.wall)),
        ratio(verified.ratio()),
        ratio(verified.cpu_ratio()),
    ])
}

/// A measurement of a verification that failed, or saw less, would mean nothing.
fn good(verified: Verified, export: &Export) -> Result<()> {
    match verified.failure {
        None if verified.events == export.events as u64 => Ok(()),
        failure => Err(format!("verified {} events, then {failure:?}", verified.events).into()),
    }
}

/// The key of every session.
struct Keys(HashMap<Scope, SessionKey>);

impl Keys {
    fn of(reader: &Reader) -> Result<Self> {
        let scopes = reader
            .sessions(None)?
            .into_iter()
            .map(|session| session.scope);
        let keys = scopes.map(|scope| reader.session_key(&scope).map(|key| (scope, key)));
        Ok(Self(keys.collect::<std::result::Result<_, _>>()?))
    }
}

impl Opener for Keys {
    fn open(
        &self,
        ciphertext: &[u8],
        scope: &Scope,
    ) -> std::result::Result<Option<Openings>, String> {
        let key = self.0.get(scope).ok_or("no key")?;
        key.open(ciphertext, scope)
            .map(Some)
            .map_err(|error| error.to_string())
    }
}

const ENOUGH_EVENTS: usize = 600_000;
