//! `countersign approver init`

use clap::Args;
use countersign_approval::{Human, KeyId, KeyStatus};
use countersign_canon::Json;

use super::key::KeyOption;
use crate::cli::DataFolder;
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::output::{self, Format, visible};
use crate::person::person;

#[derive(Args)]
#[command(after_help = "\
The key (Ed25519) stays in its file, for you only, outside the data folder; the list of approvers
gets its public part. With a key that is there already, that one is registered: so one key serves
several data folders.

Examples:
  countersign approver init --name dana
  countersign approver init --name dana --key /media/stick/approver.key")]
pub(crate) struct Init {
    /// Your name, as others will see it [default: your user name]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    key: KeyOption,
    #[command(flatten)]
    data: DataFolder,
}

impl Init {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        let person = self.person()?;
        let folder = self.data.folder()?;
        let file = self.key.file(folder.path())?;
        let desk = self.data.desk()?;
        let is_named = desk.approvers()?.check_name(&person);
        is_named.map_err(|error| Failure::new(Code::Approvers, error.to_string()))?;
        let key = file.open_or_create()?;
        let id = KeyId::of(&key.verifying_key());
        let registered = desk.approvers()?.key(id).cloned();
        match &registered {
            None => {
                desk.change_approvers(Some(&person), |list| {
                    list.add(person.clone(), &key.verifying_key())
                })?;
            }
            Some(known) if known.person == person && known.status == KeyStatus::Active => {}
            Some(known) => {
                let (status, owner) = (known.status, &known.person);
                return Err(Failure::new(
                    Code::ApproverKey,
                    format!(
                        "the key in `{}` is registered: {status}, {owner}; another person needs another --key FILE",
                        file.path().display()
                    ),
                ));
            }
        }
        let approvers = desk.approvers()?;
        match format {
            Format::Text => {
                let word = match registered {
                    None => "registered",
                    Some(_) => "registered already",
                };
                let path = file.path().display();
                let agree = super::list::agreement(&approvers);
                let text = format!("{word} {person}\nkey   {id}\nfile  {path}\n{agree}");
                output::text(&visible(&text))?;
            }
            Format::Json => output::json(&Json::object([
                ("key_id", Json::from(id.to_string())),
                ("person", Json::from(person.to_string())),
                ("file", Json::from(file.path().display().to_string())),
                ("added", Json::from(registered.is_none())),
            ]))?,
        }
        Ok(Exit::Done)
    }

    fn person(&self) -> Result<Human, Failure> {
        let name = self.name.clone().unwrap_or_else(person);
        Human::new(name).map_err(|error| Failure::new(Code::Approvers, error.to_string()))
    }
}

/// The name that the system knows the user by.
pub(crate) fn user() -> Option<String> {
    let name = |variable| std::env::var(variable).ok().filter(|name| !name.is_empty());
    name("USER").or_else(|| name("LOGNAME"))
}
