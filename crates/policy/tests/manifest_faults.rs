//! What a manifest is told when it is not valid: everything at once, with the place.
#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

use countersign_policy::manifest::Manifest;

/// Reads a manifest and compares the text of the refusal.
fn check(text: &str, expect: &[&str]) {
    let error = Manifest::read(text.as_bytes()).unwrap_err();
    let lines: Vec<String> = error.to_string().lines().map(str::to_owned).collect();
    assert_eq!(lines, expect, "{text}");
}

/// Reads a manifest that is valid but for some members.
fn check_aegis(members: &str, expect: &[&str]) {
    check(&with_head("aegis.dev/manifest/v0.1", members), expect);
}

fn check_ours(members: &str, expect: &[&str]) {
    check(&with_head("countersign/manifest/v1", members), expect);
}

fn with_head(schema: &str, members: &str) -> String {
    format!(r#"{{"schema":"{schema}","name":"n","version":"1","publisher":"p",{members}}}"#)
}

#[test]
fn the_top_level() {
    check(
        "{}",
        &[
            "`/schema`: missing, expected `aegis.dev/manifest/v0.1` or `countersign/manifest/v1`",
            "`/name`: missing",
            "`/version`: missing",
            "`/publisher`: missing",
        ],
    );
    check(
        r#"{"schema":"aegis.dev/manifest/v0.2","name":"","version":1.0,"publisher":null}"#,
        &[
            "`/schema`: `aegis.dev/manifest/v0.2` is not one of `aegis.dev/manifest/v0.1`, `countersign/manifest/v1`",
            "`/name`: must not be empty",
            "`/version`: expected a string, found the number `1.0`",
            "`/publisher`: expected a string, found null",
        ],
    );
    check_aegis(
        r#""permission":{},"loops":{},"extra":1,"integrity":[]"#,
        &[
            "`/extra`: unknown field, expected one of `schema`, `name`, `version`, `publisher`, `permissions`, `sandbox`, `integrity`",
            "`/loops`: unknown field, expected one of `schema`, `name`, `version`, `publisher`, `permissions`, `sandbox`, `integrity`",
            "`/permission`: unknown field, did you mean `permissions`?",
            "`/integrity`: expected an object, found an array",
        ],
    );
    check("[]", &["the top level: expected an object, found an array"]);
}

#[test]
fn permissions() {
    check_aegis(
        r#""permissions":{
            "tools":["a",null,5,"","b c"],
            "budget":{},
            "budgets":{"max_steps":-1,"max_tool_calls":1.5,"timeout_ms":"x","max_wall_time_ms":true,
                "max_output_bytes":null,"max_model_calls":[],"max_step":1},
            "secrets":"TOKEN",
            "exec":{"allowed_bins":[5],"arg_patterns":["(","ok"]},
            "approval_required":{}
        }"#,
        &[
            "`/permissions/budget`: unknown field, did you mean `budgets`?",
            "`/permissions/tools/1`: expected a string, found null",
            "`/permissions/tools/2`: expected a string, found the number `5`",
            "`/permissions/tools/3`: must not be empty",
            "`/permissions/tools/4`: `b c` is not a tool name: white space",
            "`/permissions/secrets`: expected an array of strings, found a string",
            "`/permissions/exec/allowed_bins/0`: expected a string, found the number `5`",
            "`/permissions/exec/arg_patterns/0`: `(` is not a pattern: found open group without closing ')'",
            "`/permissions/approval_required`: expected an array of strings, found an object",
            "`/permissions/budgets/max_step`: unknown field, did you mean `max_steps`?",
            "`/permissions/budgets/max_steps`: expected a non-negative integer, found the number `-1`",
            "`/permissions/budgets/max_tool_calls`: expected a non-negative integer, found the number `1.5`",
            "`/permissions/budgets/max_output_bytes`: expected a non-negative integer, found null",
            "`/permissions/budgets/timeout_ms`: expected a non-negative integer, found a string",
            "`/permissions/budgets/max_wall_time_ms`: expected a non-negative integer, found a boolean",
            "`/permissions/budgets/max_model_calls`: expected a non-negative integer, found an array",
        ],
    );
}

