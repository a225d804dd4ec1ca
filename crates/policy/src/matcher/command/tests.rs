use countersign_canon::Limits;

use super::*;

/// The programs of a shell line, or why they are not clear.
fn check(line: &str, expect: Result<&[&str], Unclear>) {
    let command = Command::from_line(line);
    let found = match &command {
        Command::Clear(_) => Ok(command.binaries().collect::<Vec<_>>()),
        Command::Unclear(reason) => Err(*reason),
    };
    assert_eq!(found, expect.map(<[&str]>::to_vec), "{line:?}");
}

#[test]
fn simple_commands() {
    check("ls", Ok(&["ls"]));
    check("  ls  -la\t/tmp ", Ok(&["ls"]));
    check("/usr/bin/git status", Ok(&["/usr/bin/git"]));
    check("./run", Ok(&["./run"]));
    check("git log --format='%h; rm -rf /'", Ok(&["git"]));
    check(r#"echo "a && b | c > d""#, Ok(&["echo"]));
    check(r"echo a\;b \$x \>y", Ok(&["echo"]));
    check("git stash@{0}", Ok(&["git"]));
    check("ls *.rs ~/x $HOME ${HOME} \"$HOME\"", Ok(&["ls"]));
    check("git commit -m \"Fix it!\"", Ok(&["git"]));
    check("test a != b", Ok(&["test"]));
    check("echo a#b", Ok(&["echo"]));
    check("'ls'", Ok(&["ls"]));
    check("l's'", Ok(&["ls"]));
    check(r"\ls", Ok(&["ls"]));
}

#[test]
fn joined_commands() {
    check("a; b", Ok(&["a", "b"]));
    check("a;b;", Ok(&["a", "b"]));
    check("a && b || c", Ok(&["a", "b", "c"]));
    check("a | b |& c", Ok(&["a", "b", "c"]));
    check("a & b &", Ok(&["a", "b"]));
    check("a&&b", Ok(&["a", "b"]));
    check("a\nb\n\nc\n", Ok(&["a", "b", "c"]));
    check("cd /tmp && git status", Ok(&["cd", "git"]));
}

#[test]
fn substitutions_and_redirections() {
    for line in [
        "echo $(id)",
        "echo `id`",
        "echo \"$(id)\"",
        "echo \"`id`\"",
        "$(id)",
        "echo ${x:=$(id)}",
        "echo ${x@P}",
        "echo ${!x}",
        "echo $((1+a[`id`]))",
        "echo $[1]",
        "echo $'\\x3b'",
        "echo $\"x\"",
        "echo $1",
        "echo $@",
        "echo a$",
        "echo \"a$\"",
        "ls !rm",
        "echo \"!rm\"",
        "echo ${x",
        "echo ${}",
    ] {
        check(line, Err(Unclear::Substitution));
    }
    for line in [
        "a > b", "a >> b", "a < b", "a << E", "a <(b)", "a >(b)", "a 2>&1", "a &> b", "a >| b",
        "a <> b", "> b", "a <<< b", "a|>b",
    ] {
        check(line, Err(Unclear::Redirection));
    }
}

#[test]
fn syntax_beyond_simple_commands() {
    for line in [
        "(a)",
        "a; (b)",
        "f() { a; }",
        "a # b",
        "# a",
        "if a; then b; fi",
        "while a; do b; done",
        "for x in a; do b; done",
        "case a in b) c;; esac",
        "! a",
        "a;; b",
        "a \\\n b",
        "echo \"a\\\nb\"",
        "coproc a",
        "function f",
        "{ a; }",
        "[[ a ]]",
    ] {
        check(line, Err(Unclear::Syntax));
    }
    for line in [
        "[ a ]", "{a,b}", "$x", "${x} b", "a; $x", "*", "~/bin/a", "l? b", "\"$x\"",
    ] {
        check(line, Err(Unclear::Program));
    }
    for line in [
        "A=b c",
        "PATH=/x git",
        "A=b",
        "a; A=b c",
        "A+=b c",
        "env A=b c",
        "sudo A=b c",
    ] {
        check(line, Err(Unclear::Assignment));
    }
    for line in ["a 'b", "a \"b", "a \\", "a \"b\\"] {
        check(line, Err(Unclear::Unclosed));
    }
    for line in ["", " ", ";", "\n\n", "&&", "''", "\"\" b", "a; ''"] {
        check(line, Err(Unclear::Missing));
    }
    for line in [
        "a\0b",
        "a\rb",
        "a\u{1b}b",
        "a\u{7f}",
        "a\u{a0}b",
        "a\u{2028}b",
        "a\u{3000}rm",
    ] {
        check(line, Err(Unclear::Character));
    }
    check(&"a ".repeat(1 << 16), Err(Unclear::TooLong));
    check(&"a;".repeat(300), Err(Unclear::TooLong));
}

#[test]
fn builtins_wrappers_and_shells() {
    check("sudo rm -rf /", Ok(&["sudo", "rm"]));
    check(
        "sudo nice nohup /bin/rm",
        Ok(&["sudo", "nice", "nohup", "/bin/rm"]),
    );
    check("/usr/bin/env python x.py", Ok(&["/usr/bin/env", "python"]));
    check("time ls", Ok(&["time", "ls"]));
    check("timeout 5s git fetch", Ok(&["timeout", "git"]));
    check("env", Ok(&["env"]));
    check("ls | xargs rm -f", Ok(&["ls", "xargs", "rm"]));
    check("sh -c 'a; b'", Ok(&["sh", "a", "b"]));
    check("bash -c \"sh -c 'a && b'\"", Ok(&["bash", "sh", "a", "b"]));
    check("sudo sh -c a", Ok(&["sudo", "sh", "a"]));
    check("find . -name '*.rs'", Ok(&["find"]));
    check("command ls", Ok(&["command", "ls"]));
    for line in [
        "eval ls",
        "source x",
        ". x",
        "trap x EXIT",
        "alias a=b",
        "export A=b",
        "'eval' x",
        "set -x",
        "builtin eval x",
    ] {
        check(line, Err(Unclear::Builtin));
    }
    for line in [
        "sudo -u root rm",
        "env -S 'rm x'",
        "env -i a",
        "nice -n 5 a",
        "xargs -I{} sh -c a",
        "timeout -s KILL 5 a",
        "timeout x a",
        "timeout $x a",
        "find . -exec rm {} +",
        "find . -okdir rm",
        "find . $x",
        "find . *",
        "watch ls",
        "su -c ls",
        "ssh host ls",
        "/usr/bin/strace ls",
        "xargs timeout",
        "xargs find",
    ] {
        check(line, Err(Unclear::Wrapper));
    }
    for line in [
        "sudo $x",
        "env $x a",
        "nohup *",
        "xargs env",
        "xargs sudo",
        "xargs nice nohup",
    ] {
        check(line, Err(Unclear::Program));
    }
    for line in [
        "sh",
        "sh x.sh",
        "bash -lc a",
        "sh -c \"$x\"",
        "sh -c a b",
        "sh -c",
        "curl x | sh",
        "bash -x",
        "zsh -c a",
        "fish",
        "busybox sh",
        "pwsh -c a",
        "xargs sh",
        "xargs sh -c a",
        "/bin/bash --norc",
    ] {
        check(line, Err(Unclear::Shell));
    }
    check("sh -c 'echo $(id)'", Err(Unclear::Substitution));
    check("sh -c 'a > b'", Err(Unclear::Redirection));
    check(&"sudo ".repeat(20), Err(Unclear::TooLong));
}

/// The programs of a call, or why they are not clear.
fn check_args(args: &str, expect: Result<&[&str], Unclear>) {
    let args = Json::admit(args.as_bytes(), &Limits::event()).unwrap();
    let command = Command::from_args(&args);
    let found = match &command {
        Command::Clear(_) => Ok(command.binaries().collect::<Vec<_>>()),
        Command::Unclear(reason) => Err(*reason),
    };
    assert_eq!(found, expect.map(<[&str]>::to_vec), "{args:?}");
}

#[test]
fn forms_of_arguments() {
    check_args(r#"{"bin":"git"}"#, Ok(&["git"]));
    check_args(r#"{"bin":"git","domain":"d"}"#, Ok(&["git"]));
    check_args(
        r#"{"bin":"git","args":["log","; rm -rf /","$(id)"]}"#,
        Ok(&["git"]),
    );
    check_args(r#"{"bin":"sudo","args":["rm"]}"#, Ok(&["sudo", "rm"]));
    check_args(
        r#"{"bin":"sh","args":["-c","a; b"]}"#,
        Ok(&["sh", "a", "b"]),
    );
    check_args(r#"{"bin":"git status"}"#, Ok(&["git status"]));
    check_args(r#"{"bin":"A=b"}"#, Ok(&["A=b"]));
    check_args(r#"{"cmd":"ls | wc"}"#, Ok(&["ls", "wc"]));
    check_args(r#"{"command":"ls"}"#, Ok(&["ls"]));
    check_args(r#"{"command":["git","log","a b"]}"#, Ok(&["git"]));
    check_args(
        r#"{"command":["bash","-c","a|b"]}"#,
        Ok(&["bash", "a", "b"]),
    );
    check_args(r#"{"command":"git","args":["log","-1"]}"#, Ok(&["git"]));
    check_args(r#"{"command":"ls","env":{},"shell":false}"#, Ok(&["ls"]));
}

#[test]
fn arguments_that_are_not_clear() {
    check_args(r#"{}"#, Err(Unclear::Missing));
    check_args(r#"null"#, Err(Unclear::Missing));
    check_args(r#"[]"#, Err(Unclear::Missing));
    check_args(r#"{"args":["ls"]}"#, Err(Unclear::Missing));
    check_args(r#"{"bin":""}"#, Err(Unclear::Missing));
    check_args(r#"{"cmd":[]}"#, Err(Unclear::Missing));
    check_args(r#"{"bin":"git","cmd":"rm"}"#, Err(Unclear::Several));
    check_args(r#"{"cmd":"git","command":"rm"}"#, Err(Unclear::Several));
    check_args(r#"{"cmd":["git"],"args":["x"]}"#, Err(Unclear::Several));
    check_args(r#"{"bin":null}"#, Err(Unclear::NotText));
    check_args(r#"{"bin":["git"]}"#, Err(Unclear::NotText));
    check_args(r#"{"bin":5}"#, Err(Unclear::NotText));
    check_args(r#"{"bin":"git","args":"log"}"#, Err(Unclear::NotText));
    check_args(r#"{"bin":"git","args":[1]}"#, Err(Unclear::NotText));
    check_args(r#"{"cmd":["git",null]}"#, Err(Unclear::NotText));
    check_args(r#"{"cmd":{"bin":"git"}}"#, Err(Unclear::NotText));
    check_args(r#"{"bin":"a\u0000b"}"#, Err(Unclear::Character));
    check_args(
        r#"{"command":"git","args":["log; rm"]}"#,
        Err(Unclear::Syntax),
    );
    check_args(
        r#"{"command":"git log","args":["x"]}"#,
        Err(Unclear::Syntax),
    );
    check_args(
        r#"{"bin":"git","env":{"PATH":"/x"}}"#,
        Err(Unclear::Surroundings),
    );
    check_args(r#"{"bin":"git","shell":true}"#, Err(Unclear::Surroundings));
    check_args(
        r#"{"cmd":"git","shell":"/bin/zsh"}"#,
        Err(Unclear::Surroundings),
    );
    check_args(r#"{"bin":"env","argv":["rm"]}"#, Err(Unclear::Surroundings));
}

fn check_allowed(line: &str, bins: &[&str], patterns: &[&str], expect: bool) {
    let bins = bins.iter().map(|bin| (*bin).to_owned()).collect();
    let mut compiled = ArgPatterns::default();
    for pattern in patterns {
        compiled.add(pattern).unwrap();
    }
    let command = Command::from_line(line);
    assert_eq!(
        command.allowed(&bins, &compiled),
        expect,
        "{line} {bins:?} {patterns:?}"
    );
}

#[test]
fn allowed() {
    check_allowed("git status", &["git"], &[], true);
    check_allowed("git", &["/usr/bin/git"], &[], false);
    check_allowed("/usr/bin/git", &["git"], &[], false);
    check_allowed("/usr/bin/../bin/git", &["/usr/bin/git"], &[], false);
    check_allowed("GIT", &["git"], &[], false);
    check_allowed("ls", &[], &[], false);
    check_allowed("git log; rm x", &["git"], &[], false);
    check_allowed("git log; rm x", &["git", "rm"], &[], true);
    check_allowed("sudo git log", &["git"], &[], false);
    check_allowed("sudo git log", &["git", "sudo"], &[], true);
    check_allowed("git $(rm)", &["git", "rm"], &[], false);
    check_allowed("git > /etc/passwd", &["git"], &[], false);
    check_allowed("sh -c 'git log'", &["sh"], &[], false);
    check_allowed("sh x", &["sh"], &[], false);
}

#[test]
fn argument_patterns_match_from_end_to_end() {
    check_allowed("git status", &["git"], &["status|log( -[0-9]+)?"], true);
    check_allowed("git log -5", &["git"], &["status|log( -[0-9]+)?"], true);
    check_allowed("git status -s", &["git"], &["status|log( -[0-9]+)?"], false);
    check_allowed("git push", &["git"], &["status", "push"], true);
    check_allowed("git", &["git"], &["status"], false);
    check_allowed("git", &["git"], &[""], true);
    check_allowed("git 'status\nrm'", &["git"], &["status.*"], false);
    check_allowed("git 'status\n'", &["git"], &["status$"], false);
    check_allowed("git status; git push", &["git"], &["status"], false);
    check_allowed("git $x", &["git"], &[".*"], false);
    check_allowed("git *", &["git"], &[".*"], false);
    check_allowed("ls | xargs git", &["ls", "xargs", "git"], &[".*"], false);
    check_allowed("git aab", &["git"], &["(a|aa)b?"], true);
}

#[test]
fn patterns_that_are_none() {
    for pattern in [
        "(",
        "a)|(b",
        "[",
        "a{2,1}",
        "(?x)a # b",
        "\\",
        "a{1000}{1000}{1000}",
    ] {
        assert!(ArgPatterns::default().add(pattern).is_err(), "{pattern}");
    }
    // Time stays linear where a backtracking matcher would never end.
    check_allowed(
        &format!("git {}!", "a".repeat(5000)),
        &["git"],
        &["(a*)*b", "(a|a)*"],
        false,
    );
}

#[test]
fn builtins_that_set_variables_or_evaluate_subscripts() {
    for line in [
        "printf -v PATH /tmp/evil; git status",
        "printf -vPATH /tmp/evil",
        "builtin printf -v x y",
        "test -v 'a[$(id)]'",
        "'[' -v 'a[$(id)]' ']'",
        "'[' -R x ']'",
        "sh -c 'printf -v x y'",
    ] {
        check(line, Err(Unclear::Builtin));
    }
    check("printf %s -x", Ok(&["printf"]));
    check("test -n x", Ok(&["test"]));
}

#[test]
fn arguments_under_other_names_are_no_hiding_place() {
    for args in [
        r#"{"bin":"ls","CMD":"rm x"}"#,
        r#"{"bin":"ls","Env":{"LD_PRELOAD":"x"}}"#,
        r#"{"bin":"ls","environ":{"LD_PRELOAD":"x"}}"#,
        r#"{"bin":"ls","command_line":"rm x"}"#,
        r#"{"bin":"ls","commands":["rm x"]}"#,
        r#"{"bin":"ls","interpreter":"/bin/sh"}"#,
    ] {
        let args = Json::admit(args.as_bytes(), &Limits::event()).unwrap();
        assert_eq!(
            Command::from_args(&args),
            Command::Unclear(Unclear::Surroundings)
        );
    }
    let args = r#"{"bin":"ls","env":{},"commands":[],"cwd":"/"}"#;
    let args = Json::admit(args.as_bytes(), &Limits::event()).unwrap();
    assert!(matches!(Command::from_args(&args), Command::Clear(_)));
}
