//! Every parser returns a value or an error for every text: arbitrary bytes, and valid text that was damaged.

use std::collections::BTreeMap;

use metal3_domain::bmc::{BmcAddress, CertificateVerification, Credentials};
use metal3_domain::ids::{NodeUuid, Uid, reads_as_uuid};
use metal3_domain::image::{Image, ImageError, ImageField, ImageFields, check_host_image, check_machine_image};
use metal3_domain::ip::{AnyPrefix, EntryText, PoolEntry, parse_address};
use metal3_domain::mac::{MacAddress, is_link_address};
use metal3_domain::names::{HostKey, MachineKey, Namespace, ObjectName};
use metal3_domain::network_data::NetworkData;
use metal3_domain::provider_id::{MachineProviderId, ProviderId};
use metal3_domain::selector::{Expression, Requirement, Selector};
use proptest::prelude::*;
use proptest::sample::select;

const ADDRESSES: [&str; 8] = [
    "ipmi://192.0.2.1:6230?privilegelevel=USER",
    "redfish+http://[2001:db8::7]:8000/redfish/v1/Systems/1",
    "idrac-virtualmedia://admin:pw@bmc.example/redfish/v1/Systems/System.Embedded.1#x",
    "192.0.2.1:6230",
    "[2001:db8::1]:623",
    "redfish:bmc",
    "bmc.example",
    "https://images.example/os.qcow2",
];
const IPS: [&str; 8] = [
    "192.0.2.7",
    "2001:db8::7",
    "::ffff:192.0.2.7",
    "::",
    "192.0.2.10/26",
    "2001:db8::5/64",
    "::/0",
    "1:2:3:4:5:6:7:8",
];
const IDS: [&str; 5] = [
    "metal3://metal/rack1-node07/alpha-m3-x7k2p",
    "metal3://metal/h.example.com/m.1",
    "metal3://c0ffee00-1111-4222-8333-444455556666",
    "metal/rack1-node07",
    "0b1a2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d",
];
const MACS: [&str; 4] = [
    "52:54:00:AB:cd:0f",
    "52-54-00-ab-cd-0f",
    "5254.00ab.cd0f",
    "80:00:02:08:fe:80:00:00:00:00:00:00:00:02:c9:03:00:0d:3b:5f",
];
const LABELS: [&str; 8] = ["In", "DoesNotExist", "Gt", "!=", "example.com/zone", "rack", "64", ""];

