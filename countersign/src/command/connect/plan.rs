//! What becomes of a client's file: text in, text out.

use std::ops::Range;
use std::path::Path;

use countersign_canon::Json;

use super::client::Form;
use super::entry::{self, Entry, Found, Kind, Program, Unreadable, is_path};

/// How servers are started from now on.
pub(super) struct Wrapper {
    /// This program.
    pub(super) program: String,
    /// What it is told before the server's own command.
    pub(super) options: Vec<String>,
}

impl Wrapper {
    /// Puts us in front.
    fn connect(&self, name: &str, program: Program) -> Result<Rewritten, Reason> {
        if self.wraps(&program) {
            return Err(match self.is_this(&program) {
                true => self.as_written(&program),
                false => Reason::Unclear(
                    "what starts it is called countersign and may be another program",
                ),
            });
        }
        if let Some(name) = steering(&program.env) {
            return Err(Reason::Steered(name));
        }
        let mut words = vec!["mcp".to_owned()];
        words.extend(self.options.iter().cloned());
        // One word: the name may look like an option.
        words.extend((!name.is_empty()).then(|| format!("--server={name}")));
        words.extend(["--".to_owned(), program.command]);
        let room = &program.room;
        let quoted: Vec<String> = words.iter().map(|word| quote(word)).collect();
        let quoted = quoted.join(&format!(",{}", room.gap));
        let added = format!("{}{quoted}{}", room.before, room.after);
        Ok(Rewritten {
            edits: [
                (program.command_at, quote(&self.program)),
                (room.at..room.at, added),
            ],
            command: self.program.clone(),
            args: words.into_iter().chain(program.args).collect(),
        })
    }

    /// Takes us out again.
    fn release(&self, program: Program) -> Result<Rewritten, Reason> {
        if !self.wraps(&program) {
            return Err(Reason::Apart);
        }
        let mut words = program.args.into_iter().zip(program.args_at);
        let first = words.next();
        let found = words.by_ref().find(|(word, _)| word == "--");
        let (Some((_, first)), Some(_), Some((command, last))) = (first, found, words.next())
        else {
            return Err(Reason::Unclear("no command follows `--`"));
        };
        let (args, args_at): (Vec<String>, Vec<Range<usize>>) = words.unzip();
        let end = args_at.first().map_or(last.end, |next| next.start);
        Ok(Rewritten {
            edits: [
                (program.command_at, quote(&command)),
                (first.start..end, String::new()),
            ],
            command,
            args,
        })
    }

    /// Whether it is what we would have written.
    ///
    /// SECURITY: whoever else wrote it may have said where policies and approvals are looked for, or that nothing
    /// is decided at all.
    fn as_written(&self, program: &Program) -> Reason {
        let mut words = program.args.iter().skip(1);
        let mut missing: Vec<&String> = self.options.iter().collect();
        loop {
            let Some(word) = words.next() else {
                return Reason::Unclear("no command follows `--`");
            };
            match word.as_str() {
                "--" => break,
                "--server" => drop(words.next()),
                name if name.starts_with("--server=") => {}
                _ if missing.contains(&word) => missing.retain(|option| *option != word),
                _ => return Reason::Told(option(word)),
            }
        }
        if words.next().is_none() {
            return Reason::Unclear("no command follows `--`");
        }
        match (steering(&program.env), missing.first()) {
            (Some(name), _) => Reason::Steered(name),
            (None, Some(missing)) => Reason::Untold(option(missing)),
            (None, None) => Reason::Already,
        }
    }

    /// Whether it looks like us.
    fn wraps(&self, program: &Program) -> bool {
        let path = Path::new(&program.command);
        let is_called = path.file_stem().is_some_and(|name| name == "countersign");
        let is_ours = is_called || self.is_this(program);
        is_ours && program.args.first().is_some_and(|word| word == "mcp")
    }

