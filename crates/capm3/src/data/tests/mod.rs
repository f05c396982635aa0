//! A machine with its host and related objects, for the tests of this folder.

mod claims;
mod members;
mod numbers;
mod objects;
mod releases;
mod rendering;
mod template_plans;
mod templates;

use std::sync::Arc;

use metal3_api::cluster::Machine;
use metal3_api::infrastructure::v1beta2::{
    Metal3Data, Metal3DataClaim, Metal3DataTemplate, Metal3DataTemplateSpec, Metal3Machine,
};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_domain::names::ObjectName;
use serde_json::{Value, json};

use super::DataError;
use super::needed::needed;
use super::object::action::Plan;
use super::object::facts::{PoolClaim, Rendering};
use super::object::plan::render;
use super::pools::{Grant, Grants, PoolRef};
use super::subject::Subject;

/// Machine `md-x`, Metal3Machine `w-0`, host `host-7`, Metal3Data `tpl-2` in namespace `lab`.
struct Fixture {
    data: Metal3Data,
    template: Metal3DataTemplate,
    claim: Metal3DataClaim,
    metal3_machine: Metal3Machine,
    machine: Machine,
    host: BareMetalHost,
    /// What else a rendering needs: Secrets, claims on pools and the setting.
    rendering: Rendering,
}

fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn name(text: &str) -> ObjectName {
    ObjectName::parse(text).unwrap()
}

fn metadata(name: &str) -> Value {
    json!({ "name": name, "namespace": "lab", "uid": format!("uid-{name}"), "resourceVersion": "7" })
}

fn owner(kind: &str, name: &str, uid: &str) -> Value {
    let api_version = match kind {
        "Machine" => "cluster.x-k8s.io/v1beta2",
        _ => "infrastructure.cluster.x-k8s.io/v1beta2",
    };
    json!([{ "apiVersion": api_version, "kind": kind, "name": name, "uid": uid }])
}

/// A claim on an IPPool with the finalizer, owned by a Metal3Data of this UID.
fn pool_claim(name: &str, owner_uid: &str, deleting: bool) -> PoolClaim {
    let mut metadata = metadata(name);
    metadata["finalizers"] = json!(["metal3data.infrastructure.cluster.x-k8s.io"]);
    metadata["ownerReferences"] = owner("Metal3Data", "tpl-2", owner_uid);
    if deleting {
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    }
    let spec = json!({ "pool": { "name": "p" } });
    PoolClaim::Metal3(Arc::new(read(json!({ "metadata": metadata, "spec": spec }))))
}

/// Creates the objects for a template with this spec.
fn fixture(spec: Value) -> Fixture {
    let mut claim = metadata("w-0");
    claim["ownerReferences"] = owner("Metal3Machine", "w-0", "uid-w-0");
    let nics = json!([{ "name": "eno1", "mac": "52:54:00:aa:00:01" }, { "name": "eno2" }]);
    let hardware = json!({ "nics": nics });
    Fixture {
        data: read(json!({
            "metadata": metadata("tpl-2"),
            "spec": { "index": 2, "template": { "name": "tpl" }, "claim": { "name": "w-0" } },
        })),
        template: read(json!({ "metadata": metadata("tpl"), "spec": spec })),
        claim: read(json!({ "metadata": claim, "spec": { "template": { "name": "tpl" } } })),
        metal3_machine: read(json!({ "metadata": metadata("w-0"), "spec": { "dataTemplate": { "name": "tpl" } } })),
        machine: read(json!({
            "metadata": { "name": "md-x", "labels": { "zone": "north" }, "annotations": { "pool": "p", "mac": "52:54:00:00:00:09" } },
            "spec": { "clusterName": "alpha" },
        })),
        host: read(json!({
            "metadata": metadata("host-7"),
            "spec": { "online": true, "bootMACAddress": "52:54:00:0a:0b:0c" },
            "status": {
                "hardware": hardware, "operationalStatus": "OK", "errorMessage": "", "poweredOn": true,
                "provisioning": { "state": "available", "ID": "" },
            },
        })),
        rendering: Rendering::default(),
    }
}

impl Fixture {
    fn rendering(&self) -> Rendering {
        Rendering {
            template: Some(Arc::new(self.template.clone())),
            claim: Some(Arc::new(self.claim.clone())),
            metal3_machine: Some(Arc::new(self.metal3_machine.clone())),
            machine: Some(Arc::new(self.machine.clone())),
            host: Some(Arc::new(self.host.clone())),
            ..self.rendering.clone()
        }
    }

    fn plan(&self) -> Plan {
        render(&self.data, &self.rendering())
    }

    fn subject(&self) -> Subject<'_> {
        Subject {
            namespace: "lab",
            index: self.data.spec.index.unwrap_or_default(),
            machine: &self.machine,
            metal3_machine: &self.metal3_machine,
            host: &self.host,
        }
    }

    fn spec(&self) -> &Metal3DataTemplateSpec {
        &self.template.spec
    }

    /// Renders metadata and network data, with the same grant from every pool.
    fn render(&self, grant: &Grant) -> Result<(String, String), DataError> {
        let subject = self.subject();
        let needed = needed(self.spec(), &subject)?;
        let grants = Grants(needed.into_iter().map(|pool: PoolRef| (pool, grant.clone())).collect());
        let (meta_data, network_data) = (self.spec().meta_data.clone(), self.spec().network_data.clone());
        Ok((
            super::meta_data::render(&meta_data.unwrap_or_default(), &subject, &grants)?,
            super::network_data::render(&network_data.unwrap_or_default(), &subject, &grants)?,
        ))
    }
}

/// 10.1.2.50/24, gateway 10.1.2.1, two name servers.
fn grant() -> Grant {
    Grant {
        address: "10.1.2.50".to_owned(),
        prefix: Some(24),
        gateway: "10.1.2.1".to_owned(),
        dns_servers: vec!["9.9.9.9".to_owned(), "1.1.1.1".to_owned()],
    }
}
