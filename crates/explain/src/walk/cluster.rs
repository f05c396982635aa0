//! Cluster and Metal3Cluster.

use metal3_api::cluster::{Cluster, IPAddressClaim, Machine, MachineDeployment};
use metal3_api::infrastructure::conditions::cluster as conditions;
use metal3_api::infrastructure::v1beta2::{Metal3Cluster, Metal3Machine};
use metal3_api::ipam::v1alpha1::IPClaim;
use metal3_api::kind::Kind as _;
use metal3_api::meta::ConditionStatus;
use serde_json::Value;

use super::conditions::{Bad, find, first_bad, link, reason_link, since};
use super::{End, Next, Walk, explain_part, in_namespace, is_deleting, owner};
use crate::chain::{Link, State};
use crate::object::ObjectId;
use crate::order;
use crate::read::Read;
use crate::table::{Actor, Area};
use crate::values::name;

const CONTROL_PLANE_LABEL: &str = "cluster.x-k8s.io/control-plane";
const CLUSTER_LABEL: &str = "cluster.x-k8s.io/cluster-name";

/// What a Metal3Cluster is not ready for, causes first.
const ORDER: [Bad; 9] = [
    (conditions::PAUSED, ConditionStatus::True),
    (conditions::ATTACHED, ConditionStatus::False),
    (conditions::ENDPOINT_READY, ConditionStatus::False),
    (conditions::INFRASTRUCTURE_READY, ConditionStatus::False),
    (conditions::ENDPOINT_RENDERED, ConditionStatus::False),
    (conditions::ZONES_READY, ConditionStatus::False),
    (conditions::ENDPOINT_DRIFTED, ConditionStatus::True),
    (conditions::READY, ConditionStatus::False),
    (conditions::JOIN_PREFLIGHT, ConditionStatus::False),
];

