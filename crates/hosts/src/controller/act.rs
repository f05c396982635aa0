//! Performs the steps of a plan, in order, and says what became of them. A step that fails ends the plan.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use metal3_api::metal3::v1alpha1::{BareMetalHost, HardwareData};
use metal3_ironic::calls::{NodeRef, node, port, provision, state};
use metal3_ironic::text::ControlCharacter;
use metal3_ironic::{Answered, Error};
use metal3_runtime::cache::Key;
use metal3_runtime::client::NotOurs;
use metal3_runtime::patch::MergePatch;
use metal3_runtime::work::{Category, Fault};
use metal3_runtime::write::{MetadataOf, Mode, WriteError, Writer, Written};

use super::caches::Caches;
use super::evidence::{Evidence, NodeView, Seen};
use super::look::{SECRETS, secret_of};
use super::metal::Metal;
use super::records::Records;
use crate::action::{Harm, Order, Request, Step};
use crate::facts::{Cure, NodeSeen, Refused, Sight};
use crate::needs::Hosts;

/// A request to Ironic did not leave.
const HELD_BACK: Category = Category::NOT_OURS;

/// Whether a request to Ironic may leave now: asked at the last moment, as for writes to the API.
pub type Permit = Arc<dyn Fn() -> Result<(), NotOurs> + Send + Sync>;

/// The hands of one pass.
pub(super) struct Act<'a> {
    pub(super) key: &'a Key,
    pub(super) caches: &'a Caches,
    pub(super) metal: &'a Metal,
    pub(super) records: &'a Records,
    pub(super) permit: &'a Permit,
    pub(super) writer: &'a Writer<Hosts>,
}

/// How the steps ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// All were done.
    Done,
    /// Nothing is performed: they were only shown.
    Shown,
    /// Ironic did not take one. It is on record; the rest was left.
    Refused,
}

impl Act<'_> {
    /// Performs steps, and notes in `seen` what the answers show.
    ///
    /// # Errors
    /// When a write to the API failed, or nothing may be written now.
    pub(super) async fn perform(&self, steps: Vec<Step>, seen: &mut Evidence) -> Result<Ended, Fault> {
        for step in steps {
            match step {
                Step::Ironic(order) => match self.order(order, seen).await? {
                    Ended::Done => {}
                    other => return Ok(other),
                },
                step => self.write(step, seen).await?,
            }
        }
        Ok(match self.writer.mode() {
            Mode::ObserveOnly => Ended::Shown,
            Mode::Perform => Ended::Done,
        })
    }

    async fn write(&self, step: Step, seen: &mut Evidence) -> Result<(), WriteError> {
        match step {
            Step::PatchHost(patch) => {
                let written = self
                    .writer
                    .patch::<BareMetalHost>(&self.caches.hosts, self.key, patch)
                    .await?;
                keep_host(written.object(), seen);
            }
            Step::PatchStatus(patch) => {
                let written = self
                    .writer
                    .patch_status::<BareMetalHost>(&self.caches.hosts, self.key, patch);
                keep_host(written.await?.object(), seen);
            }
            Step::CreateHardwareData(data) => {
                let written = self.writer.create(&self.caches.hardware, &*data).await?;
                keep_hardware(written.object(), seen);
            }
            Step::PatchHardwareData(patch) => {
                let written = self
                    .writer
                    .patch::<HardwareData>(&self.caches.hardware, self.key, patch)
                    .await?;
                keep_hardware(written.object(), seen);
            }
            Step::PatchSecret { name, patch } => {
                if let Some(secret) = self.patch_secret(&name, patch).await? {
                    keep_secret(&name, secret, seen);
                }
            }
            // Sent by `order`.
            Step::Ironic(_) => {}
        }
        Ok(())
    }

    async fn patch_secret(&self, name: &str, patch: MergePatch) -> Result<Option<Secret>, WriteError> {
        let secret = Key {
            namespace: self.key.namespace.clone(),
            name: name.to_owned(),
        };
        let home = MetadataOf::<Secret>(&self.caches.secrets);
        self.writer
            .patch::<Secret>(&home, &secret, patch)
            .await
            .map(Written::object)
    }

    async fn order(&self, order: Order, seen: &mut Evidence) -> Result<Ended, Fault> {
        let (verb, harm) = (order.request.verb(), order.request.harm());
        if self.writer.mode() == Mode::ObserveOnly {
            tracing::info!(host = %self.key, verb, ?harm, "would ask Ironic");
            return Ok(Ended::Shown);
        }
        (self.permit)().map_err(|error| Fault::transient(format!("ask Ironic: {verb}"), HELD_BACK, error))?;
        let generation = seen.host.metadata.generation;
        let audit = order.audit.map(|audit| audit.to_string()).unwrap_or_default();
        let is_port = matches!(order.request, Request::CreatePort { .. });
        match self.send(order.request, seen).await {
            Ok(request_id) => {
                self.records.accept(self.key);
                if harm != Harm::None {
                    let id = request_id.as_deref().unwrap_or("none");
                    tracing::info!(target: "audit", host = %self.key, verb, request_id = id, "{audit}");
                }
                Ok(Ended::Done)
            }
            Err(error) => {
                if harm != Harm::None && error.may_have_happened() {
                    tracing::info!(target: "audit", host = %self.key, verb, "perhaps done, for the answer is lost: {audit}");
                }
                let refused = Refused {
                    request: verb,
                    cure: if is_port { cure_of_port(&error) } else { cure(&error) },
                    message: error.to_string(),
                    is_fresh: false,
                };
                tracing::debug!(host = %self.key, verb, "Ironic did not take a request: {error}");
                self.records.refuse(self.key, generation, refused.clone());
                seen.refused = Some(Refused {
                    is_fresh: true,
                    ..refused
                });
                // What was seen of the node may be why.
                seen.saw_node(NodeView::Unknown);
                seen.ports = Sight::Unknown;
                Ok(Ended::Refused)
            }
        }
    }

    async fn send(&self, request: Request, seen: &mut Evidence) -> Result<Option<String>, Error> {
        let answered = match request {
            Request::CreateNode(new) => {
                let id = self.view(node::create(*new).map_err(unfit)?, seen).await?;
                if let NodeView::Found(_, seen) = &mut seen.node {
                    *seen = NodeSeen::Created;
                }
                return Ok(id);
            }
            Request::PatchNode(uuid, patch) => {
                return self
                    .view(node::patch(&NodeRef::Uuid(uuid), patch).map_err(unfit)?, seen)
                    .await;
            }
            Request::CreatePort {
                node,
                address,
                pxe_enabled,
            } => {
                let created = self.metal.read(&port::create(&node, &address, pxe_enabled)).await?;
                if let Sight::Found(ports) = &mut seen.ports {
                    ports.push(created);
                }
                return Ok(None);
            }
            Request::Provision(uuid, transition) => {
                let call = provision::request(&NodeRef::Uuid(uuid.clone()), transition).map_err(unfit)?;
                self.metal.ask(&uuid, &call).await?
            }
            Request::Power(uuid, power) => {
                let call = state::set_power(&NodeRef::Uuid(uuid.clone()), power);
                self.metal.ask(&uuid, &call).await?
            }
            Request::SetMaintenance(uuid, reason) => {
                let call = node::set_maintenance(&NodeRef::Uuid(uuid.clone()), reason);
                self.metal.ask(&uuid, &call).await?
            }
            Request::ClearMaintenance(uuid) => {
                let call = node::clear_maintenance(&NodeRef::Uuid(uuid.clone()));
                self.metal.ask(&uuid, &call).await?
            }
            Request::DeleteNode(uuid) => {
                let call = node::delete(&NodeRef::Uuid(uuid.clone()));
                let answered = match self.metal.ask(&uuid, &call).await {
                    Err(Error::NotFound(_)) => None,
                    answered => answered?.request_id,
                };
                self.metal.forget(&uuid);
                // Ironic has just said so: nobody needs to search for it.
                seen.saw_node(NodeView::Absent);
                return Ok(answered);
            }
        };
        seen.asked_node();
        Ok(answered.request_id)
    }

    async fn view(
        &self,
        call: metal3_ironic::request::Call<metal3_ironic::model::node::Node>,
        seen: &mut Evidence,
    ) -> Result<Option<String>, Error> {
        let Answered { value, request_id, .. } = self.metal.view(&call).await?;
        seen.saw_node(NodeView::Found(Arc::new(value), NodeSeen::Live));
        Ok(request_id)
    }
}

