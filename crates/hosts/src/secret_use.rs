//! What a Secret is for, decided from metadata before its content is read: the content of the Secrets of hosts and of
//! switches must not be sent anywhere else.

use k8s_openapi::api::core::v1::Secret;
use kube_core::PartialObjectMeta;
use metal3_api::metal3::names::{ENVIRONMENT_BAREMETAL, ENVIRONMENT_LABEL, SECRET_FINALIZER};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_runtime::cache::{Key, SharedCache};

use crate::facts::Read;
use crate::live::Reading;
use crate::settings::BmcSecrets;
use crate::switches::SecretsOfSwitches;

/// The use of a Secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// It may be what an object names it for.
    Free,
    /// It has not the label of Secrets for hardware.
    Unlabelled,
    /// A host uses it.
    Host,
    /// A switch uses it.
    Switch,
}

/// The Secrets that a host names.
pub(crate) fn secrets_of_host(host: &BareMetalHost) -> impl Iterator<Item = &str> {
    let image = host.spec.image.as_ref();
    let registry = image.and_then(|image| image.oci_auth_secret_name.as_deref());
    let named = Read::SECRETS.into_iter().filter_map(|which| which.secret_name(host));
    named.chain(registry)
}

/// The use of a Secret with this metadata. Without `switches`, none has it.
pub(crate) fn use_of(
    key: &Key,
    meta: &PartialObjectMeta<Secret>,
    allowed: BmcSecrets,
    (hosts, switches): (&SharedCache<BareMetalHost>, Option<&SecretsOfSwitches>),
) -> Reading<Use> {
    let labels = meta.metadata.labels.as_ref();
    let label = labels.and_then(|labels| labels.get(ENVIRONMENT_LABEL));
    let is_labelled = label.is_some_and(|value| value == ENVIRONMENT_BAREMETAL);
    if !is_labelled && allowed != BmcSecrets::Any {
        return Reading::Known(Use::Unlabelled);
    }
    let mut finalizers = meta.metadata.finalizers.iter().flatten();
    if finalizers.any(|name| name == SECRET_FINALIZER) {
        return Reading::Known(Use::Host);
    }
    match is_of_host(key, hosts) {
        Reading::Known(true) => Reading::Known(Use::Host),
        Reading::Known(false) => switches.map_or(Reading::Known(Use::Free), |switches| of_switches(key, switches)),
        Reading::Failed(why) => Reading::Failed(why),
        Reading::NotRead => Reading::NotRead,
    }
}

/// The use of a Secret that no host uses. A switch that names it has its login there, which is worth as much as that of a BMC.
fn of_switches(key: &Key, switches: &SecretsOfSwitches) -> Reading<Use> {
    match switches.have(key) {
        Reading::Known(true) => Reading::Known(Use::Switch),
        Reading::Known(false) => Reading::Known(Use::Free),
        Reading::Failed(why) => Reading::Failed(why),
        Reading::NotRead => Reading::NotRead,
    }
}

/// Whether a host names the Secret. The Go manager labels all that it reads, those with data of machines too.
fn is_of_host(secret: &Key, hosts: &SharedCache<BareMetalHost>) -> Reading<bool> {
    hosts.read(|cache| {
        let mut of_namespace = cache.in_namespace(&secret.namespace);
        if of_namespace.any(|host| secrets_of_host(host).any(|name| name == secret.name)) {
            return Reading::Known(true);
        }
        let unreadable = cache.unreadable().find(|host| host.namespace == secret.namespace);
        match unreadable {
            Some(host) => Reading::Failed(format!(
                "BareMetalHost {} cannot be decoded, and may name it",
                host.name
            )),
            None => Reading::Known(false),
        }
    })
}