impl Walk<'_> {
    pub(crate) fn cluster(&mut self, at: &ObjectId) -> Result<Next, End> {
        let cluster: Cluster = self.required(at)?;
        if self.is_paused(at, &cluster.metadata, Some(&cluster)) {
            return Ok(None);
        }
        let deleting = is_deleting(&cluster.metadata);
        if !deleting && !is_infrastructure_ready(&cluster) {
            let Some(reference) = &cluster.spec.infrastructure_ref else {
                return self.without_infrastructure(at, &cluster);
            };
            self.push(Link::plain(at, "waits for its infrastructure", Actor::System, ""));
            return Ok(Some(ObjectId::foreign(
                &reference.api_group,
                &reference.kind,
                &reference.name,
            )));
        }
        let machines = self.list::<Machine>(Some(&at.name))?;
        let total = machines.len();
        let mut waiting: Vec<&Machine> = machines.iter().filter(|one| deleting || !is_running(one)).collect();
        // Workers are deleted first, and are created last.
        let turn = |one: &Machine| {
            (
                deleting && !is_deleting(&one.metadata),
                is_control_plane(one) == deleting,
                age(one),
            )
        };
        order::sort_by(&mut waiting, |a, b| turn(a).cmp(&turn(b)));
        if let Some(first) = waiting.first() {
            let (count, verb) = (waiting.len(), if deleting { "exist" } else { "are not ready" });
            let title = format!("{count} of {total} machines {verb}");
            self.push(Link::plain(at, title, Actor::System, ""));
            let first = ObjectId::of::<Machine>(name(&first.metadata));
            let is_first_next = deleting || !is_initialized(&cluster);
            return match is_first_next {
                true => Ok(Some(first)),
                false => self.blocked_one(&waiting).map(|blocked| Some(blocked.unwrap_or(first))),
            };
        }
        machines.sought(None)?;
        if deleting {
            let message = "no Machine of it is left";
            self.push(reason_link(at, Area::Shared, "Deleting", message, None));
            return self.left_of(at, &cluster);
        }
        self.without_waiting_machine(at, &cluster)
    }

    /// Of machines that do not wait for each other, the first one that goes on only with help.
    fn blocked_one(&mut self, waiting: &[&Machine]) -> Result<Next, End> {
        /// Each costs some reads.
        const MOST: usize = 20;
        if self.is_part {
            return Ok(None);
        }
        if waiting.len() > MOST {
            self.restrict(&format!("the first {MOST} of the machines that wait were looked at"));
        }
        let mut is_known = true;
        for machine in waiting.iter().take(MOST) {
            let machine = ObjectId::of::<Machine>(name(&machine.metadata));
            match explain_part(&machine, self.snapshot) {
                Ok(explanation) if explanation.state == State::Blocked => return Ok(Some(machine)),
                Ok(explanation) => {
                    self.has_unread_part |= explanation.state == State::Unknown;
                    explanation.not_read.into_iter().for_each(|entry| self.note(entry));
                }
                Err(wanted) => {
                    self.wanted.extend(wanted);
                    is_known = false;
                }
            }
        }
        if is_known { Ok(None) } else { Err(End::Wanted) }
    }

    /// What a Cluster in deletion without Machines still has: its core controller waits for one after the other.
    fn left_of(&mut self, at: &ObjectId, cluster: &Cluster) -> Result<Next, End> {
        let deployments = self.list::<MachineDeployment>(Some(&at.name))?;
        let first = deployments.iter().next();
        let first = deployments.sought(first.map(|one| ObjectId::of::<MachineDeployment>(name(&one.metadata))))?;
        if first.is_some() {
            return Ok(first);
        }
        let references = [&cluster.spec.control_plane_ref, &cluster.spec.infrastructure_ref];
        for one in references.into_iter().flatten() {
            let left = ObjectId::foreign(&one.api_group, &one.kind, &one.name);
            if !self.answer(Read::Object(left.clone()))?.is_empty() {
                return Ok(Some(left));
            }
        }
        Ok(None)
    }

    /// No infrastructure is named: by the user, or by the topology controller for a Cluster of a ClusterClass.
    fn without_infrastructure(&mut self, at: &ObjectId, cluster: &Cluster) -> Result<Next, End> {
        let object = self.answer(Read::Object(at.clone()))?;
        let topology = object.first().and_then(|object| object.pointer("/spec/topology"));
        if topology.is_none_or(Value::is_null) {
            let cure = "Set spec.infrastructureRef of the Cluster.";
            self.push(Link::plain(at, "names no infrastructure", Actor::User, cure));
            return Ok(None);
        }
        let reconciled = find(&cluster.status.conditions, "TopologyReconciled");
        let Some(bad) = reconciled.filter(|one| one.status == ConditionStatus::False) else {
            let cure = "Wait. If it lasts, check that the Cluster API core controller runs, with the feature gate ClusterTopology.";
            let title = "waits for the infrastructure of its topology";
            self.push(Link::plain(at, title, Actor::System, cure));
            return Ok(None);
        };
        let title = format!("has no infrastructure of its topology: {}", bad.reason);
        let cure = "Correct spec.topology of the Cluster, or its ClusterClass, as the message says.";
        self.push(Link {
            message: bad.message.clone(),
            since: since(bad),
            at_most: true,
            ..Link::plain(at, title, Actor::User, cure)
        });
        Ok(None)
    }

    /// No Machine waits: the control plane may still, or a part of the Cluster was deleted.
    fn without_waiting_machine(&mut self, at: &ObjectId, cluster: &Cluster) -> Result<Next, End> {
        let reference = cluster.spec.control_plane_ref.as_ref();
        let awaited = reference.filter(|_| !is_initialized(cluster));
        let Some(reference) = awaited else {
            if let Some(lost) = self.lost_part(cluster)? {
                self.push(Link::plain(at, "a part of it does not exist", Actor::User, ""));
                return Ok(Some(lost));
            }
            if let Some(bad) = first_bad(&cluster.status.conditions, &[("Available", ConditionStatus::False)]) {
                let cure = format!(
                    "See the message, and: clusterctl describe cluster {}{}",
                    at.name,
                    in_namespace(cluster.metadata.namespace.as_deref().unwrap_or_default())
                );
                self.push(Link {
                    reason: Some(bad.reason.clone()),
                    message: bad.message.clone(),
                    since: since(bad),
                    at_most: true,
                    ..Link::plain(at, "is not available", Actor::System, cure)
                });
            }
            return Ok(None);
        };
        self.push(Link::plain(at, "waits for its control plane", Actor::System, ""));
        Ok(Some(ObjectId::foreign(
            &reference.api_group,
            &reference.kind,
            &reference.name,
        )))
    }

    /// The infrastructure or the control plane, if it does not exist. The conditions of the Cluster may be older.
    fn lost_part(&mut self, cluster: &Cluster) -> Result<Next, End> {
        let references = [&cluster.spec.infrastructure_ref, &cluster.spec.control_plane_ref];
        for one in references.into_iter().flatten() {
            let part = ObjectId::foreign(&one.api_group, &one.kind, &one.name);
            // Those of other providers are seldom readable, and their absence is their controllers' to report.
            if part.served().is_none() {
                continue;
            }
            match self.answer(Read::Object(part.clone())) {
                Ok(found) if found.is_empty() => return Ok(Some(part)),
                Ok(_) | Err(End::Unread) => {}
                Err(end) => return Err(end),
            }
        }
        Ok(None)
    }

    pub(crate) fn metal3_cluster(&mut self, at: &ObjectId) -> Result<Next, End> {
        let object: Metal3Cluster = self.required(at)?;
        let labelled = object
            .metadata
            .labels
            .as_ref()
            .and_then(|labels| labels.get(CLUSTER_LABEL));
        let named = object.spec.cluster_name.as_deref();
        let cluster_name = owner::<Cluster>(&object.metadata)
            .or(labelled.map(String::as_str))
            .or(named);
        let cluster: Option<Cluster> = match cluster_name {
            Some(name) => self.find(name)?,
            None => None,
        };
        if self.is_paused(at, &object.metadata, cluster.as_ref()) {
            return Ok(None);
        }
        if is_deleting(&object.metadata) {
            let ready = first_bad(
                &object.status.conditions,
                &[(conditions::READY, ConditionStatus::False)],
            );
            let (message, since) = ready.map_or((String::new(), None), |one| (one.message.clone(), since(one)));
            let Some(cluster_name) = cluster_name else {
                // It belongs to no Cluster: something else holds it.
                self.push_deleting(at, &object.metadata);
                return Ok(None);
            };
            self.push(reason_link(at, Area::Shared, "Deleting", &message, since));
            let machines = self.list::<Metal3Machine>(Some(cluster_name))?;
            let first = machines.iter().next();
            return machines.sought(first.map(|one| ObjectId::of::<Metal3Machine>(name(&one.metadata))));
        }
        if object.status.conditions.is_empty() {
            let entry = "NotYetReported";
            self.push(reason_link(
                at,
                Area::Shared,
                entry,
                "no controller wrote a condition",
                None,
            ));
            return Ok(None);
        }
        let Some(bad) = first_bad(&object.status.conditions, &ORDER) else {
            return Ok(None);
        };
        self.push(link(at, Area::Clusters, bad));
        self.after_endpoint(&object, cluster.as_ref(), &bad.reason)
    }

    /// The object that the endpoint of a Metal3Cluster comes from.
    fn after_endpoint(&mut self, object: &Metal3Cluster, cluster: Option<&Cluster>, reason: &str) -> Result<Next, End> {
        let is = |wanted: metal3_domain::reason::Reason| wanted.as_str() == reason;
        if is(conditions::REASON_WAITING_FOR_CONTROL_PLANE) {
            let reference = cluster.and_then(|cluster| cluster.spec.control_plane_ref.as_ref());
            return Ok(reference.map(|one| ObjectId::foreign(&one.api_group, &one.kind, &one.name)));
        }
        if is(conditions::REASON_WAITING_FOR_INFRA_CLUSTER) {
            let reference = cluster.and_then(|cluster| cluster.spec.infrastructure_ref.as_ref());
            let other = reference.filter(|one| one.kind != Metal3Cluster::KIND);
            return Ok(other.map(|one| ObjectId::foreign(&one.api_group, &one.kind, &one.name)));
        }
        if is(conditions::REASON_WAITING_FOR_IP_ADDRESS) {
            let uid = object.metadata.uid.as_deref();
            let claims = self.list::<IPClaim>(None)?;
            if let Some(claim) = claims.owned_by(uid).next() {
                return Ok(Some(ObjectId::of::<IPClaim>(name(&claim.metadata))));
            }
            let general = self.list::<IPAddressClaim>(None)?;
            let own = general.owned_by(uid).next();
            let own = own.map(|claim| ObjectId::of::<IPAddressClaim>(name(&claim.metadata)));
            return general.sought(own).and_then(|own| claims.sought(own));
        }
        Ok(None)
    }
}

