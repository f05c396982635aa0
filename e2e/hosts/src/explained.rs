//! What `kubectl metal3 why` says about a host with a fault.

use anyhow::{Context as _, ensure};
use metal3_api::kind::Kind as _;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_explain::{Link, ObjectId, SECRET, offline};
use metal3_ironic_life::faults::Fault;
use serde_json::{Value, json};

use crate::document::with;

/// Words by which a person recognises each fault of labhosts, in the message. Most are from Ironic and its libraries.
const WORDS: [(&str, &str); 12] = [
    ("dead-bmc", "Unable to connect"),
    ("wrong-password", "401"),
    ("bmc-status", "503"),
    ("power-stuck", "Failed to set node power state"),
    ("no-boot", "check if the ramdisk"),
    ("inspection-error", "Ramdisk reported error"),
    ("clean-step-fails", "erase_devices_metadata failed"),
    ("checksum-mismatch", "was ordered with checksum"),
    ("disk-too-small", "every disk is smaller"),
    // Of an agent without heartbeats: while cleaning, and while deploying.
    ("no-heartbeat", "Timeout reached while cleaning"),
    ("no-heartbeat", "Timeout reached while waiting for callback"),
    ("no-heartbeat", "while waiting for agent"),
];

/// Ironic does not see these: it waits. What to do names them among the causes.
const UNSEEN: [(&str, &str); 2] = [("slow-bmc", "the BMC is slow"), ("foreign-mac", "spec.bootMACAddress")];

/// The last link of the explanation: its cause is known, and its texts name the fault.
pub(crate) fn last_link(host: &BareMetalHost, fault: &Fault) -> anyhow::Result<Link> {
    let name = host.metadata.name.clone().unwrap_or_default();
    let api_version = format!("{}/{}", BareMetalHost::GROUP, BareMetalHost::VERSION);
    let kind = json!({ "apiVersion": api_version, "kind": BareMetalHost::KIND });
    let mut objects = vec![with(serde_json::to_value(host)?, kind)];
    objects.extend(host.spec.bmc.as_ref().map(|bmc| secret(&bmc.credentials_name)));
    let explanation = offline::explain_with_background(&ObjectId::of::<BareMetalHost>(&name), &objects);
    ensure!(explanation.names_a_cause(), "no cause is explained: {explanation:?}");
    let last = explanation.chain.last().cloned().context("nothing waits")?;
    let names = |words: &[(&str, &str)], text: &str| {
        let mut own = words.iter().filter(|(json, _)| fault.json.contains(json));
        own.any(|(_, words)| text.contains(words))
    };
    ensure!(
        names(&WORDS, &last.message) || names(&UNSEEN, &last.cure),
        "the explanation does not name the fault: {last:?}"
    );
    Ok(last)
}

/// Only its existence matters.
fn secret(name: &str) -> Value {
    json!({ "apiVersion": SECRET.version, "kind": SECRET.kind, "metadata": { "name": name } })
}

#[cfg(test)]
mod tests {
    use metal3_ironic_life::faults::FAULTS;

    use super::*;

    /// What the real Ironic made of each fault, as `make host-faults` recorded it.
    const RECORDED: &str = include_str!("../../../docs/host-faults.md");

    fn rows() -> Vec<Vec<&'static str>> {
        let rows = RECORDED.lines().skip_while(|line| !line.starts_with("| ---")).skip(1);
        let cells = |row: &'static str| row.split(" | ").map(|cell| cell.trim_matches(['|', ' '])).collect();
        rows.map(cells).collect()
    }

    fn host(state: &str, error: &str, message: &str) -> BareMetalHost {
        let has_error = error != "none";
        let error = has_error.then_some(error);
        let message = if has_error { message } else { "" };
        let status = json!({ "operationalStatus": if has_error { "error" } else { "OK" }, "errorType": error,
            "errorMessage": message, "errorCount": 1, "poweredOn": false,
            "provisioning": { "state": state, "ID": "", "image": { "url": "" } } });
        let bmc = json!({ "address": "redfish://192.0.2.1/x", "credentialsName": "bmc" });
        let spec = json!({ "online": true, "bmc": bmc });
        serde_json::from_value(json!({ "metadata": { "name": "h0" }, "spec": spec, "status": status })).unwrap()
    }

    #[test]
    fn explanation_of_each_recorded_fault_names_it_and_who_acts() {
        let rows = rows();
        assert_eq!(rows.len(), FAULTS.len());
        for (fault, row) in FAULTS.iter().zip(rows) {
            let [name, _, state, error, message, who_acts, ..] = row.as_slice() else {
                unreachable!("{row:?}")
            };
            assert_eq!(*name, fault.name);
            let last = last_link(&host(state, error, message), fault).unwrap();
            assert_eq!(last.who_acts.as_str(), *who_acts, "{name}");
        }
    }

    #[test]
    fn explanation_that_does_not_name_the_fault_is_an_error() {
        let host = host("registering", "registration error", "something else");
        for fault in &FAULTS {
            assert!(last_link(&host, fault).is_err(), "{}", fault.name);
        }
    }
}
