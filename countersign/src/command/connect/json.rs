//! Servers in JSON.

use std::ops::Range;

use countersign_canon::scan::Scan;
use countersign_canon::{Error, Limits, Numbers};

use super::entry::{Entry, Found, Kind, Program, Room, Unreadable};

/// Finds the servers in the object `member`, and in the one of each project.
pub(super) fn read(text: &str, member: &str, projects: bool) -> Result<Found, Unreadable> {
    let mut reader = Reader {
        text,
        member,
        found: Found::default(),
    };
    reader
        .document(projects)
        .map_err(|error| explain(text, &error))?;
    Ok(reader.found)
}

struct Reader<'a> {
    text: &'a str,
    member: &'a str,
    found: Found,
}

impl<'a> Reader<'a> {
    fn document(&mut self, projects: bool) -> Result<(), Error> {
        let mut scan = Scan::new(self.text.as_bytes(), &LIMITS)?;
        scan.object(|scan, key| {
            if key == self.member {
                return self.servers(scan, None);
            }
            if projects && key == "projects" && scan.peek() == Some(b'{') {
                return scan.object(|scan, project| self.project(scan, &project));
            }
            Ok(())
        })?;
        scan.finish()
    }

    fn project(&mut self, scan: &mut Scan<'a>, project: &str) -> Result<(), Error> {
        if scan.peek() != Some(b'{') {
            return Ok(());
        }
        scan.object(|scan, key| match key == self.member {
            true => self.servers(scan, Some(project)),
            false => Ok(()),
        })
    }

    fn servers(&mut self, scan: &mut Scan<'a>, project: Option<&str>) -> Result<(), Error> {
        scan.object(|scan, name| {
            let kind = self.server(scan)?;
            self.found.entries.push(Entry {
                name: name.into_owned(),
                project: project.map(str::to_owned),
                kind,
            });
            Ok(())
        })
    }

    fn server(&mut self, scan: &mut Scan<'a>) -> Result<Kind, Error> {
        if scan.peek() != Some(b'{') {
            scan.value()?;
            return Ok(Kind::Unclear("it is not an object"));
        }
        let start = scan.offset();
        let mut command = None;
        let mut args = None;
        let mut remote = false;
        let mut unclear = None;
        let mut env = Vec::new();
        scan.object(|scan, key| {
            match (key.as_ref(), scan.peek()) {
                ("command", Some(b'"')) => {
                    let from = scan.offset();
                    command = Some((scan.string()?.into_owned(), from..scan.offset()));
                }
                ("command", _) => unclear = Some("its command is not a text"),
                ("args", Some(b'[')) => match self.args(scan)? {
                    Some(found) => args = Some(found),
                    None => unclear = Some("its args are not all texts"),
                },
                ("args", _) => unclear = Some("its args are not a list"),
                ("type", Some(b'"')) => {
                    let kind = scan.string()?;
                    if kind != "stdio" {
                        unclear = Some("its type is not stdio");
                    }
                }
                ("url" | "serverUrl" | "httpUrl", _) => remote = true,
                ("env" | "headers", Some(b'{')) => scan.object(|scan, name| {
                    env.push(name.into_owned());
                    self.found.secrets.push(scan.value()?);
                    Ok(())
                })?,
                _ => {}
            }
            Ok(())
        })?;
        Ok(match (remote, unclear, command) {
            (true, ..) => Kind::Remote,
            (_, Some(reason), _) => Kind::Unclear(reason),
            (.., None) => Kind::Unclear("it has no command"),
            (.., Some((command, command_at))) => {
                let (args, args_at, room) = args.unwrap_or_else(|| {
                    let room = self.room_behind(&command_at, start);
                    (Vec::new(), Vec::new(), room)
                });
                Kind::Program(Program {
                    command,
                    command_at,
                    args,
                    args_at,
                    room,
                    env,
                })
            }
        })
    }

    /// The words of a list, and the room before them; `None` if something in it is no text.
    fn args(&self, scan: &mut Scan<'a>) -> Result<Option<Args>, Error> {
        let start = scan.offset();
        let mut words = Vec::new();
        let mut words_at: Vec<Range<usize>> = Vec::new();
        let mut all = true;
        scan.array(|scan| {
            let from = scan.offset();
            match scan.peek() {
                Some(b'"') => words.push(scan.string()?.into_owned()),
                _ => all = false,
            }
            words_at.push(from..scan.offset());
            Ok(())
        })?;
        let first = words_at.first().map(|word| word.start);
        let at = first.unwrap_or(start + 1);
        let blank = self.text.get(start + 1..at).unwrap_or_default();
        let room = Room::inside(at, first.is_some(), blank);
        Ok(all.then_some((words, words_at, room)))
    }

    /// A new member behind the command, set off as the first member of the object is.
    fn room_behind(&self, command: &Range<usize>, object: usize) -> Room {
        let inside = self.text.get(object + 1..).unwrap_or_default();
        let blank = inside.len() - inside.trim_ascii_start().len();
        let blank = inside.get(..blank).unwrap_or_default();
        let blank = if blank.contains('\n') { blank } else { " " };
        Room::none(command.end, format!(",{blank}\"args\": "))
    }
}

/// Words, where each stands, and the room before them.
type Args = (Vec<String>, Vec<Range<usize>>, Room);

/// Says what people most often have in such files and strict JSON has not.
fn explain(text: &str, error: &Error) -> Unreadable {
    let at = error.offset();
    let rest = at.and_then(|at| text.as_bytes().get(at..));
    let before = at.and_then(|at| text.get(..at)).unwrap_or_default();
    let message = match rest.and_then(<[u8]>::first) {
        Some(b'/') => "a comment, which strict JSON does not have".to_owned(),
        Some(b'}' | b']') if before.trim_ascii_end().ends_with(',') => {
            "a comma that nothing follows".to_owned()
        }
        _ => error.to_string(),
    };
    Unreadable::new(text, at, &message)
}

const LIMITS: Limits = Limits {
    max_bytes: super::MAX_BYTES,
    max_depth: 512,
    numbers: Numbers::Exact,
};
