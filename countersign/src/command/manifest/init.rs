//! `countersign manifest init`

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use countersign_canon::Json;
use countersign_display::shell;
use countersign_policy::manifest::Manifest;

use crate::books::Books;
use crate::cli::DataFolder;
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::output::{self, Format, visible};

mod patterns;
mod proposal;
mod scan;
mod seen;

use patterns::Severity;
use scan::{Finding, Scan};

#[derive(Args)]
#[command(after_help = "\
Looks through the source files of the folder for risky lines, and proposes a manifest that grants
little: tools that read and, without a critical finding, writing after approval. It is a start, and
no judgement: read the findings, and the code.

With --server it writes the manifest of an MCP server whose tools were seen, each with its digest: what
somebody has said only reads may run, everything else is left to a human.

Never overwrites a manifest.

Examples:
  countersign manifest init skills/weather
  countersign manifest init skills/weather --print
  countersign manifest init --server files")]
pub(crate) struct Init {
    /// The folder [default with --server: this one]
    #[arg(value_name = "DIR", required_unless_present = "server")]
    dir: Option<PathBuf>,
    /// The MCP server whose tools are declared
    #[arg(long, value_name = "NAME")]
    server: Option<String>,
    #[command(flatten)]
    data: DataFolder,
    /// Print the manifest instead of writing it
    #[arg(long)]
    print: bool,
}

impl Init {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        let dir = self.dir.clone().unwrap_or_else(|| PathBuf::from("."));
        let path = dir.join(FILE);
        if !self.print && path.symlink_metadata().is_ok() {
            return Err(exists(&path));
        }
        if let Some(server) = &self.server {
            return self.of_server(server, &path, format);
        }
        let scan = scan::scan(&dir)?;
        let manifest = proposal::manifest(&dir, &scan);
        let text = proposal::text(&manifest, &scan);
        // What is proposed must at least be valid.
        Manifest::read(text.as_bytes())
            .map_err(|error| Failure::new(Code::Manifest, error.to_string()))?;
        if !self.print {
            write(&path, &text)?;
        }
        match format {
            Format::Text if self.print => output::text(text.trim_end())?,
            Format::Text => output::text(&visible(&summary(&path, &scan)))?,
            Format::Json => {
                let written = (!self.print).then_some(path.as_path());
                output::json(&json(written, manifest, &scan))?;
            }
        }
        Ok(Exit::Done)
    }
}

impl Init {
    fn of_server(&self, server: &str, path: &Path, format: Format) -> Result<Exit, Failure> {
        drop(self.data.reader()?);
        let book = Books::new(self.data.folder()?.path()).of(server)?;
        if book.pins().is_empty() {
            let text = format!("no tool of a server `{server}` was seen");
            return Err(Failure::new(Code::NoTool, text));
        }
        let manifest = seen::manifest(&book);
        let text = seen::text(&book, &manifest);
        Manifest::read(text.as_bytes())
            .map_err(|error| Failure::new(Code::Manifest, error.to_string()))?;
        if !self.print {
            write(path, &text)?;
        }
        match format {
            Format::Text if self.print => output::text(text.trim_end())?,
            Format::Text => {
                let file = shell(&path.display().to_string());
                output::text(&visible(&format!(
                    "wrote {file}: {} tools\n\nnext: read it, then\n  countersign manifest validate {file}\n  \
                     countersign connect CLIENT --manifest {file}",
                    book.pins().len()
                )))?;
            }
            Format::Json => {
                let written = (!self.print).then(|| path.display().to_string());
                output::json(&Json::object([
                    ("written", Json::from(written.as_deref())),
                    ("manifest", manifest),
                ]))?;
            }
        }
        Ok(Exit::Done)
    }
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let written = File::create_new(path).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    written.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => exists(path),
        _ => Failure::new(
            Code::Output,
            format!("cannot write `{}`: {error}", path.display()),
        ),
    })
}

fn exists(path: &Path) -> Failure {
    Failure::new(
        Code::Exists,
        format!("`{}` is there already", path.display()),
    )
}

fn summary(path: &Path, scan: &Scan) -> String {
    let mut lines: Vec<String> = scan.findings.iter().map(Finding::to_string).collect();
    let path = shell(&path.display().to_string());
    let not_seen: Vec<&str> = scan
        .skipped
        .iter()
        .chain(&scan.cut)
        .map(String::as_str)
        .collect();
    if !not_seen.is_empty() {
        lines.push(format!("not looked into: {}", not_seen.join(", ")));
    }
    lines.push(format!(
        "{} finding(s) in {} file(s), {} critical; proposed {}",
        scan.findings.len(),
        scan.files,
        scan.critical(),
        scan.grant()
    ));
    lines.push(format!(
        "\nnext:\n  countersign manifest validate {path}\n  countersign policy eval --manifest {path} \
         --tool read_file --args '{{\"path\":\"/workspace/a\"}}'"
    ));
    lines.join("\n")
}

fn json(written: Option<&Path>, manifest: Json, scan: &Scan) -> Json {
    let findings = scan.findings.iter().map(|finding| {
        Json::object([
            ("severity", Json::from(finding.pattern.severity.as_str())),
            ("name", Json::from(finding.pattern.name)),
            ("what", Json::from(finding.pattern.what)),
            ("file", Json::from(finding.file.as_str())),
            ("line", Json::from(finding.line)),
        ])
    });
    let skipped = scan
        .skipped
        .iter()
        .chain(&scan.cut)
        .map(|name| Json::from(name.as_str()));
    Json::object([
        (
            "written",
            written.map_or(Json::Null, |path| Json::from(path.display().to_string())),
        ),
        ("files", Json::from(scan.files)),
        ("critical", Json::from(scan.critical())),
        ("findings", Json::Array(findings.collect())),
        ("not_looked_into", Json::Array(skipped.collect())),
        ("manifest", manifest),
    ])
}

const FILE: &str = "countersign-manifest.yaml";
