//! Does this host, path, command or tool name fall under what a manifest lists?
//!
//! Every function is total: whatever an agent sends, it returns, without panic and in time linear in
//! the input. FAIL-CLOSED: text that two readers could understand differently is refused or reported
//! as unclear, and what is refused or unclear matches nothing.
//!
//! ```
//! use countersign_policy::matcher::{Host, HostPattern, HostRules};
//!
//! let rules: HostRules = [HostPattern::parse("*.x.com")?].into_iter().collect();
//! assert!(rules.covers(&Host::from_argument("https://API.X.com:8443/v1?q=1")?));
//! assert!(!rules.covers(&Host::from_argument("x.com")?));
//! assert!(Host::from_argument("evil.com#.x.com").is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod command;
mod host;
mod path;
mod shell;
mod tool;

pub use command::{ArgPatternError, ArgPatterns, Command, Invocation, Unclear};
pub use host::{Host, HostError, HostPattern, HostPatternError, HostRules, parents};
pub use path::{Link, NormalPath, PathError};
pub use shell::Effect;
pub use tool::{covers, declared, is_exec_tool, is_network_tool, is_sink};
