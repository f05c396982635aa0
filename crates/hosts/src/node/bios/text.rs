//! Messages about settings. They contain names, and values of settings that hold no secret: [`super::change`] puts passwords
//! among the invalid settings, whose values it does not keep.

use serde_json::Value;

use super::{Difference, Invalid, text_of};

/// The beginnings of the errors of a host about its settings.
const UNUSABLE: &str = "its HostFirmwareSettings cannot be applied: ";
const STILL_REPORTED: &str = "after the BIOS settings were applied the BMC still reports ";

/// A message names at most this many settings.
const MOST: usize = 5;
/// Names and values are shown up to this length.
const LONGEST: usize = 80;

/// Whether an error is about settings, and not about an operation that failed.
#[must_use]
pub fn is_of_settings(message: &str) -> bool {
    [UNUSABLE, STILL_REPORTED]
        .iter()
        .any(|begin| message.starts_with(begin))
}

/// Whether an error is about settings that the machine did not take.
#[must_use]
pub fn is_still_reported(message: &str) -> bool {
    message.starts_with(STILL_REPORTED)
}

/// The invalid settings, each with what is wrong.
pub(super) fn invalid_text(invalid: &[Invalid]) -> String {
    listed(invalid, "; ", |one| {
        format!("{}: {}", shown(&one.name), limited(&one.problem, 4 * LONGEST))
    })
}

/// The error of a host with invalid settings.
#[must_use]
pub fn unusable_text(invalid: &[Invalid]) -> String {
    format!(
        "{UNUSABLE}{}. Nothing is changed until spec.settings is corrected",
        invalid_text(invalid)
    )
}

/// The error of a host whose machine did not take its settings.
#[must_use]
pub fn still_reported_text(differing: &[Difference]) -> String {
    let pairs = listed(differing, ", ", |one| {
        let reported = one.reported.as_deref().map_or_else(|| "nothing".to_owned(), shown);
        format!("{}={reported} (asked: {})", shown(&one.name), asked(&one.asked))
    });
    format!(
        "{STILL_REPORTED}{pairs}; they are not applied again. If that value is as wanted, write it as reported into spec.settings of \
         the HostFirmwareSettings; otherwise remove the setting there, correct the BMC and add the setting again"
    )
}

/// The names of the settings.
pub(super) fn names_text(names: &[&str]) -> String {
    listed(names, ", ", |name| shown(name))
}

fn listed<T>(all: &[T], separator: &str, show: impl Fn(&T) -> String) -> String {
    let first = all.iter().take(MOST).map(show).collect::<Vec<_>>().join(separator);
    match all.len().saturating_sub(MOST) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

fn asked(value: &Value) -> String {
    shown(&text_of(value).unwrap_or_default())
}

/// Text of a user or a BMC, on one line and not too long.
fn shown(text: &str) -> String {
    limited(&text.escape_debug().to_string(), LONGEST)
}

fn limited(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most).chain("...".chars()).collect()
}
