//! Policies in Rego, by the guarded evaluator of the capability rules.

use std::path::Path;

use countersign_canon::{Digest, Hash, Json, Limits as TextLimits, Object};
use countersign_policy::manifest::yaml;
use countersign_policy::rego::{Bundle, Source, from_value, to_value};
use url::Url;

use super::{ActivationError, DispatchError, bundle, query};
use crate::library;
use crate::manifest::fetch;
use crate::{Binding, Input, Limits, Loader, RegoPolicy};

/// A bundle with the rule that answers.
pub(super) struct Rego {
    bundle: Bundle,
}

impl Rego {
    pub(super) fn compile(
        id: &str,
        policy: &RegoPolicy,
        binding: &Binding,
        loader: &dyn Loader,
        limits: &Limits,
    ) -> Result<Self, ActivationError> {
        let failed = |problem: String| ActivationError::Policy {
            id: id.to_owned(),
            problem,
        };
        let mut files = Files::default();
        if let Some(bundle) = &policy.bundle {
            files.add_folder(id, Path::new(bundle), loader)?;
        }
        if let Some(pinned) = &policy.bundle_url {
            let url = Url::parse(&pinned.url).map_err(|error| failed(error.to_string()))?;
            let digest = pinned.digest.ok_or_else(|| {
                failed("a bundle at an address needs its `sha256` or `integrity`".to_owned())
            })?;
            let load = |error| ActivationError::Load {
                id: id.to_owned(),
                error,
            };
            let body = fetch(&url, loader, limits).map_err(load)?;
            if Hash::of(&body) != digest {
                return Err(load(crate::LoadError::Digest(url.to_string())));
            }
            match bundle::is_archive(&body) {
                false => files.add_text(url.as_str(), &body).map_err(&failed)?,
                true => files.add_archive(&url, &body).map_err(&failed)?,
            }
        }
        for path in policy.data.iter().chain(&bound_data(binding)) {
            files.add_folder(id, Path::new(path), loader)?;
        }
        if files.sources.is_empty() {
            return Err(failed("there is no file of policy".to_owned()));
        }
        let library = library::modules(policy.fields.get("library")).map_err(&failed)?;
        files.sources.extend(library);
        let entry = query(binding, policy.query.as_deref());
        if !is_rule(entry) {
            return Err(failed(format!(
                "`{entry}` does not name a rule, as in `data.example.verdict`"
            )));
        }
        let data = to_value(&Json::Object(files.data));
        let bundle = Bundle::compile(&files.sources, data, entry)
            .map_err(|error| failed(error.to_string()))?;
        Ok(Self { bundle })
    }

    pub(super) fn digest(&self) -> Digest {
        self.bundle.digest()
    }

    pub(super) fn ask(&self, input: &Input<'_>) -> Result<Json, DispatchError> {
        let answer = self
            .bundle
            .evaluate(&input.to_value())
            .map_err(|error| DispatchError::Failed(error.to_string()))?;
        from_value(&answer).ok_or_else(|| {
            DispatchError::NoVerdict("it answers with what JSON cannot say".to_owned())
        })
    }
}

/// Data files that a point adds.
fn bound_data(binding: &Binding) -> Vec<String> {
    let text = |value: &Json| value.as_str().map(str::to_owned);
    ["data", "data_paths"]
        .into_iter()
        .filter_map(|name| binding.fields.get(name))
        .flat_map(|value| match value {
            Json::Array(paths) => paths.iter().filter_map(text).collect(),
            other => text(other).into_iter().collect::<Vec<_>>(),
        })
        .collect()
}

