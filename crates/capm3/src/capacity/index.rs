//! Which templates autoscaled MachineDeployments use.

use std::collections::BTreeMap;

use metal3_api::cluster::MachineDeployment;
use metal3_api::cluster::names::AUTOSCALER_MAX_SIZE_ANNOTATION;
use metal3_api::infrastructure::v1beta2::Metal3MachineTemplate;
use metal3_api::kind::Kind as _;
use metal3_runtime::cache::{Indexes, Key};

/// What the machines of an autoscaled MachineDeployment have in common, besides the template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeGroup {
    /// Name of the MachineDeployment.
    pub deployment: String,
    /// Name of its Cluster. Templates need not name it.
    pub cluster: String,
    /// The failure domain of its machines.
    pub failure_domain: Option<String>,
}

/// The node groups of each template, by the name of the MachineDeployment.
#[derive(Default)]
pub struct DeploymentIndexes {
    templates: BTreeMap<Key, BTreeMap<String, NodeGroup>>,
}

impl Indexes<MachineDeployment> for DeploymentIndexes {
    fn replace(&mut self, key: &Key, old: Option<&MachineDeployment>, new: Option<&MachineDeployment>) {
        if let Some(template) = old.and_then(autoscaled_template)
            && let Some(groups) = self.templates.get_mut(&template)
        {
            groups.remove(&key.name);
            if groups.is_empty() {
                self.templates.remove(&template);
            }
        }
        if let Some((template, deployment)) = new.and_then(|new| Some((autoscaled_template(new)?, new))) {
            let groups = self.templates.entry(template).or_default();
            groups.insert(key.name.clone(), node_group(&key.name, deployment));
        }
    }
}

impl DeploymentIndexes {
    /// The node groups of a template.
    #[must_use]
    pub fn groups(&self, template: &Key) -> Vec<NodeGroup> {
        let groups = self.templates.get(template).into_iter();
        groups.flat_map(BTreeMap::values).cloned().collect()
    }

    /// Whether a template of the namespace is used.
    #[must_use]
    pub fn has_any_in(&self, namespace: &str) -> bool {
        self.near(namespace).next().is_some()
    }

    /// The used templates of the namespace.
    #[must_use]
    pub fn in_namespace(&self, namespace: &str) -> Vec<Key> {
        self.near(namespace).map(|(template, _)| template.clone()).collect()
    }

    /// The templates that MachineDeployments of a Cluster use.
    #[must_use]
    pub fn of_cluster(&self, cluster: &Key) -> Vec<Key> {
        let is_of_it = |groups: &BTreeMap<_, NodeGroup>| groups.values().any(|group| group.cluster == cluster.name);
        let near = self.near(&cluster.namespace);
        near.filter(|(_, groups)| is_of_it(groups))
            .map(|(template, _)| template.clone())
            .collect()
    }

    fn near(&self, namespace: &str) -> impl Iterator<Item = (&Key, &BTreeMap<String, NodeGroup>)> {
        let rest = self.templates.range(Key::first_in(namespace)..);
        rest.take_while(move |(template, _)| template.namespace == namespace)
    }
}

/// The template of a MachineDeployment that the cluster autoscaler may scale; `None` if another provider makes its machines.
pub(super) fn autoscaled_template(deployment: &MachineDeployment) -> Option<Key> {
    let annotations = deployment.metadata.annotations.as_ref()?;
    annotations.get(AUTOSCALER_MAX_SIZE_ANNOTATION)?;
    let reference = &deployment.spec.template.spec.infrastructure_ref;
    let is_ours = reference.kind == Metal3MachineTemplate::KIND && reference.api_group == Metal3MachineTemplate::GROUP;
    is_ours.then(|| Key::of(deployment).sibling(&reference.name))
}

pub(super) fn node_group(name: &str, deployment: &MachineDeployment) -> NodeGroup {
    NodeGroup {
        deployment: name.to_owned(),
        cluster: deployment.spec.cluster_name.clone(),
        failure_domain: deployment.spec.template.spec.failure_domain.clone(),
    }
}