/// Whether the infrastructure provider reported that the infrastructure exists.
pub(crate) fn is_infrastructure_ready(cluster: &Cluster) -> bool {
    let initialization = cluster.status.initialization.as_ref();
    initialization.is_some_and(|one| one.infrastructure_provisioned == Some(true))
}

/// Whether the control plane answers.
fn is_initialized(cluster: &Cluster) -> bool {
    let initialization = cluster.status.initialization.as_ref();
    initialization.is_some_and(|one| one.control_plane_initialized == Some(true))
}

/// Whether the Machine has its Node and reports no problem.
pub(crate) fn is_running(machine: &Machine) -> bool {
    let not_ready = first_bad(&machine.status.conditions, &[("Ready", ConditionStatus::False)]);
    !is_deleting(&machine.metadata) && machine.status.node_ref.is_some() && not_ready.is_none()
}

/// Whether the Machine is of the control plane.
pub(crate) fn is_control_plane(machine: &Machine) -> bool {
    let labels = machine.metadata.labels.as_ref();
    labels.is_some_and(|labels| labels.contains_key(CONTROL_PLANE_LABEL))
}

/// The order of age.
fn age(machine: &Machine) -> (Option<String>, String) {
    let created = machine.metadata.creation_timestamp.as_ref();
    (
        created.map(|time| time.0.to_string()),
        name(&machine.metadata).to_owned(),
    )
}
