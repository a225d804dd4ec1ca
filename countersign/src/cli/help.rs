//! How the texts behind the options are laid out.

use clap::Command;

/// Lets paragraphs flow, here and in every command below: they are written in lines, and a terminal that is narrower
/// would break each of them once more.
pub(super) fn flowing(command: Command) -> Command {
    let text = command.get_after_help().map(ToString::to_string);
    let command = match text {
        None => command,
        Some(text) => command.after_help(flow(&text)),
    };
    let names: Vec<String> = command
        .get_subcommands()
        .map(|part| part.get_name().to_owned())
        .collect();
    names.into_iter().fold(command, |command, name| {
        command.mut_subcommand(name, flowing)
    })
}

/// Blocks with indented lines are lists and examples, and stay as they are.
fn flow(text: &str) -> String {
    let blocks = text.split("\n\n").map(|block| {
        let is_list = block.lines().any(|line| line.starts_with(' '));
        match is_list {
            true => block.to_owned(),
            false => block.replace('\n', " "),
        }
    });
    blocks.collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::flow;

    #[test]
    fn paragraphs_flow_and_lists_stay() {
        let check = |text: &str, shown: &str| assert_eq!(flow(text), shown);
        check("one\ntwo\n\nthree", "one two\n\nthree");
        check("Examples:\n  a\n  b", "Examples:\n  a\n  b");
    }
}
