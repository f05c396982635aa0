//! The observations of one reconcile: from the caches at its start, updated by every live response.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::metal3::v1alpha1::{
    BareMetalHost, DataImage, HardwareData, HostFirmwareComponents, HostFirmwareSettings, HostUpdatePolicy,
    PreprovisioningImage,
};
use metal3_domain::clock::Monotonic;
use metal3_ironic::SendPermit;
use metal3_ironic::model::hardware::{BiosSetting, FirmwareComponent};
use metal3_ironic::model::inventory::Inspection;
use metal3_ironic::model::node::{Node, Validation};
use metal3_ironic::model::port::Port;
use metal3_ironic::slots::SlotState;
use metal3_runtime::object_reader::Erased;
use metal3_runtime::plan::{Observed, UnknownReason};

use super::ironic_session::IronicSession;
use crate::facts::{self, DriveView, FoundNode, HostFreshness, LoginAnswer, NodeFreshness, Read, Refused};
use crate::ironics::Located;

/// A response of the API server or a view of the node that is older is read again before a request with an impact, and such a
/// request that leaves so long after its plan is planned again. Longer than the other requests of a reconcile take together, and
/// shorter than Ironic may take for the validation of a node.
pub(super) const LIVE_FOR: Duration = Duration::from_secs(5);

/// A Secret that the host names. The content is erased with the observations, at the end of the reconcile.
#[derive(Clone)]
pub(super) enum ObservedSecret {
    /// Its metadata, from the cache.
    Metadata(Arc<ObjectMeta>),
    /// The whole Secret.
    Whole(Arc<Erased<Secret>>),
}

/// The values of a Secret without any.
static NO_VALUES: BTreeMap<String, ByteString> = BTreeMap::new();

impl ObservedSecret {
    fn fact(&self) -> facts::Secret<'_> {
        match self {
            Self::Metadata(metadata) => facts::Secret { metadata, values: None },
            Self::Whole(secret) => facts::Secret {
                metadata: &secret.metadata,
                values: Some(secret.data.as_ref().unwrap_or(&NO_VALUES)),
            },
        }
    }
}

pub(super) struct Observations {
    /// The session that is asked about the host. `None`: it is not known, or not configured.
    pub(super) ironic: Option<IronicSession>,
    /// Which Ironic has the node, if nothing records it.
    pub(super) located: Located,
    pub(super) host: Arc<BareMetalHost>,
    /// When the API server returned the host in this reconcile. `None`: it is from the cache.
    pub(super) host_returned: Option<Monotonic>,
    pub(super) secrets: BTreeMap<Read, Observed<ObservedSecret>>,
    pub(super) hardware: Observed<Arc<HardwareData>>,
    pub(super) agent_image: Observed<Arc<PreprovisioningImage>>,
    pub(super) node: Observed<FoundNode>,
    /// When the node was observed in this reconcile.
    pub(super) node_observed: Monotonic,
    /// The login that Ironic tried at the BMC after the last request of this reconcile.
    pub(super) login: Option<TriedLogin>,
    pub(super) ports: Observed<Vec<Port>>,
    pub(super) inventory: Observed<Box<Inspection>>,
    pub(super) validation: Observed<Validation>,
    pub(super) history: Observed<String>,
    pub(super) firmware_settings: Observed<Arc<HostFirmwareSettings>>,
    /// When the API server returned them in this reconcile. `None`: they are from the cache.
    pub(super) settings_returned: Option<Monotonic>,
    pub(super) bios: Observed<Vec<BiosSetting>>,
    pub(super) firmware_components: Observed<Arc<HostFirmwareComponents>>,
    /// When the API server returned them in this reconcile. `None`: they are from the cache.
    pub(super) components_returned: Option<Monotonic>,
    pub(super) update_policy: Observed<Arc<HostUpdatePolicy>>,
    /// When the API server returned it in this reconcile. `None`: it is from the cache.
    pub(super) policy_returned: Option<Monotonic>,
    /// Why one of these objects, which a cache contains, could not be read in this reconcile.
    pub(super) unreadable: Option<String>,
    pub(super) versions: Observed<Vec<FirmwareComponent>>,
    pub(super) data_image: Observed<Arc<DataImage>>,
    /// When the API server returned it in this reconcile. `None`: it is from the cache.
    pub(super) data_image_returned: Option<Monotonic>,
    pub(super) drive: Observed<DriveView>,
    pub(super) slot: Option<SlotState>,
    pub(super) refused: Option<Refused>,
    /// The permit with which the next requests are sent.
    pub(super) send_permit: Option<SendPermit>,
}

