//! What a host costs that uses more than the reference host does, and that one that does not costs nothing for it.

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Secret;
use kube::api::DeleteParams;
use metal3_api::metal3::v1alpha1::{BMCEventSubscription, BareMetalSwitch, DataImage};
use metal3_hosts::node::{Ramdisk, Ramdisks};
use metal3_hosts::switches::Outputs;
use metal3_ledger::Ledger;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::env::{Setup, TestEnv, name};
use crate::goals::Goal;
use crate::phases::Phase;
use crate::{Requests, detail, record_host, requests_since_last, run_phase};

/// More than any step of the machine.
const REST: Duration = Duration::from_mins(10);

/// A whole life of a host with something that the reference host does not have. Goals are what is measured: another figure is
/// changed here and in `docs/counts.md`, with its reason.
const AS_REFERENCE: Goal = Goal {
    writes: 20,
    reads: 2,
    ironic: 23,
    least: ["as the reference"; 3],
};

const REGISTRY: Goal = Goal {
    reads: 3,
    least: ["as the reference", "1 more: the Secret", "as the reference"],
    ..AS_REFERENCE
};

const OWN_AGENT: Goal = Goal {
    writes: 26,
    reads: 3,
    least: [
        "4 more: the image, its owner, its status, its finalizers",
        "as the reference",
        "as the reference",
    ],
    ..AS_REFERENCE
};

/// Beyond the life: an image in the virtual drive and a start with it, then its deletion and a start without it.
const DATA_IMAGE: Goal = Goal {
    writes: 16,
    reads: 23,
    ironic: 25,
    least: [
        "6: its finalizer on and off, the status of the host for each change of the power",
        "4: host and object before each change of the drive",
        "10: four of the power, a node and a view of the drive before each change, insertion, ejection",
    ],
};

/// Beyond the life: its creation and its deletion.
const SUBSCRIPTION: Goal = Goal {
    writes: 3,
    reads: 4,
    ironic: 8,
    least: [
        "3: record and finalizer, status, finalizer",
        "2: the host before each change",
        "4: a list, POST; details, DELETE",
    ],
};

/// With a private key, as the first one of its namespace: its creation and its deletion.
const SWITCH: Goal = Goal {
    writes: 6,
    reads: 5,
    ironic: 0,
    least: [
        "5: key, file, condition; file, key",
        "5: its Secret and the two for Ironic; the two",
        "none",
    ],
};

impl Requests {
    fn add(&mut self, more: Self) {
        for (sum, counts) in [
            (&mut self.writes, more.writes),
            (&mut self.reads, more.reads),
            (&mut self.ironic, more.ironic),
        ] {
            for (what, number) in counts {
                *sum.entry(what).or_default() += number;
            }
        }
    }
}

pub(crate) async fn run(ledger: &mut Ledger, text: &mut String) -> Result<()> {
    let reference = life(Setup::default(), &json!({}), None).await?;
    // All controllers run but that of images, which every host uses. The host uses none of what the others serve.
    let unused = Setup {
        subscriptions: true,
        data_images: true,
        switches: Some(outputs()),
        ..Setup::default()
    };
    let unused = life(unused, &json!({}), None).await?;
    ensure!(
        unused == reference,
        "what is not used costs: {unused:?} instead of {reference:?}"
    );
    let registry = json!({ "url": "oci://registry.example/os", "ociAuthSecretName": "registry" });
    let live = json!({ "url": "http://images.example/live.iso", "format": "live-iso" });
    let fast = json!({ "inspectionMode": "fast" });
    for (name, goal, requests) in [
        (
            "life, oci with a login",
            REGISTRY,
            life(Setup::default(), &json!({}), Some(registry)).await?,
        ),
        (
            "life, live ISO",
            AS_REFERENCE,
            life(Setup::default(), &json!({}), Some(live)).await?,
        ),
        (
            "life, fast inspection",
            AS_REFERENCE,
            life(Setup::default(), &fast, None).await?,
        ),
        (
            "life, agent of its own",
            OWN_AGENT,
            life(own_agent(), &json!({}), None).await?,
        ),
        ("a DataImage", DATA_IMAGE, data_image().await?),
        ("an event subscription", SUBSCRIPTION, subscription().await?),
        ("a switch with a private key", SWITCH, switch().await?),
    ] {
        row(ledger, text, (name, &goal), &requests)?;
    }
    Ok(())
}

fn outputs() -> Outputs {
    Outputs {
        configs: "configs".to_owned(),
        keys: "keys".to_owned(),
        folder: "/keys".to_owned(),
    }
}

fn row(ledger: &mut Ledger, text: &mut String, (name, goal): (&str, &Goal), requests: &Requests) -> Result<()> {
    record_host(ledger, name, requests, (goal, 1));
    detail(text, name, requests, 1)
}

