//! The variables about switches.

use std::path::Path;

use metal3_domain::names::ObjectName;
use metal3_flags::{FALSE, TRUE};
use metal3_hosts::switches::Outputs;

use super::Reader;

const ENABLED: &str = "IRONIC_NETWORKING_ENABLED";
const CONFIGS: &str = "IRONIC_SWITCH_CONFIGS_SECRET";
const KEYS: &str = "IRONIC_SWITCH_CREDENTIALS_SECRET";
const FOLDER: &str = "IRONIC_SWITCH_CREDENTIALS_PATH";
const NO_NETWORKING: &str = "has no effect without IRONIC_NETWORKING_ENABLED";

/// Those that have no effect without the first.
pub(super) const DEPENDENT: [(&str, &str); 3] =
    [(CONFIGS, NO_NETWORKING), (KEYS, NO_NETWORKING), (FOLDER, NO_NETWORKING)];

impl<V: Fn(&str) -> Option<String>, F: Fn(&Path) -> bool> Reader<V, F> {
    /// Whether switches are configured.
    pub(super) fn has_networking(&self) -> bool {
        let text = self.text(ENABLED).unwrap_or_default();
        TRUE.contains(&text.as_str())
    }

    /// Where the switches are written, if they are configured.
    ///
    /// differs (`switch-variables`): the Go manager starts with a path or a Secret with which no switch can be configured.
    pub(super) fn switches(&mut self) -> Option<Outputs> {
        // parity: the Go manager reads this one as Go does.
        let given = self.text(ENABLED).unwrap_or_default();
        if !self.has_networking() {
            if !given.is_empty() && !FALSE.contains(&given.as_str()) {
                self.wrong(ENABLED, &format!("is {given:?}; write true or false"));
            }
            return None;
        }
        let outputs = Outputs {
            configs: self.secret(CONFIGS),
            keys: self.secret(KEYS),
            folder: self.folder(),
        };
        if outputs.configs == outputs.keys && !outputs.keys.is_empty() {
            self.wrong(KEYS, "must be another Secret than that of IRONIC_SWITCH_CONFIGS_SECRET");
        }
        Some(outputs)
    }

    fn secret(&mut self, variable: &'static str) -> String {
        let name = self.text(variable).unwrap_or_default();
        if name.is_empty() {
            self.wrong(variable, "must be the name of a Secret with IRONIC_NETWORKING_ENABLED");
        } else if ObjectName::parse(name.clone()).is_err() {
            self.wrong(variable, &format!("{name:?} is no name of a Secret"));
        }
        name
    }

    fn folder(&mut self) -> String {
        let folder = self.text(FOLDER).unwrap_or_default();
        let is_odd = |letter: char| letter.is_control() || letter.is_whitespace() || letter == '%';
        if !folder.starts_with('/') || folder.chars().any(is_odd) {
            let why = "must be the absolute path at which Ironic has the Secret of IRONIC_SWITCH_CREDENTIALS_SECRET, without \
                       white space and %";
            self.wrong(FOLDER, why);
        }
        folder
    }
}
