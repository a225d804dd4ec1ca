//! The places that arguments name, on this machine.

use countersign_approval::lease::Places;
use countersign_policy::matcher::{Host, NormalPath};

use crate::links::examine;

/// Follows links as they are now. A path that does not begin at the root names nothing here: nobody
/// but the tool knows where it would begin.
pub(crate) struct ThisMachine;

impl Places for ThisMachine {
    fn path(&self, _argument: &str, value: &str) -> Option<String> {
        let path = NormalPath::resolve(value, None, examine).ok()?;
        Some(path.as_str().to_owned())
    }

    fn host(&self, _argument: &str, value: &str) -> Option<String> {
        Some(Host::from_argument(value).ok()?.to_string())
    }
}