fn own_agent() -> Setup {
    let usual = Ramdisk {
        iso: Some("http://192.0.2.9/agent.iso".to_owned()),
        ..Ramdisk::default()
    };
    Setup {
        agent_images: Some(Ramdisks {
            usual,
            ..Ramdisks::default()
        }),
        ..Setup::default()
    }
}

/// A whole life of a host with these members and this image, if another one than that of the reference host.
async fn life(setup: Setup, spec: &Value, image: Option<Value>) -> Result<Requests> {
    let env = TestEnv::new(setup);
    env.ironic.require_login("registry.example", "u:p");
    let logins = json!({ "auths": { "registry.example": { "username": "u", "password": "p" } } });
    let secret = json!({ "metadata": { "name": "registry" }, "type": "kubernetes.io/dockerconfigjson",
        "stringData": { ".dockerconfigjson": logins.to_string() } });
    env.make::<Secret>(secret).await;
    let mut all = Requests::default();
    for phase in Phase::ALL {
        requests_since_last(&env);
        match (phase, &image) {
            (Phase::Enrol, _) => env.host(1, spec.clone()).await,
            (Phase::Provision, Some(image)) => env.edit(1, json!({ "spec": { "image": image } })).await,
            (phase, _) => phase.begin(&env, 1).await,
        }
        phase.end(&env, 1).await;
        sleep(REST).await;
        if phase == Phase::Delete {
            env.cluster.collect_garbage();
            sleep(REST).await;
        }
        all.add(requests_since_last(&env));
    }
    ensure!(env.get(1).await.is_none(), "a host is not deleted");
    Ok(all)
}

async fn data_image() -> Result<Requests> {
    let env = TestEnv::new(Setup {
        data_images: true,
        ..Setup::default()
    });
    run_phase(&env, Phase::Enrol, 1).await;
    run_phase(&env, Phase::Provision, 1).await;
    let url = "http://images.example/data.iso";
    let object = json!({ "metadata": { "name": name(1) }, "spec": { "url": url } });
    env.make::<DataImage>(object).await;
    start(&env).await;
    ensure!(
        env.machine(1, |machine| machine.disc.clone()).as_deref() == Some(url),
        "it is not in the drive"
    );
    let api = env.api::<DataImage>();
    api.delete(&name(1), &DeleteParams::default()).await?;
    start(&env).await;
    ensure!(api.get_opt(&name(1)).await?.is_none(), "it is not deleted");
    Ok(requests_since_last(&env))
}

/// Switches the machine off and on.
async fn start(env: &TestEnv) {
    for online in [false, true] {
        env.edit(1, json!({ "spec": { "online": online } })).await;
        sleep(REST).await;
    }
}

async fn subscription() -> Result<Requests> {
    let env = TestEnv::new(Setup {
        subscriptions: true,
        ..Setup::default()
    });
    run_phase(&env, Phase::Enrol, 1).await;
    let spec = json!({ "hostName": name(1), "destination": "https://events.example/", "context": "c" });
    env.make::<BMCEventSubscription>(json!({ "metadata": { "name": "events" }, "spec": spec }))
        .await;
    sleep(REST).await;
    let api = env.api::<BMCEventSubscription>();
    ensure!(
        api.get("events").await?.status.subscription_id.is_some(),
        "there is none"
    );
    api.delete("events", &DeleteParams::default()).await?;
    sleep(REST).await;
    ensure!(api.get_opt("events").await?.is_none(), "it is not deleted");
    Ok(requests_since_last(&env))
}

async fn switch() -> Result<Requests> {
    let env = TestEnv::new(Setup {
        switches: Some(outputs()),
        ..Setup::default()
    });
    for name in ["configs", "keys"] {
        env.make::<Secret>(json!({ "metadata": { "name": name } })).await;
    }
    let login = json!({ "metadata": { "name": "login", "labels": { "environment.metal3.io": "baremetal" } },
        "stringData": { "username": "admin", "ssh-privatekey": "key" } });
    env.make::<Secret>(login).await;
    sleep(REST).await;
    requests_since_last(&env);
    let spec = json!({ "address": "192.0.2.1", "macAddress": "52:54:00:00:00:01", "deviceType": "x",
        "credentials": { "name": "login" } });
    env.make::<BareMetalSwitch>(json!({ "metadata": { "name": "one" }, "spec": spec }))
        .await;
    sleep(REST).await;
    let keys = |secret: Secret| secret.data.unwrap_or_default().len();
    let (api, secrets) = (env.api::<BareMetalSwitch>(), env.api::<Secret>());
    ensure!(keys(secrets.get("keys").await?) == 1, "it is not written");
    api.delete("one", &DeleteParams::default()).await?;
    sleep(REST).await;
    ensure!(keys(secrets.get("keys").await?) == 0, "its key is left");
    Ok(requests_since_last(&env))
}
