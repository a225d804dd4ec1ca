//! `countersign config`

use std::path::PathBuf;

use clap::{Args, Subcommand};
use countersign_canon::Json;

use crate::config::{Config, variable};
use crate::errors::Failure;
use crate::exit::Exit;
use crate::output::{self, Format, Table};

/// The configuration of the daemon.
#[derive(Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show what is set, and what set it
    Show(Show),
}

#[derive(Args)]
#[command(after_help = "\
What is said later goes before: defaults, the file, the environment, flags of `countersign serve`.
A key `tls.cert` stands as `cert` in the section `[tls]` of the file, and is COUNTERSIGN_TLS_CERT in the
environment. Secrets are never in it: files and commands that give one are named.

Examples:
  countersign config show --config countersign.toml --origin")]
pub(crate) struct Show {
    /// The configuration, in TOML
    #[arg(
        long,
        env = "COUNTERSIGN_CONFIG",
        hide_env_values = true,
        value_name = "FILE"
    )]
    config: Option<PathBuf>,
    /// Also say what set each value and what each is for, and list what nothing sets
    #[arg(long)]
    origin: bool,
}

impl ConfigCommand {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        match self {
            Self::Show(show) => show.run(format),
        }
    }
}

impl Show {
    fn run(self, format: Format) -> Result<Exit, Failure> {
        let config = Config::of_process(self.config.as_deref())?;
        match format {
            Format::Json => {
                let values = config.shown().map(|(key, values, origin)| {
                    let list = values.iter().map(|value| Json::from(value.as_str()));
                    let value = Json::object([
                        ("values", Json::Array(list.collect())),
                        ("origin", Json::from(origin.to_string())),
                        ("variable", Json::from(variable(key.name))),
                    ]);
                    (key.name, value)
                });
                output::json(&Json::object(values))?;
            }
            Format::Text => {
                let mut table = match self.origin {
                    true => Table::new(&["KEY", "VALUE", "SET BY", "WHAT"]),
                    false => Table::new(&["KEY", "VALUE"]),
                };
                for (key, values, origin) in config.shown() {
                    let value = values.join(", ");
                    match self.origin {
                        true => table.row([
                            key.name.to_owned(),
                            value,
                            origin.to_string(),
                            key.about.to_owned(),
                        ]),
                        false => table.row([key.name.to_owned(), value]),
                    }
                }
                for key in config.unset().filter(|_| self.origin) {
                    let [value, origin] = ["–", "nothing"].map(str::to_owned);
                    table.row([key.name.to_owned(), value, origin, key.about.to_owned()]);
                }
                output::text(&table.text())?;
            }
        }
        Ok(Exit::Done)
    }
}
