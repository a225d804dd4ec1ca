use super::*;
use crate::command::connect::client::Client;

const CURSOR: Form = Client::Cursor.form();
const CLAUDE_CODE: Form = Client::ClaudeCode.form();
const VSCODE: Form = Client::Vscode.form();

fn wrapper(options: &[&str]) -> Wrapper {
    Wrapper {
        program: "/bin/countersign".to_owned(),
        options: options.iter().map(|&option| option.to_owned()).collect(),
    }
}

/// What is written, that doing it again changes nothing, and that it can be taken back.
fn check(form: Form, text: &str, expect: &str) {
    let once = plan(text, form, &wrapper(&[]), &[]).unwrap();
    assert_eq!(once.text, expect);
    let again = plan(&once.text, form, &wrapper(&["--data=/elsewhere"]), &[]).unwrap();
    assert_eq!(again.text, expect);
    assert!(again.changes.is_empty());
    let back = release(&once.text, form, &wrapper(&[]), &[]).unwrap();
    assert_eq!(back.changes.len(), once.changes.len());
    let programs = |text: &str| -> Vec<(String, Vec<String>)> {
        let entries = entry::read(text, form).unwrap().entries;
        let programs = entries.into_iter().filter_map(|entry| match entry.kind {
            Kind::Program(program) => Some((program.command, program.args)),
            _ => None,
        });
        programs.collect()
    };
    assert_eq!(programs(&back.text), programs(text));
}

fn check_refused(form: Form, text: &str, message: &str) {
    let error = plan(text, form, &wrapper(&[]), &[]).unwrap_err();
    assert_eq!(error.message(), message, "{text}");
}

fn left(form: Form, text: &str) -> Vec<Reason> {
    let plan = plan(text, form, &wrapper(&[]), &[]).unwrap();
    assert_eq!(plan.text, text);
    plan.left.into_iter().map(|left| left.reason).collect()
}

#[test]
fn json_changes_in_commands_and_args_alone() {
    check(
        CURSOR,
        r#"{"mcpServers":{"a":{"command":"npx","args":["-y","x"]}}}"#,
        r#"{"mcpServers":{"a":{"command":"/bin/countersign","args":["mcp", "--server=a", "--", "npx", "-y","x"]}}}"#,
    );
    // The order of members, an empty list, no list, and a comma-first style.
    check(
        CURSOR,
        r#"{ "mcpServers" : { "a" : { "args" : [ ] , "env" : {} , "command" : "x" } } }"#,
        r#"{ "mcpServers" : { "a" : { "args" : ["mcp", "--server=a", "--", "x" ] , "env" : {} , "command" : "/bin/countersign" } } }"#,
    );
    check(
        CURSOR,
        r#"{"mcpServers":{"a":{"command":"x"}}}"#,
        r#"{"mcpServers":{"a":{"command":"/bin/countersign", "args": ["mcp", "--server=a", "--", "x"]}}}"#,
    );
    check(
        CURSOR,
        "{\"mcpServers\":{\"a\":\n{ \"command\":\"x\"\n, \"args\":[\"1\"\n,\"2\"]}}}",
        "{\"mcpServers\":{\"a\":\n{ \"command\":\"/bin/countersign\"\n, \"args\":[\"mcp\", \"--server=a\", \"--\", \"x\", \"1\"\n,\"2\"]}}}",
    );
}

#[test]
fn json_keeps_its_lines_tabs_and_endings() {
    check(
        CURSOR,
        "{\r\n\t\"mcpServers\": {\r\n\t\t\"a\": {\r\n\t\t\t\"command\": \"x\"\r\n\t\t}\r\n\t}\r\n}",
        "{\r\n\t\"mcpServers\": {\r\n\t\t\"a\": {\r\n\t\t\t\"command\": \"/bin/countersign\",\r\n\t\t\t\"args\": [\"mcp\", \"--server=a\", \"--\", \"x\"]\r\n\t\t}\r\n\t}\r\n}",
    );
    check(
        CURSOR,
        "{\"mcpServers\": {\"a\": {\n  \"args\": [\n    \"1\",\n    \"2\"\n  ],\n  \"command\": \"x\"}}}\n\n",
        "{\"mcpServers\": {\"a\": {\n  \"args\": [\n    \"mcp\",\n    \"--server=a\",\n    \"--\",\n    \"x\",\n    \"1\",\n    \"2\"\n  ],\n  \"command\": \"/bin/countersign\"}}}\n\n",
    );
}

