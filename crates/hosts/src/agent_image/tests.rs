//! The decisions as a table.

use metal3_api::meta::Time;
use metal3_api::metal3::v1alpha1::PreprovisioningImage;
use metal3_runtime::patch::apply;
use metal3_runtime::plan::{Observed, UnknownReason};
use serde_json::{Value, json};

use super::plan::{Facts, Step, plan};
use crate::node::{Ramdisk, Ramdisks};

const OWN: &str = "preprovisioningimage.metal3.io";
const HOST: &str = "baremetalhost.metal3.io/preprovisioningImage";

fn url(name: &str) -> Option<String> {
    Some(format!("http://192.0.2.9/{name}"))
}

fn pair(name: &str) -> Ramdisk {
    Ramdisk {
        kernel: url(&format!("{name}-kernel")),
        initramfs: url(&format!("{name}-ramdisk")),
        iso: None,
    }
}

fn iso(name: &str) -> Ramdisk {
    Ramdisk {
        iso: url(name),
        ..Ramdisk::default()
    }
}

fn usual(usual: Ramdisk) -> Ramdisks {
    Ramdisks {
        usual,
        ..Ramdisks::default()
    }
}

fn arm(usual: Ramdisk, own: Ramdisk) -> Ramdisks {
    Ramdisks {
        usual,
        by_architecture: [("aarch64".to_owned(), own)].into(),
    }
}

/// An image that this program builds, with this spec.
fn own(spec: &Value) -> Value {
    json!({
        "metadata": { "name": "h", "namespace": "metal", "resourceVersion": "1", "generation": 3, "finalizers": [HOST, OWN],
            "annotations": { "preprovisioningimage.metal3.io/builder": "capm3" } },
        "spec": spec,
    })
}

fn with(mut document: Value, change: &Value) -> Value {
    apply(change, &mut document);
    document
}

fn decided(document: &Value, ramdisks: &Ramdisks, secret: Observed<String>) -> Step {
    let image: PreprovisioningImage = serde_json::from_value(document.clone()).unwrap();
    plan(&Facts {
        image: &image,
        secret,
        ramdisks,
        now: Time::new(chrono::DateTime::from_timestamp(1_800_000_000, 0).unwrap()),
    })
}

/// The status in one line: conditions with their messages, and what is offered.
fn line(step: &Step) -> String {
    let image = match step {
        Step::Done => return "nothing".to_owned(),
        Step::Own(image) => return format!("owns {:?}", image.metadata.finalizers.clone().unwrap_or_default()),
        Step::Report(image) => image,
    };
    let status = &image.status;
    let conditions = status.conditions.iter().map(|one| {
        assert_eq!(one.observed_generation, image.metadata.generation);
        format!("{} {:?} {} {}", one.type_, one.status, one.reason, one.message)
    });
    let network = status.network_data.as_ref().and_then(|network| network.version.clone());
    let files = [&status.image_url, &status.kernel_url, &status.architecture, &network];
    let files = files
        .into_iter()
        .flatten()
        .map(|text| text.replace("http://192.0.2.9/", ""));
    conditions.chain(files).collect::<Vec<_>>().join(", ")
}

