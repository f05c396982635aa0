//! Machine and Metal3Machine.

use metal3_api::cluster::{Cluster, Machine};
use metal3_api::infrastructure::conditions::machine as conditions;
use metal3_api::infrastructure::conditions::shared;
use metal3_api::infrastructure::names::HOST_ANNOTATION;
use metal3_api::infrastructure::v1beta2::{Metal3DataClaim, Metal3Machine, Metal3Remediation};
use metal3_api::meta::{Condition, ConditionStatus};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_domain::reason::Reason;

use super::cluster::{is_control_plane, is_infrastructure_ready, is_running};
use super::conditions::{Bad, find, first_bad, link, reason_link, since};
use super::{End, Next, Walk, is_deleting, owner};
use crate::chain::Link;
use crate::object::ObjectId;
use crate::table::{Actor, Area};
use crate::values::name;

/// What a Metal3Machine waits for, in the order of its steps.
pub(crate) const ORDER: [Bad; 6] = [
    (conditions::PAUSED, ConditionStatus::True),
    (conditions::ASSOCIATE_HOST, ConditionStatus::False),
    (conditions::ASSOCIATE_META_DATA, ConditionStatus::False),
    (conditions::DATA_READY, ConditionStatus::False),
    (conditions::LABELS_SYNCED, ConditionStatus::False),
    (conditions::READY, ConditionStatus::False),
];
const NODE_CURE: &str = "Delete the Node that the message names, in the workload cluster: an earlier machine on the same host left it \
    behind. If its kubelet runs on this machine, correct the `--provider-id` of the kubelet.";
const HOST_CURE: &str = "Restore the BareMetalHost, with its status, from a backup, or delete the Machine: its owner makes another one, \
    which claims another host.";
/// What a Metal3Machine needs for its creation, and no more when it is being deleted.
const OF_CREATION: [Reason; 9] = [
    conditions::REASON_WAITING_FOR_OWNER,
    conditions::REASON_WAITING_FOR_INFRASTRUCTURE,
    conditions::REASON_WAITING_FOR_CLUSTER,
    conditions::REASON_WAITING_FOR_BOOTSTRAP,
    conditions::REASON_HOST_FAILED,
    conditions::REASON_META_DATA_FAILED,
    conditions::REASON_CREATE_ERROR,
    conditions::REASON_WAITING_FOR_DATA,
    conditions::REASON_WAITING_FOR_NODE,
];
/// Conditions of a Machine that a failed or running remediation sets.
const UNHEALTHY: [Bad; 3] = [
    ("OwnerRemediated", ConditionStatus::False),
    ("HealthCheckSucceeded", ConditionStatus::False),
    ("NodeHealthy", ConditionStatus::False),
];

