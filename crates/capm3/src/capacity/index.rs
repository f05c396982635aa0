//! Which templates autoscaled MachineDeployments use.

use std::collections::{BTreeMap, BTreeSet};

use metal3_api::cluster::MachineDeployment;
use metal3_api::cluster::names::AUTOSCALER_MAX_SIZE_ANNOTATION;
use metal3_api::infrastructure::v1beta2::Metal3MachineTemplate;
use metal3_api::kind::Kind as _;
use metal3_runtime::cache::{Indexes, Key};

/// The templates that autoscaled MachineDeployments use.
#[derive(Default)]
pub struct DeploymentIndexes {
    templates: BTreeMap<Key, BTreeSet<Key>>,
}

impl Indexes<MachineDeployment> for DeploymentIndexes {
    fn replace(&mut self, key: &Key, old: Option<&MachineDeployment>, new: Option<&MachineDeployment>) {
        if let Some(template) = old.and_then(autoscaled_template)
            && let Some(users) = self.templates.get_mut(&template)
        {
            users.remove(key);
            if users.is_empty() {
                self.templates.remove(&template);
            }
        }
        if let Some(template) = new.and_then(autoscaled_template) {
            self.templates.entry(template).or_default().insert(key.clone());
        }
    }
}

impl DeploymentIndexes {
    pub(super) fn uses(&self, template: &Key) -> bool {
        self.templates.contains_key(template)
    }

    pub(super) fn in_namespace(&self, namespace: &str) -> Vec<Key> {
        let templates = self.templates.keys();
        templates
            .filter(|template| template.namespace == namespace)
            .cloned()
            .collect()
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
