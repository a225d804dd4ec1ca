//! The events of a session, opened as far as they can be, and the key that signs evidence about them.

use clap::Args;
use countersign_approval::SigningKey;
use countersign_canon::{Hash, Json, Limits};
use countersign_event::{Line, Scope};
use countersign_evidence::Event;
use countersign_evidence::cloudevents::Producer;
use countersign_store as store;
use countersign_store::{Filter, Folder};

use crate::cli::{DataFolder, Tenant};
use crate::command::log::view;
use crate::errors::{Code, Failure};

/// Which session.
#[derive(Args)]
pub(crate) struct Session {
    /// The session
    #[arg(long, value_name = "SESSION")]
    pub(crate) session: String,
    #[command(flatten)]
    tenant: Tenant,
    #[command(flatten)]
    data: DataFolder,
}

impl Session {
    pub(super) fn new(session: String, tenant: Tenant, data: DataFolder) -> Self {
        Self {
            session,
            tenant,
            data,
        }
    }

    pub(crate) fn scope(&self) -> Result<Scope, Failure> {
        self.tenant.scope(&self.session)
    }

    pub(crate) fn folder(&self) -> Result<Folder, Failure> {
        self.data.folder()
    }

    /// The events, in their order. What was erased stays closed.
    pub(crate) fn events(&self) -> Result<Vec<Event>, Failure> {
        let scope = self.scope()?;
        let reader = self.data.reader()?;
        let mut events = Vec::new();
        let mut erased = false;
        reader.each(&Filter::session(&scope), 0, |event| {
            let line = view::read(&event)?;
            if line.computed_hash() != line.hash {
                let message = format!("event {} was changed", line.seq);
                return Err(Failure::new(Code::Damaged, message));
            }
            let payload = match erased {
                true => public(&line)?,
                false => match reader.open_payload(&event) {
                    Err(error) if matches!(error.root(), store::Error::Erased) => {
                        erased = true;
                        public(&line)?
                    }
                    opened => opened?,
                },
            };
            events.push(Event::new(&line, payload));
            Ok::<_, Failure>(())
        })?;
        match events.is_empty() {
            true => Err(Failure::new(
                Code::NoSession,
                format!("no session `{}`", self.session),
            )),
            false => Ok(events),
        }
    }
}

/// The key that signs evidence of this data folder; it is made when it is first needed.
pub(crate) struct Signer {
    pub(crate) key: SigningKey,
    pub(crate) key_id: String,
}

impl Signer {
    pub(crate) fn open(folder: &Folder) -> Result<Self, Failure> {
        let secret = countersign_vault::open_or_create_secret(&folder.path().join("evidence.key"))?;
        let key = SigningKey::from_bytes(&secret);
        let public = Hash::of(key.verifying_key().as_bytes()).to_string();
        let short: String = public.chars().take(16).collect();
        Ok(Self {
            key,
            key_id: format!("countersign-{short}"),
        })
    }

    /// This data folder as the producer of events.
    pub(crate) fn producer(&self) -> Producer {
        Producer {
            name: "countersign".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            git: option_env!("COUNTERSIGN_COMMIT")
                .unwrap_or("unknown")
                .to_owned(),
            source: format!("urn:countersign:node:{}", self.key_id),
        }
    }

    /// The name and the public key, as `countersign evidence check --key` takes them.
    pub(crate) fn public(&self) -> String {
        let hex = base16ct::lower::encode_string(self.key.verifying_key().as_bytes());
        format!("{}={hex}", self.key_id)
    }
}

/// The members that are not sealed.
fn public(line: &Line<'_>) -> Result<Json, Failure> {
    let limits = Limits {
        max_bytes: usize::MAX,
        ..Limits::event()
    };
    let mut payload = Json::admit(line.payload, &limits)?;
    if let Some(members) = payload.as_object_mut() {
        members.remove("sealed");
    }
    Ok(payload)
}
