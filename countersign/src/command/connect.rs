//! `countersign connect`

use std::io::{self, BufRead as _, IsTerminal as _};
use std::path::{Path, PathBuf};

use clap::Args;
use countersign_display::shell;

use super::manifest;
use crate::cli::DataFolder;
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::output::{self, Format};

mod client;
mod diff;
mod entry;
mod file;
mod json;
mod plan;
mod report;
mod toml;

use client::{Client, Form, User};
use entry::Unreadable;
use file::{Keep, Target, Undo};
use plan::{Plan, Wrapper};

/// What is done to a file.
type Step = fn(&str, Form, &Wrapper, &[String]) -> Result<Plan, Unreadable>;

#[derive(Args)]
#[command(after_help = "\
Rewrites the client's list of MCP servers so that each one is started by `countersign mcp`. Only
commands and arguments change; everything else in the file stays as it is, byte by byte. The
difference is shown first, without the values of `env` and headers. What the file was is kept beside
it; --undo brings it back. If somebody has changed the file since, --undo only takes back out what
was put in; with --server, it takes that server back out.

Servers that are reached by a URL stay as they are, and are named: they are not guarded. The
exit code is 1 if any other server, or one that --server names, is not guarded as asked for.

Examples:
  countersign connect claude-code --dry-run
  countersign connect cursor --project . --manifest manifest.yaml
  countersign connect codex --undo")]
pub(crate) struct Connect {
    /// The client
    #[arg(value_enum)]
    client: Client,
    /// The project whose file is changed, beside the user's own
    #[arg(long, value_name = "DIR", default_value = ".")]
    project: PathBuf,
    /// The file to change, instead of the places where the client looks
    #[arg(long, value_name = "FILE", conflicts_with = "project")]
    config: Option<PathBuf>,
    /// Only this server; may be given several times
    #[arg(long, value_name = "NAME")]
    server: Vec<String>,
    /// What the agent may use
    #[arg(long, value_name = "FILE")]
    manifest: Option<String>,
    #[command(flatten)]
    data: DataFolder,
    /// Show what would change and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Bring back what was there before; with --server, take Countersign out of that server alone
    #[arg(long, conflicts_with = "manifest")]
    undo: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

impl Connect {
    fn now(&self) -> report::Now {
        match (self.undo, &self.manifest) {
            (true, _) => report::Now::Undone,
            (false, None) => report::Now::Held,
            (false, Some(_)) => report::Now::Declared,
        }
    }

    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        let targets = self.targets()?;
        if self.undo && self.server.is_empty() {
            return self.bring_back(targets, format);
        }
        let wrapper = self.wrapper()?;
        let (step, keep): (Step, Keep) = match self.undo {
            true => (plan::release, Keep::Nothing),
            false => (plan::plan, Keep::Backup),
        };
        let mut planned = Vec::new();
        for target in targets {
            let plan = step(&target.text, self.client.form(), &wrapper, &self.server)
                .map_err(|error| refused(&target.path, &error))?;
            planned.push((target, plan));
        }
        self.check_names(&planned)?;
        let differences = planned
            .iter()
            .map(|(target, plan)| self.diff(target, &plan.text));
        let differences = differences.collect::<Result<Vec<_>, _>>()?.join("\n");
        let changes = planned.iter().any(|(_, plan)| !plan.changes.is_empty());
        self.show(&differences, format)?;
        if format == Format::Text {
            output::text(&report::servers(&planned, self.undo))?;
        }
        let write = changes && !self.dry_run;
        if write {
            self.confirm()?;
            let mut wrote = Vec::new();
            for (target, plan) in planned.iter().filter(|(_, plan)| !plan.changes.is_empty()) {
                let original = self.original(target, &wrapper);
                let written = original.and_then(|it| target.write(&plan.text, &it, keep));
                let written = written.and_then(|()| match self.undo {
                    true => self.retire_if_free(target, &plan.text),
                    false => Ok(()),
                });
                written.map_err(|failure| after(&wrote, failure))?;
                wrote.push(&target.path);
            }
        }
        // The work is done: whoever does not read on has not changed that.
        let told = match format {
            Format::Text => output::text(&report::ending(
                &planned,
                write,
                self.now(),
                &self.next_command(),
                &self.data.option(),
            )),
            Format::Json => output::json(&report::json(self.client, &planned, write)),
        };
        told?;
        Ok(match self.is_missed(&planned) {
            true => Exit::Failed,
            false => Exit::Done,
        })
    }