    /// SECURITY: a file that comes with a project may call a program of that project as it likes. A name without
    /// a folder is looked up by the client, where projects have no say unless they say where.
    fn is_this(&self, program: &Program) -> bool {
        let real = |path: &str| std::fs::canonicalize(path).ok();
        let command = program.command.as_str();
        match command == "countersign" {
            true => !program.env.iter().any(|name| is_path(name)),
            false => {
                let is_same = || real(command).is_some_and(|it| Some(it) == real(&self.program));
                command == self.program || (Path::new(command).is_absolute() && is_same())
            }
        }
    }
}

/// The name of an option, without its value.
fn option(word: &str) -> String {
    let name = word.split_once('=').filter(|_| word.starts_with('-'));
    name.map_or(word, |(name, _)| name).to_owned()
}

/// The first of these variables that says what this program does, where its data are, or which code it runs.
fn steering(env: &[String]) -> Option<String> {
    let steers = |name: &&String| {
        let name = name.to_ascii_uppercase();
        let ours = ["COUNTERSIGN_", "LD_", "DYLD_", "XDG_"];
        name == "HOME" || ours.iter().any(|start| name.starts_with(start))
    };
    env.iter().find(steers).cloned()
}

/// How a server is started from now on, and what has to be written for it.
struct Rewritten {
    command: String,
    args: Vec<String>,
    edits: [(Range<usize>, String); 2],
}

/// What would be written, and what it means.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) text: String,
    pub(super) changes: Vec<Change>,
    pub(super) left: Vec<Left>,
}

/// A server that is started in another way from now on.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) server: String,
    pub(super) project: Option<String>,
    pub(super) command: String,
    pub(super) args: Vec<String>,
}

