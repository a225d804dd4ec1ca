//! `countersign conformance run`

use std::path::PathBuf;

use clap::Args;
use countersign_conformance::{BUILT_IN, Case, Outcome, Pack, PackReport, Report, run};

use super::house::House;
use super::live::Live;
use super::pack;
use super::telling::Telling;
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::output::{self, Format};
use crate::{clock, folder, input};

#[derive(Args)]
#[command(after_help = "\
Without --target, each pack gets a fresh daemon of this program in a temporary folder, and everything
can be tried. With --target the cases are sent to that server, ours or another; what cannot be tried from
outside (starting it again, signing as a person, looking into its files) is skipped with the reason.

Packs are YAML: ours, which script several steps, or files of single questions to POST /v1/policy/decide.

Examples:
  countersign conformance run
  countersign conformance run --pack approvals --pack my-pack.yaml
  countersign conformance run --target http://127.0.0.1:8080 --pack questions --junit report.xml

Exit codes: 0 everything held that was tried; 5 something did not, or nothing could be tried; 3 a pack
cannot be used; 1 the target does not take the token; 69 nobody answers; 130 it was interrupted.")]
pub(crate) struct Run {
    /// A pack: one that comes with this program, by its name, or a file [default: all that come with it]
    #[arg(long, value_name = "PACK")]
    pack: Vec<String>,
    /// Only this case
    #[arg(long, value_name = "ID")]
    case: Vec<String>,
    /// The server to ask, by its address
    #[arg(long, value_name = "URL")]
    target: Option<String>,
    /// The operator's token at the target
    #[arg(
        long,
        env = "COUNTERSIGN_TOKEN",
        hide_env_values = true,
        requires = "target",
        conflicts_with = "token_file"
    )]
    token: Option<String>,
    /// A file with the operator's token at the target
    #[arg(long, value_name = "FILE", requires = "target")]
    token_file: Option<String>,
    /// The MCP door of the target
    #[arg(long, value_name = "URL", requires = "target")]
    mcp: Option<String>,
    /// Somebody who may decide at the target
    #[arg(long, value_name = "NAME", requires_all = ["target", "approver_key"])]
    approver: Option<String>,
    /// The key of --approver
    #[arg(long, value_name = "FILE", requires = "approver")]
    approver_key: Option<PathBuf>,
    /// A command that starts the target again, and returns when it answers
    #[arg(long, value_name = "COMMAND", requires = "target")]
    restart_command: Option<String>,
    /// The manifests that a pack wants in force are in force at the target
    #[arg(long, requires = "target")]
    agent_control: bool,
    /// Cases that are known to fail, one a line: `ID: the reason`
    #[arg(long, value_name = "FILE")]
    known: Option<String>,
    /// Write the report as JSON to this file, too; replaces the file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Write the report as JUnit's XML to this file; replaces the file
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write a badge to this file, which is replaced: an image if it ends in .svg, else what shields.io reads
    #[arg(long, value_name = "FILE")]
    badge: Option<PathBuf>,
    /// A program that stands between us and our own server, to see what it breaks
    #[arg(long, value_name = "COMMAND", hide = true, conflicts_with = "target")]
    through: Option<String>,
}

impl Run {
    pub(super) fn run(self, format: Format) -> Result<Exit, Failure> {
        let packs = self.packs()?;
        let wanted = packs.iter().flat_map(|pack| &pack.cases);
        let wanted = wanted.filter(|case| self.wants(&case.id)).count();
        let telling = Telling::new(format, wanted)?;
        let tested = match &self.target {
            None => self.ours(&packs, &telling),
            Some(target) => self.theirs(target, &packs, &telling),
        };
        if telling.is_ended() {
            output::stderr("countersign: interrupted");
            return Ok(Exit::Interrupted);
        }
        drop(telling);
        let report = Report {
            target: self.target.clone().unwrap_or_else(|| OURS.to_owned()),
            run_at: clock::text(clock::now_unix_ms()?),
            packs: tested?,
        };
        self.write(&report)?;
        match format {
            Format::Text => output::text(&sum(&report))?,
            Format::Json => output::json(&report.to_json())?,
        }
        Ok(match report.is_compliant() {
            true => Exit::Done,
            false => Exit::Unverified,
        })
    }