    /// Whether a server is not guarded as it was asked for. One that is reached by its URL never is; it counts if
    /// it was named.
    fn is_missed(&self, planned: &[(Target, Plan)]) -> bool {
        let mut left = planned.iter().flat_map(|(_, plan)| &plan.left);
        !self.undo
            && left.any(|left| match self.server.is_empty() {
                true => left.reason.is_missed(),
                false => left.reason.objection().is_some(),
            })
    }

    /// What the file would be without us. Clients write their files too, and then it is no longer what we wrote:
    /// what we put in front of servers before is no part of what was there before us.
    fn original(&self, target: &Target, wrapper: &Wrapper) -> Result<String, Failure> {
        let plan = |text: &str| plan::plan(text, self.client.form(), wrapper, &[]);
        let older = target.older().and_then(|older| plan(&older).ok());
        let before = older.map(|older| older.changes).unwrap_or_default();
        let mut ours = plan(&target.text)
            .map(Plan::into_guarded)
            .map_err(|error| refused(&target.path, &error))?;
        // What somebody has put us in front of by hand stays so.
        ours.retain(|server| before.iter().any(|change| change.server == *server));
        if ours.is_empty() {
            return Ok(target.text.clone());
        }
        plan::release(&target.text, self.client.form(), wrapper, &ours)
            .map(|plan| plan.text)
            .map_err(|error| refused(&target.path, &error))
    }

    fn bring_back(&self, targets: Vec<Target>, format: Format) -> Result<Exit, Failure> {
        let mut freed = Vec::new();
        let mut differences = Vec::new();
        for target in targets {
            if let Some(way) = self.way_out(&target)? {
                differences.push(self.diff(&target, way.text())?);
                freed.push((target, way));
            }
        }
        self.show(&differences.join("\n"), format)?;
        let write = !freed.is_empty() && !self.dry_run;
        let mut wrote = Vec::new();
        if write {
            self.confirm()?;
            for (target, way) in &freed {
                let done = way.take(target);
                let done = done.map_err(|failure| {
                    let wrote: Vec<_> = wrote.iter().map(|(path, _)| *path).collect();
                    after(&wrote, failure)
                })?;
                wrote.push((&target.path, done));
            }
        }
        let files: Vec<&Path> = freed.iter().map(|(target, _)| &*target.path).collect();
        let told = match format {
            Format::Text if !write => output::text(&report::not_restored(&files)),
            Format::Text => output::text(&report::restored(&wrote)),
            Format::Json => output::json(&report::restored_json(self.client, &files, write)),
        };
        told?;
        Ok(Exit::Done)
    }

    /// How a file gets rid of us; `None` if we are not in it.
    fn way_out(&self, target: &Target) -> Result<Option<WayOut>, Failure> {
        Ok(match target.undo()? {
            Undo::Nothing => None,
            Undo::Done => {
                if !self.dry_run {
                    target.forget()?;
                }
                None
            }
            Undo::Restore(original) => Some(WayOut::Back(original)),
            Undo::Changed(original) => {
                let plan = self.without_us(target, &original, &target.text)?;
                if plan.changes.is_empty() {
                    if !self.dry_run {
                        target.retire()?;
                    }
                    return Ok(None);
                }
                Some(WayOut::Out(plan.text))
            }
        })
    }