/// A server that stays as it is.
#[derive(Debug)]
pub(super) struct Left {
    pub(super) server: String,
    pub(super) project: Option<String>,
    pub(super) reason: Reason,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reason {
    /// It goes through us already.
    Already,
    /// It does not go through us.
    Apart,
    /// It is reached by its URL.
    Remote,
    /// It goes through us, and we are told something that we would not write.
    Told(String),
    /// It goes through us, and we are not told what we would write.
    Untold(String),
    /// Its environment steers whoever starts it.
    Steered(String),
    /// It cannot be told how it is started.
    Unclear(&'static str),
}

impl Reason {
    /// Whether it would be guarded as it was asked for if we were taken out of it first.
    pub(super) fn is_otherwise(&self) -> bool {
        matches!(self, Self::Told(_) | Self::Untold(_))
    }

    /// Whether it could be guarded, and is not.
    pub(super) fn is_missed(&self) -> bool {
        !matches!(self, Self::Already | Self::Remote)
    }

    /// Why it is not guarded; `None` if it is.
    pub(super) fn objection(&self) -> Option<String> {
        Some(match self {
            Self::Already => return None,
            Self::Apart => "it does not go through countersign".to_owned(),
            Self::Remote => "it is reached by its URL".to_owned(),
            Self::Told(word) => {
                format!("with a `{word}` that this command would not write")
            }
            Self::Untold(word) => format!("without the `{word}` of this command"),
            Self::Steered(name) => format!("its `env` sets `{name}`, which steers countersign"),
            Self::Unclear(reason) => (*reason).to_owned(),
        })
    }
}

/// Puts us in front of every server, or of those that are named. Only commands and arguments change.
pub(super) fn plan(
    text: &str,
    form: Form,
    wrapper: &Wrapper,
    only: &[String],
) -> Result<Plan, Unreadable> {
    rewrite(text, form, among(only), |name, program| {
        wrapper.connect(name, program)
    })
}

/// Takes us out of the named servers, whatever else has changed since.
pub(super) fn release(
    text: &str,
    form: Form,
    wrapper: &Wrapper,
    only: &[String],
) -> Result<Plan, Unreadable> {
    rewrite(text, form, among(only), |_, program| {
        wrapper.release(program)
    })
}

/// Takes us out of the servers that we were put in front of when the file was `before`. What somebody has put us
/// in front of by hand stays so.
pub(super) fn release_since(
    before: &str,
    text: &str,
    form: Form,
    wrapper: &Wrapper,
) -> Result<Plan, Unreadable> {
    let ours = plan(before, form, wrapper, &[])?.changes;
    let is_ours = |name: &str, project: Option<&str>| {
        let mut ours = ours.iter();
        ours.any(|ours| ours.server == name && ours.project.as_deref() == project)
    };
    rewrite(text, form, is_ours, |_, program| wrapper.release(program))
}

/// All servers, unless some are named.
fn among(only: &[String]) -> impl Fn(&str, Option<&str>) -> bool {
    |name, _| only.is_empty() || only.iter().any(|one| one == name)
}

fn rewrite(
    text: &str,
    form: Form,
    is_meant: impl Fn(&str, Option<&str>) -> bool,
    step: impl Fn(&str, Program) -> Result<Rewritten, Reason>,
) -> Result<Plan, Unreadable> {
    let found = entry::read(text, form)?;
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    let mut changes = Vec::new();
    let mut left = Vec::new();
    for Entry {
        name,
        project,
        kind,
    } in found.entries
    {
        if !is_meant(&name, project.as_deref()) {
            continue;
        }
        let reason = match kind {
            Kind::Remote => Reason::Remote,
            Kind::Unclear(reason) => Reason::Unclear(reason),
            Kind::Program(program) => match step(&name, program) {
                Err(reason) => reason,
                Ok(Rewritten {
                    command,
                    args,
                    edits: new,
                }) => {
                    edits.extend(new);
                    changes.push(Change {
                        server: name,
                        project,
                        command,
                        args,
                    });
                    continue;
                }
            },
        };
        left.push(Left {
            server: name,
            project,
            reason,
        });
    }
    let plan = Plan {
        text: splice(text, edits),
        changes,
        left,
    };
    plan.check(form)?;
    Ok(plan)
}

/// The text as it may be shown: values that may be secret are left out.
pub(super) fn masked(text: &str, form: Form) -> Result<String, Unreadable> {
    let Found { secrets, .. } = entry::read(text, form)?;
    let hidden = secrets.into_iter().map(|at| (at, "\"…\"".to_owned()));
    Ok(splice(text, hidden.collect()))
}

impl Plan {
    /// The servers that went through us before, whatever we were told.
    pub(super) fn into_guarded(self) -> Vec<String> {
        let through = |reason: &Reason| {
            use Reason::{Already, Steered, Told, Untold};
            matches!(reason, Already | Told(_) | Untold(_) | Steered(_))
        };
        let already = self.left.into_iter();
        let already = already.filter(|left| through(&left.reason));
        already.map(|left| left.server).collect()
    }

    /// FAIL-CLOSED: what was written must read as what was meant, whatever the file looked like.
    fn check(&self, form: Form) -> Result<(), Unreadable> {
        let found = entry::read(&self.text, form)?;
        // Both are in the order of the file.
        let mut entries = found.entries.iter();
        let holds = self.changes.iter().all(|change| {
            entries.any(|entry| {
                entry.name == change.server
                    && entry.project == change.project
                    && matches!(&entry.kind, Kind::Program(program)
                        if program.command == change.command && program.args == change.args)
            })
        });
        match holds {
            true => Ok(()),
            false => Err(Unreadable::new(
                &self.text,
                None,
                "its form is not understood well enough to change it",
            )),
        }
    }
}

/// A word in quotes, as both JSON and TOML read it. Only TOML minds a bare DEL.
fn quote(word: &str) -> String {
    let text = Json::from(word).to_jcs().unwrap_or_default();
    String::from_utf8_lossy(&text).replace('\u{7f}', "\\u007f")
}

fn splice(text: &str, mut edits: Vec<(Range<usize>, String)>) -> String {
    edits.sort_by_key(|(at, _)| (at.start, at.end));
    let mut out = String::with_capacity(text.len() + 256);
    let mut done = 0;
    for (at, new) in edits {
        out.push_str(text.get(done..at.start).unwrap_or_default());
        out.push_str(&new);
        done = at.end;
    }
    out.push_str(text.get(done..).unwrap_or_default());
    out
}

#[cfg(test)]
mod tests;