/// A login that Ironic tried at the BMC.
#[derive(Debug, Clone)]
pub(super) struct TriedLogin {
    /// The version of the Secret that the status recorded then.
    pub(super) version: String,
    pub(super) answer: LoginAnswer,
}

impl Observations {
    /// How fresh the host is. Ironic may have taken minutes for a request since a response of the API server.
    pub(super) fn host_freshness(&self, now: Monotonic) -> HostFreshness {
        freshness(self.host_returned, now)
    }

    /// The same of the HostFirmwareSettings.
    pub(super) fn settings_freshness(&self, now: Monotonic) -> HostFreshness {
        freshness(self.settings_returned, now)
    }

    /// The same of the HostFirmwareComponents.
    pub(super) fn components_freshness(&self, now: Monotonic) -> HostFreshness {
        freshness(self.components_returned, now)
    }

    /// Stores the HostFirmwareComponents that the API server returned now.
    pub(super) fn set_firmware_components(&mut self, found: Option<HostFirmwareComponents>, now: Monotonic) {
        self.firmware_components = Observed::from(found.map(Arc::new));
        self.components_returned = Some(now);
    }

    /// Stores the HostFirmwareSettings that the API server returned now.
    pub(super) fn set_firmware_settings(&mut self, settings: Option<HostFirmwareSettings>, now: Monotonic) {
        self.firmware_settings = Observed::from(settings.map(Arc::new));
        self.settings_returned = Some(now);
    }

    /// The same of the HostUpdatePolicy.
    pub(super) fn policy_freshness(&self, now: Monotonic) -> HostFreshness {
        freshness(self.policy_returned, now)
    }

    /// Stores the HostUpdatePolicy that the API server returned now.
    pub(super) fn set_update_policy(&mut self, policy: Option<HostUpdatePolicy>, now: Monotonic) {
        self.update_policy = Observed::from(policy.map(Arc::new));
        self.policy_returned = Some(now);
    }

    /// The same of the DataImage.
    pub(super) fn data_image_freshness(&self, now: Monotonic) -> HostFreshness {
        freshness(self.data_image_returned, now)
    }

    /// Stores the DataImage that the API server returned now.
    pub(super) fn set_data_image(&mut self, found: Option<DataImage>, now: Monotonic) {
        self.data_image = Observed::from(found.map(Arc::new));
        self.data_image_returned = Some(now);
    }

    /// Stores the host that the API server returned now.
    pub(super) fn set_host(&mut self, host: BareMetalHost, now: Monotonic) {
        if host.status.provisioning.state != self.host.status.provisioning.state
            && let Observed::Present(FoundNode::Own(_, freshness @ NodeFreshness::InState)) = &mut self.node
        {
            *freshness = NodeFreshness::Current;
        }
        self.forget_unnamed_secrets(&host);
        self.host = Arc::new(host);
        self.host_returned = Some(now);
    }

    /// A Secret was observed for a field. Another name in the field is another Secret, which is not observed.
    fn forget_unnamed_secrets(&mut self, host: &BareMetalHost) {
        for which in Read::SECRETS {
            match which.secret_name(host) {
                name if name == which.secret_name(&self.host) => {}
                Some(_) => drop(self.secrets.insert(which, Observed::Unknown(UnknownReason::NotRead))),
                None => drop(self.secrets.remove(&which)),
            }
        }
    }

    /// Stores the node that was observed now. The earlier validation of a node that has changed may be outdated.
    pub(super) fn set_node(&mut self, node: Observed<FoundNode>, now: Monotonic) {
        let is_as_before = matches!((&self.node, &node),
            (Observed::Present(FoundNode::Own(before, _)), Observed::Present(FoundNode::Own(after, _))) if before == after);
        if !is_as_before {
            self.forget_details();
        }
        self.node = node;
        self.node_observed = now;
    }

    /// Nothing is known of the node any more.
    pub(super) fn forget_node(&mut self) {
        self.node = Observed::Unknown(UnknownReason::NotRead);
        self.forget_details();
    }

    /// What was read of the node before it changed.
    fn forget_details(&mut self) {
        self.validation = Observed::Unknown(UnknownReason::NotRead);
        self.bios = Observed::Unknown(UnknownReason::NotRead);
        self.versions = Observed::Unknown(UnknownReason::NotRead);
        self.drive = Observed::Unknown(UnknownReason::NotRead);
    }

