//! The three Secrets of a host's config-drive, and the expected files of the drive.

use metal3_sim_bmc::identity::Number;
use serde_json::{Value, json};

use crate::level::name;

/// The content of its user data.
pub(crate) fn user_data(number: Number) -> String {
    let name = name(number);
    format!("#cloud-config\nhostname: {name}\nruncmd:\n- [echo, \"{name} \u{2713}\"]\n")
}

fn network_data() -> Value {
    json!({ "links": [{ "id": "enp1s0", "type": "phy", "ethernet_mac_address": "52:54:00:00:00:01" }],
        "networks": [{ "id": "net", "type": "ipv4_dhcp", "link": "enp1s0" }], "services": [] })
}

/// The Secrets: name, key and value.
pub(crate) fn secrets(number: Number) -> [(String, &'static str, String); 3] {
    // One key of the user, and one that overrides a key of the program.
    let meta_data = format!("rack: r{number}\nlocal-hostname: chosen-{number}\n");
    [
        (format!("user-{number}"), "userData", user_data(number)),
        (format!("meta-{number}"), "metaData", meta_data),
        (format!("network-{number}"), "networkData", network_data().to_string()),
    ]
}

/// The JSON files of the drive. `uid` is the host's.
pub(crate) fn files(number: Number, uid: &str) -> [(&'static str, Value); 2] {
    let name = name(number);
    let meta_data = json!({
        "uuid": uid, "metal3-namespace": crate::env::NAMESPACE, "metal3-name": name, "name": name,
        "local_hostname": name, "local-hostname": format!("chosen-{number}"), "rack": format!("r{number}"),
    });
    [("meta_data.json", meta_data), ("network_data.json", network_data())]
}
