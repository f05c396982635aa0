//! Copies of the Secrets of a claim in the namespace of its host. Pure.
//!
//! A host reads Secrets of its own namespace only. Each copy has a name that follows from the host, is controlled by the host, so
//! that it goes with it, and is emptied before the host is released: permission to delete Secrets is not needed. A Secret of that
//! name that the host does not control is another one: it is neither written nor used.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use metal3_api::kind::Kind as _;
use metal3_api::meta::SecretReference;
use metal3_api::metal3::names::CLAIM_COPY_ANNOTATION;
use metal3_api::metal3::v1alpha1::{BareMetalHost, HostClaimSpec};
use metal3_domain::names::ObjectName;
use metal3_runtime::cache::Key;
use metal3_runtime::reason::Reason;

use super::choice::hash;
use crate::names::claim_reason::{
    META_DATA_NOT_SYNCED, NETWORK_DATA_NOT_SYNCED, REGISTRY_LOGIN_NOT_SYNCED, USER_DATA_NOT_SYNCED,
};

/// The longest name of a host that is a part of the names of its copies.
const LONGEST_HOST: usize = 220;
const INFIX: &str = ".claim-";
const OPAQUE: &str = "Opaque";
const REGISTRY_LOGIN: &str = "kubernetes.io/dockerconfigjson";
/// The key of a registry login, without which the API server refuses a Secret of its type.
const CONFIG: &str = ".dockerconfigjson";

/// What a Secret is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Use {
    UserData,
    NetworkData,
    MetaData,
    RegistryLogin,
}

impl Use {
    pub(super) const ALL: [Self; 4] = [Self::UserData, Self::NetworkData, Self::MetaData, Self::RegistryLogin];

    const fn suffix(self) -> &'static str {
        match self {
            Self::UserData => "user-data",
            Self::NetworkData => "network-data",
            Self::MetaData => "meta-data",
            Self::RegistryLogin => "registry-login",
        }
    }

    /// The field of the claim that names the Secret.
    pub(super) const fn field(self) -> &'static str {
        match self {
            Self::UserData => "spec.userData",
            Self::NetworkData => "spec.networkData",
            Self::MetaData => "spec.metaData",
            Self::RegistryLogin => "spec.image.ociAuthSecretName",
        }
    }

    /// The reason of the condition while the copy is missing.
    pub(super) const fn reason(self) -> Reason {
        match self {
            Self::UserData => USER_DATA_NOT_SYNCED,
            Self::NetworkData => NETWORK_DATA_NOT_SYNCED,
            Self::MetaData => META_DATA_NOT_SYNCED,
            Self::RegistryLogin => REGISTRY_LOGIN_NOT_SYNCED,
        }
    }

    const fn type_(self) -> &'static str {
        match self {
            Self::RegistryLogin => REGISTRY_LOGIN,
            Self::UserData | Self::NetworkData | Self::MetaData => OPAQUE,
        }
    }

    /// The name of the copy for a host.
    pub(super) fn name(self, host: &Key) -> String {
        let start = match host.name.len() {
            0..=LONGEST_HOST => host.name.clone(),
            _ => hash(&[&host.name]),
        };
        format!("{start}{INFIX}{}", self.suffix())
    }

    /// The Secret that the claim names; `None`: none. A name that no Secret can have is one that does not exist.
    pub(super) fn named(self, spec: &HostClaimSpec, namespace: &str) -> Option<Named> {
        let reference = |reference: &SecretReference| {
            let name = reference.name.clone().filter(|name| !name.is_empty())?;
            let other = reference.namespace.as_deref().filter(|other| !other.is_empty());
            Some((name, other.is_some_and(|other| other != namespace)))
        };
        let (name, is_elsewhere) = match self {
            Self::UserData => spec.user_data.as_ref().and_then(reference),
            Self::NetworkData => spec.network_data.as_ref().and_then(reference),
            Self::MetaData => spec.meta_data.as_ref().and_then(reference),
            Self::RegistryLogin => {
                let image = spec.image.as_ref();
                let name = image.and_then(|image| image.oci_auth_secret_name.clone());
                name.filter(|name| !name.is_empty()).map(|name| (name, false))
            }
        }?;
        if is_elsewhere {
            return Some(Named::Elsewhere);
        }
        Some(ObjectName::parse(name).map_or(Named::Invalid, |name| Named::Own(name.to_string())))
    }
}

/// What a reference names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Named {
    Own(String),
    /// It names another namespace.
    Elsewhere,
    Invalid,
}

/// The host whose copy has this name, unless the name of the host is too long to be a part of it.
pub(super) fn host_of(secret: &Key) -> Option<Key> {
    let (host, _) = secret.name.rsplit_once(INFIX)?;
    Some(secret.sibling(host))
}

