//! Triggers an idle control plane by one annotation, once per endpoint.
//!
//! This is a right on an object of another provider, so it has a role of its own and is disabled by default.

use kube_core::{ObjectMeta, Resource as _};
use metal3_api::cluster::ContractReference;
use metal3_api::cluster::names::CONTROL_PLANE_GROUP;
use metal3_runtime::cache::Key;
use metal3_runtime::role;
use metal3_runtime::work::Fault;
use metal3_runtime::write::{NoCache, Writer};
use serde::{Deserialize, Serialize};

use crate::diff::changes;
use crate::endpoint::address::Address;
use crate::endpoint::conditions::TOUCH_ANNOTATION;

/// Kamaji's control plane, reduced to metadata.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct KamajiControlPlane {
    /// Metadata.
    pub metadata: ObjectMeta,
}

// The only version that its provider serves.
metal3_runtime::resource!(
    KamajiControlPlane: NamespaceResourceScope, CONTROL_PLANE_GROUP, "v1alpha2", "KamajiControlPlane", "kamajicontrolplanes"
);

role! {
    /// Touching control planes. Not part of any released role.
    pub struct ControlPlaneTouch {
        KamajiControlPlane: Patch;
    }
}

/// Annotates a control plane with its endpoint. Only Kamaji's control planes become idle.
pub(crate) async fn touch(
    writer: &Writer<ControlPlaneTouch>,
    requester: &Key,
    object: &ContractReference,
    address: &Address,
) -> Result<(), Fault> {
    if object.kind != KamajiControlPlane::kind(&()) || object.api_group != CONTROL_PLANE_GROUP {
        return Ok(());
    }
    let (before, mut after) = (KamajiControlPlane::default(), KamajiControlPlane::default());
    let annotations = after.metadata.annotations.get_or_insert_default();
    annotations.insert(TOUCH_ANNOTATION.to_owned(), address.to_string());
    if let Some(patch) = changes(&before, &after).main {
        let key = requester.sibling(&object.name);
        writer.patch::<KamajiControlPlane>(&NoCache, &key, patch).await?;
    }
    Ok(())
}
