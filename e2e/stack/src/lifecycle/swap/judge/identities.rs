//! Whether objects stay what they are, and whether they stay.

use serde_json::Value;

use super::{Turn, none};
use crate::claim::Proof;
use crate::lifecycle::swap::identity::{changed, identity};
use crate::lifecycle::swap::record::{Owner, Version};

impl Turn {
    /// Whether an object of a kind that ends only with what it belongs to is there no more.
    fn is_lost(&self, kind: &str, first: &Value, versions: &[Version]) -> bool {
        const STAYS: [&str; 9] = [
            "BMCEventSubscription",
            "DataImage",
            "HostClaim",
            "IPAddress",
            "IPAddressClaim",
            "IPClaim",
            "IPPool",
            "Metal3DataTemplate",
            "Metal3MachineTemplate",
        ];
        STAYS.contains(&kind) && self.at(versions, 2).is_none() && !self.ended_with(&Owner::all_of(first))
    }

    pub(super) fn identities(&self) -> Proof {
        let mut violations = Vec::new();
        let mut compared = 0_usize;
        for ((kind, name), versions) in &self.versions {
            let Some(first) = self.at(versions, 0) else { continue };
            compared = compared.saturating_add(1);
            if self.is_lost(kind, &first, versions) {
                violations.push(format!("{kind} {name} is gone"));
            }
            let [from, _, to] = self.marks.each_ref().map(|mark| mark.revision);
            let mut before = identity(&first);
            let later = versions.iter().filter(|one| one.revision > from && one.revision <= to);
            // An object in deletion gives up what it has.
            let kept = later.filter(|one| one.object["metadata"]["deletionTimestamp"].is_null());
            for version in kept {
                let now = identity(&version.object);
                violations
                    .extend(changed(&before, &now, &self.versions, to).map(|what| format!("{kind} {name}: {what}")));
                before = now;
            }
        }
        none(violations, format!("{compared} objects"))
    }
}
