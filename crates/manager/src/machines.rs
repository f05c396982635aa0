//! Settings of machines from environment variables, which the caller passes as a function.

use metal3_capm3::machine::facts::Settings;

/// The variable of the Go manager's ConfigMap.
const FAST_TRACK: &str = "CAPM3_FAST_TRACK";

/// Reads the settings.
#[must_use]
pub fn settings(variable: impl Fn(&str) -> Option<String>) -> Settings {
    Settings {
        // parity: the Go manager accepts this word only.
        fast_track: variable(FAST_TRACK).as_deref() == Some("true"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_word_true_turns_fast_track_on() {
        for (text, is_on) in [
            (Some("true"), true),
            (Some("True"), false),
            (Some("'true'"), false),
            (None, false),
        ] {
            let variable = |name: &str| text.filter(|_| name == FAST_TRACK).map(str::to_owned);
            assert_eq!(settings(variable).fast_track, is_on, "{text:?}");
        }
    }
}