    /// What takes us out of a file that others have changed since it was `original`.
    ///
    /// FAIL-CLOSED: nobody is told that all is undone while something of ours is left.
    fn without_us(&self, target: &Target, original: &str, text: &str) -> Result<Plan, Failure> {
        let plan = plan::release_since(original, text, self.client.form(), &self.wrapper()?)
            .map_err(|error| refused(&target.path, &error))?;
        let stuck = |left: &&plan::Left| matches!(left.reason, plan::Reason::Unclear(_));
        match plan.left.iter().find(stuck) {
            None => Ok(plan),
            Some(left) => Err(Failure::new(
                Code::Undo,
                format!(
                    "the file was changed since it was connected, and `{}` cannot be taken out, so `{}` was not \
                     touched; its backup is `{}`",
                    left.server,
                    target.path.display(),
                    target.backup().display()
                ),
            )),
        }
    }

    /// Whether the last of our servers is gone from a file that others have changed: then there is nothing left to
    /// undo in it.
    fn retire_if_free(&self, target: &Target, text: &str) -> Result<(), Failure> {
        let Undo::Changed(original) = target.undo()? else {
            return Ok(());
        };
        match self.without_us(target, &original, text)?.changes.is_empty() {
            true => target.retire().map(drop),
            false => Ok(()),
        }
    }

    /// The files that are there, each once.
    fn targets(&self) -> Result<Vec<Target>, Failure> {
        let places = match &self.config {
            Some(file) => vec![absolute(file)?],
            None => self.client.places(&absolute(&self.project)?, &User::here()),
        };
        let mut targets: Vec<Target> = Vec::new();
        for place in &places {
            match Target::read(place)? {
                Some(target) if targets.iter().any(|other| other.real == target.real) => {}
                Some(target) => targets.push(target),
                None => self.check_not_lost(place)?,
            }
        }
        if targets.is_empty() {
            let places: Vec<String> = places
                .iter()
                .map(|place| format!("`{}`", place.display()))
                .collect();
            let message = format!(
                "no configuration of {} at {}",
                self.client.name(),
                places.join(" or ")
            );
            return Err(Failure::new(Code::NoClient, message));
        }
        Ok(targets)
    }

    fn check_not_lost(&self, place: &Path) -> Result<(), Failure> {
        match file::backup_of_missing(place).filter(|_| self.undo) {
            None => Ok(()),
            Some(backup) => Err(Failure::new(
                Code::Undo,
                format!(
                    "`{}` is gone; its backup is `{}`",
                    place.display(),
                    backup.display()
                ),
            )),
        }
    }

    /// What servers are started by. Clients have another working folder and environment than we.
    fn wrapper(&self) -> Result<Wrapper, Failure> {
        let failed = |message: String| Failure::new(Code::Server, message);
        let program = std::env::current_exe()
            .and_then(|path| path.metadata().map(|_| path))
            .map_err(|error| failed(format!("this program cannot be found: {error}")))?;
        let mut options = Vec::new();
        let folder = self.data.folder()?;
        if !is_usual(folder.path()) {
            options.push(format!("--data={}", text(&absolute(folder.path())?)?));
        }
        if let Some(file) = &self.manifest {
            manifest::read(file)?;
            options.push(format!("--manifest={}", text(&absolute(Path::new(file))?)?));
        }
        Ok(Wrapper {
            program: text(&program)?.to_owned(),
            options,
        })
    }

    fn check_names(&self, planned: &[(Target, Plan)]) -> Result<(), Failure> {
        let known = |name: &String| {
            planned.iter().any(|(_, plan)| {
                plan.changes.iter().any(|change| change.server == *name)
                    || plan.left.iter().any(|left| left.server == *name)
            })
        };
        match self.server.iter().find(|name| !known(name)) {
            None => Ok(()),
            Some(name) => Err(Failure::new(
                Code::NoClient,
                format!("{} has no server `{name}`", self.client.name()),
            )),
        }
    }