    /// The node, if a slow step followed its observation in this reconcile. A live view is one for some seconds only.
    pub(super) fn aged_node(&mut self, now: Monotonic) -> Option<Arc<Node>> {
        use NodeFreshness::{Current, InState, Live};
        if now.since(self.node_observed) <= LIVE_FOR {
            return None;
        }
        match &mut self.node {
            Observed::Present(FoundNode::Own(node, freshness @ (Current | InState | Live))) => {
                *freshness = (*freshness).min(InState);
                Some(Arc::clone(node))
            }
            Observed::Present(_) | Observed::Absent | Observed::Unknown(_) => None,
        }
    }

    /// Marks the observation as older than a request to the node.
    pub(super) fn mark_node_stale(&mut self) {
        if let Observed::Present(FoundNode::Own(_, freshness)) = &mut self.node {
            *freshness = NodeFreshness::Stale;
        }
        self.forget_details();
    }

    /// Removes what was compared before a request that could not be sent in time. It is sent with this permit next.
    pub(super) fn compare_again(&mut self, send_permit: SendPermit) {
        self.send_permit = Some(send_permit);
        self.host_returned = None;
        self.settings_returned = None;
        self.components_returned = None;
        self.policy_returned = None;
        self.data_image_returned = None;
        self.unreadable = None;
        self.forget_node();
    }

    /// The node, unless a request followed its observation.
    pub(super) fn newest_node(&self) -> Option<&Node> {
        match &self.node {
            Observed::Present(FoundNode::Own(node, freshness)) if *freshness != NodeFreshness::Stale => Some(node),
            Observed::Present(_) | Observed::Absent | Observed::Unknown(_) => None,
        }
    }

    pub(super) const fn any_node(&self) -> Option<&Arc<Node>> {
        match &self.node {
            Observed::Present(FoundNode::Own(node, _)) => Some(node),
            Observed::Present(FoundNode::Foreign(_)) | Observed::Absent | Observed::Unknown(_) => None,
        }
    }

    /// The version of the Secret with the login that Ironic has, as the status records it.
    pub(super) fn tried_login(&self) -> &str {
        let recorded = &self.host.status.tried_credentials.credentials_version;
        recorded.as_deref().unwrap_or_default()
    }

    /// What the BMC answered to that login.
    pub(super) fn login_answer(&self) -> Observed<&LoginAnswer> {
        let tried = self.login.as_ref().filter(|tried| tried.version == self.tried_login());
        match tried {
            Some(tried) => Observed::Present(&tried.answer),
            None => Observed::Unknown(UnknownReason::NotRead),
        }
    }

    pub(super) fn secret(&self, which: Read) -> Observed<facts::Secret<'_>> {
        // A Secret that the host does not name is absent.
        let secret = self.secrets.get(&which).map_or(Observed::Absent, Observed::as_ref);
        secret.map(ObservedSecret::fact)
    }
}