const READY: &str = "Ready True ImageSuccess Generated image, Error False ImageSuccess , ";

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn image_gets_what_is_configured_for_its_formats_and_its_architecture() {
    let spec = |architecture: &str, formats: &[&str]| json!({ "architecture": architecture, "acceptFormats": formats });
    let (both, initrd) = (&["iso", "initrd"][..], &["initrd"][..]);
    let no_format = "Ready False ConfigurationError , Error True ConfigurationError No acceptable image format supported; set \
                     DEPLOY_ISO_URL for spec.acceptFormats iso, or DEPLOY_KERNEL_URL and DEPLOY_RAMDISK_URL for initrd";
    let no_architecture = |name: &str| {
        format!(
            "Ready False ConfigurationError , Error True ConfigurationError Architecture not supported; add {name:?} to \
             DEPLOY_ISO_BY_ARCH, or to DEPLOY_KERNEL_BY_ARCH and DEPLOY_RAMDISK_BY_ARCH, or delete the image to let another \
             builder serve it"
        )
    };
    let ready = |files: &str| format!("{READY}{files}");
    for (ramdisks, architecture, formats, expected) in [
        (usual(iso("iso")), "x86_64", both, ready("iso, x86_64")),
        (
            usual(pair("usual")),
            "x86_64",
            both,
            ready("usual-ramdisk, usual-kernel, x86_64"),
        ),
        (usual(iso("iso")), "x86_64", initrd, no_format.to_owned()),
        (usual(iso("iso")), "x86_64", &[][..], no_format.to_owned()),
        (Ramdisks::default(), "x86_64", both, no_format.to_owned()),
        (
            arm(Ramdisk::default(), iso("arm")),
            "aarch64",
            both,
            ready("arm, aarch64"),
        ),
        (
            arm(Ramdisk::default(), iso("arm")),
            "AArch64",
            both,
            ready("arm, AArch64"),
        ),
        (
            arm(Ramdisk::default(), iso("arm")),
            "x86_64",
            both,
            no_architecture("x86_64"),
        ),
        // The format comes first.
        (
            arm(Ramdisk::default(), iso("arm")),
            "x86_64",
            initrd,
            no_format.to_owned(),
        ),
        // What the architecture has of its own shows that the usual files are of another one, as without images for each host.
        (
            arm(pair("usual"), iso("arm")),
            "aarch64",
            initrd,
            no_architecture("aarch64"),
        ),
        (
            arm(
                iso("iso"),
                Ramdisk {
                    kernel: url("arm-kernel"),
                    ..Ramdisk::default()
                },
            ),
            "aarch64",
            both,
            no_architecture("aarch64"),
        ),
        (
            arm(
                pair("usual"),
                Ramdisk {
                    kernel: url("arm-kernel"),
                    ..Ramdisk::default()
                },
            ),
            "aarch64",
            both,
            no_architecture("aarch64"),
        ),
        // A usual ISO may be of another architecture.
        (
            arm(iso("iso"), pair("arm")),
            "aarch64",
            both,
            ready("arm-ramdisk, arm-kernel, aarch64"),
        ),
    ] {
        let image = own(&spec(architecture, formats));
        let step = decided(&image, &ramdisks, Observed::Absent);
        assert_eq!(line(&step), expected, "{architecture} {formats:?}");
        let Step::Report(reported) = step else {
            panic!("no report")
        };
        let reported = serde_json::to_value(reported).unwrap();
        assert_eq!(
            decided(&reported, &ramdisks, Observed::Absent),
            Step::Done,
            "written once"
        );
    }
}

#[test]
fn network_data_are_named_with_their_version() {
    let spec = json!({ "architecture": "x86_64", "acceptFormats": ["iso"], "networkDataName": "net" });
    let (image, ramdisks) = (own(&spec), usual(iso("iso")));
    let found = |secret| line(&decided(&image, &ramdisks, secret));
    let without = "Ready True ImageSuccess Generated image. The agent gets no network data: Ironic puts none into an ISO that \
                   is ready. Set DEPLOY_KERNEL_URL and DEPLOY_RAMDISK_URL to have them used, Error False ImageSuccess , ";
    assert_eq!(
        found(Observed::Present("7".to_owned())),
        format!("{without}iso, x86_64, 7")
    );
    // A ramdisk can have them.
    let spec = json!({ "architecture": "x86_64", "acceptFormats": ["iso", "initrd"], "networkDataName": "net" });
    let both = Ramdisk {
        iso: url("iso"),
        ..pair("usual")
    };
    assert_eq!(
        line(&decided(&own(&spec), &usual(both), Observed::Present("7".to_owned()))),
        format!("{READY}usual-ramdisk, usual-kernel, x86_64, 7")
    );
    assert_eq!(found(Observed::Unknown(UnknownReason::NotListed)), "nothing");
    assert_eq!(
        found(Observed::Absent),
        "Ready False MissingNetworkData , Error True MissingNetworkData NetworkData secret not found; create Secret net in \
         this namespace, or remove spec.preprovisioningNetworkDataName of the host"
    );
}

