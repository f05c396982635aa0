//! Drawn numbers, and the reader of YAML.

use metal3_sim_faults::Random;
use serde_json::Value;

/// A number below `limit`, which is not zero.
pub(crate) fn below(random: &mut Random, limit: usize) -> usize {
    let limit = u64::try_from(limit.max(1)).unwrap_or(1);
    usize::try_from(random.below(limit)).unwrap_or(0)
}

/// A number of any size.
pub(crate) fn number(random: &mut Random) -> String {
    let bits = random.below(65);
    let number = random
        .number()
        .checked_shr(u32::try_from(bits).unwrap_or(0))
        .unwrap_or(0);
    number.to_string()
}

/// The tree of a short YAML document. JSON is YAML, too: a changed tree is written as JSON.
pub(crate) fn yaml(text: &[u8]) -> Option<Value> {
    let text = std::str::from_utf8(text).ok().filter(|text| text.len() <= 4096)?;
    serde_saphyr::from_str(text).ok()
}
