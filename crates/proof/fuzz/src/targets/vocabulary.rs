//! Addresses, names, ids, ranges and selectors, as users write them in fields and flags.

use metal3_domain::bmc::{BmcAddress, CertificateVerification, Credentials};
use metal3_domain::destination::check_destination;
use metal3_domain::image::{Image, ImageFields, check_host_image, check_url};
use metal3_domain::ip::{AnyPrefix, address_text, parse_address};
use metal3_domain::mac::MacAddress;
use metal3_domain::names::HostKey;
use metal3_domain::network_data::NetworkData;
use metal3_domain::provider_id::ProviderId;
use metal3_domain::uri::without_logins;

use super::sets::{
    SELECTOR, label, label_is_selectable, pool_entry, pool_entry_is_its_range, ranges, ranges_in_any_order, selector,
};
use crate::target::{Answer, Parse, Target, answers_alike, prints_what_it_reads, text};

const URLS: &[&str] = &[
    "http",
    "https",
    "redfish",
    "redfish-virtualmedia",
    "idrac",
    "ipmi",
    "libvirt",
    "ilo5",
    "oci",
    "+http",
    "+https",
    "://",
    "[2001:db8::7]",
    "192.0.2.1",
    "bmc.example",
    ":8000",
    ":623",
    "/redfish/v1/Systems/1",
    "?privilegelevel=USER",
    "user:pass@",
    "#sha256",
    "%20",
    "fe80::1%25eth0",
];
const ADDRESSES: &[&str] = &[
    "192.0.2.1",
    "2001:db8::1",
    "::",
    "::1",
    "::ffff:192.0.2.1",
    "255.255.255.255",
    "0.0.0.0",
    "/24",
    "/64",
    "/32",
    "/128",
    "/0",
    "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    "10.0.0.0",
    "fe80::1",
    "\n",
];

/// A target for text whose parser has a printer.
const fn printed(
    name: &'static str,
    words: &'static [&'static str],
    parse: fn(&[u8]) -> Answer,
    rare: &'static [&'static str],
) -> Target {
    Target::text(name, words, parse, prints_what_it_reads, rare)
}

static TARGETS: [Target; 16] = [
    Target::text(
        "bmc-address",
        URLS,
        bmc_address,
        bmc_address_is_separate,
        &["ip Some(2001", "privilege USER", "port Some"],
    ),
    Target::text(
        "uri-logins",
        URLS,
        |input| Answer::Accepted(without_logins(&text(input))),
        prints_what_it_reads,
        &["***@[2001", "#"],
    ),
    Target::text(
        "uri-destination",
        URLS,
        destination,
        destination_is_url,
        &["[2001:db8::7]:8000/", "?"],
    ),
    Target::text(
        "image",
        IMAGE,
        image,
        image_agrees_with_its_check,
        &["Disk {", "Some(Vmdk)", "Some(Sha512)"],
    ),
    printed(
        "mac-address",
        &["52:54:00", ":ab", "-", ".", "80:00:02:08:fe:80:00:00"],
        mac,
        &["ff:", ":00:00"],
    ),
    printed(
        "host-key",
        &["metal", "node-1", "/", ".", "a.b"],
        |input| Answer::of(HostKey::parse(&text(input)), |key| key.to_string()),
        &["/", "-", ".", "0"],
    ),
    printed(
        "provider-id",
        &[
            "metal3://",
            "metal",
            "/",
            "node-1",
            "0b1a2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d",
        ],
        |input| Answer::of(ProviderId::parse(&text(input)), |id| id.to_string()),
        &["metal3://", ".", "-0"],
    ),
    printed(
        "ip-address",
        ADDRESSES,
        |input| Answer::of(parse_address(&text(input)), address_text),
        &["::", "ff", ":0"],
    ),
    printed(
        "ip-prefix",
        ADDRESSES,
        |input| Answer::of(AnyPrefix::parse(&text(input)), |prefix| prefix.to_string()),
        &["::1", "/12"],
    ),
    Target::text(
        "ip-pool-entry",
        ADDRESSES,
        pool_entry,
        pool_entry_is_its_range,
        &["V6", "end: Some", "subnet: Some", "range Ok(Some"],
    ),
    Target::text(
        "ip-ranges",
        ADDRESSES,
        ranges,
        ranges_in_any_order,
        &["gap", "ffff:ffff", "::-"],
    ),
    Target::json(
        "label-selector",
        SELECTOR,
        selector,
        answers_alike,
        &["NotIn", "Exists", "true"],
    ),
    Target::text(
        "label",
        &["example.com/", "zone", ".", "-", "_", "=", "kubernetes.io"],
        label,
        label_is_selectable,
        &["/", "_", ".", "="],
    ),
    Target::json(
        "network-data",
        NETWORK,
        network_data,
        prints_what_it_reads,
        &["bond_links", "vlan_id", "ipv6_dhcp"],
    ),
    Target::text(
        "duration",
        &["h", "m", "s", "ms", "us", "ns", "1.5", "0", "\u{b5}s"],
        duration,
        duration_adds_nothing,
        &["h", "ms", "."],
    ),
    Target::text(
        "flags",
        FLAGS,
        flags,
        answers_alike,
        &["election: None", "bmc_secrets: Any", "observe_only: true"],
    ),
];

pub(super) fn targets() -> Vec<Target> {
    TARGETS.to_vec()
}

