//! Kubeconfigs, endpoints, templates of metadata and network data, pools.

use std::net::IpAddr;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use metal3_api::cluster::Machine;
use metal3_api::infrastructure::v1beta2::{MetaData, Metal3Machine, NetworkData};
use metal3_api::ipam::v1alpha1::IPPoolSpec;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_capi::workload::kubeconfig;
use metal3_capm3::data::pools::Grants;
use metal3_capm3::data::subject::Subject;
use metal3_capm3::data::{DataError, meta_data, network_data};
use metal3_capm3::endpoint::address::Address;
use metal3_capm3::endpoint::spec_endpoint::Derived;
use metal3_domain::ip::IntervalSet;
use metal3_ipam::ranges::{Ranges, Taken};
use serde_json::{Value, json};

use crate::target::{Answer, Parse, Target, answers_alike, prints_what_it_reads, text};

static TARGETS: [Target; 6] = [
    Target::text(
        "kubeconfig",
        KUBECONFIG,
        read_kubeconfig,
        kubeconfig_is_harmless,
        &["insecure-skip-tls-verify", "\"as\"", "certificate-authority-data"],
    )
    .yaml(),
    Target::text(
        "endpoint-marker",
        &[
            "host",
            "Metal3Cluster",
            "Cluster",
            ";",
            ":6443",
            "65535",
            "[2001:db8::1]",
            "192.0.2.1",
        ],
        |input| Answer::some(Derived::parse(&text(input)), |derived| derived.marker()),
        prints_what_it_reads,
        &["2001", ":65"],
    ),
    Target::text(
        "endpoint-address",
        &["[2001:db8::1]", ":6443", "65535", "192.0.2.1", "api.example"],
        |input| Answer::some(Address::parse(&text(input)), |address| address.to_string()),
        prints_what_it_reads,
        &["[::", ":65"],
    ),
    Target::json(
        "metadata-yaml",
        META_DATA,
        render_meta_data,
        metadata_yaml_is_read_back,
        &["\n", "\"", "0x"],
    ),
    Target::json(
        "network-yaml",
        NETWORK_DATA,
        render_network_data,
        network_yaml_is_read_back,
        &["bond_links", "vlan_id", "ipv6_slaac"],
    ),
    Target::json(
        "ip-pool",
        POOL,
        pool,
        next_address_is_free,
        &["next Some(2001", "reserved [", "gateway: Some"],
    ),
];

pub(super) fn targets() -> Vec<Target> {
    TARGETS.to_vec()
}

const KUBECONFIG: &[&str] = &[
    "apiVersion: v1\n",
    "kind: Config\n",
    "clusters:\n",
    "users:\n",
    "contexts:\n",
    "current-context: c\n",
    "- name: c\n",
    "  cluster:\n",
    "  user:\n",
    "    server: https://192.0.2.1:6443\n",
    "    insecure-skip-tls-verify: true\n",
    "    proxy-url: http://192.0.2.9\n",
    "    token: t\n",
    "    exec: {apiVersion: client.authentication.k8s.io/v1, command: c}\n",
    "    tokenFile: /f\n",
    "    client-certificate: /f\n",
    "    client-key-data: QQ==\n",
    "    certificate-authority: /f\n",
    "    certificate-authority-data: QQ==\n",
    "    as: admin\n",
    "    username: u\n",
    "    password: p\n",
    "    auth-provider: {name: n, config: {}}\n",
    "&a",
    "*a",
    "!!binary",
    "{",
    "[",
    "|\n",
    "<<: ",
    "extensions: []\n",
];

fn secret(text: &[u8]) -> Secret {
    Secret {
        data: Some(std::iter::once(("value".to_owned(), ByteString(text.to_vec()))).collect()),
        ..Secret::default()
    }
}

/// Shown with its secrets hidden by the types.
fn read_kubeconfig(input: &[u8]) -> Answer {
    Answer::of(kubeconfig::read(&secret(input)), |config| {
        serde_json::to_string(&config).unwrap_or_else(|error| format!("unwritable: {error}"))
    })
}

