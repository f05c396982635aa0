//! The address of a BMC, which identifies a machine independently of Ironic's database.
//!
//! The `driver_info` of a node and the address of a host have several forms of the same BMC address. This module
//! normalizes them: host, port unless it is a default port, and system if there is one. No I/O.

use serde_json::Value;

/// Default ports.
const USUAL_PORTS: [&str; 3] = [":443", ":80", ":623"];
/// A path without a system.
const SERVICE_ROOT: &str = "redfish/v1";

/// The normalized address of a BMC and one of its systems.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Bmc(String);

impl Bmc {
    /// By an address: `192.0.2.1`, `https://192.0.2.1/redfish/v1/Systems/1`, `redfish+http://bmc:8000/redfish/v1`.
    pub(crate) fn at(address: &str) -> Self {
        let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let authority = authority.to_lowercase();
        let usual = USUAL_PORTS.iter().find_map(|port| authority.strip_suffix(port));
        let host = usual.unwrap_or(&authority);
        match path.trim_matches('/') {
            "" | SERVICE_ROOT => Self(host.to_owned()),
            system => Self(format!("{host}/{system}")),
        }
    }

    /// From a node's `driver_info`. `None` when it has no BMC address.
    pub(crate) fn of(info: &Value) -> Option<Self> {
        let text = |key: &str| match info.get(key) {
            Some(Value::String(text)) => Some(text.clone()),
            Some(Value::Number(number)) => Some(number.to_string()),
            _ => None,
        };
        if let Some(address) = text("redfish_address") {
            let system = text("redfish_system_id").unwrap_or_default();
            let (address, system) = (address.trim_end_matches('/'), system.trim_start_matches('/'));
            return Some(Self::at(&format!("{address}/{system}")));
        }
        let address = text("ipmi_address")?;
        Some(Self::at(&match text("ipmi_port") {
            Some(port) => format!("{address}:{port}"),
            None => address,
        }))
    }
}

/// A BMC address for each number, in the form of a host: where a simulated world has the machines of its hosts.
#[must_use]
pub fn bmc_address(number: u32) -> String {
    let (high, low) = (number.div_euclid(250), number.rem_euclid(250).saturating_add(1));
    format!("redfish-virtualmedia://10.0.{high}.{low}/redfish/v1/Systems/1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn host_address_and_driver_info_give_the_same_bmc() {
        for (address, info) in [
            ("192.0.2.1", json!({"redfish_address": "https://192.0.2.1"})),
            (
                "redfish-virtualmedia://BMC.example/redfish/v1/Systems/1",
                json!({"redfish_address": "https://bmc.example", "redfish_system_id": "/redfish/v1/Systems/1"}),
            ),
            (
                "redfish+http://192.0.2.1:8000/redfish/v1/",
                json!({"redfish_address": "http://192.0.2.1:8000/"}),
            ),
            (
                "ipmi://192.0.2.1",
                json!({"ipmi_address": "192.0.2.1", "ipmi_port": "623"}),
            ),
            (
                "ipmi://192.0.2.1:6230",
                json!({"ipmi_address": "192.0.2.1", "ipmi_port": 6230}),
            ),
        ] {
            assert_eq!(Some(Bmc::at(address)), Bmc::of(&info), "{address}");
        }
        assert_ne!(
            Bmc::at("192.0.2.1/redfish/v1/Systems/1"),
            Bmc::at("192.0.2.1/redfish/v1/Systems/2")
        );
        assert_eq!(Bmc::of(&json!({"redfish_username": "admin"})), None);
    }
}