fn bmc_address(input: &[u8]) -> Answer {
    Answer::of(BmcAddress::parse(&text(input)), |address| {
        let login = Credentials {
            username: "user",
            password: "pass",
        };
        let info = address.driver_info(&login, CertificateVerification::Disabled);
        format!(
            "{} host {} ip {:?} port {:?} path {} privilege {} entries {}",
            address.type_name(),
            address.host(),
            address.ip(),
            address.port(),
            address.path(),
            address.privilege_level(),
            info.iter().count(),
        )
    })
}

fn bmc_address_is_separate(input: &[u8], answer: &Answer, parse: Parse<'_>) -> Result<(), String> {
    if let Ok(address) = BmcAddress::parse(&text(input)) {
        if address.host().contains(['@', '/', '[', ']', '%']) {
            return Err(format!("the host is {:?}", address.host()));
        }
        if !address
            .port()
            .is_none_or(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
        {
            return Err(format!("the port is {:?}", address.port()));
        }
    }
    answers_alike(input, answer, parse)
}

fn destination(input: &[u8]) -> Answer {
    let text = text(input);
    Answer::of(check_destination(&text), |()| text.clone())
}

/// A destination is also a URL, except for its scheme.
fn destination_is_url(input: &[u8], answer: &Answer, parse: Parse<'_>) -> Result<(), String> {
    let url = text(input);
    let has_scheme = url.starts_with("http://") || url.starts_with("https://");
    if answer.accepted().is_some()
        && has_scheme
        && let Some(error) = check_url(&url)
    {
        return Err(format!("a destination that is no URL: {error}"));
    }
    answers_alike(input, answer, parse)
}

const IMAGE: &[&str] = &[
    "https://images.example/os.raw",
    "oci://registry.example/os:1",
    "\n",
    "md5",
    "sha256",
    "sha512",
    "auto",
    "raw",
    "qcow2",
    "vdi",
    "vmdk",
    "live-iso",
    "http://images.example/os.sha256",
    "0123456789abcdef",
    "file:///os.raw",
];

fn image_fields(text: &str) -> ImageFields<'_> {
    let mut lines = text.split('\n');
    ImageFields {
        url: lines.next().unwrap_or_default(),
        checksum: lines.next(),
        checksum_type: lines.next(),
        disk_format: lines.next(),
    }
}

fn image(input: &[u8]) -> Answer {
    let text = text(input);
    match Image::resolve(&image_fields(&text)) {
        Ok(image) => Answer::Accepted(format!("{image:?}")),
        Err(errors) => Answer::Rejected(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")),
    }
}

fn image_agrees_with_its_check(input: &[u8], answer: &Answer, parse: Parse<'_>) -> Result<(), String> {
    let text = text(input);
    let errors = check_host_image(&image_fields(&text));
    if answer.accepted().is_some() && !errors.is_empty() {
        return Err(format!("an image with errors is used: {errors:?}"));
    }
    answers_alike(input, answer, parse)
}

fn mac(input: &[u8]) -> Answer {
    Answer::of(MacAddress::parse(&text(input)), |mac| mac.to_string())
}

const NETWORK: &[&str] = &[
    "links",
    "networks",
    "services",
    "bond",
    "vlan",
    "phy",
    "bond_links",
    "bond_mode",
    "vlan_id",
    "vlan_link",
    "ethernet_mac_address",
    "id",
    "mtu",
    "type",
    "link",
    "ip_address",
    "netmask",
    "ipv4",
    "ipv6",
    "ipv4_dhcp",
    "ipv6_dhcp",
    "ipv6_slaac",
    "routes",
    "gateway",
    "network",
    "dns",
    "address",
];

fn network_data(input: &[u8]) -> Answer {
    Answer::of(serde_json::from_slice::<NetworkData>(input), |data| {
        serde_json::to_string(&data).unwrap_or_else(|error| format!("unwritable: {error}"))
    })
}

fn duration(input: &[u8]) -> Answer {
    let text = text(input);
    Answer::some(metal3_flags::span::parse(&text), |span| {
        format!("{} s = {text}", span.as_secs_f64())
    })
}

/// Adding nothing at the end changes nothing.
fn duration_adds_nothing(input: &[u8], answer: &Answer, parse: Parse<'_>) -> Result<(), String> {
    let written = text(input);
    if answer.accepted().is_some() && written != "0" {
        let more = parse(format!("{written}0s").as_bytes());
        let seconds = |answer: &Answer| {
            answer
                .accepted()
                .and_then(|text| text.split(' ').next().map(str::to_owned))
        };
        if seconds(&more) != seconds(answer) {
            return Err(format!("{written}0s is {more:?}"));
        }
    }
    answers_alike(input, answer, parse)
}

const FLAGS: &[&str] = &[
    "--controllers",
    "capm3",
    "hosts",
    "ipam",
    "=",
    "\n",
    "--namespace",
    "--leader-elect",
    "--sync-period",
    "10m",
    "--webhook-port",
    "--metrics-bind-addr",
    "--tls-min-version",
    "VersionTLS13",
    "--v",
    "true",
    "false",
    "65536",
    "--observe-only",
    "--leader-elect-lease-duration",
    "--kube-api-qps",
    "--bmc-secrets",
    "labelled",
    "any",
];

fn flags(input: &[u8]) -> Answer {
    let text = text(input);
    match metal3_flags::parse(text.split('\n').filter(|line| !line.is_empty()).map(str::to_owned)) {
        Ok(metal3_flags::Request::Help(text) | metal3_flags::Request::Version(text)) => {
            Answer::Accepted(format!("Print {}", text.len()))
        }
        Ok(metal3_flags::Request::Run(options)) => Answer::Accepted(format!("Run {options:?}")),
        Err(errors) => Answer::Rejected(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")),
    }
}
