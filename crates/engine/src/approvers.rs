//! The people who may decide, as a file of the data folder lists them.
//!
//! The file holds public keys only. It is replaced as a whole, so a crash leaves the old list or the
//! new one.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use countersign_approval::{
    DenyRule, Human, KeyError, KeyId, KeyStatus, Keyring, Quorum, VerifyingKey,
};
use countersign_canon::{Json, Limits};
use countersign_display::{Hidden, alike, unseen};

use crate::folder::sync_parent;

/// The list, and how many must agree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approvers {
    keys: Vec<Approver>,
    required: usize,
    deny: DenyRule,
    ring: Ring,
}

/// The keys as signatures are checked with, once somebody asked for them. Follows from the list.
#[derive(Debug, Clone, Default)]
struct Ring(OnceLock<Keyring>);

impl PartialEq for Ring {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Ring {}

/// One key of one person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approver {
    /// Whose it is.
    pub person: Human,
    /// The key's name.
    pub key_id: KeyId,
    /// What it is still good for.
    pub status: KeyStatus,
    public: [u8; 32],
}

/// Why the list cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ApproversError {
    /// The file cannot be read or written.
    #[error("cannot use the list of approvers `{}`: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The file is not a list of approvers.
    #[error("`{}` is not a list of approvers: {problem}", path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The name would not show as what it is.
    #[error("`{name}` is no name for an approver: it has {problem}")]
    Name {
        /// The name.
        name: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// People would take one approver for the other.
    #[error("`{name}` looks like `{other}`, who is registered")]
    LookAlike {
        /// The name.
        name: String,
        /// The one who has a key.
        other: String,
    },
    /// A key cannot be taken.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// There is no such key.
    #[error("there is no active key `{0}`")]
    NoKey(KeyId),
    /// Nobody would be left to ask, or fewer than must agree.
    #[error("{required} must agree, and {left} could")]
    TooFew {
        /// How many must agree.
        required: usize,
        /// How many are left.
        left: usize,
    },
}

impl Default for Approvers {
    fn default() -> Self {
        Self {
            keys: Vec::new(),
            required: 1,
            deny: DenyRule::Veto,
            ring: Ring::default(),
        }
    }
}