/// Who builds an image is decided once.
#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn image_of_another_builder_is_left_alone() {
    let spec = json!({ "architecture": "x86_64", "acceptFormats": ["iso"] });
    let foreign = |finalizers: &[&str], status: Value| {
        let mut document = own(&spec);
        document["metadata"]["annotations"] = json!(null);
        document["metadata"]["finalizers"] = json!(finalizers);
        document["status"] = status;
        document
    };
    let everything = arm(iso("iso"), pair("arm"));
    let elsewhere = arm(Ramdisk::default(), iso("arm"));
    let kernel_alone = Ramdisks {
        usual: iso("iso"),
        by_architecture: [(
            "x86_64".to_owned(),
            Ramdisk {
                kernel: url("kernel"),
                ..Ramdisk::default()
            },
        )]
        .into(),
    };
    let owns = "owns [\"baremetalhost.metal3.io/preprovisioningImage\", \"preprovisioningimage.metal3.io\"]";
    let pending = json!({ "conditions": [{ "type": "Ready", "status": "False", "reason": "ImageSuccess", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z" }] });
    for (document, ramdisks, expected, why) in [
        (
            foreign(&[HOST], json!({})),
            &everything,
            owns,
            "nothing has begun with it",
        ),
        (
            foreign(&[HOST], json!({})),
            &elsewhere,
            "nothing",
            "another architecture",
        ),
        (
            foreign(&[HOST], json!({})),
            &Ramdisks::default(),
            "nothing",
            "nothing is configured",
        ),
        (
            foreign(&[HOST], json!({})),
            &kernel_alone,
            "nothing",
            "the kernel of the architecture is for the ramdisk of another builder",
        ),
        (
            foreign(&[HOST, OWN], json!({})),
            &everything,
            "nothing",
            "a builder has begun",
        ),
        (
            foreign(&[HOST], pending),
            &everything,
            "nothing",
            "a builder writes its status",
        ),
        (
            foreign(&[HOST, OWN], json!({ "imageUrl": "http://builder.example/h.iso" })),
            &everything,
            "nothing",
            "another URL",
        ),
        (
            foreign(&[HOST, OWN], json!({ "imageUrl": "http://192.0.2.9/iso" })),
            &everything,
            owns,
            "the Go manager served it",
        ),
        (
            with(
                foreign(&[HOST, OWN], json!({ "imageUrl": "http://192.0.2.9/former" })),
                &json!({ "metadata": { "annotations": { "preprovisioningimage.metal3.io/builder": "capm3" } } }),
            ),
            &everything,
            "Ready True ImageSuccess Generated image, Error False ImageSuccess , iso, x86_64",
            "handed over",
        ),
        (
            with(own(&spec), &json!({ "metadata": { "finalizers": [HOST] } })),
            &elsewhere,
            owns,
            "its own",
        ),
    ] {
        assert_eq!(line(&decided(&document, ramdisks, Observed::Absent)), expected, "{why}");
    }
    // It does not change hands when the configuration does.
    let step = decided(&own(&spec), &elsewhere, Observed::Absent);
    assert!(line(&step).contains("Architecture not supported"), "{step:?}");
}

#[test]
fn deleted_image_is_let_go_after_all_others_have_done_so() {
    let spec = json!({ "architecture": "x86_64", "acceptFormats": ["iso"] });
    let deleted = |change: Value| {
        let deleted = json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } });
        let document = with(with(own(&spec), &deleted), &change);
        line(&decided(&document, &Ramdisks::default(), Observed::Absent))
    };
    assert_eq!(deleted(json!({})), "nothing");
    assert_eq!(deleted(json!({ "metadata": { "finalizers": [OWN] } })), "owns []");
    let moving = json!({ "clusterctl.cluster.x-k8s.io/delete-for-move": "" });
    assert_eq!(
        deleted(json!({ "metadata": { "finalizers": [OWN], "annotations": moving } })),
        "nothing"
    );
    let foreign = json!({ "metadata": { "finalizers": [OWN], "annotations": null } });
    assert_eq!(deleted(foreign), "nothing", "its builder does so");
}
