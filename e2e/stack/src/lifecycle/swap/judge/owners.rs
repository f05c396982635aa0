//! Whether the garbage collector finds each owner: a reference in a version that is not served keeps its object for ever.

use super::{Turn, none};
use crate::claim::Proof;
use crate::lifecycle::swap::products::Family;
use crate::lifecycle::swap::record::Owner;

/// The version of the kinds of machines that releases up to 1.12 do not serve.
const NEWER: &str = "infrastructure.cluster.x-k8s.io/v1beta2";

impl Turn {
    pub(super) fn owners(&self) -> Proof {
        let is_unserved = self.to == Family::Go && !self.release.older().is_empty();
        if !is_unserved {
            return none(Vec::new(), "both versions are served".to_owned());
        }
        let of_versions = self.versions.iter().filter_map(|((kind, name), versions)| {
            let object = self.at(versions, 2)?;
            Some((format!("{kind} {name}"), Owner::all_of(&object)))
        });
        let [.., after] = &self.marks;
        let of_secrets = after.secrets.iter();
        let of_secrets = of_secrets.map(|(name, secret)| (format!("Secret {name}"), secret.owners.clone()));
        let (mut violations, mut compared) = (Vec::new(), 0_usize);
        for (object, owners) in of_versions.chain(of_secrets) {
            compared = compared.saturating_add(owners.len());
            if owners.iter().any(|owner| owner.api_version == NEWER) {
                violations.push(format!("{object}: an owner of {NEWER}"));
            }
        }
        none(violations, format!("{compared} owner references"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::quiet;
    use super::*;
    use crate::lifecycle::swap::record::{Secret, Version};
    use crate::lifecycle::swap::release::GoRelease;

    /// A switch after which a Secret and a Metal3Data have an owner of this version.
    fn owned(to: Family, release: GoRelease, version: &str) -> [Turn; 2] {
        let api_version = format!("infrastructure.cluster.x-k8s.io/{version}");
        let [mut of_secret, mut of_object] = [quiet(), quiet()];
        let owner = Owner {
            api_version: api_version.clone(),
            ..Owner::default()
        };
        let secret = Secret {
            owners: vec![owner],
            ..Secret::default()
        };
        of_secret.marks[2].secrets.insert("s".to_owned(), secret);
        let data = Version {
            revision: 5,
            is_deleted: false,
            object: json!({"metadata": {"ownerReferences": [{"apiVersion": api_version}]}}),
        };
        of_object
            .versions
            .insert(("Metal3Data".to_owned(), "d".to_owned()), vec![data]);
        [of_secret, of_object].map(|turn| Turn {
            to,
            release: release.clone(),
            ..turn
        })
    }

    #[test]
    fn owner_of_a_version_that_an_older_release_does_not_serve_is_a_violation() {
        let (newest, older) = (GoRelease::for_test, GoRelease::older_for_test);
        let table = [
            (Family::Go, older(), "v1beta2", false),
            (Family::Go, older(), "v1beta1", true),
            (Family::Ours, older(), "v1beta2", true),
            (Family::Go, newest(), "v1beta2", true),
        ];
        for (to, release, version, holds) in table {
            let series = release.series();
            for turn in owned(to, release, version) {
                assert_eq!(turn.owners().is_ok(), holds, "{series} {version}: {:?}", turn.owners());
            }
        }
    }
}
