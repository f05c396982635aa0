//! The user's changes: hosts are created, get an image, lose it and are deleted, many at once.

use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use metal3_sim_bmc::identity::Number;
use metal3_sim_ironic::bmc_address;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::fleet::{Fleet, Target};
use crate::server::{NAMESPACE, Server, hosts, in_namespace};

/// Requests of the driver at a time.
const AT_ONCE: usize = 32;
/// So many hosts are changed one after the other. What a change sets off takes seconds, so that the manager works on all of them at once.
const CALM: usize = 20;
const CALM_PAUSE: Duration = Duration::from_millis(150);

/// A change of the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Enrol,
    Provision,
    /// Another image.
    Replace,
    Deprovision,
    Delete,
}

impl Change {
    /// The phases of a life.
    pub(crate) const LIFE: [Self; 4] = [Self::Enrol, Self::Provision, Self::Deprovision, Self::Delete];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Enrol => "enrol",
            Self::Provision => "provision",
            Self::Replace => "replace",
            Self::Deprovision => "deprovision",
            Self::Delete => "delete",
        }
    }

    pub(crate) const fn target(self) -> Target {
        match self {
            Self::Enrol | Self::Deprovision => Target::Available,
            Self::Provision | Self::Replace => Target::Provisioned,
            Self::Delete => Target::Gone,
        }
    }

    /// Performs it for one host.
    pub(crate) async fn send(self, server: &Server, number: u32) -> anyhow::Result<()> {
        let path = format!("{}/{}", hosts(), host_name(number));
        let image = match self {
            Self::Enrol => {
                let (_, host) = documents(number);
                return server.create(&hosts(), &host).await.map(drop);
            }
            Self::Delete => return server.delete(&path).await,
            Self::Provision => image("disk.raw"),
            Self::Replace => image("other.raw"),
            Self::Deprovision => Value::Null,
        };
        server.merge(&path, &json!({ "spec": { "image": image } })).await?;
        Ok(())
    }
}

pub(crate) fn host_name(number: u32) -> String {
    format!("host-{number:05}")
}

fn image(file: &str) -> Value {
    json!({ "url": format!("http://images.example/{file}"), "checksum": "c".repeat(64), "checksumType": "sha256",
        "format": "raw" })
}

/// The documents of a host and of its Secret.
pub(crate) fn documents(number: u32) -> (Value, Value) {
    let name = host_name(number);
    let secret_name = format!("{name}-bmc");
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": secret_name, "namespace": NAMESPACE,
            "labels": { "environment.metal3.io": "baremetal" } },
        "stringData": { "username": "admin", "password": "of-a-simulated-bmc" },
    });
    let mac = Number(u16::try_from(number).unwrap_or(u16::MAX)).mac(0);
    let host = json!({
        "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
        "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": { "online": true, "bootMACAddress": mac,
            "bmc": { "address": bmc_address(number), "credentialsName": secret_name } },
    });
    (secret, host)
}

/// Creates the Secret of a host.
async fn create_secret(server: &Server, number: u32) -> anyhow::Result<()> {
    let (secret, _) = documents(number);
    server.create(&in_namespace("secrets"), &secret).await.map(drop)
}

/// Creates the Secrets of hosts, so that no host waits for the watch of Secrets.
pub(crate) async fn create_secrets(server: &Server, numbers: &[u32]) -> anyhow::Result<()> {
    let created = stream::iter(numbers).map(|number| create_secret(server, *number));
    created.buffer_unordered(AT_ONCE).try_collect::<()>().await
}

/// Performs a change for all hosts: for some one after the other, then for the rest at once.
pub(crate) async fn change_all(server: &Server, fleet: &Fleet, change: Change, numbers: &[u32]) -> anyhow::Result<()> {
    let calm = CALM.min(numbers.len().div_euclid(4));
    let (calm, burst) = numbers.split_at_checked(calm).unwrap_or((&[], numbers));
    for number in calm {
        fleet.expect(&host_name(*number), true);
        change.send(server, *number).await?;
        sleep(CALM_PAUSE).await;
    }
    let sent = stream::iter(burst).map(|number| async {
        fleet.expect(&host_name(*number), false);
        change.send(server, *number).await
    });
    sent.buffer_unordered(AT_ONCE).try_collect::<()>().await
}