/// `data.a.b`: plain names, at least two after `data`.
fn is_rule(entry: &str) -> bool {
    let mut names = entry.split('.');
    let plain = |name: &str| {
        name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    names.next() == Some("data") && names.clone().count() >= 2 && names.all(plain)
}

#[derive(Default)]
struct Files {
    sources: Vec<Source>,
    data: Object,
}

impl Files {
    /// Every `.rego` file but tests, and every `data.json` or `data.yaml` at the place of its folder.
    fn add_folder(
        &mut self,
        id: &str,
        path: &Path,
        loader: &dyn Loader,
    ) -> Result<(), ActivationError> {
        let load = |error| ActivationError::Load {
            id: id.to_owned(),
            error,
        };
        let failed = |problem: String| ActivationError::Policy {
            id: id.to_owned(),
            problem,
        };
        let mut files = loader.files(path).map_err(load)?;
        files.sort();
        if files.len() > MOST_FILES {
            return Err(failed(format!("more than {MOST_FILES} files")));
        }
        for file in files {
            let name = file.display().to_string();
            if name.ends_with("_test.rego") {
                continue;
            }
            let is_data = is_data(&file, path);
            if !name.ends_with(".rego") && !is_data {
                continue;
            }
            let text = loader.read(&file, MOST_BYTES).map_err(load)?;
            match is_data {
                false => self.add_text(&name, &text).map_err(&failed)?,
                true => {
                    let below = file
                        .parent()
                        .and_then(|folder| folder.strip_prefix(path).ok());
                    let below = below.unwrap_or(Path::new(""));
                    self.add_data(&name, &text, below).map_err(&failed)?;
                }
            }
        }
        Ok(())
    }

    /// The same files of a bundle that was fetched, each named behind its address.
    fn add_archive(&mut self, url: &Url, body: &[u8]) -> Result<(), String> {
        for (file, text) in bundle::files(body)? {
            let name = format!("{url}!{}", file.display());
            if is_data(&file, Path::new("")) {
                let below = file.parent().unwrap_or(Path::new(""));
                self.add_data(&name, &text, below)?;
            } else if name.ends_with(".rego") && !name.ends_with("_test.rego") {
                self.add_text(&name, &text)?;
            }
        }
        Ok(())
    }

    fn add_text(&mut self, name: &str, text: &[u8]) -> Result<(), String> {
        let text =
            String::from_utf8(text.to_vec()).map_err(|_| format!("`{name}` is not UTF-8"))?;
        self.sources.push(Source {
            name: name.to_owned(),
            text,
        });
        Ok(())
    }

    fn add_data(&mut self, name: &str, text: &[u8], below: &Path) -> Result<(), String> {
        let value = match name.ends_with(".json") {
            true => Json::admit(text, &DATA).map_err(|error| error.to_string()),
            false => yaml::admit(text, &DATA).map_err(|error| error.to_string()),
        };
        let mut value = value.map_err(|error| format!("`{name}`: {error}"))?;
        for folder in below.iter().rev() {
            value = Json::object([(folder.to_string_lossy(), value)]);
        }
        let Json::Object(members) = value else {
            return Err(format!("`{name}`: data must be an object"));
        };
        join(&mut self.data, members)
            .map_err(|place| format!("`{name}`: `data{place}` is already defined, and differently"))
    }
}

fn is_data(file: &Path, given: &Path) -> bool {
    let name = file.file_name().and_then(|name| name.to_str());
    let named = matches!(name, Some("data.json" | "data.yaml" | "data.yml"));
    // A file that is named itself may have any name.
    let asked = file == given
        && file
            .extension()
            .is_some_and(|end| end == "json" || end == "yaml" || end == "yml");
    named || asked
}

fn join(into: &mut Object, members: Object) -> Result<(), String> {
    for (name, value) in members {
        match (into.get_mut(&name), value) {
            (None, value) => drop(into.insert(name, value)),
            (Some(Json::Object(before)), Json::Object(members)) => {
                join(before, members).map_err(|place| format!(".{name}{place}"))?;
            }
            (Some(before), value) if *before == value => {}
            _ => return Err(format!(".{name}")),
        }
    }
    Ok(())
}

const DATA: TextLimits = TextLimits {
    max_bytes: MOST_BYTES,
    max_depth: 64,
    ..TextLimits::plan()
};
const MOST_BYTES: usize = 1 << 20;
const MOST_FILES: usize = 256;
