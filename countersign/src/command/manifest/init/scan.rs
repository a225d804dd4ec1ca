//! Looking through source files.

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use regex_lite::Regex;

use super::Severity;
use super::patterns::{PATTERNS, Pattern};
use crate::errors::{Code, Failure};
use crate::folder::{self, Extent};
use crate::input::unreadable;

/// What was found.
pub(super) struct Scan {
    /// How many files were looked through.
    pub(super) files: u64,
    /// Worst first, then by file and line.
    pub(super) findings: Vec<Finding>,
    /// Files that were not looked through to the end.
    pub(super) cut: Vec<String>,
    /// What was not looked into: folders that tools fill, links.
    pub(super) skipped: Vec<String>,
}

/// One line that deserves a second look.
pub(super) struct Finding {
    pub(super) file: String,
    pub(super) line: u64,
    pub(super) pattern: &'static Pattern,
}

impl Scan {
    pub(super) fn critical(&self) -> u64 {
        self.findings
            .iter()
            .filter(|finding| finding.pattern.severity == Severity::Critical)
            .count() as u64
    }

    /// Whether more than reading may be proposed.
    pub(super) fn is_calm(&self) -> bool {
        // FAIL-CLOSED: what nobody has seen is not harmless.
        self.critical() == 0 && self.cut.is_empty()
    }

    pub(super) fn found(&self, name: &str) -> bool {
        self.findings
            .iter()
            .any(|finding| finding.pattern.name == name)
    }

    pub(super) fn grant(&self) -> &'static str {
        match self.is_calm() {
            true => "reading, and writing after approval",
            false => "reading only",
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = self.pattern.severity.as_str();
        write!(
            f,
            "{severity:8}  {}:{}  {}",
            self.file, self.line, self.pattern.what
        )
    }
}

pub(super) fn scan(folder: &Path) -> Result<Scan, Failure> {
    let patterns = compile()?;
    let walked = folder::walk(folder, Extent::Sources)?;
    let mut scan = Scan {
        files: 0,
        findings: Vec::new(),
        cut: Vec::new(),
        skipped: [walked.skipped, walked.others].concat(),
    };
    for name in walked.files {
        let path = folder.join(&name);
        let shown = path.display().to_string();
        let file = File::open(&path).map_err(|error| unreadable(&shown, &error))?;
        let mut text = Vec::new();
        file.take(MAX_BYTES + 1)
            .read_to_end(&mut text)
            .map_err(|error| unreadable(&shown, &error))?;
        if !is_source(&name, &text) {
            continue;
        }
        scan.files += 1;
        if text.len() as u64 > MAX_BYTES {
            scan.cut.push(name.clone());
        }
        look(
            &name,
            &String::from_utf8_lossy(&text),
            &patterns,
            &mut scan.findings,
        );
    }
    scan.findings
        .sort_by_key(|finding| std::cmp::Reverse(finding.pattern.severity));
    Ok(scan)
}

/// One finding a line: the worst.
fn look(
    file: &str,
    text: &str,
    patterns: &[(Regex, &'static Pattern)],
    findings: &mut Vec<Finding>,
) {
    for (text, line) in text.lines().zip(1..) {
        let found = patterns.iter().find(|(regex, _)| regex.is_match(text));
        findings.extend(found.map(|(_, pattern)| Finding {
            file: file.to_owned(),
            line,
            pattern,
        }));
    }
}

fn compile() -> Result<Vec<(Regex, &'static Pattern)>, Failure> {
    let compile = |pattern: &'static Pattern| {
        let regex = Regex::new(pattern.regex);
        let regex = regex.map_err(|error| {
            Failure::new(
                Code::Input,
                format!("the pattern `{}`: {error}", pattern.name),
            )
        })?;
        Ok((regex, pattern))
    };
    PATTERNS.iter().map(compile).collect()
}

/// By the end of its name, or by its first line.
fn is_source(name: &str, text: &[u8]) -> bool {
    let file = name.rsplit('/').next().unwrap_or(name);
    match file.rsplit_once('.') {
        Some((_, extension)) => EXTENSIONS.contains(&extension.to_ascii_lowercase().as_str()),
        None => text.starts_with(b"#!"),
    }
}

const EXTENSIONS: [&str; 27] = [
    "bash", "bat", "cjs", "cs", "fish", "go", "java", "js", "jsx", "kt", "lua", "mjs", "mts",
    "php", "pl", "ps1", "py", "pyw", "rb", "rs", "sh", "swift", "ts", "tsx", "vbs", "zsh", "ksh",
];
const MAX_BYTES: u64 = 1 << 22;