impl Approvers {
    /// The list of a data folder; empty if there is none.
    pub fn load(folder: &Path) -> Result<Self, ApproversError> {
        let path = path(folder);
        let text = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            result => result.map_err(|error| ApproversError::Io {
                path: path.clone(),
                error,
            })?,
        };
        // The list is read at each decision and hardly ever changes; points on the curve are dear.
        let last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, list)) = last.as_ref()
            && *known == text
        {
            return Ok(list.clone());
        }
        drop(last);
        let form = |problem: String| ApproversError::Form {
            path: path.clone(),
            problem,
        };
        let json = Json::admit(&text, &Limits::event()).map_err(|error| form(error.to_string()))?;
        let list = read(&json).ok_or_else(|| form("a member is missing or wrong".to_owned()))?;
        list.keyring()?;
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        *last = Some((text, list.clone()));
        Ok(list)
    }

    /// Replaces the list of a data folder.
    pub fn save(&self, folder: &Path) -> Result<(), ApproversError> {
        let path = path(folder);
        let write = || {
            fs::create_dir_all(folder)?;
            let temporary = path.with_extension("json.new");
            let mut file = File::create(&temporary)?;
            file.write_all(&self.to_text())?;
            file.sync_all()?;
            fs::rename(&temporary, &path)?;
            sync_parent(&path)
        };
        write().map_err(|error| ApproversError::Io {
            path: path.clone(),
            error,
        })
    }

    /// Every key, in the order in which they were added.
    pub fn keys(&self) -> &[Approver] {
        &self.keys
    }

    /// How many must agree.
    pub fn required(&self) -> usize {
        self.required
    }

    /// What one denial does.
    pub fn deny(&self) -> DenyRule {
        self.deny
    }

    /// The entry of a key.
    pub fn key(&self, key_id: KeyId) -> Option<&Approver> {
        self.keys.iter().find(|key| key.key_id == key_id)
    }

    /// Whether a person can be told apart from everybody who ever had a key here.
    pub fn check_name(&self, person: &Human) -> Result<(), ApproversError> {
        let mut people = self.keys.iter().map(|key| &key.person);
        if people.clone().any(|known| known == person) {
            return Ok(());
        }
        let name = person.name();
        let is_kind = |kind: &&str| {
            let start = name.get(..kind.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(kind))
        };
        let kind = KINDS.iter().any(is_kind);
        let hidden = unseen(name).map(Hidden::as_str);
        if let Some(problem) = hidden.or(kind.then_some("the kind of somebody in front")) {
            let name = name.to_owned();
            return Err(ApproversError::Name { name, problem });
        }
        match people.find(|known| alike(known.name(), name)) {
            None => Ok(()),
            Some(other) => Err(ApproversError::LookAlike {
                name: name.to_owned(),
                other: other.name().to_owned(),
            }),
        }
    }

    /// Adds a key of a person.
    pub fn add(&mut self, person: Human, key: &VerifyingKey) -> Result<KeyId, ApproversError> {
        self.check_name(&person)?;
        let key_id = KeyId::of(key);
        self.ring = Ring::default();
        self.keys.push(Approver {
            person,
            key_id,
            status: KeyStatus::Active,
            public: key.to_bytes(),
        });
        if let Err(error) = self.build_ring() {
            self.keys.pop();
            return Err(error);
        }
        Ok(key_id)
    }

    /// Ends the use of a key: another took its place, or somebody else may have it.
    pub fn end(&mut self, key_id: KeyId, status: KeyStatus) -> Result<(), ApproversError> {
        self.ring = Ring::default();
        let key = self
            .keys
            .iter_mut()
            .find(|key| key.key_id == key_id && key.status == KeyStatus::Active);
        key.ok_or(ApproversError::NoKey(key_id))?.status = status;
        Ok(())
    }

    /// Changes how many must agree, and what a denial does.
    pub fn require(&mut self, required: usize, deny: DenyRule) -> Result<(), ApproversError> {
        let left = self.roster().count();
        if required == 0 || required > left {
            return Err(ApproversError::TooFew { required, left });
        }
        self.required = required;
        self.deny = deny;
        Ok(())
    }

    /// Who must agree; `None` if nobody could.
    pub fn quorum(&self) -> Option<Quorum> {
        Quorum::new(self.required, self.roster(), self.deny).ok()
    }

    /// The keys, for checking signatures.
    pub fn keyring(&self) -> Result<&Keyring, ApproversError> {
        match self.ring.0.get() {
            Some(ring) => Ok(ring),
            None => {
                let ring = self.build_ring()?;
                Ok(self.ring.0.get_or_init(|| ring))
            }
        }
    }

    fn build_ring(&self) -> Result<Keyring, ApproversError> {
        let mut ring = Keyring::default();
        for key in &self.keys {
            ring.add(key.key_id, &key.public, key.person.clone(), key.status)?;
        }
        Ok(ring)
    }

    fn roster(&self) -> impl Iterator<Item = Human> {
        let active = self
            .keys
            .iter()
            .filter(|key| key.status == KeyStatus::Active);
        let people: std::collections::BTreeSet<Human> =
            active.map(|key| key.person.clone()).collect();
        people.into_iter()
    }

    /// The text of the file.
    pub(crate) fn to_text(&self) -> Vec<u8> {
        let mut text = self.to_json().to_sorted_ascii();
        text.push(b'\n');
        text
    }

    fn to_json(&self) -> Json {
        let keys = self.keys.iter().map(|key| {
            Json::object([
                ("key_id", Json::from(key.key_id.to_string())),
                ("person", Json::from(key.person.to_string())),
                (
                    "public_key",
                    Json::from(base16ct::lower::encode_string(&key.public)),
                ),
                ("status", Json::from(key.status.as_str())),
            ])
        });
        Json::object([
            ("deny", Json::from(self.deny.as_str())),
            ("keys", Json::Array(keys.collect())),
            ("required", Json::from(self.required as u64)),
            ("version", Json::from(1_u64)),
        ])
    }
}

/// What stands in front of a name where it is written; a name that begins so would be read twice.
const KINDS: [&str; 2] = ["human:", "agent:"];

/// The text that was read last, and the list that it is.
static LAST: Mutex<Option<(Vec<u8>, Approvers)>> = Mutex::new(None);

fn path(folder: &Path) -> PathBuf {
    folder.join("approvers.json")
}

fn read(json: &Json) -> Option<Approvers> {
    let text = |json: &Json, member: &str| json.get(member)?.as_str().map(str::to_owned);
    let key = |json: &Json| {
        let mut public = [0; 32];
        let hex = text(json, "public_key")?;
        let written = base16ct::lower::decode(hex.as_bytes(), &mut public)
            .ok()?
            .len();
        Some(Approver {
            person: text(json, "person")?.parse().ok()?,
            key_id: text(json, "key_id")?.parse().ok()?,
            status: text(json, "status")?.parse().ok()?,
            public: (written == 32).then_some(public)?,
        })
    };
    (json.get("version")?.as_u64()? == 1).then_some(Approvers {
        keys: json
            .get("keys")?
            .as_array()?
            .iter()
            .map(key)
            .collect::<Option<_>>()?,
        required: usize::try_from(json.get("required")?.as_u64()?).ok()?,
        deny: text(json, "deny")?.parse().ok()?,
        ring: Ring::default(),
    })
}
