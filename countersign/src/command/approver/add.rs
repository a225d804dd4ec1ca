//! `countersign approver add`

use clap::Args;
use countersign_approval::{Human, KeyId, VerifyingKey};
use countersign_canon::Json;

use crate::cli::DataFolder;
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::output::{self, Format, visible};

#[derive(Args)]
#[command(after_help = "\
For a key that is made elsewhere and stays there: the console shows the public part of a key that a
browser has made. Compare what you register with what its owner sees.

Examples:
  countersign approver add --name lee \\
      --public-key 3b6a27bcceb6a42d62a3a8d02a6f0d73653215771de243a63ac048a18b59da29")]
pub(crate) struct Add {
    /// Whose key it is, as others will see it
    #[arg(long, value_name = "NAME")]
    name: String,
    /// The public key (Ed25519), in 64 hexadecimal digits
    #[arg(long, value_name = "HEX")]
    public_key: String,
    #[command(flatten)]
    data: DataFolder,
}

impl Add {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        let person = Human::new(self.name.as_str())
            .map_err(|error| Failure::new(Code::Approvers, error.to_string()))?;
        let key = key(&self.public_key)?;
        let desk = self.data.desk()?;
        desk.change_approvers(Some(&person), |list| list.add(person.clone(), &key))?;
        let id = KeyId::of(&key);
        match format {
            Format::Text => {
                let agree = super::list::agreement(&desk.approvers()?);
                output::text(&visible(&format!(
                    "registered {person}\nkey   {id}\n{agree}"
                )))?;
            }
            Format::Json => output::json(&Json::object([
                ("key_id", Json::from(id.to_string())),
                ("person", Json::from(person.to_string())),
            ]))?,
        }
        Ok(Exit::Done)
    }
}

fn key(hex: &str) -> Result<VerifyingKey, Failure> {
    let mut bytes = [0; 32];
    let read = base16ct::lower::decode(hex, &mut bytes).ok();
    let is_whole = read.is_some_and(|read| read.len() == 32);
    let key = is_whole.then(|| VerifyingKey::from_bytes(&bytes).ok());
    key.flatten().ok_or_else(|| {
        let text = "a public key has 64 hexadecimal digits in lower case";
        Failure::new(Code::ApproverKey, text.to_owned())
    })
}