fn keep_host(written: Option<BareMetalHost>, seen: &mut Evidence) {
    if let Some(host) = written {
        seen.saw_host(host);
    }
}

fn keep_hardware(written: Option<HardwareData>, seen: &mut Evidence) {
    if let Some(data) = written {
        seen.hardware = Sight::Found(Arc::new(data));
    }
}

/// The Secret as it is now, wherever the host names it: the next step relies on its new version.
fn keep_secret(name: &str, secret: Secret, seen: &mut Evidence) {
    let host = Arc::clone(&seen.host);
    let view = Seen {
        metadata: Arc::new(secret.metadata),
        values: Some(Arc::new(secret.data.unwrap_or_default())),
    };
    for which in SECRETS
        .into_iter()
        .filter(|which| secret_of(&host, *which) == Some(name))
    {
        seen.secrets.insert(which, Sight::Found(view.clone()));
    }
}

/// What may help. Ironic's words are kept as they are; they carry no secret of the request.
const fn cure(error: &Error) -> Cure {
    match error {
        Error::Invalid(_) => Cure::Change,
        Error::Unauthorised(_) | Error::NoCommonVersion(_) | Error::TooOld { .. } | Error::Untrusted { .. } => {
            Cure::Access
        }
        Error::NotFound(_)
        | Error::Locked(_)
        | Error::WrongState(_)
        | Error::Exists(_)
        | Error::Busy(_)
        | Error::Unreachable { .. }
        | Error::Timeout { .. }
        | Error::Unexpected { .. } => Cure::Wait,
    }
}

/// What may help where a port is refused. One that exists is another node's, which goes on until a person mends it, or our
/// own of a lost answer, which shows when ports are read anew.
const fn cure_of_port(error: &Error) -> Cure {
    match error {
        Error::Exists(_) => Cure::Change,
        other => cure(other),
    }
}

/// A control character would have got into the request: nothing was sent.
fn unfit(error: ControlCharacter) -> Error {
    Error::Unexpected {
        operation: "prepare a request",
        status: None,
        reason: error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use metal3_ironic::error::Refusal;

    use super::*;

    #[test]
    fn a_refused_login_says_nothing_of_the_request() {
        let refusal = |status| Refusal {
            operation: "switch the power",
            status,
            message: "no".to_owned(),
            request_id: None,
        };
        assert_eq!(cure(&Error::Unauthorised(refusal(403))), Cure::Access);
        assert_eq!(cure(&Error::Invalid(refusal(400))), Cure::Change);
    }
}