#[test]
fn words_stay_words() {
    // A path with blanks, escapes, letters beyond ASCII, and a name that looks like an option.
    check(
        CURSOR,
        r#"{"mcpServers":{"-ü \"q\"":{"command":"C:\\My Apps\\s\u00e9rver.exe","args":["--\t","\ud83d\ude00"]}}}"#,
        r#"{"mcpServers":{"-ü \"q\"":{"command":"/bin/countersign","args":["mcp", "--server=-ü \"q\"", "--", "C:\\My Apps\\sérver.exe", "--\t","\ud83d\ude00"]}}}"#,
    );
    // Keys are what they denote, however they are written.
    check(
        CURSOR,
        r#"{"mcp\u0053ervers":{"":{"comm\u0061nd":"x","args":["--"]}}}"#,
        r#"{"mcp\u0053ervers":{"":{"comm\u0061nd":"/bin/countersign","args":["mcp", "--", "x", "--"]}}}"#,
    );
}

#[test]
fn options_stand_before_the_server() {
    let text = r#"{"mcpServers":{"a":{"command":"x","args":["1"]}}}"#;
    let wrapper = wrapper(&["--data=/d d", "--manifest=/m"]);
    let plan = plan(text, CURSOR, &wrapper, &[]).unwrap();
    let expect = [
        "mcp",
        "--data=/d d",
        "--manifest=/m",
        "--server=a",
        "--",
        "x",
        "1",
    ];
    assert_eq!(plan.changes[0].args, expect);
    assert_eq!(plan.changes[0].command, "/bin/countersign");
}

