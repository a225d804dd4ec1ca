//! The clients, and where each of them keeps its MCP servers.

use std::path::{Path, PathBuf};

use clap::ValueEnum;

/// A program that starts MCP servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Client {
    /// `.mcp.json` of the project, `~/.claude.json`
    ClaudeCode,
    /// `claude_desktop_config.json` in the user's configuration folder
    ClaudeDesktop,
    /// `.cursor/mcp.json` of the project and of the user
    Cursor,
    /// `.vscode/mcp.json` of the project, `mcp.json` of the user's profile
    Vscode,
    /// `.codex/config.toml` of the project and of the user
    Codex,
}

/// How a file lists servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// An object of servers in JSON. `projects` says whether there may be one more for each project.
    Json {
        member: &'static str,
        projects: bool,
    },
    /// Tables `mcp_servers.NAME` in TOML.
    Toml,
}

impl Client {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::ClaudeDesktop => "claude-desktop",
            Self::Cursor => "cursor",
            Self::Vscode => "vscode",
            Self::Codex => "codex",
        }
    }

    pub(super) const fn form(self) -> Form {
        let (member, projects) = match self {
            Self::Codex => return Form::Toml,
            Self::ClaudeCode => ("mcpServers", true),
            Self::ClaudeDesktop | Self::Cursor => ("mcpServers", false),
            Self::Vscode => ("servers", false),
        };
        Form::Json { member, projects }
    }

    /// The files that this client reads, those of the project first.
    pub(super) fn places(self, project: &Path, user: &User) -> Vec<PathBuf> {
        let home = user.home.as_deref();
        let (in_project, of_user) = match self {
            Self::ClaudeCode => (
                Some(".mcp.json"),
                user.variable("CLAUDE_CONFIG_DIR")
                    .or(home.map(Path::to_owned))
                    .map(|folder| folder.join(".claude.json")),
            ),
            Self::ClaudeDesktop => (
                None,
                user.configuration()
                    .map(|folder| folder.join("Claude/claude_desktop_config.json")),
            ),
            Self::Cursor => (
                Some(".cursor/mcp.json"),
                home.map(|home| home.join(".cursor/mcp.json")),
            ),
            Self::Vscode => (
                Some(".vscode/mcp.json"),
                user.configuration()
                    .map(|folder| folder.join("Code/User/mcp.json")),
            ),
            Self::Codex => (
                Some(".codex/config.toml"),
                user.variable("CODEX_HOME")
                    .or(home.map(|home| home.join(".codex")))
                    .map(|folder| folder.join("config.toml")),
            ),
        };
        let in_project = in_project.map(|file| project.join(file));
        in_project.into_iter().chain(of_user).collect()
    }
}

/// What the places depend on.
pub(super) struct User {
    home: Option<PathBuf>,
    system: System,
    environment: fn(&str) -> Option<PathBuf>,
}

#[derive(Clone, Copy)]
enum System {
    Linux,
    MacOs,
    Windows,
}

impl User {
    /// Whoever runs this program.
    pub(super) fn here() -> Self {
        let system = match std::env::consts::OS {
            "macos" => System::MacOs,
            "windows" => System::Windows,
            _ => System::Linux,
        };
        Self::new(system, |name| std::env::var_os(name).map(PathBuf::from))
    }

    fn new(system: System, environment: fn(&str) -> Option<PathBuf>) -> Self {
        let mut user = Self {
            home: None,
            system,
            environment,
        };
        user.home = user.variable(match system {
            System::Windows => "USERPROFILE",
            System::Linux | System::MacOs => "HOME",
        });
        user
    }

    fn variable(&self, name: &str) -> Option<PathBuf> {
        (self.environment)(name).filter(|value| !value.as_os_str().is_empty())
    }

    fn configuration(&self) -> Option<PathBuf> {
        let below_home = |folder: &str| self.home.as_ref().map(|home| home.join(folder));
        match self.system {
            System::MacOs => below_home("Library/Application Support"),
            System::Windows => self.variable("APPDATA"),
            System::Linux => self
                .variable("XDG_CONFIG_HOME")
                .or_else(|| below_home(".config")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_has_its_places_on_every_system() {
        let check = |client: Client, user: &User, expect: &[&str]| {
            let places = client.places(Path::new("/p"), user);
            let places: Vec<_> = places.iter().map(|path| path.to_str().unwrap()).collect();
            assert_eq!(places, expect, "{client:?}");
        };
        let plain = |name: &str| match name {
            "HOME" => Some("/h".into()),
            "XDG_CONFIG_HOME" => Some(PathBuf::new()),
            _ => None,
        };
        let linux = User::new(System::Linux, plain);
        check(
            Client::ClaudeCode,
            &linux,
            &["/p/.mcp.json", "/h/.claude.json"],
        );
        check(
            Client::ClaudeDesktop,
            &linux,
            &["/h/.config/Claude/claude_desktop_config.json"],
        );
        check(
            Client::Cursor,
            &linux,
            &["/p/.cursor/mcp.json", "/h/.cursor/mcp.json"],
        );
        check(
            Client::Vscode,
            &linux,
            &["/p/.vscode/mcp.json", "/h/.config/Code/User/mcp.json"],
        );
        check(
            Client::Codex,
            &linux,
            &["/p/.codex/config.toml", "/h/.codex/config.toml"],
        );
        let mac = User::new(System::MacOs, plain);
        check(
            Client::ClaudeDesktop,
            &mac,
            &["/h/Library/Application Support/Claude/claude_desktop_config.json"],
        );
        let windows = User::new(System::Windows, |name| match name {
            "USERPROFILE" => Some("/u".into()),
            "APPDATA" => Some("/u/Roaming".into()),
            _ => None,
        });
        check(
            Client::ClaudeDesktop,
            &windows,
            &["/u/Roaming/Claude/claude_desktop_config.json"],
        );
        check(
            Client::Cursor,
            &windows,
            &["/p/.cursor/mcp.json", "/u/.cursor/mcp.json"],
        );
        let moved = User::new(System::Linux, |name| match name {
            "HOME" => Some("/h".into()),
            "XDG_CONFIG_HOME" => Some("/x".into()),
            "CODEX_HOME" => Some("/c".into()),
            "CLAUDE_CONFIG_DIR" => Some("/cc".into()),
            _ => None,
        });
        check(
            Client::ClaudeDesktop,
            &moved,
            &["/x/Claude/claude_desktop_config.json"],
        );
        check(
            Client::Codex,
            &moved,
            &["/p/.codex/config.toml", "/c/config.toml"],
        );
        check(
            Client::ClaudeCode,
            &moved,
            &["/p/.mcp.json", "/cc/.claude.json"],
        );
        let nobody = User::new(System::Linux, |_| None);
        check(Client::ClaudeDesktop, &nobody, &[]);
    }
}
