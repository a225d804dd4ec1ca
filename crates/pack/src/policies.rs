//! Policies as a pack holds them: the document that the engine keeps for each set that decided
//! something, under the digest that decisions state.

use countersign_canon::{Digest, Json, Limits, Numbers};

/// A document of policies.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyDocument(Json);

/// Why bytes are no policies.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// It is not strict JSON, or has no canonical text.
    #[error(transparent)]
    Json(#[from] countersign_canon::Error),
    /// A member is missing or of another type.
    #[error("the policies have no proper `{0}`")]
    Member(&'static str),
    /// It is written in another way than here.
    #[error("the policies are not in canonical form")]
    NotCanonical,
}

impl PolicyDocument {
    /// Takes a document as it was archived.
    pub fn archived(text: &[u8]) -> Result<Self, PolicyError> {
        Ok(Self(Json::admit(text, &LIMITS)?))
    }

    /// Reads a member of a pack.
    pub fn read(text: &[u8]) -> Result<Self, PolicyError> {
        let document = Self::archived(text)?;
        match document.to_text()? == text {
            true => Ok(document),
            false => Err(PolicyError::NotCanonical),
        }
    }

    /// The member of a pack: RFC 8785 and a line end.
    pub fn to_text(&self) -> Result<Vec<u8>, PolicyError> {
        let mut text = self.0.to_jcs()?;
        text.push(b'\n');
        Ok(text)
    }

    /// The digest that decisions by these policies state, from the document alone: the rules with the
    /// manifest, then each policy beside them, then whoever else has a say, then whether they only
    /// observe.
    pub fn digest(&self) -> Result<Digest, PolicyError> {
        let manifest = match self.0.get("manifest") {
            None => return Err(PolicyError::Member("manifest")),
            Some(Json::Null) => String::new(),
            Some(manifest) => Digest::of(&manifest.to_jcs()?).to_string(),
        };
        let entry = text(&self.0, "entry")?;
        let mut digest = framed(entry, &manifest, list(&self.0, "rules")?)?;
        for policy in list(&self.0, "policies")? {
            let rules = framed(text(policy, "entry")?, NO_DATA, list(policy, "files")?)?;
            digest = Digest::of_parts(&[
                digest.as_bytes(),
                text(policy, "name")?.as_bytes(),
                b"\0",
                text(policy, "mode")?.as_bytes(),
                rules.as_bytes(),
            ]);
        }
        for beside in list(&self.0, "beside")? {
            let own = text(beside, "digest")?.parse::<Digest>();
            let own = own.map_err(|_| PolicyError::Member("digest"))?;
            let name = text(beside, "name")?.as_bytes();
            let parts = [digest.as_bytes(), name, b"\0beside", own.as_bytes()];
            digest = Digest::of_parts(&parts);
        }
        match self.0.get("observing").and_then(Json::as_bool) {
            None => Err(PolicyError::Member("observing")),
            Some(false) => Ok(digest),
            Some(true) => Ok(Digest::of_parts(&[digest.as_bytes(), b"\0observe"])),
        }
    }

    /// The name and the version of the manifest, if it has both.
    pub fn manifest(&self) -> Option<(&str, &str)> {
        let manifest = self.0.get("manifest")?;
        let member = |name| manifest.get(name).and_then(Json::as_str);
        Some((member("name")?, member("version")?))
    }

    /// Who else has a say without being in the document, by name.
    pub fn beside(&self) -> impl Iterator<Item = &str> {
        let beside = self.0.get("beside").and_then(Json::as_array);
        let beside = beside.unwrap_or_default().iter();
        beside.filter_map(|one| one.get("name").and_then(Json::as_str))
    }
}

/// Over the rule that answers, what it looks things up in, and its files; each with its length.
fn framed(entry: &str, data: &str, files: &[Json]) -> Result<Digest, PolicyError> {
    let mut parts = vec![entry, data];
    for file in files {
        parts.extend([text(file, "name")?, text(file, "text")?]);
    }
    let lengths: Vec<[u8; 8]> = parts
        .iter()
        .map(|part| (part.len() as u64).to_be_bytes())
        .collect();
    let framed: Vec<&[u8]> = lengths
        .iter()
        .zip(&parts)
        .flat_map(|(length, part)| [length.as_slice(), part.as_bytes()])
        .collect();
    Ok(Digest::of_parts(&framed))
}

fn text<'a>(json: &'a Json, member: &'static str) -> Result<&'a str, PolicyError> {
    let found = json.get(member).and_then(Json::as_str);
    found.ok_or(PolicyError::Member(member))
}

fn list<'a>(json: &'a Json, member: &'static str) -> Result<&'a [Json], PolicyError> {
    let found = json.get(member).and_then(Json::as_array);
    found.ok_or(PolicyError::Member(member))
}

/// Policies beside the rules have no data.
const NO_DATA: &str = "{}";
const LIMITS: Limits = Limits {
    max_bytes: 64 << 20,
    max_depth: 64,
    numbers: Numbers::Double,
};
