//! The only way of a policy's text to the engine.

use regorus::Engine;

use super::bundle::{BundleError, Source};
use super::effort;

/// Lets the engine parse one file.
///
/// SECURITY: the engine's parser has no limits of its own that would keep it from taking hours, or from
/// ending its stack and with it the process; so every text is measured before.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place, behind the measure"
)]
pub(super) fn add(source: &Source, engine: &mut Engine) -> Result<(), BundleError> {
    let refused = |problem: String| BundleError::Parse {
        file: source.name.clone(),
        problem,
    };
    // FAIL-CLOSED: the engine would read a text up to there, and rules behind it would be missing.
    if let Some((before, _)) = source.text.split_once('\0') {
        let line = before.matches('\n').count() + 1;
        let place = format!("{}:{line}", source.name);
        return Err(refused(format!(
            "\n--> {place}\nerror: a policy has no NUL in it"
        )));
    }
    effort::check(&source.text).map_err(|excess| {
        // As the engine says where something is.
        let place = format!("{}:{}:{}", source.name, excess.line, excess.column);
        refused(format!("\n--> {place}\nerror: {}", excess.problem))
    })?;
    engine
        .add_policy(source.name.clone(), source.text.clone())
        .map(drop)
        .map_err(|error| refused(error.to_string()))
}
