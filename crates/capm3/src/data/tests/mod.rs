//! A machine with its host and related objects, for the tests of this folder.

mod claims;
mod numbers;
mod rendering;
mod steps;
mod templates;

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::cluster::Machine;
use metal3_api::infrastructure::v1beta2::{
    Metal3Data, Metal3DataClaim, Metal3DataTemplate, Metal3DataTemplateSpec, Metal3Machine,
};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_domain::names::ObjectName;
use serde_json::{Value, json};

use super::claims::Naming;
use super::pools::{Grant, Grants, PoolRef};
use super::step::{Facts, KnownClaims, Step, next};
use super::subject::Subject;
use super::{DataError, pools};

/// Machine `md-x`, Metal3Machine `w-0`, host `host-7`, Metal3Data `tpl-2` in namespace `lab`.
struct Fixture {
    data: Metal3Data,
    template: Metal3DataTemplate,
    claim: Metal3DataClaim,
    metal3_machine: Metal3Machine,
    machine: Machine,
    host: BareMetalHost,
    secrets: BTreeMap<String, ObjectMeta>,
    claims: KnownClaims,
    naming: Naming,
}

fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn name(text: &str) -> ObjectName {
    ObjectName::parse(text).unwrap()
}

fn metadata(name: &str) -> Value {
    json!({ "name": name, "namespace": "lab", "uid": format!("uid-{name}") })
}

fn owner(kind: &str, name: &str, uid: &str) -> Value {
    let api_version = match kind {
        "Machine" => "cluster.x-k8s.io/v1beta2",
        _ => "infrastructure.cluster.x-k8s.io/v1beta2",
    };
    json!([{ "apiVersion": api_version, "kind": kind, "name": name, "uid": uid }])
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
        secrets: BTreeMap::new(),
        claims: KnownClaims::default(),
        naming: Naming::Data,
    }
}

impl Fixture {
    fn facts(&self) -> Facts<'_> {
        Facts {
            data: &self.data,
            template: Some(&self.template),
            claim: Some(&self.claim),
            metal3_machine: Some(&self.metal3_machine),
            machine: Some(&self.machine),
            host: Some(&self.host),
            secrets: &self.secrets,
            claims: &self.claims,
            naming: self.naming,
        }
    }

    fn next(&self) -> Result<Step, DataError> {
        next(&self.facts())
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
        let needed = pools::needed(self.spec(), &subject)?;
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
