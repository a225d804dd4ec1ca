//! Who started us, where nobody says so.

use crate::command::approver::user;

/// The name of the user: from the environment, or what the system calls the one that we run as, or its
/// number. Containers and jobs have no `$USER`.
pub(crate) fn person() -> String {
    user().unwrap_or_else(|| account().1)
}

/// The number that the system runs us as, and the name that it has for it. No variable says so.
pub(crate) fn account() -> (u32, String) {
    let id = rustix::process::getuid().as_raw();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    (id, named(id, &users).unwrap_or_else(|| format!("uid:{id}")))
}

/// The name of a user in the system's list.
fn named(id: u32, users: &str) -> Option<String> {
    let mut lines = users.lines().map(|line| line.split(':'));
    lines.find_map(|mut fields| {
        let name = fields.next().filter(|name| !name.is_empty())?;
        let number: u32 = fields.nth(1)?.parse().ok()?;
        (number == id).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_the_name_of_its_number() {
        let users = "root:x:0:0:root:/root:/bin/sh\n\n+::::::\nbuild:x:1000:1000::/:/bin/sh\nlate:x:1000::::\n";
        let check = |id, name: Option<&str>| assert_eq!(named(id, users).as_deref(), name);
        check(0, Some("root"));
        check(1000, Some("build"));
        check(1, None);
    }
}