/// What a claim names, as far as metadata tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    /// Nothing.
    None,
    /// A Secret of this UID and version.
    Secret {
        name: String,
        version: String,
    },
    Absent,
    Elsewhere,
    Invalid,
    /// A BMC or a switch uses it, or it is a copy for another claim.
    OtherUse,
    /// Its content is of another type or cannot be a copy.
    OtherType,
    Unknown,
}

/// The Secret under the name of the copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Copy {
    Absent,
    /// Of this host; of what it is a copy, if of anything.
    Own(Option<String>),
    /// The host does not control it.
    Foreign,
    /// The API server refused it.
    Refused,
    Unknown,
}

/// Both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) source: Source,
    pub(super) copy: Copy,
}

impl Pair {
    /// Whether the copy has what the claim names.
    pub(super) fn is_synced(&self) -> bool {
        match (&self.source, &self.copy) {
            (Source::None, _) => true,
            (Source::Secret { version, .. }, Copy::Own(of)) => of.as_ref() == Some(version),
            _ => false,
        }
    }

    /// Whether the copy has the content of some Secret.
    pub(super) fn is_filled(&self) -> bool {
        matches!(&self.copy, Copy::Own(Some(_)))
    }
}

/// All of a host.
pub(super) type Pairs = BTreeMap<Use, Pair>;

/// Whether the host controls the Secret.
pub(super) fn is_of(meta: &ObjectMeta, host: &BareMetalHost) -> bool {
    let Some(uid) = host.metadata.uid.as_deref().filter(|uid| !uid.is_empty()) else {
        return false;
    };
    let mut owners = meta.owner_references.iter().flatten();
    owners.any(|owner| owner.uid == uid && owner.kind == BareMetalHost::KIND && owner.controller == Some(true))
}

/// Of what the Secret is a copy.
pub(super) fn of_what(meta: &ObjectMeta) -> Option<String> {
    meta.annotations.as_ref()?.get(CLAIM_COPY_ANNOTATION).cloned()
}

/// Whether its metadata permit to copy it: what a host controls is a copy for a claim, also while it is empty and filled next.
pub(super) fn is_source(meta: &ObjectMeta) -> bool {
    let mut owners = meta.owner_references.iter().flatten();
    let is_of_host = owners.any(|owner| owner.kind == BareMetalHost::KIND && owner.controller == Some(true));
    of_what(meta).is_none() && !is_of_host
}

/// UID and version, which together name one content.
pub(super) fn version(meta: &ObjectMeta) -> Option<String> {
    let (uid, version) = (meta.uid.as_deref()?, meta.resource_version.as_deref()?);
    Some(format!("{uid}/{version}"))
}

/// The copy with this content, made from a former one. `None`: the content is of another type.
pub(super) fn filled(which: Use, host: &BareMetalHost, source: &Secret, former: Option<&Secret>) -> Option<Secret> {
    let type_ = source.type_.as_deref().unwrap_or(OPAQUE);
    let is_usable = match which {
        Use::RegistryLogin => type_ == REGISTRY_LOGIN,
        // A token of an account is of the API server, and no data of a machine.
        Use::UserData | Use::NetworkData | Use::MetaData => type_ != "kubernetes.io/service-account-token",
    };
    is_usable.then(|| {
        let mut copy = former.map_or_else(|| empty(which, host), Secret::clone);
        copy.data = Some(source.data.clone().unwrap_or_default());
        let annotations = copy.metadata.annotations.get_or_insert_default();
        annotations.insert(
            CLAIM_COPY_ANNOTATION.to_owned(),
            version(&source.metadata).unwrap_or_default(),
        );
        copy
    })
}

/// The copy without its content.
pub(super) fn emptied(which: Use, former: &Secret) -> Secret {
    let mut copy = former.clone();
    copy.data = Some(no_content(which));
    if let Some(annotations) = &mut copy.metadata.annotations {
        annotations.remove(CLAIM_COPY_ANNOTATION);
    }
    copy
}

fn no_content(which: Use) -> BTreeMap<String, ByteString> {
    let login = (CONFIG.to_owned(), ByteString(br#"{"auths":{}}"#.to_vec()));
    (which == Use::RegistryLogin).then_some(login).into_iter().collect()
}

fn empty(which: Use, host: &BareMetalHost) -> Secret {
    let key = Key {
        namespace: host.metadata.namespace.clone().unwrap_or_default(),
        name: host.metadata.name.clone().unwrap_or_default(),
    };
    Secret {
        metadata: ObjectMeta {
            name: Some(which.name(&key)),
            namespace: Some(key.namespace.clone()),
            owner_references: Some(vec![OwnerReference {
                api_version: BareMetalHost::group_version(),
                kind: BareMetalHost::KIND.to_owned(),
                name: key.name,
                uid: host.metadata.uid.clone().unwrap_or_default(),
                controller: Some(true),
                block_owner_deletion: None,
            }]),
            ..ObjectMeta::default()
        },
        type_: Some(which.type_().to_owned()),
        data: Some(no_content(which)),
        ..Secret::default()
    }
}
