//! The objectives of states, as the flag replaces them.

use metal3_domain::objectives::Objectives;

use super::span;

/// Replaces one objective by `host/STATE=DURATION` or `machine/STATE=DURATION`. Returns whether the item is one. No state has
/// a comma, which separates the items of the flag.
pub(super) fn replace(objectives: &mut Objectives, item: &str) -> bool {
    let parsed = item.rsplit_once('=');
    let parsed = parsed.and_then(|(state, text)| Some((state, span::parse(text)?)));
    parsed.is_some_and(|(state, objective)| objectives.replace(state, objective))
}