    fn packs(&self) -> Result<Vec<Pack>, Failure> {
        let names: Vec<&str> = match self.pack.is_empty() {
            true => BUILT_IN.iter().map(|(name, _)| *name).collect(),
            false => self.pack.iter().map(String::as_str).collect(),
        };
        let packs = names.into_iter().map(pack);
        let mut packs = packs.collect::<Result<Vec<_>, _>>()?;
        for (id, reason) in self.known()? {
            let found = packs
                .iter_mut()
                .any(|pack| pack.expect_failure(&id, &reason));
            if !found && self.pack.is_empty() {
                let text = format!("`{id}` is known to fail, and no pack has it");
                return Err(Failure::new(Code::Pack, text));
            }
        }
        Ok(packs)
    }

    fn known(&self) -> Result<Vec<(String, String)>, Failure> {
        let Some(path) = &self.known else {
            return Ok(Vec::new());
        };
        let text = input::file(path, MAX_KNOWN)?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let lines = text.lines().map(str::trim);
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        let one = |line: &str| {
            let (id, reason) = line.split_once(':')?;
            let reason = reason.trim();
            (!reason.is_empty()).then(|| (id.trim().to_owned(), reason.to_owned()))
        };
        lines
            .map(|line| {
                let text = format!("`{path}`: `{}` gives no reason", line.escape_debug());
                one(line).ok_or_else(|| Failure::new(Code::Pack, text))
            })
            .collect()
    }

    /// A fresh server for each pack.
    fn ours(&self, packs: &[Pack], telling: &Telling) -> Result<Vec<PackReport>, Failure> {
        let mut reports = Vec::new();
        for pack in packs {
            let house = House::open(pack.mcp.as_ref(), self.through.as_deref())?;
            let mut live = Live::own(house)?;
            reports.push(self.one(pack, &mut live, telling)?);
            if telling.is_ended() {
                break;
            }
        }
        Ok(reports)
    }

    fn theirs(
        &self,
        target: &str,
        packs: &[Pack],
        telling: &Telling,
    ) -> Result<Vec<PackReport>, Failure> {
        let token = match &self.token_file {
            None => self.token.clone(),
            Some(file) => {
                let text = input::file(file, MAX_TOKEN)?;
                Some(String::from_utf8_lossy(&text).trim().to_owned())
            }
        };
        let mut live = Live::theirs(target, token);
        if let Some(mcp) = &self.mcp {
            live = live.with_mcp(mcp);
        }
        if let Some(command) = &self.restart_command {
            live = live.with_restart(command.clone());
        }
        if self.agent_control {
            live = live.governed();
        }
        if let (Some(name), Some(key)) = (&self.approver, &self.approver_key) {
            live = live.with_person(name, key)?;
        }
        live.knock(target)?;
        let packs = packs.iter();
        packs
            .take_while(|_| !telling.is_ended())
            .map(|pack| self.one(pack, &mut live, telling))
            .collect()
    }

    /// Runs a pack, and tells of it unless somebody has ended it.
    fn one(&self, pack: &Pack, live: &mut Live, telling: &Telling) -> Result<PackReport, Failure> {
        let wants = |case: &Case| self.wants(&case.id) && telling.begins(case);
        let report = run(pack, live, &wants);
        if !telling.is_ended() {
            telling.tell(&report)?;
        }
        Ok(report)
    }

    fn wants(&self, id: &str) -> bool {
        self.case.is_empty() || self.case.iter().any(|wanted| wanted == id)
    }

    fn write(&self, report: &Report) -> Result<(), Failure> {
        if let Some(file) = &self.report {
            folder::replace(file, &report.to_json().to_sorted())?;
        }
        if let Some(file) = &self.junit {
            folder::replace(file, report.to_junit().as_bytes())?;
        }
        if let Some(file) = &self.badge {
            let is_image = file.extension().is_some_and(|extension| extension == "svg");
            let badge = match is_image {
                true => report.to_svg().into_bytes(),
                false => report.shield().to_sorted(),
            };
            folder::replace(file, &badge)?;
        }
        Ok(())
    }
}

/// What all packs came to.
fn sum(report: &Report) -> String {
    let total = report.total();
    let passed = report.count(Outcome::Passed);
    let failed = report.count(Outcome::Failed);
    let known = report.count(Outcome::ExpectedFailure);
    let skipped = report.count(Outcome::Skipped);
    let mut lines = vec![format!(
        "\n{total} cases: {passed} passed, {failed} failed, {known} known to fail, {skipped} skipped"
    )];
    let violated: Vec<&str> = report.violated().into_iter().collect();
    if !violated.is_empty() {
        lines.push(format!("violated: {}", violated.join(", ")));
    }
    lines.join("\n")
}

const OURS: &str = "a fresh daemon of this program";
const MAX_TOKEN: usize = 4096;
const MAX_KNOWN: usize = 1 << 20;