    fn diff(&self, target: &Target, new: &str) -> Result<String, Failure> {
        let masked = |text: &str| {
            plan::masked(text, self.client.form()).map_err(|error| refused(&target.path, &error))
        };
        let name = target.path.display().to_string();
        Ok(diff::unified(&masked(&target.text)?, &masked(new)?, &name))
    }

    /// A difference is part of a text; beside JSON it is for whoever is asked.
    fn show(&self, difference: &str, format: Format) -> Result<(), Failure> {
        match format {
            _ if difference.is_empty() => {}
            Format::Text => output::text(difference)?,
            Format::Json if self.asks() => output::stderr(difference),
            Format::Json => {}
        }
        Ok(())
    }

    fn asks(&self) -> bool {
        !self.yes && !self.dry_run && io::stdin().is_terminal() && output::is_watched()
    }

    fn confirm(&self) -> Result<(), Failure> {
        let refused = || Failure::new(Code::Unwritten, "writing was not confirmed");
        if self.yes {
            return Ok(());
        }
        if !self.asks() {
            return Err(refused());
        }
        output::stderr("Write this? [y/N]");
        let mut answer = String::new();
        io::stdin()
            .lock()
            .read_line(&mut answer)
            .map_err(|_| refused())?;
        match answer.trim() {
            "y" | "Y" | "yes" => Ok(()),
            _ => Err(Failure::new(Code::Declined, "the answer was not `y`")),
        }
    }

    /// The same in the other direction.
    fn next_command(&self) -> String {
        let undo = if self.undo { "" } else { " --undo" };
        let client = self.client.name();
        match &self.config {
            Some(file) => format!(
                "countersign connect {client} --config {}{undo}",
                shell(&file.display().to_string())
            ),
            None if self.project == Path::new(".") => {
                format!("countersign connect {client}{undo}")
            }
            None => format!(
                "countersign connect {client} --project {}{undo}",
                shell(&self.project.display().to_string())
            ),
        }
    }
}

/// How a file gets rid of us.
enum WayOut {
    /// It is what we wrote: it becomes what it was.
    Back(String),
    /// Others have changed it: what we put in goes, the rest stays.
    Out(String),
}

impl WayOut {
    fn text(&self) -> &str {
        match self {
            Self::Back(text) | Self::Out(text) => text,
        }
    }

    /// Takes it. Tells where the backup is, if it was not brought back.
    fn take(&self, target: &Target) -> Result<Option<PathBuf>, Failure> {
        match self {
            Self::Back(text) => target.restore(text).map(|()| None),
            Self::Out(text) => {
                target.write(text, text, Keep::Nothing)?;
                target.retire().map(Some)
            }
        }
    }
}

/// A failure that comes when some of the files are written.
fn after(wrote: &[&PathBuf], failure: Failure) -> Failure {
    let wrote: Vec<_> = wrote
        .iter()
        .map(|path| format!("`{}`", path.display()))
        .collect();
    match wrote.is_empty() {
        true => failure,
        false => Failure::new(
            failure.code(),
            format!(
                "{}\nwritten before that: {}; `--undo` brings back what was there",
                failure.message(),
                wrote.join(", ")
            ),
        ),
    }
}

/// Whether the folder is found without being told, from the home folder alone.
fn is_usual(folder: &Path) -> bool {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    home.is_some_and(|home| Path::new(&home).join(".local/share/countersign") == folder)
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| {
        let message = format!("`{}` cannot be found: {error}", path.display());
        Failure::new(Code::Input, message)
    })
}

fn text(path: &Path) -> Result<&str, Failure> {
    path.to_str().ok_or_else(|| {
        let message = format!("`{}` is no text and cannot be written", path.display());
        Failure::new(Code::Input, message)
    })
}

fn refused(path: &Path, error: &Unreadable) -> Failure {
    let message = format!("`{}`: {}", path.display(), error.message());
    Failure::new(Code::ClientFile, message)
}

/// Far more than any client writes.
const MAX_BYTES: usize = 64 << 20;
