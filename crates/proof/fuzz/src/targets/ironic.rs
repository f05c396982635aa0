//! Answers of Ironic, and its endpoint.

use metal3_ironic::calls::{NodeRef, hardware, node, port, state};
use metal3_ironic::feed::PageRequest;
use metal3_ironic::version::Microversion;
use metal3_ironic::{Endpoint, error};

use crate::target::{Answer, Parse, Shape, Target, answers_alike, prints_what_it_reads, text};

const NODE: &[&str] = &[
    "nodes",
    "next",
    "uuid",
    "name",
    "provision_state",
    "target_provision_state",
    "power_state",
    "maintenance",
    "last_error",
    "driver_info",
    "instance_info",
    "properties",
    "extra",
    "updated_at",
    "health",
    "active",
    "available",
    "clean failed",
    "deploy wait",
    "power on",
    "error",
    "2026-01-31T12:00:00+00:00",
    "0b1a2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d",
];
const INVENTORY: &[&str] = &[
    "inventory",
    "plugin_data",
    "interfaces",
    "cpu",
    "memory",
    "disks",
    "system_vendor",
    "boot",
    "hostname",
    "mac_address",
    "lldp",
    "count",
    "frequency",
    "physical_mb",
    "total",
    "size",
    "rotational",
    "wwn",
    "hctl",
    "by_path",
    "firmware",
    "architecture",
    "ipv4_address",
    "2400.0",
    "x86_64",
];
const MESSAGES: &[&str] = &[
    "error_message",
    "faultstring",
    "error",
    "errors",
    "message",
    "detail",
    "title",
    "code",
    "{\"faultstring\":\"x\"}",
    "<html>",
];
const PARTS: &[&str] = &[
    "ports",
    "bios",
    "firmware",
    "vifs",
    "id",
    "uuid",
    "address",
    "pxe_enabled",
    "name",
    "value",
    "attribute_type",
    "allowable_values",
    "lower_bound",
    "upper_bound",
    "read_only",
    "component",
    "initial_version",
    "current_version",
    "deploy",
    "power",
    "result",
    "reason",
    "history",
    "event",
    "boot_device",
    "persistent",
    "traits",
    "local_link_connection",
];

static TARGETS: [Target; 6] = [
    Target::json(
        "ironic-nodes",
        NODE,
        nodes,
        no_node_is_lost,
        &["Unreadable {", "maintenance: true", "next: Some"],
    ),
    Target::json(
        "ironic-inventory",
        INVENTORY,
        inventory,
        answers_alike,
        &["rotational: Some(true)", "frequency: Some(", "lldp"],
    ),
    Target::json(
        "ironic-parts",
        PARTS,
        parts,
        answers_alike,
        &["Port {", "FirmwareComponent {", "Vif {"],
    ),
    Target::json(
        "ironic-error",
        MESSAGES,
        |input| Answer::Accepted(error::message(500, input)),
        one_line,
        &["code", "\u{e9}"],
    ),
    Target {
        name: "ironic-version",
        shape: Shape::Text,
        words: &["1.", "110", "65535", "2."],
        parse: |input| Answer::some(Microversion::parse(&text(input)), |version| version.to_string()),
        property: prints_what_it_reads,
        rare: &["1.6", "5"],
    },
    Target {
        name: "ironic-endpoint",
        shape: Shape::Text,
        words: &[
            "http://",
            "https://",
            "ironic.example",
            ":6385",
            "/v1",
            "/",
            "[2001:db8::1]",
            "user:pass@",
        ],
        parse: |input| Answer::of(Endpoint::parse(&text(input)), |endpoint| format!("{endpoint:?}")),
        property: answers_alike,
        rare: &["Ipv6", "port: Some"],
    },
];

pub(super) fn targets() -> Vec<Target> {
    TARGETS.to_vec()
}

/// A page of the change feed.
const PAGE: PageRequest = PageRequest {
    order: node::Order::Created,
    limit: 100,
    behind: None,
};

fn nodes(input: &[u8]) -> Answer {
    Answer::of(PAGE.call().decode(input), |page| format!("{page:?}"))
}

/// Each item of the list is a node, or is unreadable.
fn no_node_is_lost(input: &[u8], answer: &Answer, parse: Parse<'_>) -> Result<(), String> {
    if answer.accepted().is_some()
        && let Ok(page) = PAGE.call().decode(input)
    {
        // Unread members are skipped, whatever their texts are.
        let listed: serde_json::Value = serde_json::from_str(&text(input)).map_err(|error| error.to_string())?;
        let listed = listed
            .get("nodes")
            .and_then(|nodes| nodes.as_array())
            .map_or(0, Vec::len);
        if page.items.len() + page.unreadable.len() != listed {
            return Err(format!(
                "{} and {} of {listed}",
                page.items.len(),
                page.unreadable.len()
            ));
        }
    }
    answers_alike(input, answer, parse)
}

fn inventory(input: &[u8]) -> Answer {
    let call = node::inventory(&NodeRef::Name("n".into()));
    Answer::of(call.decode(input), |inspection| format!("{inspection:?}"))
}

/// The same body for each call with a small answer.
fn parts(input: &[u8]) -> Answer {
    let of = NodeRef::Name("n".into());
    let shown = [
        port::of_node(&of, None).decode(input).map(|page| format!("{page:?}")),
        hardware::bios(&of).decode(input).map(|page| format!("{page:?}")),
        hardware::firmware(&of).decode(input).map(|page| format!("{page:?}")),
        hardware::virtual_media(&of)
            .decode(input)
            .map(|page| format!("{page:?}")),
        node::validate(&of).decode(input).map(|page| format!("{page:?}")),
        node::history(&of).decode(input).map(|page| format!("{page:?}")),
        state::get(&of).decode(input).map(|states| format!("{states:?}")),
        state::vifs(&of).decode(input).map(|page| format!("{page:?}")),
        state::boot_device(&of)
            .decode(input)
            .map(|device| format!("{device:?}")),
    ];
    let accepted: Vec<String> = shown.into_iter().filter_map(Result::ok).collect();
    if accepted.is_empty() {
        return Answer::Rejected("no call accepts it".to_owned());
    }
    Answer::Accepted(accepted.join("; "))
}

fn one_line(input: &[u8], answer: &Answer, parse: Parse<'_>) -> Result<(), String> {
    if answer
        .accepted()
        .is_some_and(|message| message.is_empty() || message.contains(char::is_control))
    {
        return Err(format!("the message is {answer:?}"));
    }
    answers_alike(input, answer, parse)
}
