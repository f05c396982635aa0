//! Metal3DataTemplate: complete sources and immutable content.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::crd::defaults::equal_with_defaults;
use crate::infrastructure::v1beta2::{
    AnnotationSource, FromHostInterface, IPPoolReference, MetaData, Metal3DataTemplate, NetworkData,
};
use crate::rules::{AdmissionRules, FieldPath, Findings, Rule, WriteRequest};

const NEW_TEMPLATE: &str = "create another template and let new machines use it";

impl AdmissionRules for Metal3DataTemplate {
    const RULES: &'static [Rule<Self>] = &[
        Rule::on_write(
            "cluster-name-unused",
            "A warning is returned when `spec.clusterName` is set: it is deprecated and not used.",
            cluster_name_is_unused,
        ),
        Rule::on_create(
            "host-interface-source",
            "An entry of `metaData.fromHostInterfaces` names either the boot MAC or an interface.",
            |template, findings| {
                for (position, entry) in interfaces(template.spec.meta_data.as_ref()).enumerate() {
                    interface_has_one_source(position, entry, findings);
                }
            },
        ),
        Rule::on_create(
            "network-has-a-pool",
            "Each static network names the pool that its address comes from, or the annotation that names \
                it.",
            networks_have_pools,
        ),
        Rule::<Self>::on_update(
            "metadata-kept",
            "`spec.metaData` cannot be changed. The order of its entries may.",
            |old, new, findings| {
                if !same_meaning(&old.spec.meta_data, &new.spec.meta_data) {
                    findings.invalid("spec.metaData", &new.spec.meta_data, "cannot be modified", NEW_TEMPLATE);
                }
            },
        )
        .differing("data-template-order"),
        Rule::<Self>::on_update(
            "network-data-kept",
            "`spec.networkData` cannot be changed. The order of its links, networks and routes may.",
            |old, new, findings| {
                if !same_meaning(&old.spec.network_data, &new.spec.network_data) {
                    findings.invalid(
                        "spec.networkData",
                        &new.spec.network_data,
                        "cannot be modified",
                        NEW_TEMPLATE,
                    );
                }
            },
        )
        .differing("data-template-order"),
    ];
}

/// Compares with the defaults of the schema, and without the order of lists of objects, whose items have keys. The
/// order of plain values counts.
///
/// An object that a release stored as `v1beta1` is read without the defaults of this version, and its update has them.
fn same_meaning<T: Serialize + JsonSchema + 'static>(old: &T, new: &T) -> bool {
    equal_with_defaults(old, new, sorted)
}

fn sorted(value: Value) -> Value {
    match value {
        Value::Object(members) => members
            .into_iter()
            .map(|(name, member)| (name, sorted(member)))
            .collect(),
        Value::Array(items) => {
            let mut items: Vec<Value> = items.into_iter().map(sorted).collect();
            if items.iter().all(Value::is_object) {
                items.sort_by_cached_key(Value::to_string);
            }
            items.into()
        }
        plain => plain,
    }
}

fn cluster_name_is_unused(template: &WriteRequest<'_, Metal3DataTemplate>, findings: &mut Findings) {
    if template
        .new
        .spec
        .cluster_name
        .as_ref()
        .is_some_and(|name| !name.is_empty())
    {
        findings.warn(
            "spec.clusterName",
            "spec.clusterName is deprecated and not used by the controllers",
            "remove it; owner references link the objects",
        );
    }
}

fn interfaces(meta_data: Option<&MetaData>) -> impl Iterator<Item = &FromHostInterface> {
    meta_data
        .into_iter()
        .flat_map(|meta_data| &meta_data.from_host_interfaces)
}

fn interface_has_one_source(position: usize, entry: &FromHostInterface, findings: &mut Findings) {
    let boot = entry.from_boot_mac == Some(true);
    let named = entry.interface.as_ref().is_some_and(|name| !name.is_empty());
    let path = FieldPath::new("spec.metaData.fromHostInterfaces").index(position);
    if boot == named {
        let problem = "must have exactly one of fromBootMAC and interface";
        findings.invalid(path, entry, problem, "set fromBootMAC to true, or name the interface");
    }
}

fn networks_have_pools(template: &Metal3DataTemplate, findings: &mut Findings) {
    let networks = template
        .spec
        .network_data
        .as_ref()
        .and_then(|data: &NetworkData| data.networks.as_ref());
    let Some(networks) = networks else { return };
    let v4 = networks.ipv4.iter().map(|network| {
        has_a_pool(
            network.ip_address_from_ip_pool.as_ref(),
            network.from_pool_ref.as_ref(),
            network.from_pool_annotation.as_ref(),
        )
    });
    let v6 = networks.ipv6.iter().map(|network| {
        has_a_pool(
            network.ip_address_from_ip_pool.as_ref(),
            network.from_pool_ref.as_ref(),
            network.from_pool_annotation.as_ref(),
        )
    });
    let numbered = v4
        .enumerate()
        .map(|found| ("ipv4", found))
        .chain(v6.enumerate().map(|found| ("ipv6", found)));
    for (member, (position, has_pool)) in numbered {
        if !has_pool {
            let path = FieldPath::new("spec.networkData.networks")
                .child(member)
                .index(position);
            let problem = "must say which pool its address comes from";
            findings.required(path, problem, "set fromPoolRef.name or fromPoolAnnotation");
        }
    }
}

fn has_a_pool(
    name: Option<&String>,
    reference: Option<&IPPoolReference>,
    annotation: Option<&AnnotationSource>,
) -> bool {
    name.is_some_and(|name| !name.is_empty())
        || reference.is_some_and(|pool| !pool.name.is_empty())
        || annotation.is_some()
}
