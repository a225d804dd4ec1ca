//! Prompts of annotators that stand in files and at addresses: read once, when a manifest comes into
//! force, and judged by as they were then.

use std::collections::BTreeMap;
use std::path::Path;

use countersign_canon::{Digest, Hash, Json, Object};
use url::Url;

use crate::manifest::{Pinned, address, fetch};
use crate::policies::ActivationError;
use crate::{AnnotatorKind, Limits, Loader, Manifest, Point};

/// The prompts, by who is asked where.
#[derive(Debug, Default)]
pub(crate) struct Prompts(BTreeMap<(Point, String), String>);

impl Prompts {
    /// Reads the prompts of all points.
    pub(crate) fn read(
        manifest: &Manifest,
        loader: &dyn Loader,
        limits: &Limits,
    ) -> Result<Self, ActivationError> {
        let mut prompts = BTreeMap::new();
        for (point, config) in manifest.points() {
            for (name, annotation) in &config.annotations {
                let kind = manifest.annotators().get(name).map(|known| known.kind);
                if kind != Some(AnnotatorKind::Llm) {
                    continue;
                }
                let wrong = |problem: String| ActivationError::Prompt {
                    annotator: name.clone(),
                    problem,
                };
                let read = read(&annotation.fields, loader, limits).map_err(wrong)?;
                prompts.extend(read.map(|text| ((*point, name.clone()), text)));
            }
        }
        Ok(Self(prompts))
    }

    pub(crate) fn of(&self, point: Point, annotator: &str) -> Option<&str> {
        let mut all = self.0.iter();
        let found = all.find(|((at, name), _)| *at == point && name == annotator);
        found.map(|(_, text)| text.as_str())
    }

    /// Each with a name and what it says.
    pub(crate) fn digests(&self) -> impl Iterator<Item = (String, Digest)> {
        let all = self.0.iter();
        all.map(|((point, name), text)| (format!("{point} {name}"), Digest::of(text.as_bytes())))
    }
}

/// The fields of an annotator with its prompt in the place of where it was read from.
pub(crate) fn with_prompt(fields: &Object, prompt: &str) -> Object {
    let others = fields.iter().filter(|(name, _)| !ELSEWHERE.contains(name));
    let others = others.map(|(name, value)| (name.to_owned(), value.clone()));
    let prompt = ("system_prompt".to_owned(), Json::from(prompt));
    others.chain([prompt]).collect()
}

/// What is wrong with where a prompt is said to be, and the field it is wrong in.
pub(crate) fn objection(fields: &Object) -> Option<(&'static str, String)> {
    let said: Vec<&str> = SOURCES
        .into_iter()
        .filter(|name| fields.contains_key(name))
        .collect();
    if let [one, other, ..] = said.as_slice() {
        let both = format!("must not have both `{one}` and `{other}`");
        return Some(("", both));
    }
    if let Some(file) = fields.get(FILE)
        && file.as_str().is_none_or(str::is_empty)
    {
        return Some((FILE, "must be the path of a file".to_owned()));
    }
    let address = match Pinned::read(fields.get(ADDRESS)?) {
        None => Err("must be an object with `url` and one of `sha256` and `integrity`".to_owned()),
        Some(pinned) => address(&pinned.url, None).map(drop),
    };
    address.err().map(|problem| (ADDRESS, problem))
}

/// Whether any prompt is said.
pub(crate) fn is_said(fields: &Object) -> bool {
    SOURCES.iter().any(|name| fields.contains_key(name))
}

/// The prompt that stands elsewhere, if there is one.
fn read(fields: &Object, loader: &dyn Loader, limits: &Limits) -> Result<Option<String>, String> {
    let max = limits.max_manifest_url_bytes;
    let bytes = match (fields.get(FILE), fields.get(ADDRESS)) {
        (None, None) => return Ok(None),
        (Some(file), _) => {
            let path = Path::new(file.as_str().unwrap_or_default());
            let read = loader.read(path, max);
            read.map_err(|error| error.to_string())?
        }
        (None, Some(address)) => fetched(address, loader, limits)?,
    };
    let text = String::from_utf8(bytes).map_err(|_| "its prompt is not UTF-8")?;
    match text.trim().is_empty() {
        true => Err("its prompt is empty".to_owned()),
        false => Ok(Some(text)),
    }
}

/// SECURITY: whoever writes the prompt writes the verdict; so an address is known by its bytes.
fn fetched(address: &Json, loader: &dyn Loader, limits: &Limits) -> Result<Vec<u8>, String> {
    let pinned = Pinned::read(address).ok_or("its prompt is not pinned")?;
    let url = Url::parse(&pinned.url).map_err(|error| error.to_string())?;
    let body = fetch(&url, loader, limits).map_err(|error| error.to_string())?;
    match pinned.digest == Some(Hash::of(&body)) {
        true => Ok(body),
        false => Err(crate::LoadError::Digest(url.to_string()).to_string()),
    }
}

const FILE: &str = "system_prompt_file";
const ADDRESS: &str = "system_prompt_url";
const ELSEWHERE: [&str; 2] = [FILE, ADDRESS];
/// At most one of them, with what a point lays over the declaration.
const SOURCES: [&str; 4] = ["system_prompt", "prompt", FILE, ADDRESS];
