use countersign_canon::{Json, Limits};

use super::*;

#[test]
fn network_tools() {
    for name in [
        "net",
        "net.get",
        "mcp.http",
        "mcp.https",
        "mcp.https.post",
        "NET",
        "Mcp.Https.Post",
    ] {
        assert!(is_network_tool(name), "{name}");
    }
    for name in [
        "netstat",
        "network_tool",
        "mcp.httpsfoo",
        "mcp.httpx",
        "mcp",
        "",
        "xnet",
        "net_get",
    ] {
        assert!(!is_network_tool(name), "{name}");
    }
}

#[test]
fn exec_tools() {
    for name in ["exec", "exec.run", "EXEC", "Exec.Shell"] {
        assert!(is_exec_tool(name), "{name}");
    }
    for name in [
        "executive_summary",
        "exe",
        "myexec",
        "",
        "exe\u{301}c",
        "ｅｘｅｃ",
    ] {
        assert!(!is_exec_tool(name), "{name}");
    }
}

#[test]
fn sinks() {
    for name in SINKS {
        assert!(is_sink(name), "{name}");
        assert!(is_sink(&name.to_uppercase()), "{name}");
        assert!(is_sink(&format!("{name}.more")), "{name}");
        assert!(is_sink(&format!("{name}_more")), "{name}");
        assert!(is_sink(&format!("{name}-more")), "{name}");
        assert!(is_sink(&format!("{name}More")), "{name}");
        assert!(is_sink(&format!("{name}more")), "{name}");
        assert!(!is_sink(&format!("x{name}")), "{name}");
    }
    for name in [
        "execute_command",
        "executive_summary",
        "EXECUTIVE",
        "write_files",
        "fs.writer",
        "net.postx",
    ] {
        assert!(is_sink(name), "{name}");
    }
    for name in ["exe", "net.get", "mcp.https", "read_file", "é", ""] {
        assert!(!is_sink(name), "{name}");
    }
}

#[test]
fn cover() {
    assert!(covers("read_file", "read_file"));
    assert!(!covers("read_file", "Read_File"));
    assert!(!covers("read_file", "read_file.x"));
    assert!(covers("mcp.https", "mcp.https.post"));
    assert!(covers("mcp.https", "mcp.https.POST"));
    assert!(!covers("mcp.https", "mcp.httpsfoo"));
    assert!(!covers("mcp.http", "mcp.https"));
    assert!(!covers("mcp", "mcp.https"));
    assert!(!covers("", "exec"));
    assert!(!covers("mcp.https.post", "mcp.https"));
    assert!(covers("exec", "exec.shell"));
    assert!(!covers("exec", "EXEC"));
}

#[test]
fn the_most_specific_declaration_counts() {
    let text = br#"{"permissions":{"tools":["mcp.https","mcp.https.post","deploy","exec"]}}"#;
    let manifest = Manifest::partial(&Json::admit(text, &Limits::event()).unwrap()).unwrap();
    let entry = |called| declared(called, &manifest).map(|(entry, _)| entry);
    assert_eq!(entry("mcp.https"), Some("mcp.https"));
    assert_eq!(entry("mcp.https.get"), Some("mcp.https"));
    assert_eq!(entry("mcp.https.post"), Some("mcp.https.post"));
    assert_eq!(entry("mcp.https.post.json"), Some("mcp.https.post"));
    assert_eq!(entry("mcp.https."), Some("mcp.https"));
    assert_eq!(entry("mcp.http"), None);
    assert_eq!(entry("deploy"), Some("deploy"));
    assert_eq!(entry("deploy.prod"), None);
    assert_eq!(entry("exec.a.b.c"), Some("exec"));
    assert_eq!(entry(""), None);
    assert_eq!(entry("."), None);
}
