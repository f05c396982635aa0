//! The destinations that users may name: hosts of images, and networks of BMCs.
//!
//! What an update keeps is not checked: a flag may be newer than the object, and then the controller of hosts reports it.
//!
//! differs: `destinations-allowed`. The Go managers allow any.

use metal3_api::infrastructure::v1beta2::{self as infrastructure, Metal3Machine, Metal3MachineTemplate};
use metal3_api::kind::Kind;
use metal3_api::metal3::v1alpha1::{self as metal3, BareMetalHost};
use metal3_api::rules::{Finding, Reviewer};
use metal3_domain::allowed::Allowed;
use metal3_domain::bmc::BmcAddress;
use metal3_domain::image::{ImageField, ImageFields};
use serde_json::Value;

use crate::related_objects::{decode, refusal};

/// The destinations that an administrator allows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Destinations {
    /// The hosts of images and checksums.
    pub image_hosts: Allowed,
    /// The networks of BMCs.
    pub bmc_networks: Allowed,
}

/// A stored document, and the one that replaces it.
type Documents<'a> = (Option<&'a Value>, Option<&'a Value>);

impl Destinations {
    /// Findings about a document that is created or updated.
    pub(crate) fn findings(&self, reviewer: &Reviewer, documents: Documents<'_>) -> Vec<Finding> {
        match (reviewer.group, reviewer.kind) {
            (BareMetalHost::GROUP, BareMetalHost::KIND) => {
                let image = |host: &BareMetalHost| host.spec.image.clone();
                let image = self.image(documents, "spec.image", image, metal3::Image::fields);
                image.into_iter().chain(self.controller(documents)).collect()
            }
            (Metal3Machine::GROUP, Metal3Machine::KIND) => {
                let image = |machine: &Metal3Machine| machine.spec.image.clone();
                let fields = infrastructure::Image::fields;
                Vec::from_iter(self.image(documents, "spec.image", image, fields))
            }
            (Metal3MachineTemplate::GROUP, Metal3MachineTemplate::KIND) => {
                let image = |template: &Metal3MachineTemplate| template.spec.template.spec.image.clone();
                let fields = infrastructure::Image::fields;
                Vec::from_iter(self.image(documents, "spec.template.spec.image", image, fields))
            }
            _ => Vec::new(),
        }
    }

    fn image<K: Kind, I>(
        &self,
        (old, new): Documents<'_>,
        path: &str,
        image: impl Fn(&K) -> Option<I>,
        fields: impl Fn(&I) -> ImageFields<'_>,
    ) -> Option<Finding> {
        let [old, new] = [old, new].map(|document| decode::<K>(document).as_ref().and_then(&image));
        let [old, new] = [&old, &new].map(|image| image.as_ref().map(&fields));
        let new = new.filter(|new| old.as_ref() != Some(new) && !new.url.is_empty())?;
        let member = match self.image_hosts.forbidden_image_field(&new)? {
            ImageField::Checksum => "checksum",
            _ => "url",
        };
        let problem = "its host is not in --allowed-image-hosts".to_owned();
        let cure = "use an allowed host, or ask the administrator to add this one to the flag".to_owned();
        Some(refusal(
            "image-host-allowed",
            &format!("{path}.{member}"),
            (problem, cure),
        ))
    }

    fn controller(&self, (old, new): Documents<'_>) -> Option<Finding> {
        let address = |document| Some(decode::<BareMetalHost>(document)?.spec.bmc.unwrap_or_default().address);
        let new = address(new).filter(|new| address(old).as_ref() != Some(new))?;
        // What cannot be read is not registered, and another rule reports it.
        let controller = BmcAddress::parse(&new).ok()?;
        if self.bmc_networks.controller(&controller) {
            return None;
        }
        let problem = "it is not an IP address in the networks of --allowed-bmc-networks".to_owned();
        let cure = "correct it, or ask the administrator to add its network to the flag".to_owned();
        Some(refusal("bmc-network-allowed", "spec.bmc.address", (problem, cure)))
    }
}
