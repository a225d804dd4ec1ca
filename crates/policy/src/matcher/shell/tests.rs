use super::*;

fn reads(lines: &[&str]) {
    for line in lines {
        assert_eq!(Effect::of_line(line), Effect::ReadOnly, "{line:?}");
    }
}

fn changes(lines: &[&str]) {
    for line in lines {
        let effect = Effect::of_line(line);
        assert!(
            matches!(effect, Effect::SideEffecting { .. }),
            "{line:?}: {effect:?}"
        );
    }
}

fn doubts(lines: &[&str]) {
    for line in lines {
        let effect = Effect::of_line(line);
        assert!(
            matches!(effect, Effect::Unknown { .. }),
            "{line:?}: {effect:?}"
        );
    }
}

fn never(lines: &[&str]) {
    for line in lines {
        let effect = Effect::of_line(line);
        assert!(!effect.is_read_only() && effect.why().is_some(), "{line:?}");
    }
}

#[test]
fn everyday_reading() {
    reads(&[
        "ls",
        "/bin/ls -la src",
        "ls -l | wc -l && pwd; date +%F",
        "cat a.txt b.txt 2>/dev/null",
        "cat < in.txt",
        "grep -rn 'foo bar' src/*.rs | sort -u | head -5",
        "echo hello >&2",
        "echo \"$HOME\" ~/x *.rs",
        "find . -name '*.rs' -type f -print0 | xargs -0 grep -l x",
        "find . \\( -name a -o -name 'b*' \\) ! -empty",
        "sed -n '1,20p' file",
        "sed 's/a/b/g; /x/d' file",
        "sed -E -e 's|a|b|' -e '$p' f",
        "sort -t, -k2n f | uniq -c",
        "git status",
        "git --no-pager log --oneline -n 5 --format=%h",
        "git diff --stat HEAD~1 -- src",
        "git branch -a",
        "git show HEAD:README.md",
        "git branch --list 'x*'",
        "git tag",
        "git config --get user.name",
        "rg -n --hidden 'x y' .",
        "jq -r '.a[0]' f.json",
        "bash -c 'ls | wc -l'",
        "env ls",
        "nice -n 5 ls",
        "timeout 5s ls",
        "command -v git",
        "echo $(git rev-parse HEAD)",
        "cat <(ls) `pwd`",
        "if test -f x; then cat x; else echo none; fi",
        "( cd src && ls )",
        "cd src && find . -name x",
        "sed 's/[^a]/x/' f",
        "{ ls; pwd; } | cat",
        "! grep x y",
        "cat <<'END'\n$(sudo id) `rm x`\nEND",
        "cat <<END\nplain\nEND\nls",
        "cat <<< text",
        "ls \\\n  -l",
        "[ -f x ] && cat x",
        "du -sh . ; df -h",
    ]);
}

/// Every way past a classifier that is known from elsewhere.
#[test]
fn i07_known_bypasses() {
    never(&[
        "env sudo ls",
        "ls\nsudo rm -rf /",
        "ls & sudo reboot",
        "echo $(sudo id)",
        "echo `rm -rf x`",
        "cat <(sudo id)",
        "find . -delete",
        "sed -i s/a/b/ f",
        "awk 'BEGIN{system(\"id\")}'",
        "tee /etc/passwd",
        "echo x > ../outside",
        "echo x >> ~/.bashrc",
        "git branch -D main",
        "pytest",
        "printenv APPROVAL_KEY_PASSPHRASE",
    ]);
    reads(&[
        "echo 'a;sudo b'",
        "echo \"a && sudo b\"",
        "echo a\\;sudo",
        "grep '$(sudo id)' f",
    ]);
}

#[test]
fn i07_wrappers_show_what_they_run() {
    for wrapper in [
        "env",
        "nice",
        "nice -n 5",
        "xargs",
        "xargs -0 -n 1",
        "nohup",
        "timeout 5",
        "busybox",
        "command",
        "exec",
        "time",
        "setsid",
        "ionice",
        "stdbuf -o0",
        "sudo",
        "doas",
        "builtin",
        "watch",
        "strace",
        "unshare",
        "script -c",
        "flock f",
        "parallel",
        "chroot /",
        "ssh host",
        "su -c",
        "systemd-run",
        "find . -exec",
        "find . -execdir",
        "env -S",
        "env -i",
        "env PATH=.",
        "PATH=.",
        "xargs -I{}",
        "eval",
        "trap",
        "time -o f",
        "nice -n $HOME",
        "bash",
        "busybox sh -c",
    ] {
        never(&[
            &format!("{wrapper} rm -rf x"),
            &format!("{wrapper} sh -c 'rm x'"),
            &format!("ls | {wrapper} tee f"),
        ]);
    }
    never(&[
        "bash -c 'ls; rm x'",
        "sh -c \"$HOME\"",
        "bash script.sh",
        "bash -lc ls",
        "bash -c ls --rcfile",
        "zsh -c ls",
        "nohup ls",
        "busybox ls",
        "sudo ls",
        "env",
        "env -u X ls",
        "exec",
        "command",
        "xargs sh",
        "xargs env",
        "xargs -I{} sh -c {}",
    ]);
}

