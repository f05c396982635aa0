//! The ramdisk of the agent in the record of a node.

use std::collections::BTreeMap;

use serde_json::json;

use super::super::{NodeSettings, Passwords, Ramdisk, Ramdisks};
use super::record::{Record, lines};
use super::registration::{created, wanted};
use super::{VIRTUAL_MEDIA, bmc, host, settings};

fn with_usual(usual: Ramdisk) -> NodeSettings {
    let ramdisks = Ramdisks {
        usual,
        ..Ramdisks::default()
    };
    NodeSettings { ramdisks, ..settings() }
}

/// A kernel of one architecture is never sent with the ramdisk of another.
#[test]
fn machine_boots_the_agent_of_its_architecture() {
    let url = |name: &str| Some(format!("http://192.0.2.9/{name}"));
    let of = |name: &str| Ramdisk {
        kernel: url(&format!("{name}-kernel")),
        initramfs: url(&format!("{name}-ramdisk")),
        iso: url(&format!("{name}-iso")),
    };
    let iso_alone = Ramdisk {
        iso: url("risc-iso"),
        ..Ramdisk::default()
    };
    let mut settings = with_usual(of("usual"));
    let pair_alone = Ramdisk { iso: None, ..of("ppc") };
    settings.ramdisks.by_architecture = BTreeMap::from([
        ("aarch64".to_owned(), of("arm")),
        ("ppc64le".to_owned(), pair_alone),
        ("riscv64".to_owned(), iso_alone),
    ]);
    settings.own_architecture = "x86_64".to_owned();
    const NETWORK: &str = "redfish://192.0.2.1/x";
    for (address, architecture, expected) in [
        (VIRTUAL_MEDIA, None, "usual-iso"),
        (VIRTUAL_MEDIA, Some("aarch64"), "arm-iso"),
        (VIRTUAL_MEDIA, Some("AArch64"), "arm-iso"),
        (VIRTUAL_MEDIA, Some("riscv64"), "risc-iso"),
        (NETWORK, None, "usual-kernel usual-ramdisk"),
        (NETWORK, Some("aarch64"), "arm-kernel arm-ramdisk"),
        // What an architecture has of its own is not completed by that of another.
        (NETWORK, Some("riscv64"), ""),
        (VIRTUAL_MEDIA, Some("ppc64le"), "ppc-kernel ppc-ramdisk"),
    ] {
        let host = host(json!({ "bmc": bmc(address), "architecture": architecture }));
        let record = wanted(&host, &settings);
        let new = record.creation();
        let urls = ["deploy_iso", "deploy_kernel", "deploy_ramdisk"].map(|key| new.driver_info.get(key).cloned());
        let shown: Vec<_> = urls
            .iter()
            .flatten()
            .filter_map(|url| url.as_str()?.strip_prefix("http://192.0.2.9/"))
            .collect();
        assert_eq!(shown.join(" "), expected, "{address} {architecture:?}");
        let shown = Record::created(new).shown();
        assert!(
            record.changes(&shown, Passwords::AsSent).unwrap().patch.is_empty(),
            "{address} {architecture:?}"
        );
    }
    // The host says nothing of its architecture, and Ironic knows it.
    let host = host(json!({ "bmc": bmc(VIRTUAL_MEDIA) }));
    let mut record = created(&host);
    record.0["properties"]["cpu_arch"] = "aarch64".into();
    let changes = wanted(&host, &settings)
        .changes(&record.shown(), Passwords::AsSent)
        .unwrap();
    assert_eq!(
        lines(&changes.patch),
        [r#"/driver_info/deploy_iso: "http://192.0.2.9/arm-iso""#]
    );
}

#[test]
fn ramdisk_is_set_only_when_configured() {
    let text = |url: &str| Some(url.to_owned());
    let (kernel, initramfs, iso) = (
        text("http://192.0.2.9/k"),
        text("http://192.0.2.9/r"),
        text("http://192.0.2.9/i"),
    );
    let both = Ramdisk {
        kernel: kernel.clone(),
        initramfs,
        iso,
    };
    let rows = [
        (Ramdisk::default(), VIRTUAL_MEDIA, vec![]),
        (
            Ramdisk {
                iso: None,
                initramfs: None,
                kernel,
            },
            VIRTUAL_MEDIA,
            vec![],
        ),
        (
            Ramdisk {
                iso: None,
                ..both.clone()
            },
            VIRTUAL_MEDIA,
            vec!["deploy_kernel", "deploy_ramdisk"],
        ),
        (both.clone(), VIRTUAL_MEDIA, vec!["deploy_iso"]),
        (both, "redfish://192.0.2.1/x", vec!["deploy_kernel", "deploy_ramdisk"]),
    ];
    for (ramdisk, address, expected) in rows {
        let settings = with_usual(ramdisk);
        let new = wanted(&host(json!({"bmc": bmc(address)})), &settings).creation();
        let named: Vec<_> = new
            .driver_info
            .keys()
            .filter(|key| key.starts_with("deploy_"))
            .collect();
        assert_eq!(named, expected, "{address}");
    }
}

#[test]
fn iso_replaces_kernel_and_ramdisk() {
    let host = host(json!({"bmc": bmc(VIRTUAL_MEDIA)}));
    let mut record = created(&host);
    for key in ["deploy_kernel", "deploy_ramdisk", "kernel_append_params"] {
        record.0["driver_info"][key] = "x".into();
    }
    let ramdisk = Ramdisk {
        iso: Some("http://192.0.2.9/i".to_owned()),
        ..Ramdisk::default()
    };
    let changes = wanted(&host, &with_usual(ramdisk))
        .changes(&record.shown(), Passwords::AsSent)
        .unwrap();
    assert_eq!(
        lines(&changes.patch),
        [
            r#"/driver_info/deploy_iso: "http://192.0.2.9/i""#,
            "/driver_info/deploy_kernel",
            "/driver_info/deploy_ramdisk",
            "/driver_info/kernel_append_params"
        ]
    );
}

#[test]
fn agent_of_a_former_architecture_is_removed_and_that_of_an_operator_stays() {
    let url = |name: &str| Some(format!("http://192.0.2.9/{name}"));
    let arm = Ramdisk {
        kernel: url("arm-kernel"),
        initramfs: url("arm-ramdisk"),
        iso: None,
    };
    let mut settings = settings();
    settings.ramdisks.by_architecture = BTreeMap::from([("aarch64".to_owned(), arm)]);
    let of = |architecture: &str| host(json!({ "bmc": bmc(VIRTUAL_MEDIA), "architecture": architecture }));
    let mut record = Record::created(wanted(&of("aarch64"), &settings).creation());
    let corrected = wanted(&of("x86_64"), &settings);
    let changes = |record: &Record| lines(&corrected.changes(&record.shown(), Passwords::AsSent).unwrap().patch);
    assert_eq!(
        changes(&record),
        [
            "/driver_info/deploy_kernel",
            "/driver_info/deploy_ramdisk",
            r#"/properties/cpu_arch: "x86_64""#
        ]
    );
    record.0["driver_info"]["deploy_kernel"] = "http://192.0.2.1/own".into();
    assert_eq!(changes(&record)[0], "/driver_info/deploy_ramdisk");
}