/// One damage to a text.
#[derive(Debug, Clone)]
enum Damage {
    Insert(prop::sample::Index, char),
    Delete(prop::sample::Index),
    Repeat(prop::sample::Index, prop::sample::Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    let special = select(
        ":/[]@%?#&=;+-. \0\n\u{7f}\u{e9}\u{1f600}0fFzZ"
            .chars()
            .collect::<Vec<_>>(),
    );
    let character = prop_oneof![4 => special, 1 => any::<char>()];
    prop_oneof![
        (any::<prop::sample::Index>(), character).prop_map(|(place, character)| Damage::Insert(place, character)),
        any::<prop::sample::Index>().prop_map(Damage::Delete),
        (any::<prop::sample::Index>(), any::<prop::sample::Index>()).prop_map(|(from, to)| Damage::Repeat(from, to)),
    ]
}

fn damaged(text: &str, damages: &[Damage]) -> String {
    let mut text: Vec<char> = text.chars().collect();
    for damage in damages {
        match damage {
            Damage::Insert(place, character) => text.insert(place.index(text.len() + 1), *character),
            Damage::Delete(place) if !text.is_empty() => {
                text.remove(place.index(text.len()));
            }
            Damage::Delete(_) => {}
            Damage::Repeat(from, to) => {
                let (from, to) = (from.index(text.len() + 1), to.index(text.len() + 1));
                let piece: Vec<char> = text.iter().take(from.max(to)).skip(from.min(to)).copied().collect();
                text.extend(piece);
            }
        }
    }
    text.into_iter().collect()
}

/// Arbitrary bytes, and damaged samples.
fn text_like(samples: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop_oneof![
        1 => prop::collection::vec(any::<u8>(), 0..64).prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
        4 => (select(samples), prop::collection::vec(damage(), 0..4)).prop_map(|(text, by)| damaged(text, &by)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn bmc_addresses_parse_or_are_rejected(text in text_like(&ADDRESSES)) {
        if let Ok(address) = BmcAddress::parse(&text) {
            let login = Credentials { username: "user", password: "pass" };
            let info = address.driver_info(&login, CertificateVerification::Disabled);
            prop_assert!(info.iter().count() >= 4);
            prop_assert!(!address.host().contains(['@', '/', '[', ']', '%']), "{:?}", address);
            prop_assert!(address.port().is_none_or(|port| port.bytes().all(|byte| byte.is_ascii_digit())));
        }
    }

    #[test]
    fn bmc_passwords_in_an_address_are_never_printed(
        scheme in select(&["redfish", "ipmi", "unknown", "redfish+ftp", "9"][..]),
        password in "hidden[a-z0-9:%/?#-]{0,8}",
        rest in text_like(&["bmc.example/redfish/v1/Systems/1", "[2001:db8::1]:443/", "192.0.2.1"]),
    ) {
        let text = format!("{scheme}://user:{password}@{rest}");
        let shown = match BmcAddress::parse(&text) {
            Ok(address) => format!("{address:?}"),
            Err(error) => format!("{error} {error:?}"),
        };
        prop_assert!(!shown.contains("hidden"), "{}", shown);
    }

    #[test]
    fn addresses_survive_a_round_trip(text in text_like(&IPS)) {
        if let Ok(address) = parse_address(&text) {
            prop_assert_eq!(parse_address(&address.to_string()), Ok(address));
        }
        if let Ok(prefix) = AnyPrefix::parse(&text) {
            prop_assert_eq!(AnyPrefix::parse(&prefix.to_string()), Ok(prefix));
        }
    }

    #[test]
    fn pool_entries_parse_or_are_rejected(start in text_like(&IPS), end in text_like(&IPS), subnet in text_like(&IPS)) {
        let entry = PoolEntry::parse(EntryText { start: Some(&start), end: Some(&end), subnet: Some(&subnet) });
        if let Ok(Some(range)) = entry.and_then(|entry| entry.range()) {
            prop_assert!(range.count().saturating() > 0);
        }
    }

    #[test]
    fn provider_ids_print_as_the_same_text(text in text_like(&IDS)) {
        if let Ok(id) = ProviderId::parse(&text) {
            prop_assert_eq!(id.to_string(), text);
        }
    }

    #[test]
    fn nodes_relate_to_a_machine_whatever_their_id(text in text_like(&IDS)) {
        let own = MachineKey::parse("metal/alpha-m3-x7k2p").ok().zip(HostKey::parse("metal/rack1-node07").ok());
        let own = own.and_then(|(machine, host)| MachineProviderId::of(&machine, &host));
        let own = own.ok_or_else(|| TestCaseError::fail("one namespace"))?;
        let relation = own.compare(&text, None);
        prop_assert_eq!(relation == metal3_domain::provider_id::NodeRelation::Own, text == own.to_string());
    }

    #[test]
    fn names_and_ids_parse_or_are_rejected(text in text_like(&IDS)) {
        prop_assert!(ObjectName::parse(text.clone()).is_ok_and(|name| name.as_str() == text)
            || ObjectName::parse(text.clone()).is_err());
        if Namespace::parse(text.clone()).is_ok() {
            prop_assert!(ObjectName::parse(text.clone()).is_ok(), "a label is a subdomain");
        }
        if let Ok(uuid) = NodeUuid::parse(text.clone()) {
            prop_assert!(reads_as_uuid(uuid.as_str()) && Uid::parse(text).is_ok());
        }
    }

    #[test]
    fn macs_survive_a_round_trip(text in text_like(&MACS)) {
        match MacAddress::parse(&text) {
            Ok(address) => prop_assert_eq!(MacAddress::parse(&address.to_string()), Ok(address)),
            Err(error) => prop_assert_eq!(&error.text, &text),
        }
        if is_link_address(&text) {
            prop_assert!(MacAddress::parse(&text.replace('-', ":")).is_ok());
        }
    }

    #[test]
    fn requirements_parse_or_are_rejected(
        key in text_like(&LABELS), operator in text_like(&LABELS),
        values in prop::collection::vec(text_like(&LABELS), 0..3),
    ) {
        let expression = Expression { key: &key, operator: &operator, values: &values };
        if let Ok(requirement) = Requirement::parse(&expression) {
            let selector = Selector::parse(&BTreeMap::new(), [expression]);
            for value in ["", "64", "x"] {
                let labels = BTreeMap::from([(key.clone(), value.to_owned())]);
                let matched = selector.as_ref().is_ok_and(|selector| selector.matches(&labels));
                prop_assert_eq!(matched, requirement.matches(&labels));
            }
        }
    }

    #[test]
    fn images_that_resolve_pass_the_host_check_and_except_for_the_checksum_the_machine_check(
        url in text_like(&ADDRESSES), checksum in prop::option::of(text_like(&ADDRESSES)),
        checksum_type in prop::option::of(select(&["", "md5", "auto", "crc"][..])),
        disk_format in prop::option::of(select(&["", "raw", "live-iso", "zip"][..])),
    ) {
        let fields = ImageFields { url: &url, checksum: checksum.as_deref(), checksum_type, disk_format };
        if Image::resolve(&fields).is_ok() {
            prop_assert_eq!(check_host_image(&fields), []);
            // The machine check parses a checksum that looks like a URL, and rejects the type of one that is not used.
            let stricter = [ImageField::Checksum, ImageField::ChecksumType];
            let other = |error: &ImageError| !stricter.contains(&error.field());
            prop_assert!(!check_machine_image(&fields).iter().any(other));
        }
    }

    #[test]
    fn network_data_text_is_decoded_or_rejected(
        text in text_like(&[r#"{"links":[{"type":"phy","id":"a","mtu":1500}],"networks":[],"services":[]}"#])
    ) {
        if let Ok(data) = serde_json::from_str::<NetworkData>(&text) {
            let again = serde_json::to_string(&data).map_err(|error| TestCaseError::fail(error.to_string()))?;
            prop_assert_eq!(serde_json::from_str::<NetworkData>(&again).ok(), Some(data));
        }
    }
}