#[test]
fn compounds_are_as_bad_as_their_worst_part() {
    for join in ["; ", " && ", " || ", " | ", " & ", "\n", " |& ", ";"] {
        changes(&[&format!("ls{join}rm x"), &format!("rm x{join}ls")]);
        doubts(&[&format!("ls{join}frobnicate")]);
    }
    changes(&[
        "(rm x)",
        "{ rm x; }",
        "if rm x; then ls; fi",
        "if ls; then rm x; fi",
        "while rm x; do ls; done",
        "! rm x",
        "until ls; do rm x; done",
        "echo \"$(rm x)\"",
        "echo \"`rm x`\"",
        "echo $(echo $(rm x))",
        "cat <(ls; rm x)",
        "ls > >(tee f)",
        "echo `echo \\`rm x\\``",
        "ls\\\n;rm x",
        "r''m x",
        "r\\m x",
        "\"rm\" x",
        "/usr/bin/rm x",
        "cat <<E; rm x\nx\nE",
        "cat <<E\nx\nE\nrm x",
        "cat <<-E\n\tx\n\tE\nrm x",
    ]);
}

#[test]
fn redirections_write() {
    changes(&[
        "ls > f",
        "ls >> f",
        "ls >| f",
        "ls 2> f",
        "ls >& f",
        "> f",
        "ls <> f",
        "exec > f",
        "(ls) > f",
        "{ ls; } > f",
        "ls >$HOME",
        "ls > '/dev/nullx'",
        "ls > /dev/tcp/x/80",
        "ls 1>/dev/null 2>err",
        "ls >*",
    ]);
    never(&["ls &> f", "ls &>> f"]);
    doubts(&[
        "echo x &>/dev/null rm y",
        "echo $(cat <<E\nx\n)\nrm x\nE",
        "ls $(cat <<E\nx\nE\n)",
        "cat <<E \"$(\nls\n)\"\nE\n",
        "cat <<E 'a\nE\nb'\nx\nE",
        "cd evil && git status",
        "command cd evil && git status",
        "cd evil && xargs git log",
        "cd evil; bash -c 'git status'",
        "sed 's/[]/]/x/' f",
        "cat < /dev/tcp/x/80",
        "cat < /proc/self/environ",
        "ls >",
        "cat <<E\nx",
        "cat <<E\n$(rm x)\nE",
    ]);
    reads(&["ls >/dev/null 2>&1", "ls 2>&-", "ls </dev/null"]);
}

#[test]
fn expansions_do_not_smuggle_options_or_secrets() {
    never(&[
        "echo $SECRET",
        "echo ${SECRET}",
        "echo \"${HOME:-x}\"",
        "echo ${!HOME}",
        "echo $((1+1))",
        "echo $[1]",
        "echo $'x'",
        "echo ${HOME@P}",
        "$HOME/x",
        "l*",
        "{rm,x}",
        "r{m,x} y",
        "sort $HOME",
        "sort *",
        "find $HOME",
        "find *",
        "find . -name *",
        "sort {-o,f}",
        "uniq a*",
        "uniq a b",
        "git log *",
        "git log $(cat f)",
        "sort -k *",
        "sed *",
        "sed $HOME f",
        "uniq $(ls)",
        "cat /proc/self/environ",
        "cat /proc/*/environ",
        "cat /p*/self/env*",
        "cat ../../proc/1/environ",
        "ls /dev/x",
        "cat /*/self/environ",
        "head -c1 /dev/watchdog",
        "jq -n env",
        "jq -n '$ENV'",
        "jq --arg a b env",
        "ps e",
        "set",
        "export -p",
        "declare -p",
        "echo !!",
        "X=1 ls",
        "X=1",
        "a[0]=1 ls",
        "X+=1 ls",
        "alias ls=rm",
        "ls() { rm x; }",
        "function f { ls; }",
        "for f in x; do ls; done",
        "case x in x) ls;; esac",
        "[[ -f x ]]",
        "((1))",
        "ls # x",
        "coproc ls",
        "select x in y; do ls; done",
        "test -v 'a[$(id)]'",
        "[ 'a[`id`]' -eq 1 ]",
        "printf -v PATH x",
        "ls\r",
        "ls\u{a0}x",
        "ls \u{0}",
        "'ls",
        "\"ls",
        "ls $(",
        "ls `",
        "ls (x)",
        "ls )",
        "",
        " ",
        ";",
        "./ls",
        "bin/ls",
        "/tmp/ls",
        "~/ls",
    ]);
}

