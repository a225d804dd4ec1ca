//! `countersign manifest verify`

use std::path::{Path, PathBuf};

use clap::Args;
use countersign_canon::{Digest, Hash, Json};
use countersign_engine::{Belongings, Reach};
use countersign_policy::manifest::signature::{Origin, Publishers, SignatureError};
use countersign_policy::manifest::{Manifest, integrity};

use super::Trust;
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::folder;
use crate::output::{self, Format, visible};

#[derive(Args)]
#[command(after_help = "\
Compares the files below the manifest's folder with the digests that the manifest names, and its
signature with the publishers you accept. Links are never followed. Exit code: 5 if something does
not hold.

With --trust dev a manifest that nobody known has signed passes, and the report says so; with
--trust prod it does not.

Examples:
  countersign manifest verify skill/countersign-manifest.yaml
  countersign manifest verify manifest.yaml --trust prod --publishers publishers.txt")]
pub(crate) struct Verify {
    /// The manifest
    #[arg(value_name = "FILE")]
    file: String,
    /// The folder of its files [default: the folder of the manifest]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    #[command(flatten)]
    trust: Trust,
}

/// What came out.
#[derive(Default)]
struct Report {
    faults: Vec<String>,
    checked: Vec<String>,
    not_checked: Vec<String>,
}

impl Verify {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        let manifest = super::read(&self.file)?;
        let publishers = self.trust.publishers()?;
        let mut report = Report::default();
        report.checked.push("the manifest is valid".to_owned());
        self.check_files(&manifest, &mut report)?;
        self.check_origin(&manifest, &publishers, &mut report);
        report
            .not_checked
            .push("what the files do when they run".to_owned());
        match format {
            Format::Text => output::text(&visible(&report.text(&self.file)))?,
            Format::Json => output::json(&report.json(&manifest))?,
        }
        Ok(match report.faults.as_slice() {
            [] => Exit::Done,
            faults => {
                let message = format!("verification failed: {}", faults.join("; "));
                Failure::new(Code::Integrity, message).report()
            }
        })
    }

    fn check_files(&self, manifest: &Manifest, report: &mut Report) -> Result<(), Failure> {
        let folder = self
            .dir
            .clone()
            .unwrap_or_else(|| folder::parent(Path::new(&self.file)));
        let found = Belongings::read(manifest, Path::new(&self.file), &folder, Reach::Whole)?;
        match found.check(manifest) {
            Err(faults) => report.faults.extend(faults),
            Ok(compared) => {
                report.note_files(compared.files);
                report.note_tree(compared.tree, &found.files);
            }
        }
        if manifest.integrity().tree_sha256.is_none() && !found.others.is_empty() {
            let others = found.others.join("`, `");
            report
                .not_checked
                .push(format!("`{others}`: not a plain file"));
        }
        Ok(())
    }

    fn check_origin(&self, manifest: &Manifest, publishers: &Publishers, report: &mut Report) {
        let publisher = manifest.publisher();
        match manifest.origin(self.trust.mode(), publishers) {
            Ok(Origin::Signed(key)) => {
                report
                    .checked
                    .push(format!("`{publisher}` signed it, with key {key}"));
            }
            // Nobody has to sign, but what stands there must hold.
            Ok(Origin::Unproven(error @ (SignatureError::Invalid | SignatureError::Form))) => {
                report.faults.push(error.to_string());
            }
            Ok(Origin::Unproven(error)) => {
                report
                    .not_checked
                    .push(format!("who published it: {error}"));
            }
            Err(error) => report.faults.push(error.to_string()),
        }
    }
}

impl Report {
    fn note_files(&mut self, files: usize) {
        match files {
            0 => self
                .not_checked
                .push("single files: the manifest lists none".to_owned()),
            files => self
                .checked
                .push(format!("{files} listed file(s) are as listed")),
        }
    }

    fn note_tree(&mut self, compared: bool, files: &[(String, Digest)]) {
        let count = files.len();
        if compared {
            self.checked
                .push(format!("the digest over all {count} file(s) is as named"));
            return;
        }
        let found = integrity::tree(files.iter().cloned());
        let found = found.map_or_else(|error| error.to_string(), |tree: Hash| tree.to_string());
        self.not_checked.push(format!(
            "that no file was added: the manifest names no tree_sha256; over {count} file(s) it is \
             {found}"
        ));
    }

    fn text(&self, name: &str) -> String {
        let word = match self.faults.is_empty() {
            true => "VERIFIED ✓",
            false => "FAILED ✗",
        };
        let mut lines = vec![format!("{word}  {name}"), String::new()];
        if !self.faults.is_empty() {
            lines.push("does not hold:".to_owned());
            lines.extend(self.faults.iter().map(|what| format!("  ✗ {what}")));
        }
        lines.push("checked:".to_owned());
        lines.extend(self.checked.iter().map(|what| format!("  ✓ {what}")));
        lines.push("not checked:".to_owned());
        lines.extend(self.not_checked.iter().map(|what| format!("  – {what}")));
        lines.join("\n")
    }

    fn json(&self, manifest: &Manifest) -> Json {
        let texts = |texts: &[String]| Json::Array(texts.iter().cloned().map(Json::from).collect());
        Json::object([
            ("ok", Json::from(self.faults.is_empty())),
            ("digest", Json::from(manifest.digest().to_string())),
            ("faults", texts(&self.faults)),
            ("checked", texts(&self.checked)),
            ("not_checked", texts(&self.not_checked)),
        ])
    }
}