/// How fresh a response of the API server is that came then.
fn freshness(returned: Option<Monotonic>, now: Monotonic) -> HostFreshness {
    match returned.is_some_and(|at| now.since(at) <= LIVE_FOR) {
        true => HostFreshness::Live,
        false => HostFreshness::Cached,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use metal3_runtime::object_reader::Erased;
    use serde_json::json;

    use super::*;
    use crate::tests::fixture::Fixture;

    fn host(spec: serde_json::Value) -> BareMetalHost {
        serde_json::from_value(Fixture::new("provisioning").spec(spec).host).unwrap()
    }

    fn observed(host: BareMetalHost, secrets: BTreeMap<Read, Observed<ObservedSecret>>) -> Observations {
        Observations {
            ironic: None,
            located: Observed::Unknown(UnknownReason::NotRead),
            host: Arc::new(host),
            host_returned: None,
            secrets,
            agent_image: Observed::Unknown(UnknownReason::NotRead),
            hardware: Observed::Absent,
            node: Observed::Absent,
            node_observed: Monotonic::default(),
            login: None,
            ports: Observed::Unknown(UnknownReason::NotRead),
            inventory: Observed::Unknown(UnknownReason::NotRead),
            validation: Observed::Unknown(UnknownReason::NotRead),
            history: Observed::Unknown(UnknownReason::NotRead),
            firmware_settings: Observed::Absent,
            settings_returned: None,
            bios: Observed::Unknown(UnknownReason::NotRead),
            firmware_components: Observed::Absent,
            components_returned: None,
            update_policy: Observed::Absent,
            policy_returned: None,
            unreadable: None,
            versions: Observed::Unknown(UnknownReason::NotRead),
            data_image: Observed::Absent,
            data_image_returned: None,
            drive: Observed::Unknown(UnknownReason::NotRead),
            slot: None,
            refused: None,
            send_permit: None,
        }
    }

    fn whole(name: &str) -> Observed<ObservedSecret> {
        let secret: Secret = serde_json::from_value(json!({ "metadata": { "name": name } })).unwrap();
        Observed::Present(ObservedSecret::Whole(Arc::new(Erased::new(secret))))
    }

    #[test]
    fn secret_of_another_name_is_not_known() {
        let fields = |name: &str| {
            json!({ "userData": { "name": name }, "networkData": { "name": name }, "metaData": { "name": name },
                "preprovisioningNetworkDataName": name, "bmc": { "credentialsName": name },
                "image": { "url": "oci://registry.example/os", "ociAuthSecretName": name } })
        };
        let none = json!({ "userData": null, "networkData": null, "metaData": null,
            "preprovisioningNetworkDataName": null, "bmc": { "credentialsName": "" }, "image": null });
        let found = |from: &serde_json::Value, to: &serde_json::Value| {
            let old = host(from.clone());
            let named = Read::SECRETS
                .into_iter()
                .filter_map(|which| which.secret_name(&old).map(|name| (which, whole(name))));
            let mut observed = observed(host(from.clone()), named.collect());
            observed.set_host(host(to.clone()), Monotonic::default());
            Read::SECRETS.map(|which| match observed.secret(which) {
                Observed::Present(_) => "present",
                Observed::Absent => "absent",
                Observed::Unknown(_) => "unknown",
            })
        };
        assert_eq!(found(&fields("a"), &fields("a")), ["present"; 6]);
        assert_eq!(found(&fields("a"), &fields("b")), ["unknown"; 6]);
        assert_eq!(found(&none, &fields("b")), ["unknown"; 6]);
        assert_eq!(found(&fields("a"), &none), ["absent"; 6]);
    }

    #[test]
    fn node_is_live_for_some_seconds_after_its_response() {
        let node: Node = serde_json::from_value(crate::tests::fixture::node("available")).unwrap();
        let mut observed = observed(host(json!({})), BTreeMap::new());
        let at = |second| Monotonic::new(Duration::from_secs(second));
        let of = |freshness| Observed::Present(FoundNode::Own(Arc::new(node.clone()), freshness));
        for (freshness, aged) in [
            (NodeFreshness::Live, NodeFreshness::InState),
            (NodeFreshness::InState, NodeFreshness::InState),
            (NodeFreshness::Current, NodeFreshness::Current),
            (NodeFreshness::Stale, NodeFreshness::Stale),
            (NodeFreshness::Created, NodeFreshness::Created),
        ] {
            observed.set_node(of(freshness), at(100));
            assert!(observed.aged_node(at(105)).is_none());
            assert_eq!(observed.node, of(freshness));
            let is_replaced = observed.aged_node(at(106)).is_some();
            assert_eq!(observed.node, of(aged), "{freshness:?}");
            let is_kept = matches!(freshness, NodeFreshness::Stale | NodeFreshness::Created);
            assert_eq!(is_replaced, !is_kept, "{freshness:?}");
        }
    }

    #[test]
    fn validation_is_that_of_the_node_until_the_node_changes() {
        let node = |state| {
            let node: Node = serde_json::from_value(crate::tests::fixture::node(state)).unwrap();
            Observed::Present(FoundNode::Own(Arc::new(node), NodeFreshness::Live))
        };
        let mut observed = observed(host(json!({})), BTreeMap::new());
        observed.set_node(node("available"), Monotonic::default());
        observed.validation = Observed::Present(Validation(Vec::new()));
        observed.set_node(node("available"), Monotonic::default());
        assert!(matches!(observed.validation, Observed::Present(_)));
        observed.set_node(node("active"), Monotonic::default());
        assert!(matches!(observed.validation, Observed::Unknown(_)));
    }

    #[test]
    fn host_is_live_for_some_seconds_after_its_response() {
        let mut observed = observed(host(json!({})), BTreeMap::new());
        let at = |second| Monotonic::new(Duration::from_secs(second));
        assert_eq!(observed.host_freshness(at(0)), HostFreshness::Cached);
        observed.set_host(host(json!({})), at(100));
        for (second, freshness) in [
            (100, HostFreshness::Live),
            (105, HostFreshness::Live),
            (106, HostFreshness::Cached),
            (400, HostFreshness::Cached),
        ] {
            assert_eq!(observed.host_freshness(at(second)), freshness, "{second} s");
        }
    }
}
