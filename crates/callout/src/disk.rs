//! Manifests and policies from files, and from addresses.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use countersign_acs::{Fetched, Limits, LoadError, Loader};
use countersign_canon::{BoundedReadError, read_bounded};
use ureq::Agent;
use ureq::config::Config;
use ureq::tls::TlsConfig;
use ureq::unversioned::resolver::Resolver;
use ureq::unversioned::transport::DefaultConnector;
use url::Url;

use crate::guarded::Guarded;

/// The files of this machine, and `https` addresses of others.
#[derive(Debug, Clone, Copy, Default)]
pub struct Disk;

impl Loader for Disk {
    fn real(&self, path: &Path) -> Result<PathBuf, LoadError> {
        fs::canonicalize(path).map_err(|error| unreadable(path, &error))
    }

    fn read(&self, path: &Path, max_bytes: usize) -> Result<Vec<u8>, LoadError> {
        let file = File::open(path).map_err(|error| unreadable(path, &error))?;
        read_bounded(file, max_bytes).map_err(|error| match error {
            BoundedReadError::Io(error) => unreadable(path, &error),
            _ => LoadError::TooLarge {
                name: path.display().to_string(),
                limit: max_bytes,
            },
        })
    }

    fn files(&self, path: &Path) -> Result<Vec<PathBuf>, LoadError> {
        let mut files = Vec::new();
        let mut open = vec![path.to_owned()];
        while let Some(path) = open.pop() {
            let kind = fs::metadata(&path).map_err(|error| unreadable(&path, &error))?;
            if !kind.is_dir() {
                files.push(path);
                continue;
            }
            for entry in fs::read_dir(&path).map_err(|error| unreadable(&path, &error))? {
                let entry = entry.map_err(|error| unreadable(&path, &error))?;
                // A link to a folder could lead in a circle.
                let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
                if !(is_link && entry.path().is_dir()) {
                    open.push(entry.path());
                }
            }
            if files.len() + open.len() > MOST_FILES {
                return Err(LoadError::TooLarge {
                    name: path.display().to_string(),
                    limit: MOST_FILES,
                });
            }
        }
        files.sort();
        Ok(files)
    }

    fn fetch(&self, url: &Url, limits: &Limits) -> Result<Fetched, LoadError> {
        let config = config(limits.manifest_url_timeout, TlsConfig::default());
        get(url, limits, config, Guarded::default())
    }
}

/// One request. Whom we trust and how names are looked up is the caller's.
fn get(
    url: &Url,
    limits: &Limits,
    config: Config,
    names: impl Resolver,
) -> Result<Fetched, LoadError> {
    let failed = |problem: String| LoadError::Unreadable {
        name: url.to_string(),
        problem,
    };
    let agent = Agent::with_parts(config, DefaultConnector::default(), names);
    let response = agent
        .get(url.as_str())
        .call()
        .map_err(|error| failed(error.to_string()))?;
    let status = response.status();
    if status.is_redirection() {
        let to = response.headers().get("location");
        let to = to.and_then(|to| to.to_str().ok());
        return match to {
            Some(to) => Ok(Fetched::Redirect(to.to_owned())),
            None => Err(failed("it sends us on without saying where".to_owned())),
        };
    }
    if !status.is_success() {
        return Err(failed(format!("it answers {status}")));
    }
    let limit = limits.max_manifest_url_bytes;
    let reader = response.into_body().into_reader();
    match read_bounded(reader, limit) {
        Ok(body) => Ok(Fetched::Body(body)),
        Err(BoundedReadError::Io(error)) => Err(failed(error.to_string())),
        Err(_) => Err(LoadError::TooLarge {
            name: url.to_string(),
            limit,
        }),
    }
}

fn config(timeout: Duration, tls: TlsConfig) -> Config {
    Agent::config_builder()
        .tls_config(tls)
        .https_only(true)
        .timeout_global(Some(timeout))
        .http_status_as_error(false)
        // Redirects are looked at one by one.
        .max_redirects(0)
        .max_redirects_will_error(false)
        .proxy(None)
        .build()
}

fn unreadable(path: &Path, error: &std::io::Error) -> LoadError {
    LoadError::Unreadable {
        name: path.display().to_string(),
        problem: error.to_string(),
    }
}

const MOST_FILES: usize = 4096;

#[cfg(test)]
mod tests;
