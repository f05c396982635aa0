//! `bmcaddress`: parsing of BMC addresses, and the driver info for Ironic.
//!
//! Of an error the class is compared, and the text only where the manager defines it: parse errors contain texts of the
//! Go library.

use metal3_domain::bmc::{BmcAddress, BmcErrorClass, CertificateVerification, Credentials};
use serde_json::{Map, Value, json};

use super::case::Case;
use super::group::{Group, Rule};
use crate::values::text;

const UNKNOWN_TYPE: &str = "unknown-type";

pub(super) const GROUP: Group = Group {
    name: "bmcaddress",
    answer,
    expectation,
    rules: &[UEFI_HTTP_WITHOUT_SYSTEM],
};

/// The system ID is never empty.
const UEFI_HTTP_WITHOUT_SYSTEM: Rule = Rule {
    row: "redfish-uefihttp-system-id",
    touches: |input| {
        let (scheme, rest) = text(input, "/address").split_once("://").unwrap_or_default();
        let path = rest.split_once('/').map(|(_, path)| path).unwrap_or_default();
        scheme.starts_with("redfish-uefihttp") && ["", "redfish/v1"].contains(&path.trim_matches('/'))
    },
    predict: |_, recorded| {
        if let Some(Value::Object(driver_info)) = recorded.get_mut("driverInfo") {
            driver_info.remove("redfish_system_id");
        }
    },
};

fn answer(case: &Case) -> Value {
    let unchecked = case.input.get("disableCertificateVerification") == Some(&Value::Bool(true));
    let address = match BmcAddress::parse(text(&case.input, "/address")) {
        Ok(address) => address,
        Err(error) => {
            return match error.class() {
                BmcErrorClass::Invalid => json!({ "errorClass": "invalid" }),
                BmcErrorClass::UnknownType => json!({ "errorClass": UNKNOWN_TYPE, "error": error.to_string() }),
            };
        }
    };
    let credentials = Credentials {
        username: text(&case.input, "/username"),
        password: text(&case.input, "/password"),
    };
    let profile = address.profile();
    let interfaces: Map<String, Value> = profile
        .interfaces
        .named()
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.unwrap_or_default().into()))
        .collect();
    let driver_info = address.driver_info(&credentials, CertificateVerification::unless_disabled(unchecked));
    json!({
        "type": address.type_name(),
        "driver": profile.driver,
        "driverInfo": driver_info.into_json(),
        "interfaces": interfaces,
        "isoPreprovisioningImage": profile.iso_preprovisioning_image,
        "needsMAC": profile.needs_mac,
        "requiresProvisioningNetwork": profile.requires_provisioning_network,
        "secureBoot": profile.secure_boot,
    })
}

fn expectation(case: &Case) -> Value {
    let mut expect = case.expect.clone();
    if let Value::Object(members) = &mut expect
        && members.get("errorClass").is_some_and(|class| class != UNKNOWN_TYPE)
    {
        members.remove("error");
    }
    expect
}
