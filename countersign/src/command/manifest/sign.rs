//! `countersign manifest sign`

use std::path::Path;

use clap::Args;
use countersign_canon::Json;
use countersign_policy::manifest::Manifest;
use countersign_policy::manifest::signature::{self, KeyId, SigningKey, publisher_line};

use super::signing_key;
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::folder;
use crate::output::{self, Format, visible};

#[derive(Args)]
#[command(after_help = "\
The signature (Ed25519) covers the canonical text of the manifest and stands in it, in
/integrity/signature. Comments are not part of a manifest and do not survive. The line `publisher`
belongs into the file that `countersign manifest verify --publishers` reads.

Examples:
  countersign manifest sign --new-key acme.key
  countersign manifest sign manifest.yaml --key acme.key --out signed.yaml")]
pub(crate) struct Sign {
    /// The manifest
    #[arg(value_name = "FILE", required_unless_present = "new_key")]
    file: Option<String>,
    /// The file of the key
    #[arg(long, value_name = "KEYFILE", required_unless_present = "new_key")]
    key: Option<String>,
    /// Make a key, in a file that is not there yet
    #[arg(long, value_name = "KEYFILE", conflicts_with = "key")]
    new_key: Option<String>,
    /// Where to write the signed manifest, a new file [default: standard output]
    #[arg(long, value_name = "FILE", requires = "file")]
    out: Option<String>,
}

impl Sign {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        // Before a key is made for it.
        self.refuse_used()?;
        let manifest = self.file.as_deref().map(super::read).transpose()?;
        let key = self.signing_key()?;
        let signed = match &manifest {
            Some(manifest) => Some(signature::sign(manifest.source(), &key)?),
            None => None,
        };
        if let (Some(signed), Some(out)) = (&signed, &self.out) {
            self.write(signed, out)?;
        }
        match format {
            Format::Text => self.print(&summary(&key, manifest.as_ref()), signed.as_ref())?,
            Format::Json => {
                output::json(&json(&key, manifest.as_ref(), signed, self.out.as_deref()))?;
            }
        }
        Ok(Exit::Done)
    }

    fn signing_key(&self) -> Result<SigningKey, Failure> {
        match (&self.key, &self.new_key) {
            (Some(path), _) => signing_key::read(path),
            (None, Some(path)) => signing_key::create(path),
            (None, None) => Err(Failure::new(Code::SigningKey, "no key was given")),
        }
    }

    fn refuse_used(&self) -> Result<(), Failure> {
        match self.out.as_deref().filter(|out| Path::new(out).exists()) {
            None => Ok(()),
            Some(out) => Err(Failure::new(
                Code::Exists,
                format!("`{out}` is there already"),
            )),
        }
    }

    fn write(&self, signed: &Json, out: &str) -> Result<(), Failure> {
        let text = format!("{}\n", self.form(signed));
        folder::create(Path::new(out), text.as_bytes())
    }

    /// YAML stays YAML, JSON stays JSON.
    fn form(&self, signed: &Json) -> String {
        let is_json = self
            .file
            .as_deref()
            .is_some_and(|file| file.ends_with(".json"));
        match is_json {
            true => output::pretty(signed),
            false => super::yaml(signed),
        }
    }

    fn print(&self, summary: &str, signed: Option<&Json>) -> Result<(), Failure> {
        match (signed, &self.out) {
            (Some(signed), None) => {
                output::stderr(&visible(summary));
                output::text(&visible(&self.form(signed)))?;
            }
            (Some(_), Some(out)) => {
                output::text(&visible(&format!("signed     {out}\n{summary}")))?;
            }
            (None, _) => output::text(&visible(summary))?,
        }
        Ok(())
    }
}

fn summary(key: &SigningKey, manifest: Option<&Manifest>) -> String {
    format!("key        {}\npublisher  {}", id(key), line(key, manifest))
}

fn json(
    key: &SigningKey,
    manifest: Option<&Manifest>,
    signed: Option<Json>,
    out: Option<&str>,
) -> Json {
    Json::object([
        ("key_id", Json::from(id(key).to_string())),
        ("publisher", Json::from(line(key, manifest))),
        ("manifest", signed.unwrap_or(Json::Null)),
        ("out", out.map_or(Json::Null, Json::from)),
    ])
}

fn id(key: &SigningKey) -> KeyId {
    KeyId::of(&key.verifying_key())
}

fn line(key: &SigningKey, manifest: Option<&Manifest>) -> String {
    let publisher = manifest.map_or("PUBLISHER", Manifest::publisher);
    publisher_line(publisher, &key.verifying_key())
}