impl Walk<'_> {
    pub(crate) fn machine(&mut self, at: &ObjectId) -> Result<Next, End> {
        let machine: Machine = self.required(at)?;
        let cluster: Option<Cluster> = self.find(&machine.spec.cluster_name)?;
        if self.is_paused(at, &machine.metadata, cluster.as_ref()) {
            return Ok(None);
        }
        let reference = &machine.spec.infrastructure_ref;
        let infrastructure = ObjectId::foreign(&reference.api_group, &reference.kind, &reference.name);
        if is_deleting(&machine.metadata) {
            let deleting = find(&machine.status.conditions, "Deleting");
            let (message, since) = deleting.map_or((String::new(), None), |one| (one.message.clone(), since(one)));
            self.push(reason_link(at, Area::Shared, "Deleting", &message, since));
            // Before the infrastructure is deleted, the Node is drained and volumes are detached, as the message says.
            let is_left = infrastructure.is::<Metal3Machine>()
                && self
                    .find::<Metal3Machine>(&reference.name)?
                    .is_some_and(|one| is_deleting(&one.metadata));
            return Ok(is_left.then_some(infrastructure));
        }
        if machine.spec.bootstrap.data_secret_name.is_none() {
            return self.bootstrap(at, &machine, cluster.as_ref());
        }
        let initialization = machine.status.initialization.as_ref();
        if initialization.is_none_or(|one| one.infrastructure_provisioned != Some(true)) {
            self.push(Link::plain(at, "waits for its infrastructure", Actor::System, ""));
            return Ok(Some(infrastructure));
        }
        self.running_machine(at, &machine, infrastructure)
    }

    /// The infrastructure exists: its Node may be missing or ill.
    fn running_machine(&mut self, at: &ObjectId, machine: &Machine, infrastructure: ObjectId) -> Result<Next, End> {
        if let Some(bad) = first_bad(&machine.status.conditions, &UNHEALTHY)
            && self.find::<Metal3Remediation>(&at.name)?.is_some()
        {
            let title = format!("is unhealthy and remediated: {}", bad.reason);
            let plain = Link::plain(at, title, Actor::System, "");
            self.push(Link {
                message: bad.message.clone(),
                since: since(bad),
                at_most: true,
                ..plain
            });
            return Ok(Some(ObjectId::of::<Metal3Remediation>(&at.name)));
        }
        if is_running(machine) {
            return Ok(None);
        }
        let bad = first_bad(&machine.status.conditions, &UNHEALTHY);
        let bad = bad.or_else(|| first_bad(&machine.status.conditions, &[("Ready", ConditionStatus::False)]));
        let cure = match &machine.status.node_ref {
            Some(node) => format!(
                "See the Node {} in the workload cluster, and the console of the machine. A Node that an earlier machine on the same \
                 host left behind never gets ready: delete it and the Machine, whose owner makes another one.",
                node.name
            ),
            None => "See the console of the machine: its kubelet registers the Node.".to_owned(),
        };
        let link = Link {
            message: bad.map(|one| one.message.clone()).unwrap_or_default(),
            since: bad.and_then(since),
            at_most: bad.is_some(),
            ..Link::plain(at, "waits for its Node", Actor::System, cure)
        };
        let found = infrastructure
            .is::<Metal3Machine>()
            .then(|| self.find::<Metal3Machine>(&infrastructure.name));
        match found {
            Some(Ok(Some(behind))) => self.behind_node(link, infrastructure, &behind),
            None | Some(Ok(None)) => {
                self.push(link);
                Ok(None)
            }
            Some(Err(end)) => {
                self.push(link);
                Err(end)
            }
        }
    }

    /// What keeps the Node of a running machine away: its Metal3Machine, or else its host. When they wait for nothing, the
    /// cause is in the machine.
    fn behind_node(&mut self, link: Link, at: ObjectId, machine: &Metal3Machine) -> Result<Next, End> {
        let bad = first_bad(&machine.status.conditions, &ORDER);
        let is = |bad: &Condition, reason: Reason| bad.reason == reason.as_str();
        let of_node = bad.filter(|bad| {
            let is_awaited = is(bad, conditions::REASON_CREATE_ERROR) || is(bad, conditions::REASON_WAITING_FOR_NODE);
            is_awaited && !is_node_in_the_way(bad)
        });
        let messages = [link.message.as_str(), of_node.map_or("", |bad| bad.message.as_str())];
        let mut stated: Vec<&str> = messages.into_iter().filter(|message| !message.is_empty()).collect();
        stated.dedup();
        let message = stated.join("; ");
        self.push(Link { message, ..link });
        match bad.xor(of_node) {
            Some(_) => Ok(Some(at)),
            None => self.unfinished_host(host_of(machine)),
        }
    }

    /// The bootstrap data are missing: for lack of the infrastructure, of the control plane, or of the bootstrap provider.
    fn bootstrap(&mut self, at: &ObjectId, machine: &Machine, cluster: Option<&Cluster>) -> Result<Next, End> {
        if let Some(cluster) = cluster.filter(|cluster| !is_infrastructure_ready(cluster)) {
            self.push(Link::plain(
                at,
                "waits for the infrastructure of its Cluster",
                Actor::System,
                "",
            ));
            return Ok(Some(ObjectId::of::<Cluster>(name(&cluster.metadata))));
        }
        let initialization = cluster.and_then(|cluster| cluster.status.initialization.as_ref());
        let is_initialized = initialization.is_some_and(|one| one.control_plane_initialized == Some(true));
        if !is_initialized && !is_control_plane(machine) {
            let cluster = &machine.spec.cluster_name;
            let machines = self.list::<Machine>(Some(cluster))?;
            let first = self.snapshot.memo(cluster.clone(), || {
                let first = machines.iter().find(|one| is_control_plane(one) && !is_running(one));
                FirstWaiting(first.map(|one| name(&one.metadata).to_owned()))
            });
            if let Some(first) = &first.0 {
                self.push(Link::plain(
                    at,
                    "waits for the first machine of the control plane",
                    Actor::System,
                    "",
                ));
                return Ok(Some(ObjectId::of::<Machine>(first)));
            }
        }
        let cure = "Name a Secret in spec.bootstrap.dataSecretName, or a bootstrap object in spec.bootstrap.configRef.";
        let Some(reference) = &machine.spec.bootstrap.config_ref else {
            self.push(Link::plain(at, "has no bootstrap data", Actor::User, cure));
            return Ok(None);
        };
        self.push(Link::plain(at, "waits for its bootstrap data", Actor::System, ""));
        Ok(Some(ObjectId::foreign(
            &reference.api_group,
            &reference.kind,
            &reference.name,
        )))
    }

    pub(crate) fn metal3_machine(&mut self, at: &ObjectId) -> Result<Next, End> {
        let machine: Metal3Machine = self.required(at)?;
        let owner = owner::<Machine>(&machine.metadata).map(ToOwned::to_owned);
        let host = host_of(&machine);
        let bad = first_bad(&machine.status.conditions, &ORDER);
        let is_needed = |bad: &Condition| {
            bad.type_ != conditions::READY && OF_CREATION.iter().all(|reason| reason.as_str() != bad.reason)
        };
        if is_deleting(&machine.metadata) && !bad.is_some_and(is_needed) {
            self.push_deleting_machine(at, &machine);
            return self.unreleased(at, host);
        }
        let Some(bad) = bad else {
            return self.without_bad_condition(at, &machine, host);
        };
        let is = |wanted: Reason| wanted.as_str() == bad.reason;
        let link = link(at, Area::Machines, bad);
        if is_node_in_the_way(bad) {
            self.push(help(
                link,
                "A Node of another machine is in the way of its own",
                NODE_CURE,
            ));
            return Ok(None);
        }
        if is(conditions::REASON_HOST_FAILED) && bad.message.contains(conditions::HOST_GONE) {
            self.push(help(link, "Its host does not exist any more", HOST_CURE));
            return Ok(None);
        }
        self.push(link);
        if bad.type_ == conditions::PAUSED {
            return Ok(None);
        }
        if is(conditions::REASON_WAITING_FOR_INFRASTRUCTURE) {
            let label = machine
                .metadata
                .labels
                .as_ref()
                .and_then(|all| all.get("cluster.x-k8s.io/cluster-name"));
            return Ok(label.map(|name| ObjectId::of::<Cluster>(name)));
        }
        if is(conditions::REASON_WAITING_FOR_BOOTSTRAP) {
            return Ok(owner.map(|name| ObjectId::of::<Machine>(&name)));
        }
        if is(conditions::REASON_HOST_FAILED) {
            return self.unavailable_host(&machine);
        }
        if is(conditions::REASON_WAITING_FOR_DATA) || is(conditions::REASON_META_DATA_RELEASE_FAILED) {
            return Ok(Some(ObjectId::of::<Metal3DataClaim>(&at.name)));
        }
        if is(shared::REASON_DELETING) {
            return self.unreleased(at, host);
        }
        if is(conditions::REASON_CREATE_ERROR) || is(conditions::REASON_DELETION_FAILED) {
            return self.unfinished_host(host);
        }
        Ok(None)
    }

    /// A Metal3Machine in deletion: what its controller says of that, or else its finalizers.
    fn push_deleting_machine(&mut self, at: &ObjectId, machine: &Metal3Machine) {
        let mut all = machine.status.conditions.iter();
        match all.find(|one| one.reason == shared::REASON_DELETING.as_str()) {
            Some(stated) => {
                let link = link(at, Area::Machines, stated);
                self.push(link);
            }
            None => self.push_deleting(at, &machine.metadata),
        }
    }

    /// The conditions are true as soon as the host has its image to deploy: until it is deployed, the host is the cause.
    fn without_bad_condition(
        &mut self,
        at: &ObjectId,
        machine: &Metal3Machine,
        host: Option<ObjectId>,
    ) -> Result<Next, End> {
        if machine.status.conditions.is_empty() {
            let message = "no controller wrote a condition";
            self.push(reason_link(at, Area::Shared, "NotYetReported", message, None));
            return Ok(None);
        }
        let initialization = machine.status.initialization.as_ref();
        if initialization.is_some_and(|one| one.provisioned == Some(true)) {
            return Ok(None);
        }
        let next = self.unfinished_host(host)?;
        let cure = match next {
            Some(_) => "",
            None => "Wait. If it lasts, see the HostClaim of the machine if it has one, and the log of this program.",
        };
        self.push(Link::plain(at, "waits for its host", Actor::System, cure));
        Ok(next)
    }

    /// What a machine in deletion has to release: its host, then its data. Another machine may have the host already.
    fn unreleased(&mut self, at: &ObjectId, host: Option<ObjectId>) -> Result<Next, End> {
        if let Some(id) = host {
            let host: Option<BareMetalHost> = self.find(&id.name)?;
            let consumer = host.and_then(|host| host.spec.consumer_ref);
            if consumer.is_some_and(|consumer| consumer.name.as_deref() == Some(&at.name)) {
                return Ok(Some(id));
            }
        }
        let claim = self.find::<Metal3DataClaim>(&at.name)?;
        Ok(claim.map(|_| ObjectId::of::<Metal3DataClaim>(&at.name)))
    }

    /// A host of the machine that is not done itself. Without one the machine waits for something else.
    fn unfinished_host(&mut self, host: Option<ObjectId>) -> Result<Next, End> {
        let Some(host) = host else { return Ok(None) };
        let is_left = self.find::<BareMetalHost>(&host.name)?.is_some();
        Ok(is_left.then_some(host))
    }
}

/// A Node has the label or the provider ID of the machine that is not its own.
fn is_node_in_the_way(bad: &Condition) -> bool {
    bad.reason == conditions::REASON_CREATE_ERROR.as_str() && bad.message.contains(conditions::DELETE_NODE)
}

/// The link of a reason that stands for several causes, about one that ends only with a user's help.
fn help(link: Link, title: &str, cure: &str) -> Link {
    Link {
        reason: link.reason,
        message: link.message,
        since: link.since,
        at_most: link.at_most,
        ..Link::plain(&link.object, title, Actor::User, cure)
    }
}

/// The first machine of the control plane of a Cluster that does not run.
struct FirstWaiting(Option<String>);

/// The host that the annotation of a machine names.
fn host_of(machine: &Metal3Machine) -> Next {
    let annotations = machine.metadata.annotations.as_ref();
    let key = annotations.and_then(|all| all.get(HOST_ANNOTATION))?;
    Some(ObjectId::of::<BareMetalHost>(key.rsplit('/').next().unwrap_or(key)))
}
