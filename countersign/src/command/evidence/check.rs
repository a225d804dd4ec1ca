//! `countersign evidence check`

use clap::Args;
use countersign_canon::{Json, Limits};
use countersign_evidence::aep::{self, Authenticity, Checked, Finding, Judged, Keys, Record};
use countersign_pack::archive::looks_like_pack;

use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::input;
use crate::output::{self, Format, inline};

#[derive(Args)]
#[command(after_help = "\
A file holds one record, a list of records, or one record a line; its records form one chain, in their
order. Versions aep/v0.1 to aep/v0.5 are known. Four axes are reported, and none implies another:
structural, semantic, authenticity, chain. With --key, a record that none of the keys signed is a
failure as well.

Exit code 5 says that something is against a record or a chain.

Examples:
  countersign evidence check records.jsonl
  countersign evidence check record.json --key node-1=197f6b23e16c8532c6abc838facd5ea789be0c76b2920334039bfa8b3d368d61
  countersign evidence check record.json --format json")]
pub(crate) struct Check {
    /// The files, or - for standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    /// A public key that you trust, by the name that records use
    #[arg(long = "key", value_name = "KEY_ID=HEX")]
    keys: Vec<String>,
}

impl Check {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        let keys = keys(&self.keys)?;
        let mut failed = Vec::new();
        let mut reports = Vec::new();
        for file in &self.files {
            let text = input::file(file, MAX_FILE)?;
            refuse_pack(file, &text)?;
            let checked = aep::check(&records(file, &text), &keys);
            if checked.fails() {
                failed.push(file.clone());
            }
            match format {
                Format::Text => output::text(&describe(file, &checked))?,
                Format::Json => reports.push(json(file, &checked)),
            }
        }
        if format == Format::Json {
            output::json(&Json::object([
                ("failed", Json::from(failed.len() as u64)),
                ("files", Json::Array(reports)),
            ]))?;
        }
        match failed.first() {
            None => Ok(Exit::Done),
            Some(file) => Err(Failure::new(
                Code::Record,
                format!("`{file}` does not hold what it claims"),
            )),
        }
    }
}

/// A pack holds records among other things, and is checked as a whole.
fn refuse_pack(file: &str, text: &[u8]) -> Result<(), Failure> {
    match looks_like_pack(text) {
        false => Ok(()),
        true => Err(Failure::new(
            Code::PackGiven,
            format!("`{file}` is an evidence pack, and no file of records"),
        )),
    }
}

pub(crate) fn keys(arguments: &[String]) -> Result<Keys, Failure> {
    let mut keys = Keys::default();
    for argument in arguments {
        let wrong = || Failure::new(Code::RecordKey, format!("`{argument}` is not KEY_ID=HEX"));
        // The name may hold anything; the digits do not hold the sign.
        let (name, hex) = argument.rsplit_once('=').ok_or_else(wrong)?;
        keys.add(name, hex)
            .map_err(|error| Failure::new(Code::RecordKey, error.to_string()))?;
    }
    Ok(keys)
}

/// The records of a file: one value, a list of them, or one a line.
pub(crate) fn records(file: &str, text: &[u8]) -> Vec<Record> {
    let is_lines = [".jsonl", ".ndjson"].iter().any(|end| file.ends_with(end));
    let limits = Limits {
        max_bytes: usize::MAX,
        ..Limits::event()
    };
    if !is_lines {
        match Json::admit(text, &limits) {
            Ok(Json::Array(records)) => {
                return records.into_iter().map(Record::from_json).collect();
            }
            Ok(record) => return vec![Record::from_json(record)],
            Err(_) if !looks_like_lines(text) => return vec![Record::read(text)],
            Err(_) => {}
        }
    }
    lines(text).map(Record::read).collect()
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    lines.filter(|line| !line.is_empty())
}

fn looks_like_lines(text: &[u8]) -> bool {
    lines(text).count() > 1
        && lines(text).all(|line| line.starts_with(b"{") && line.ends_with(b"}"))
}

fn json(file: &str, checked: &Checked) -> Json {
    let mut json = checked.to_json();
    if let Some(members) = json.as_object_mut() {
        members.insert("file".to_owned(), Json::from(file));
        members.insert("fails".to_owned(), Json::from(checked.fails()));
    }
    json
}

fn describe(file: &str, checked: &Checked) -> String {
    let word = match checked.fails() {
        true => "FAILED ✗",
        false => "HOLDS ✓",
    };
    let count = checked.records.len();
    let records = if count == 1 { "record" } else { "records" };
    let chain = checked.chain.continuity;
    let chain = chain.map_or("not evaluated", |chain| chain.as_str());
    let mut lines = vec![format!(
        "{word} {}: {count} {records}, chain {chain}",
        inline(file)
    )];
    for (index, record) in checked.records.iter().enumerate() {
        let version = record.version.map_or("no known version", |it| it.as_str());
        let run = record.run_id.as_deref().unwrap_or("-");
        lines.push(format!("  {index} {version} run {}", inline(run)));
        lines.push(judged("structure", Some(&record.structure)));
        lines.push(judged("semantics", record.semantics.as_ref()));
        lines.push(signed(record.authenticity.as_ref()));
        let against = record.structure.against.iter();
        let against = against.chain(record.semantics.iter().flat_map(|it| &it.against));
        let against = against.chain(record.authenticity.iter().flat_map(|it| it.findings()));
        lines.extend(against.map(|finding| told("✗", finding)));
        lines.extend(record.notes.iter().map(|note| told("·", note)));
        let links = checked.chain.findings.iter();
        let links = links.filter(|(place, _)| *place == index);
        lines.extend(links.map(|(_, finding)| told("✗", finding)));
    }
    lines.join("\n")
}

fn judged(axis: &str, judged: Option<&Judged>) -> String {
    let word = match judged.map(Judged::holds) {
        Some(true) => "pass",
        Some(false) => "fail",
        None => "not evaluated",
    };
    format!("    {axis:<13} {word}")
}

fn signed(authenticity: Option<&Authenticity>) -> String {
    let word = authenticity.and_then(Authenticity::status);
    let by = match authenticity {
        Some(Authenticity::Valid(signed)) => {
            format!(" ({}, {})", inline(&signed.key_id), signed.profile)
        }
        _ => String::new(),
    };
    let axis = "authenticity";
    format!("    {axis:<13} {}{by}", word.unwrap_or("not evaluated"))
}

fn told(mark: &str, finding: &Finding) -> String {
    let place = match finding.pointer.as_str() {
        "" => "the record",
        pointer => pointer,
    };
    format!(
        "    {mark} {}: {} {}",
        finding.code,
        inline(place),
        inline(&finding.message)
    )
}

pub(crate) const MAX_FILE: usize = 256 << 20;
