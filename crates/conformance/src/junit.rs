//! JUnit's XML, as build servers read it.

use std::fmt::Write as _;

use crate::report::{Outcome, PackReport, Report, Tested};

pub(crate) fn write(report: &Report) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(
        out,
        "<testsuites name=\"countersign conformance\" tests=\"{}\" failures=\"{}\" skipped=\"{}\">",
        report.total(),
        report.count(Outcome::Failed),
        report.count(Outcome::Skipped) + report.count(Outcome::ExpectedFailure),
    );
    for pack in &report.packs {
        suite(pack, report, &mut out);
    }
    out.push_str("</testsuites>\n");
    out
}

fn suite(pack: &PackReport, report: &Report, out: &mut String) {
    let count = |wanted: &[Outcome]| {
        let tested = pack.tested.iter();
        tested.filter(|one| wanted.contains(&one.outcome)).count()
    };
    let _ = writeln!(
        out,
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\" timestamp=\"{}\">",
        escaped(&pack.name),
        pack.tested.len(),
        count(&[Outcome::Failed]),
        count(&[Outcome::Skipped, Outcome::ExpectedFailure]),
        escaped(&report.run_at),
    );
    for tested in &pack.tested {
        case(tested, &pack.name, out);
    }
    out.push_str("  </testsuite>\n");
}

fn case(tested: &Tested, pack: &str, out: &mut String) {
    let _ = write!(
        out,
        "    <testcase classname=\"{}\" name=\"{} {}\"",
        escaped(&format!("{pack}.{}", tested.req_id)),
        escaped(&tested.id),
        escaped(&tested.description),
    );
    let detail = escaped(&tested.detail);
    let _ = match tested.outcome {
        Outcome::Passed => writeln!(out, "/>"),
        Outcome::Failed => writeln!(
            out,
            "><failure message=\"{}\">{detail}</failure></testcase>",
            escaped(&tested.req_id)
        ),
        Outcome::Skipped => writeln!(out, "><skipped message=\"{detail}\"/></testcase>"),
        Outcome::ExpectedFailure => writeln!(
            out,
            "><skipped message=\"expected failure: {}\"/></testcase>",
            escaped(tested.reason.as_deref().unwrap_or_default())
        ),
    };
}

/// Text that is text in XML wherever it stands. What XML cannot hold at all is shown by its number.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            '\t' => out.push_str("&#9;"),
            letter if letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}') => {
                let _ = write!(out, "(U+{:04X})", u32::from(letter));
            }
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn nothing_in_a_text_ends_it() {
        assert_eq!(
            escaped("<a b=\"c\">&\u{0}\u{1b}\n"),
            "&lt;a b=&quot;c&quot;&gt;&amp;(U+0000)(U+001B)&#10;"
        );
    }
}
