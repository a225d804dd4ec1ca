use super::*;

#[test]
fn slips_of_the_hand() {
    let known = [
        "tools",
        "fs",
        "net",
        "secrets",
        "exec",
        "budgets",
        "approval_required",
    ];
    let check = |name, expect| assert_eq!(nearest(name, &known), expect, "{name}");
    check("tool", Some("tools"));
    check("Tools", Some("tools"));
    check("budget", Some("budgets"));
    check("bugdets", Some("budgets"));
    check("approval-required", Some("approval_required"));
    check("approvals_required", Some("approval_required"));
    check("nett", Some("net"));
    check("completely_different", None);
    check("", None);
    check(&"x".repeat(1 << 20), None);
}