#[test]
fn hosts_and_roots() {
    check_aegis(
        r#""permissions":{
            "net":{"domains":["*","*com","*.","https://x.com","x.com/a","x.com:443","a@x.com","x..com","faß.de","*.10.0.0.1"]},
            "fs":{"read_roots":["work","/data/","/a/../b","/..","","~/x","/a\\b"],"write_root":[]}
        },"sandbox":{"required":true}"#,
        &[
            "`/permissions/fs/write_root`: unknown field, did you mean `write_roots`?",
            "`/permissions/fs/read_roots/0`: `work` is not a root: not an absolute path",
            "`/permissions/fs/read_roots/1`: `/data/` is not normalised, write `/data`",
            "`/permissions/fs/read_roots/2`: `/a/../b` is not normalised, write `/b`",
            "`/permissions/fs/read_roots/3`: `/..` is not a root: `..` leads above the root",
            "`/permissions/fs/read_roots/4`: must not be empty",
            "`/permissions/fs/read_roots/5`: `~/x` is not a root: `~`, drive letters and URLs are not allowed",
            "`/permissions/fs/read_roots/6`: `/a\\b` is not a root: control characters and backslashes are not allowed",
            "`/permissions/net/domains/0`: `*` is not a host pattern: `*` may only stand for the sub-domains of a name, as in `*.x.com`",
            "`/permissions/net/domains/1`: `*com` is not a host pattern: `*` may only stand for the sub-domains of a name, as in `*.x.com`",
            "`/permissions/net/domains/2`: `*.` is not a host pattern: no host",
            "`/permissions/net/domains/3`: `https://x.com` is not a host pattern: not a host name or address",
            "`/permissions/net/domains/4`: `x.com/a` is not a host pattern: not a host name or address",
            "`/permissions/net/domains/5`: `x.com:443` is not a host pattern: malformed port",
            "`/permissions/net/domains/6`: `a@x.com` is not a host pattern: not a host name or address",
            "`/permissions/net/domains/7`: `x..com` is not a host pattern: malformed label",
            "`/permissions/net/domains/8`: `faß.de` is not a host pattern: a character that clients map to different hosts; write the name in its `xn--` form",
            "`/permissions/net/domains/9`: `*.10.0.0.1` is not a host pattern: `*` may only stand for the sub-domains of a name, as in `*.x.com`",
        ],
    );
}

#[test]
fn tools_of_our_schema() {
    check_ours(
        r#""permissions":{"approval_required":[],"tools":{
            "a/b":{"side_effects":"read","side_effect":"reed","sink":"yes","on_taint":"allow"},
            "b":{"approval":"never","definition":"sha256:00","arguments":{"hosts":"/u","host":"url","path":["/p",5,"/~"],"binary":{}}},
            "c":5,
            "d e":{},
            "":{"labels":"x","server":""}
        }}"#,
        &[
            "`/permissions/approval_required`: unknown field, expected one of `tools`, `fs`, `net`, `secrets`, `exec`, `budgets`",
            "`/permissions/tools/`: a tool needs a name",
            "`/permissions/tools//server`: must not be empty",
            "`/permissions/tools//labels`: expected an array of strings, found a string",
            "`/permissions/tools/a~1b/side_effects`: unknown field, did you mean `side_effect`?",
            "`/permissions/tools/a~1b/side_effect`: `reed` is not one of `read`, `mutate-local`, `mutate-external`, `network-egress`, `unknown`",
            "`/permissions/tools/a~1b/sink`: expected a boolean, found a string",
            "`/permissions/tools/a~1b/on_taint`: `allow` is not one of `deny`, `hold`",
            "`/permissions/tools/b/arguments/hosts`: unknown field, did you mean `host`?",
            "`/permissions/tools/b/arguments/host`: `url` is not a JSON pointer: a pointer starts with `/`",
            "`/permissions/tools/b/arguments/path/1`: expected a string, found the number `5`",
            "`/permissions/tools/b/arguments/path/2`: `/~` is not a JSON pointer: `~` has to be written `~0`, and `/` in a name `~1`",
            "`/permissions/tools/b/arguments/binary`: expected an array of strings, found an object",
            "`/permissions/tools/b/approval`: `never` is not one of `required`, `not-required`",
            "`/permissions/tools/b/definition`: `sha256:00` is not `sha256:` and 64 lower-case hex digits",
            "`/permissions/tools/c`: expected an object, found the number `5`",
            "`/permissions/tools/d e`: `d e` is not a tool name: white space",
        ],
    );
}

#[test]
fn loops() {
    check_ours(
        r#""loops":{"identical_calls":1,"no_progress_steps":"3","sequence_min":9,"sequence_max":8}"#,
        &[
            "`/loops/no_progress_steps`: expected a non-negative integer, found a string",
            "`/loops/identical_calls`: must be 0 (off) or at least 2",
            "`/loops/sequence_max`: must be 0 (off) or at least `sequence_min`",
        ],
    );
    check_ours(
        r#""loops":{"sequence_max":17,"identical_calls":4294967296,"polling_tools":[5]}"#,
        &[
            "`/loops/identical_calls`: too large",
            "`/loops/polling_tools/0`: expected a string, found the number `5`",
            "`/loops/sequence_max`: must be at most 16",
        ],
    );
}

