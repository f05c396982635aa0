//! HostNetworkAttachment: valid VLANs.
//!
//! An attachment that a host refers to can be neither changed nor deleted. That check needs the hosts and is not a
//! rule; [`HostNetworkAttachment::users`] is its pure part.

use crate::metal3::v1alpha1::{AttachmentMode, BareMetalHost, HostNetworkAttachment};
use crate::rules::{AdmissionRules, FieldPath, Findings, On, Rule, Unserved, WriteRequest};

/// Valid VLAN IDs.
const VLANS: std::ops::RangeInclusive<u64> = 1..=4094;
const WRITE_VLANS: &str = "write a VLAN from 1 to 4094, or a range such as 100-110";

impl AdmissionRules for HostNetworkAttachment {
    const UNSERVED: Option<Unserved> = Some(Unserved::by_host_operator("no switch is configured"));
    const RULES: &'static [Rule<Self>] = &[
        Rule::new(
            "access-mode-untagged",
            "In mode `access` no tagged VLANs are given.",
            On::Spec(access_mode_is_untagged),
        ),
        Rule::new(
            "allowed-vlan-exists",
            "Each entry of `spec.allowedVLANs` is a VLAN from 1 to 4094 or a rising range of them.",
            On::Spec(allowed_vlans_exist),
        ),
    ];
}

impl HostNetworkAttachment {
    /// The hosts that refer to this attachment, each as `namespace/name[interface]`, and the number of those of other
    /// namespaces, whose names are not shown. While there is any, the attachment cannot be changed or deleted.
    #[must_use]
    pub fn users<'a>(&self, hosts: impl IntoIterator<Item = &'a BareMetalHost>) -> Vec<String> {
        let name = |metadata: &Option<String>| metadata.clone().unwrap_or_default();
        let own = (name(&self.metadata.namespace), name(&self.metadata.name));
        let (mut users, mut others) = (Vec::new(), 0_usize);
        for host in hosts {
            for (namespace, attachment, interface) in host.network_attachments() {
                if (namespace, attachment) == (own.0.as_str(), own.1.as_str()) {
                    if host.metadata.namespace != self.metadata.namespace {
                        others = others.saturating_add(1);
                        continue;
                    }
                    let by_name = interface.name.as_deref().filter(|name| !name.is_empty());
                    let interface = by_name.or(interface.mac_address.as_deref()).unwrap_or_default();
                    let (namespace, host) = (name(&host.metadata.namespace), name(&host.metadata.name));
                    users.push(format!("{namespace}/{host}[{interface}]"));
                }
            }
        }
        if others > 0 {
            users.push(format!("{others} in other namespaces"));
        }
        users
    }
}

fn access_mode_is_untagged(attachment: &WriteRequest<'_, HostNetworkAttachment>, findings: &mut Findings) {
    let spec = &attachment.new.spec;
    if spec.mode == AttachmentMode::Access && !spec.allowed_vlans.is_empty() {
        findings.forbidden(
            "spec.allowedVLANs",
            "allowedVLANs cannot be specified for access mode",
            "remove them, or use the mode trunk or hybrid",
        );
    }
}

fn allowed_vlans_exist(attachment: &WriteRequest<'_, HostNetworkAttachment>, findings: &mut Findings) {
    for (position, entry) in attachment.new.spec.allowed_vlans.iter().enumerate() {
        if let Err(problem) = read_vlans(entry) {
            let path = FieldPath::new("spec.allowedVLANs").index(position);
            findings.invalid(path, entry, problem, WRITE_VLANS);
        }
    }
}

fn read_vlans(entry: &str) -> Result<(), &'static str> {
    let vlan = |text: &str| match text.parse() {
        Ok(number) if VLANS.contains(&number) => Ok(number),
        Ok(_) => Err("is out of the range 1-4094"),
        Err(_) => Err("is no VLAN"),
    };
    match entry.split_once('-') {
        None => vlan(entry).map(|_| ()),
        Some((start, end)) if vlan(start)? < vlan(end)? => Ok(()),
        Some(_) => Err("starts where it ends or after that"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn vlans_are_numbers_and_rising_ranges() {
        for entry in ["1", "4094", "007", "1-2", "100-110"] {
            assert_eq!(read_vlans(entry), Ok(()), "{entry}");
        }
        for entry in [
            "",
            "0",
            "4095",
            "99999999999999999999",
            "7-7",
            "8-7",
            "0-7",
            "7-4095",
            "7-",
            "-7",
            "1-2-3",
            "x",
        ] {
            assert!(read_vlans(entry).is_err(), "{entry}");
        }
    }

    #[test]
    fn users_are_named_by_host_and_interface() {
        let attachment: HostNetworkAttachment =
            serde_json::from_value(json!({ "metadata": { "namespace": "metal", "name": "storage" } })).unwrap();
        let host = |namespace: &str, interfaces: serde_json::Value| -> BareMetalHost {
            serde_json::from_value(json!({
                "metadata": { "namespace": namespace, "name": "node-0" },
                "spec": { "online": true, "networkInterfaces": interfaces },
            }))
            .unwrap()
        };
        let hosts = [
            host(
                "metal",
                json!([{ "name": "eno1", "hostNetworkAttachment": { "name": "storage" } }]),
            ),
            host(
                "metal",
                json!([{ "name": "eno1", "hostNetworkAttachment": { "name": "other" } }]),
            ),
            host(
                "far",
                json!([{ "name": "eno1", "hostNetworkAttachment": { "name": "storage" } }]),
            ),
            host(
                "far",
                json!([{ "macAddress": "52:54:00:aa:bb:01",
                         "hostNetworkAttachment": { "name": "storage", "namespace": "metal" } }]),
            ),
        ];
        assert_eq!(
            attachment.users(&hosts),
            ["metal/node-0[eno1]", "1 in other namespaces"]
        );
    }
}