/// What is accepted runs nothing and names no file, whichever way it was written.
fn kubeconfig_is_harmless(input: &[u8], answer: &Answer, parse: Parse<'_>) -> Result<(), String> {
    if let Ok(config) = kubeconfig::read(&secret(input)) {
        let users: Vec<_> = config
            .auth_infos
            .iter()
            .filter_map(|user| user.auth_info.as_ref())
            .collect();
        if users
            .iter()
            .any(|user| user.exec.is_some() || user.token_file.is_some() || user.client_certificate.is_some())
        {
            return Err("it runs a command or names a file".to_owned());
        }
    }
    answers_alike(input, answer, parse)
}

const META_DATA: &[&str] = &[
    "strings",
    "key",
    "value",
    "objectNames",
    "object",
    "machine",
    "metal3machine",
    "baremetalhost",
    "namespaces",
    "indexes",
    "offset",
    "step",
    "prefix",
    "suffix",
    "fromLabels",
    "label",
    "fromAnnotations",
    "annotation",
    "yes",
    "null",
    "~",
    "0x1f",
    "1e3",
    "012",
    "2026-01-31",
    "- a",
    "a: b",
    "# c",
    "{",
    "'",
    "\"",
    "|",
    "\n",
    "\r",
    "\u{85}",
    "\u{2028}",
    " ",
    ":",
    "=",
    "<<",
    "%",
    "\u{feff}",
];
const NETWORK_DATA: &[&str] = &[
    "links",
    "ethernets",
    "bonds",
    "vlans",
    "networks",
    "ipv4",
    "ipv6",
    "ipv4DHCP",
    "ipv6DHCP",
    "ipv6SLAAC",
    "services",
    "dns",
    "id",
    "name",
    "type",
    "phy",
    "macAddress",
    "string",
    "fromHostInterface",
    "bondMode",
    "bondLinks",
    "vlanID",
    "vlanLink",
    "link",
    "mtu",
    "routes",
    "network",
    "prefix",
    "gateway",
    "8.8.8.8",
    "802.3ad",
    "active-backup",
    "00:11:22:33:44:55",
    "eth0",
    "parameters",
    "bondXmitHashPolicy",
];
const POOL: &[&str] = &[
    "pools",
    "start",
    "end",
    "subnet",
    "prefix",
    "gateway",
    "dnsServers",
    "preAllocations",
    "allocationStrategy",
    "Random",
    "Sequential",
    "192.0.2.10",
    "192.0.2.20",
    "2001:db8::1",
    "2001:db8::ff",
    "192.0.2.0/24",
    "2001:db8::/64",
    "namePrefix",
    "clusterName",
    "a",
];