#[test]
fn options_that_write_or_run() {
    never(&[
        "find . -exec rm {} ;",
        "find . -execdir x \\;",
        "find . -ok x \\;",
        "find . -fprint f",
        "find . -fls f",
        "find . -fprintf f x",
        "sed --in-place s/a/b/ f",
        "sed -ni p f",
        "sed -Ei p f",
        "sed 'w f' x",
        "sed '1e id' x",
        "sed 's/a/b/w f' x",
        "sed 's/a/id/e' x",
        "sed -f s x",
        "sed -n -e p -e 'w f' x",
        "sed 'r f' x",
        "sed p;w",
        "sed '/[/]/w f' x",
        "sed 's/[/]/x/;w f/' x",
        "sed '1{w f\n}' x",
        "sed 'y/a/b/' x",
        "sort -o f x",
        "sort --output=f x",
        "sort --outpu=f x",
        "sort -uo f x",
        "sort --compress-program=id x",
        "sort -T d x",
        "git -c core.pager=id log",
        "git -p log",
        "git --paginate log",
        "git -C d status",
        "git --git-dir=d status",
        "git --exec-path=d status",
        "git diff --ext-diff",
        "git diff --ext",
        "git log --textconv -p",
        "git diff --output=f",
        "git diff --outpu=f",
        "git log --show-signature",
        "git log --format=%G?",
        "git grep -O x",
        "git grep --open-files-in-pager=id x",
        "git grep -Oless x",
        "git branch x",
        "git branch -m x",
        "git tag x",
        "git tag -v x",
        "git tag -d x",
        "git config user.name x",
        "git config --get --unset x",
        "git config -e",
        "git remote add a b",
        "git remote show a",
        "git stash",
        "git stash pop",
        "git reflog expire",
        "git worktree add x",
        "git push",
        "git fetch",
        "git cat-file --textconv x",
        "git blame --contents f x",
        "git",
        "git x",
        "git ls-remote",
        "git bisect run id",
        "git submodule foreach id",
        "git rev-parse --parseopt",
        "git help log",
        "rg --pre id x",
        "rg --pre=id x",
        "rg -z x",
        "rg --hostname-bin id x",
        "rg --search-zip x",
        "tree -o f",
        "tree -R -H . -L 1",
        "diff -l a b",
        "diff --paginate a b",
        "date -s 1",
        "date 010100002020",
        "date --set=1",
        "hostname x",
        "uniq in out",
        "base64 -o f x",
        "file -C -m x",
        "file -z x",
        "xxd a b",
        "tar tf x",
        "tar --to-command=id -xf x",
        "man ls",
        "less f",
        "more f",
        "vim f",
        "python -c 1",
        "perl -e 1",
        "ruby -e 1",
        "node -e 1",
        "lua -e 1",
        "dd if=a of=b",
        "cp a b",
        "mv a b",
        "ln a b",
        "touch a",
        "mkdir a",
        "curl x",
        "wget x",
        "nc x 1",
        "ssh x",
        "make",
        "cargo test",
        "npm test",
        "docker ps",
        "kubectl get pods",
        "zip a b",
        "gzip a",
        "split a",
        "csplit a 1",
        "install a b",
        "crontab -l",
        "at now",
        "gdb x",
        "ed f",
        "arch ls",
        "column f",
        "fd x -x rm",
        "watch ls",
        "script f",
    ]);
}

#[test]
fn arguments_of_exec_tools() {
    let of = |text: &str| {
        let limits = countersign_canon::Limits::plan();
        Effect::of_args(&Json::admit(text.as_bytes(), &limits).unwrap())
    };
    assert!(of(r#"{"command":"ls | wc -l"}"#).is_read_only());
    assert!(of(r#"{"bin":"ls","args":["-l","a;rm x"]}"#).is_read_only());
    assert!(of(r#"{"command":["cat","$SECRET"]}"#).is_read_only());
    for text in [
        r#"{}"#,
        r#"{"command":"ls","env":{"PATH":"."}}"#,
        r#"{"command":"ls","cmd":"rm"}"#,
        r#"{"bin":"rm","args":["x"]}"#,
        r#"{"bin":"sh","args":["-c","rm x"]}"#,
        r#"{"command":["sort","-o","f"]}"#,
        r#"{"command":"ls","args":["; rm x"]}"#,
        r#"{"command":5}"#,
    ] {
        assert!(!of(text).is_read_only(), "{text}");
    }
}

#[test]
fn hostile_lines_end() {
    for piece in [
        "$(", "`", "(", "{", "\"$(", "<(", "'", "\\", "<<E\n", ";", "if ", "!", "env ", "bash -c ",
    ] {
        never(&[&piece.repeat(20_000), &piece.repeat(500)]);
    }
    never(&[&"ls;".repeat(400)]);
}