#[test]
fn projects_have_servers_of_their_own() {
    let text = r#"{"numStartups":1e400,"projects":{"/p":{"mcpServers":{"a":{"command":"x"}},"history":[{"mcpServers":{"no":{"command":"no"}}}]},"/q":null},"mcpServers":{"a":{"command":"y"}}}"#;
    let done = plan(text, CLAUDE_CODE, &wrapper(&[]), &[]).unwrap();
    let changed: Vec<_> = done
        .changes
        .iter()
        .map(|change| {
            (
                change.project.as_deref(),
                change.args.last().unwrap().as_str(),
            )
        })
        .collect();
    assert_eq!(changed, [(Some("/p"), "x"), (None, "y")]);
    assert!(done.text.contains(r#"{"no":{"command":"no"}}"#));
    // Other clients know no projects.
    let done = plan(text, CURSOR, &wrapper(&[]), &[]).unwrap();
    assert_eq!(done.changes.len(), 1);
}

#[test]
fn only_the_named_servers() {
    let text = r#"{"servers":{"a":{"type":"stdio","command":"x"},"b":{"command":"y"}},"mcpServers":{"b":{"command":"z"}}}"#;
    let done = plan(text, VSCODE, &wrapper(&[]), &["b".to_owned()]).unwrap();
    assert_eq!(done.changes.len(), 1);
    assert_eq!(done.changes[0].args, ["mcp", "--server=b", "--", "y"]);
    assert!(done.text.contains(r#""a":{"type":"stdio","command":"x"}"#));
}

#[test]
fn what_is_not_a_program_stays_and_is_named() {
    let check = |server: &str, reason: Reason| {
        let text = format!(r#"{{"mcpServers":{{"a":{server}}}}}"#);
        assert_eq!(left(CURSOR, &text), [reason], "{server}");
    };
    check(r#"{"url":"https://x"}"#, Reason::Remote);
    check(r#"{"type":"http","url":"https://x"}"#, Reason::Remote);
    check(r#"{"command":"x","url":null}"#, Reason::Remote);
    check(
        r#"{"command":"/bin/countersign","args":["mcp","--","x"]}"#,
        Reason::Already,
    );
    check(
        r#"{"command":"countersign","args":["mcp","--","x"]}"#,
        Reason::Already,
    );
    check(
        r#"{"command":"countersign","args":["mcp","--server","--mode=observe","--","x"],"env":{"KEY":"1"}}"#,
        Reason::Already,
    );
    let told = |args: &str, word: &str| {
        let server = format!(r#"{{"command":"countersign","args":["mcp",{args}"--","x"]}}"#);
        check(&server, Reason::Told(word.to_owned()));
    };
    told(r#""--manifest","./x","#, "--manifest");
    told(r#""--server=a","--data=./x","#, "--data");
    told(r#""--policy=x","#, "--policy");
    told(r#""--unknown-methods","pass","#, "--unknown-methods");
    told(r#""--mode","observe","#, "--mode");
    told(r#""serve","#, "serve");
    for name in ["COUNTERSIGN_DATA", "LD_PRELOAD", "home", "XDG_DATA_HOME"] {
        for command in [r#""countersign","args":["mcp","--","x"]"#, r#""npx""#] {
            let server = format!(r#"{{"env":{{"K":"","{name}":""}},"command":{command}}}"#);
            check(&server, Reason::Steered(name.to_owned()));
        }
    }
    let unclear = Reason::Unclear;
    check(
        r#"{"command":"countersign","args":["mcp","--server=a"]}"#,
        unclear("no command follows `--`"),
    );
    check(
        r#"{"type":"sse","command":"x"}"#,
        unclear("its type is not stdio"),
    );
    check("{}", unclear("it has no command"));
    check("7", unclear("it is not an object"));
    check(r#"{"command":["x"]}"#, unclear("its command is not a text"));
    check(
        r#"{"command":"x","args":"y"}"#,
        unclear("its args are not a list"),
    );
    check(
        r#"{"command":"x","args":[1]}"#,
        unclear("its args are not all texts"),
    );
    // What would be written now, and was not.
    let text =
        r#"{"mcpServers":{"a":{"command":"countersign","args":["mcp","--data=/a","--","x"]}}}"#;
    let reason = |options: &[&str]| {
        let plan = plan(text, CURSOR, &wrapper(options), &[]).unwrap();
        plan.left[0].reason.clone()
    };
    assert_eq!(reason(&["--data=/a"]), Reason::Already);
    assert_eq!(reason(&["--data=/b"]), Reason::Told("--data".to_owned()));
    let untold = Reason::Untold("--manifest".to_owned());
    assert_eq!(reason(&["--data=/a", "--manifest=/m"]), untold);
    // Our program, but not in front of a server.
    let text = r#"{"mcpServers":{"a":{"command":"countersign","args":["log","tail"]}}}"#;
    assert_eq!(
        plan(text, CURSOR, &wrapper(&[]), &[])
            .unwrap()
            .changes
            .len(),
        1
    );
}

#[test]
fn files_without_servers_stay_as_they_are() {
    for text in [
        "",
        " \r\n",
        "{}",
        r#"{"mcpServers":{}}"#,
        r#"{"other":[1]}"#,
    ] {
        assert_eq!(left(CURSOR, text), []);
    }
    for text in ["", "\n", "model = \"m\"\n", "[mcp_servers]\n"] {
        assert_eq!(left(Form::Toml, text), []);
    }
}

#[test]
fn what_two_readers_could_understand_differently_is_refused() {
    let comment = "a comment, which strict JSON does not have";
    let check = |text: &str, place: &str, message: &str| {
        check_refused(CURSOR, text, &format!("{place}: {message}"));
    };
    check("// hello\n{}", "line 1, column 1", comment);
    check("{\n  /* ü */ \"a\": 1}", "line 2, column 3", comment);
    check("{\"a\": 1} // end", "line 1, column 10", comment);
    check(
        "{\"ü\": [1,\n]}",
        "line 2, column 1",
        "a comma that nothing follows",
    );
    check(
        r#"{"mcpServers":{"a":{"command":"x","command":"y"}}}"#,
        "line 1, column 35",
        "duplicate key `command` at `/mcpServers/a/command` (byte 34)",
    );
    check(
        r#"{"a":1,"\u0061":2}"#,
        "line 1, column 8",
        "duplicate key `a` at `/a` (byte 7)",
    );
    check(
        "\u{feff}{}",
        "line 1, column 1",
        "byte order mark at the top level (byte 0)",
    );
    check(
        r#"{"mcpServers":[]}"#,
        "line 1, column 15",
        "expected an object at `/mcpServers` (byte 14)",
    );
    check(
        "{",
        "line 1, column 2",
        "unexpected end at the top level (byte 1)",
    );
    let toml = "[mcp_servers.a]\ncommand = \"x\"\ncommand = \"y\"\n";
    check_refused(Form::Toml, toml, "line 3, column 1: duplicate key");
    let toml = "mcp_servers = 1";
    check_refused(
        Form::Toml,
        toml,
        "line 1, column 15: `mcp_servers` is not a table",
    );
}

#[test]
fn toml_changes_in_commands_and_args_alone() {
    check(
        Form::Toml,
        "model = \"m\" # mine\r\n\r\n[mcp_servers.a] # a\r\ncommand = 'npx' # why\r\nargs = [ 'x', \"y\" ]\r\n[mcp_servers.a.env]\r\nK = \"v\"\r\n",
        "model = \"m\" # mine\r\n\r\n[mcp_servers.a] # a\r\ncommand = \"/bin/countersign\" # why\r\nargs = [ \"mcp\", \"--server=a\", \"--\", \"npx\", 'x', \"y\" ]\r\n[mcp_servers.a.env]\r\nK = \"v\"\r\n",
    );
    // Comments inside a list, and a comma at its end.
    check(
        Form::Toml,
        "[mcp_servers.\"a b\"]\nargs = [ # words\n  # first\n  \"x\", # one\n]\ncommand = \"s\"",
        "[mcp_servers.\"a b\"]\nargs = [ # words\n  # first\n  \"mcp\",\n  \"--server=a b\",\n  \"--\",\n  \"s\",\n  \"x\", # one\n]\ncommand = \"/bin/countersign\"",
    );
    check(
        Form::Toml,
        "[mcp_servers.a]\nargs = [ # none\n]\ncommand = \"s\"\n",
        "[mcp_servers.a]\nargs = [\"mcp\", \"--server=a\", \"--\", \"s\" # none\n]\ncommand = \"/bin/countersign\"\n",
    );
}

#[test]
fn toml_gets_args_where_it_has_none() {
    check(
        Form::Toml,
        "[mcp_servers.a]\r\n\tcommand = \"s\" # why\r\n\tenabled = true\r\n",
        "[mcp_servers.a]\r\n\tcommand = \"/bin/countersign\" # why\r\n\targs = [\"mcp\", \"--server=a\", \"--\", \"s\"]\r\n\tenabled = true\r\n",
    );
    check(
        Form::Toml,
        "[mcp_servers.a]\ncommand = '''C:\\x\ny'''",
        "[mcp_servers.a]\ncommand = \"/bin/countersign\"\nargs = [\"mcp\", \"--server=a\", \"--\", \"C:\\\\x\\ny\"]",
    );
    check(
        Form::Toml,
        "mcp_servers = { a = { command = \"s\" }, b = { url = \"u\" } }",
        "mcp_servers = { a = { command = \"/bin/countersign\", args = [\"mcp\", \"--server=a\", \"--\", \"s\"] }, b = { url = \"u\" } }",
    );
    check(
        Form::Toml,
        "[mcp_servers]\na.command = \"s\"\na.args = [\"x\"]\n",
        "[mcp_servers]\na.command = \"/bin/countersign\"\na.args = [\"mcp\", \"--server=a\", \"--\", \"s\", \"x\"]\n",
    );
    check(
        Form::Toml,
        "[mcp_servers.a]\ncommand = \"\\u007f\\u0000\\u0085\"",
        "[mcp_servers.a]\ncommand = \"/bin/countersign\"\nargs = [\"mcp\", \"--server=a\", \"--\", \"\\u007f\\u0000\u{85}\"]",
    );
    let reason = "it has no args: add `args = []` behind its command";
    let dotted = "[mcp_servers]\na.command = \"s\"\n";
    assert_eq!(left(Form::Toml, dotted), [Reason::Unclear(reason)]);
    let dotted = "mcp_servers.a.command = \"s\"\n";
    assert_eq!(left(Form::Toml, dotted), [Reason::Unclear(reason)]);
    let remote = "[mcp_servers.a]\nurl = \"u\"\n";
    assert_eq!(left(Form::Toml, remote), [Reason::Remote]);
}

#[test]
fn secrets_are_not_shown() {
    let text = r#"{"mcpServers":{"a":{"env":{"K":"s3cret","L":["s3cret"]},"command":"x"},"b":{"url":"u","headers":{"h":"s3cret"}}}}"#;
    let shown = masked(text, CURSOR).unwrap();
    assert_eq!(shown.matches("\"…\"").count(), 3);
    assert!(!shown.contains("s3cret"));
    let text = "[mcp_servers.a]\nenv = { K = \"s3cret\" }\n[mcp_servers.b.env]\nK = '''s3cret\n'''\n[mcp_servers.b.http_headers]\nh = \"s3cret\"\n";
    let shown = masked(text, Form::Toml).unwrap();
    assert_eq!(shown.matches("\"…\"").count(), 3);
    assert!(!shown.contains("s3cret"));
}

#[test]
fn thousands_of_servers() {
    let servers = |command: &str, args: &str| {
        let servers = (0..20_000).map(|number| {
            let args = args.replace('#', &number.to_string());
            format!(r#""s{number}":{{"command":"{command}","args":[{args}"x"]}}"#)
        });
        let servers: Vec<String> = servers.collect();
        format!(r#"{{"mcpServers":{{{}}}}}"#, servers.join(","))
    };
    let text = servers("c", "");
    let expect = servers("/bin/countersign", r##""mcp", "--server=s#", "--", "c", "##);
    let done = plan(&text, CURSOR, &wrapper(&[]), &[]).unwrap();
    assert_eq!(done.changes.len(), 20_000);
    assert!(done.text == expect);
}

#[test]
fn servers_are_taken_back_one_by_one() {
    let check = |text: &str, expect: &str| {
        let back = release(text, CURSOR, &wrapper(&[]), &["a".to_owned()]).unwrap();
        assert_eq!(back.text, expect);
    };
    check(
        r#"{"mcpServers":{"b":{"command":"countersign","args":["mcp","--","y"]},"a":{"command":"/bin/countersign","args":["mcp", "--data=/d", "--", "x", "--","1"]}}}"#,
        r#"{"mcpServers":{"b":{"command":"countersign","args":["mcp","--","y"]},"a":{"command":"x","args":["--","1"]}}}"#,
    );
    check(
        r#"{"mcpServers":{"a":{"command":"countersign","args":[ "mcp", "--", "x" ]}}}"#,
        r#"{"mcpServers":{"a":{"command":"x","args":[  ]}}}"#,
    );
    let reason = |args: &str| {
        let text =
            format!(r#"{{"mcpServers":{{"a":{{"command":"countersign","args":[{args}]}}}}}}"#);
        let back = release(&text, CURSOR, &wrapper(&[]), &[]).unwrap();
        assert_eq!(back.text, text);
        back.left[0].reason.clone()
    };
    let unclear = Reason::Unclear("no command follows `--`");
    assert_eq!(reason(r#""mcp","--""#), unclear);
    assert_eq!(reason(r#""mcp""#), unclear);
    assert_eq!(reason(r#""log","--","x""#), Reason::Apart);
}