fn with_subject<T>(render: impl FnOnce(&Subject<'_>) -> T) -> Result<T, String> {
    let metadata = json!({ "metadata": {
        "name": "a", "namespace": "b", "uid": "c",
        "labels": { "label": "yes", "x": "0x10" }, "annotations": { "annotation": "line\nbreak: 'x'", "y": "- \"" },
    }});
    fn read<T: serde::de::DeserializeOwned>(value: &Value) -> Result<T, String> {
        serde_json::from_value(value.clone()).map_err(|error| error.to_string())
    }
    let (machine, metal3_machine): (Machine, Metal3Machine) = (read(&metadata)?, read(&metadata)?);
    let host: BareMetalHost = read(&metadata)?;
    let subject = Subject {
        namespace: "b",
        index: 7,
        machine: &machine,
        metal3_machine: &metal3_machine,
        host: &host,
    };
    Ok(render(&subject))
}

fn rendered(result: Result<Result<String, DataError>, String>) -> Answer {
    match result {
        Ok(result) => Answer::of(result, |text| text),
        Err(error) => Answer::Rejected(error),
    }
}

fn render_meta_data(input: &[u8]) -> Answer {
    match serde_json::from_slice::<MetaData>(input) {
        Ok(data) => rendered(with_subject(|subject| {
            meta_data::render(&data, subject, &Grants::default())
        })),
        Err(error) => Answer::Rejected(error.to_string()),
    }
}

fn render_network_data(input: &[u8]) -> Answer {
    match serde_json::from_slice::<NetworkData>(input) {
        Ok(data) => rendered(with_subject(|subject| {
            network_data::render(&data, subject, &Grants::default())
        })),
        Err(error) => Answer::Rejected(error.to_string()),
    }
}

/// Another reader of YAML finds text under every key, and every literal value of the template that no other overwrites.
fn metadata_yaml_is_read_back(input: &[u8], answer: &Answer, parse: Parse<'_>) -> Result<(), String> {
    if let Some(yaml) = answer.accepted() {
        let read: Value = serde_saphyr::from_str(yaml).map_err(|error| format!("{yaml:?} is no YAML: {error}"))?;
        let Value::Object(members) = &read else {
            return Err(format!("{yaml:?} is {read}"));
        };
        if let Some((key, value)) = members.iter().find(|(_, value)| !value.is_string()) {
            return Err(format!("{key:?} is {value} in {yaml:?}"));
        }
        // Unread members are skipped, whatever their texts are.
        let template: Value = serde_json::from_slice(input).unwrap_or_default();
        let only_strings = template
            .as_object()
            .is_some_and(|lists| lists.keys().all(|name| name == "strings"));
        let strings = template
            .get("strings")
            .and_then(Value::as_array)
            .filter(|_| only_strings);
        for entry in strings.into_iter().flatten().rev().take(1) {
            let (key, value) = (entry.get("key").and_then(Value::as_str), entry.get("value"));
            if let Some(key) = key.filter(|key| *key != "providerid")
                && members.get(key) != value
            {
                return Err(format!("{key:?} is {:?} in {yaml:?}", members.get(key)));
            }
        }
    }
    answers_alike(input, answer, parse)
}

/// Another reader of YAML finds network data, and these are the same after JSON.
fn network_yaml_is_read_back(input: &[u8], answer: &Answer, parse: Parse<'_>) -> Result<(), String> {
    if let Some(yaml) = answer.accepted() {
        let read: Value = serde_saphyr::from_str(yaml).map_err(|error| format!("{yaml:?} is no YAML: {error}"))?;
        let data: metal3_domain::network_data::NetworkData =
            serde_json::from_value(read.clone()).map_err(|error| format!("{yaml:?} is no network data: {error}"))?;
        if serde_json::to_value(&data).ok().as_ref() != Some(&read) {
            return Err(format!("{yaml:?} changes when it is read"));
        }
    }
    answers_alike(input, answer, parse)
}

fn pool_spec(input: &[u8]) -> Result<IPPoolSpec, String> {
    serde_json::from_slice(input).map_err(|error| error.to_string())
}

fn next(ranges: &Ranges, offset: u128) -> Option<IpAddr> {
    let used = IntervalSet::new();
    let reserved = ranges.reserved().fold(IntervalSet::new(), |mut set, at| {
        set.insert(metal3_domain::ip::Range::single(at));
        set
    });
    ranges.next_free(&Taken::by(&used, reserved), offset)
}

fn pool(input: &[u8]) -> Answer {
    Answer::of(pool_spec(input), |spec| {
        let ranges = Ranges::of(&spec);
        let next = next(&ranges, 5);
        let settings = next.map(|address| ranges.settings(address).clone());
        let reserved: Vec<_> = ranges.reserved().collect();
        format!(
            "next {next:?} of {} reserved {reserved:?} {settings:?}",
            ranges.capacity()
        )
    })
}

fn next_address_is_free(input: &[u8], answer: &Answer, parse: Parse<'_>) -> Result<(), String> {
    if let Ok(spec) = pool_spec(input) {
        let ranges = Ranges::of(&spec);
        for offset in [0, 1, u128::from(u64::MAX)] {
            if let Some(address) = next(&ranges, offset) {
                let reserved = ranges.reserved().any(|at| at == metal3_ipam::ranges::position(address));
                if !ranges.contains(address) || reserved {
                    return Err(format!("{address} is not free"));
                }
            }
        }
    }
    answers_alike(input, answer, parse)
}