#[test]
fn sandbox_and_integrity() {
    check_aegis(
        r#""sandbox":{"required":"yes","image":"","mounts":[{}]},
        "integrity":{"files":{"../a":"00","b":5,"/c":""},"tree_sha256":"00","signature":"","sig":1}"#,
        &[
            "`/sandbox/required`: expected a boolean, found a string",
            "`/sandbox/image`: must not be empty",
            "`/sandbox/mounts/0`: expected a string, found an object",
            "`/integrity/sig`: unknown field, expected one of `files`, `tree_sha256`, `signature`",
            "`/integrity/files/..~1a`: a path has to be relative, without `.`, `..`, empty parts and backslashes",
            "`/integrity/files/..~1a`: `00` is not 64 lower-case hex digits",
            "`/integrity/files/~1c`: a path has to be relative, without `.`, `..`, empty parts and backslashes",
            "`/integrity/files/~1c`: must not be empty",
            "`/integrity/files/b`: expected a string, found the number `5`",
            "`/integrity/tree_sha256`: `00` is not 64 lower-case hex digits",
            "`/integrity/signature`: must not be empty",
        ],
    );
}

#[test]
fn effects_need_a_sandbox() {
    let refused = |members: &str, reason: &str| {
        let expect = format!("`/sandbox/required`: must be `true`, because {reason}");
        check_aegis(members, &[&expect]);
        let members = format!(r#"{members},"sandbox":{{"required":false}}"#);
        check_ours(&members, &[&expect]);
        let fine = members.replace("false", "true");
        assert!(Manifest::read(with_head("aegis.dev/manifest/v0.1", &fine).as_bytes()).is_ok());
    };
    for tool in [
        "exec",
        "fs.write",
        "mcp.http",
        "mcp.https",
        "net",
        "mcp.https.post",
        "EXEC",
    ] {
        let members = format!(r#""permissions":{{"tools":["a","{tool}"]}}"#);
        refused(&members, &format!("`{tool}` is a tool with effects"));
    }
    refused(
        r#""permissions":{"exec":{"allowed_bins":["git"]}}"#,
        "`/permissions/exec/allowed_bins` is not empty",
    );
    refused(
        r#""permissions":{"fs":{"write_roots":["/data"]}}"#,
        "`/permissions/fs/write_roots` is not empty",
    );
    refused(
        r#""permissions":{"net":{"domains":["x.com"]}}"#,
        "`/permissions/net/domains` is not empty",
    );
    for fine in [
        r#""permissions":{"tools":["read_file"],"fs":{"read_roots":["/"]}}"#,
        r#""permissions":{"fs":{"write_roots":[]},"net":{"domains":[]},"exec":{}}"#,
        r#""permissions":{}"#,
    ] {
        assert!(Manifest::read(with_head("aegis.dev/manifest/v0.1", fine).as_bytes()).is_ok());
    }
    check_aegis(
        r#""permissions":{"tools":["exec"],"tool":1}"#,
        &[
            "`/permissions/tool`: unknown field, did you mean `tools`?",
            "`/sandbox/required`: must be `true`, because `exec` is a tool with effects",
        ],
    );
}

#[test]
fn text_that_cannot_be_read() {
    check("", &["the top level: expected an object, found null"]);
    check(
        r#"{"name":"a","name":"b"}"#,
        &["duplicate key `name` at `/name` (byte 12)"],
    );
    check("{", &["unexpected end at the top level (byte 1)"]);
    check(
        r#"{"a":9007199254740993}"#,
        &["number does not survive a round trip through a double at `/a` (byte 5)"],
    );
    check(
        "name: a\nname: b\n",
        &["duplicate key `name` at line 2, column 1"],
    );
    check(
        "name: &a b\n",
        &["anchors and aliases are not allowed at line 1, column 7"],
    );
    check(
        &format!("a: {}", "[".repeat(40)),
        &["nested deeper than 32 at line 1, column 35"],
    );
    check(
        &"x".repeat((1 << 20) + 1),
        &["larger than 1048576 bytes at line 1, column 1"],
    );
    check(
        &format!("{{{}", " ".repeat(1 << 20)),
        &["larger than 1048576 bytes at the top level (byte 1048576)"],
    );
}
