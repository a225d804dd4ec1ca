//! Programs that run programs, by name.

/// What a program does with the rest of its command.
pub(super) enum Kind {
    /// Nothing that concerns us: its arguments are its own affair.
    Program,
    /// Runs the line after `-c`.
    Shell,
    /// Runs lines that are not understood.
    HiddenShell,
    /// Runs the rest as a command.
    Wrapper,
    /// Runs what follows a duration.
    Timed,
    /// Runs the rest as a command, with more words from elsewhere.
    Feeder,
    /// Runs something if it is told so by an option.
    Finder,
    /// Runs something that is not understood.
    Opaque,
    /// Runs text, or changes what later commands mean.
    Builtin,
}

/// The kind of a program, by its name without folders.
pub(super) fn kind(name: &str) -> Kind {
    let is_in = |names: &[&str]| names.contains(&name);
    match name {
        "timeout" => Kind::Timed,
        "xargs" => Kind::Feeder,
        "find" | "gfind" => Kind::Finder,
        _ if is_in(SHELLS) => Kind::Shell,
        _ if is_in(HIDDEN_SHELLS) => Kind::HiddenShell,
        _ if is_in(WRAPPERS) => Kind::Wrapper,
        _ if is_in(OPAQUE) => Kind::Opaque,
        _ if is_in(BUILTINS) => Kind::Builtin,
        _ => Kind::Program,
    }
}

/// Shells that read `-c LINE` as `line` does.
const SHELLS: &[&str] = &["sh", "bash", "dash", "ash"];

/// Shells with a syntax of their own.
const HIDDEN_SHELLS: &[&str] = &[
    "zsh",
    "ksh",
    "mksh",
    "rbash",
    "fish",
    "csh",
    "tcsh",
    "elvish",
    "nu",
    "xonsh",
    "pwsh",
    "powershell",
    "powershell.exe",
    "cmd",
    "cmd.exe",
    "busybox",
    "toybox",
];

/// Programs that run the command in their arguments and nothing else.
const WRAPPERS: &[&str] = &[
    "sudo",
    "doas",
    "env",
    "nice",
    "ionice",
    "nohup",
    "time",
    "setsid",
    "command",
    "exec",
    "builtin",
    "unbuffer",
    "caffeinate",
];

/// Programs that run a command which is not simply the rest of their arguments.
const OPAQUE: &[&str] = &[
    "su",
    "runuser",
    "chroot",
    "unshare",
    "nsenter",
    "strace",
    "ltrace",
    "gdb",
    "watch",
    "flock",
    "script",
    "parallel",
    "stdbuf",
    "taskset",
    "chrt",
    "numactl",
    "systemd-run",
    "at",
    "batch",
    "crontab",
    "ssh",
    "expect",
    "screen",
    "tmux",
    "entr",
    "setarch",
    "linux32",
    "linux64",
    "pkexec",
    "dbus-run-session",
    "start-stop-daemon",
    "cpulimit",
    "proot",
    "fakeroot",
    "ld.so",
    "ld-linux-x86-64.so.2",
    "rlwrap",
    "daemonize",
    "capsh",
    "setpriv",
    "bwrap",
    "firejail",
];

/// Builtins that run text, or that change what later commands mean.
const BUILTINS: &[&str] = &[
    "eval",
    "source",
    ".",
    "trap",
    "alias",
    "unalias",
    "export",
    "declare",
    "typeset",
    "local",
    "readonly",
    "set",
    "unset",
    "shopt",
    "enable",
    "hash",
    "bind",
    "complete",
    "compgen",
    "compopt",
    "fc",
    "let",
    "read",
    "mapfile",
    "readarray",
    "getopts",
];
