//! Waking a control plane that sleeps although its endpoint was taken: one annotation, once for each endpoint.
//!
//! It is a right over an object of somebody else, so it has a role of its own, and nobody does it unless told to.

use std::borrow::Cow;

use kube_core::{NamespaceResourceScope, ObjectMeta, Resource};
use metal3_api::cluster::ContractReference;
use metal3_api::cluster::names::CONTROL_PLANE_GROUP;
use metal3_runtime::cache::Key;
use metal3_runtime::role;
use metal3_runtime::work::Fault;
use metal3_runtime::write::{NoCache, Writer};
use serde::{Deserialize, Serialize};

use crate::diff::changes;
use crate::endpoint::address::Address;
use crate::endpoint::said::NUDGE_ANNOTATION;

/// Kamaji's control plane, of which nothing is known here but that it has annotations.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct KamajiControlPlane {
    /// Who it is.
    pub metadata: ObjectMeta,
}

impl Resource for KamajiControlPlane {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "KamajiControlPlane".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        CONTROL_PLANE_GROUP.into()
    }

    /// The only one that its provider serves.
    fn version((): &()) -> Cow<'_, str> {
        "v1alpha2".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "kamajicontrolplanes".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

role! {
    /// Waking control planes. Not part of any role that is installed: whoever wants it grants it.
    pub struct Nudging {
        KamajiControlPlane: Patch;
    }
}

/// Writes on a control plane that its endpoint was taken. Other kinds than Kamaji's are known not to sleep.
pub(in crate::controller) async fn wake(
    writer: &Writer<Nudging>,
    waiter: &Key,
    object: &ContractReference,
    address: &Address,
) -> Result<(), Fault> {
    if object.kind != KamajiControlPlane::kind(&()) || object.api_group != CONTROL_PLANE_GROUP {
        return Ok(());
    }
    let (before, mut after) = (KamajiControlPlane::default(), KamajiControlPlane::default());
    let annotations = after.metadata.annotations.get_or_insert_default();
    annotations.insert(NUDGE_ANNOTATION.to_owned(), address.to_string());
    if let Some(patch) = changes(&before, &after).main {
        let key = waiter.sibling(&object.name);
        writer.patch::<KamajiControlPlane>(&NoCache, &key, patch).await?;
    }
    Ok(())
}
