//! What is there before a tenant comes: kinds, the account of the program, and hosts with texts that are not for tenants.

use metal3_sim_bmc::identity::Number;
use metal3_sim_ironic::bmc_address;
use serde_json::{Value, json};

use crate::person::Person;

/// What the release installs: accounts, roles and admission policies are taken from it.
const COMPONENTS: &str = include_str!("../../../manifests/default/components.yaml");
/// Kinds of what decides on access. Namespaces are created first.
const ACCESS: [&str; 8] = [
    "Namespace",
    "ServiceAccount",
    "Role",
    "RoleBinding",
    "ClusterRole",
    "ClusterRoleBinding",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
];

/// Installs the kinds and the account of the program with its roles and admission policies.
pub(crate) async fn install(admin: &mut Person) -> anyhow::Result<()> {
    admin
        .done("kubectl apply --server-side -k manifests/crds && kubectl wait --for=condition=Established --all customresourcedefinitions")
        .await?;
    let documents: Vec<Value> = serde_saphyr::from_multiple(COMPONENTS)?;
    for kind in ACCESS {
        let of_kind = documents
            .iter()
            .filter(|one| one.get("kind").and_then(Value::as_str) == Some(kind));
        let of_kind: Vec<Value> = of_kind.cloned().collect();
        if !of_kind.is_empty() {
            admin.apply(&of_kind).await?;
        }
    }
    Ok(())
}

/// The documents of a host: each text that a user can choose is a canary.
pub(crate) fn host(number: u32) -> [Value; 3] {
    let canary = |of: &str| format!("canary-{of}-{number}");
    let name = format!("host-{number}");
    let secret = |of: &str, data: Value| {
        let labels = json!({ "environment.metal3.io": "baremetal" });
        json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": canary(of), "labels": labels }, "stringData": data })
    };
    let mac = Number(u16::try_from(number).unwrap_or(u16::MAX)).mac(0);
    let host = json!({
        "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
        "metadata": { "name": name, "labels": { "rack": canary("rack") }, "annotations": { "example.org/place": canary("place") } },
        "spec": {
            "online": true, "bootMACAddress": mac, "description": canary("description"),
            "preprovisioningNetworkDataName": canary("network"),
            "rootDeviceHints": { "minSizeGigabytes": 1 },
            "bmc": { "address": bmc_address(number), "credentialsName": canary("login") },
        },
    });
    [
        secret(
            "login",
            json!({ "username": canary("user"), "password": canary("password") }),
        ),
        secret(
            "network",
            json!({ "networkData": format!("{}: []", canary("addresses")) }),
        ),
        host,
    ]
}
