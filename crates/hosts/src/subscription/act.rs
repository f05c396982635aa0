//! Performs one step. It decides nothing.

use std::sync::Arc;

use metal3_api::metal3::names::{SUBSCRIPTION_FINALIZER, SUBSCRIPTION_RECORD_ANNOTATION};
use metal3_api::metal3::v1alpha1::BMCEventSubscription;
use metal3_ironic::calls::{NodeRef, hardware};
use metal3_ironic::model::hardware::NewSubscription;
use metal3_ironic::{Client, SendPermit};
use metal3_runtime::cache::{Identity, Key};
use metal3_runtime::events::Importance;
use metal3_runtime::patch::{Changes, remove_finalizer};
use metal3_runtime::reason::Reason;
use metal3_runtime::work::{Category, Fault, Next};
use metal3_runtime::write::{Mode, Writer, Written};
use serde_json::Value;

use super::SubscriptionReconciler;
use super::facts::{Facts, Failure, FailureClass, Object, Record};
use super::observe::{Found, failure, named_values};
use super::plan::{Step, Wait};
use crate::live::{OwnNode, Reading};
use crate::names::subscription_reason::{CREATED, LEFT, LOST};
use crate::needs::Subscriptions;

/// How often the identifier of a subscription is written to an object that changes.
const ADOPTIONS: u32 = 5;
const IRONIC: Category = Category::new("ironic");

/// One reconcile of one object.
pub(super) struct Act<'a> {
    reconciler: &'a SubscriptionReconciler,
    pub(super) key: &'a Key,
    pub(super) writer: &'a Writer<Subscriptions>,
    pub(super) object: Arc<BMCEventSubscription>,
}

impl<'a> Act<'a> {
    pub(super) const fn new(
        reconciler: &'a SubscriptionReconciler,
        key: &'a Key,
        writer: &'a Writer<Subscriptions>,
        object: Arc<BMCEventSubscription>,
    ) -> Self {
        Self {
            reconciler,
            key,
            writer,
            object,
        }
    }

    /// Reads the object; `None` when it is gone, or another one has its name.
    pub(super) async fn read(&mut self) -> Result<Option<Object>, Fault> {
        let cache = &self.reconciler.caches.subscriptions;
        let found = self.writer.read::<BMCEventSubscription>(cache, self.key).await?;
        let uid = self.object.metadata.uid.clone();
        let Some(object) = found.filter(|found| found.metadata.uid == uid) else {
            return Ok(None);
        };
        self.object = Arc::new(object);
        Ok(Some(Object::of(&self.object, true)))
    }

    /// Performs a step other than a read or a wait. Returns how the reconcile ends, if it does.
    pub(super) async fn perform(
        &mut self,
        step: Step,
        facts: &mut Facts,
        found: &Found,
    ) -> Result<Option<Next>, Fault> {
        if self.writer.mode() == Mode::ObserveOnly && matches!(step, Step::Create | Step::Delete(_)) {
            tracing::info!(subscription = %self.key, "dry run: request to Ironic not sent");
            let verb = if matches!(step, Step::Create) {
                "create subscription"
            } else {
                "delete subscription"
            };
            self.writer
                .leave_out_order::<BMCEventSubscription>(self.key, verb, false);
            return Ok(Some(Next::Done));
        }
        match step {
            Step::Done | Step::Read(_) | Step::Wait(_) => {}
            Step::Record(record) => return self.record(&record, facts).await,
            Step::Create => match self.create(facts, found).await? {
                Ok(id) => return self.adopt(&id, "created").await.map(Some),
                Err(refused) => {
                    facts.list = Reading::NotRead;
                    facts.details.clear();
                    if refused.class == FailureClass::Unconfirmed {
                        let now = self.reconciler.clock.monotonic();
                        facts.attempts.creation_may_come_for = self.reconciler.memories.unanswered(self.key, now);
                    }
                    facts.refused = Some(refused);
                }
            },
            Step::Adopt(id) => return self.adopt(&id, "found after a lost response").await.map(Some),
            Step::Forget(id) => return self.forget(&id, facts).await,
            Step::Delete(id) => {
                facts.deletion = Some(self.delete(&id, found).await?);
                facts.list = Reading::NotRead;
                facts.details.clear();
            }
            Step::Release { is_left } => {
                if self.release().await? && is_left {
                    let id = self.object.status.subscription_id.as_deref().unwrap_or_default();
                    let note = format!(
                        "the subscription {id} of the BMC has another destination, so it is not deleted; delete it at \
                         the BMC if nothing uses it"
                    );
                    self.event(Importance::Warning, LEFT, note);
                }
                return Ok(Some(Next::Done));
            }
            Step::ClearError => {
                self.write_status(|object| object.status.error = None).await?;
                return Ok(Some(Next::Done));
            }
        }
        Ok(None)
    }

    async fn record(&mut self, record: &Record, facts: &mut Facts) -> Result<Option<Next>, Fault> {
        let text = serde_json::to_string(record).map_err(|error| self.bug(&error))?;
        let mut recorded = BMCEventSubscription::clone(&self.object);
        let annotations = recorded.metadata.annotations.get_or_insert_default();
        annotations.insert(SUBSCRIPTION_RECORD_ANNOTATION.to_owned(), text);
        let finalizers = recorded.metadata.finalizers.get_or_insert_default();
        if !finalizers.iter().any(|name| name == SUBSCRIPTION_FINALIZER) {
            finalizers.push(SUBSCRIPTION_FINALIZER.to_owned());
        }
        let at = Identity::of(&*self.object).map_err(|error| self.bug(&error))?;
        let changes = Changes::between(&self.document(&self.object)?, &self.document(&recorded)?);
        let Some(patch) = changes.main else {
            return Err(Fault::bug("a record that changes nothing"));
        };
        let cache = &self.reconciler.caches.subscriptions;
        let patch = patch.with_precondition(&at.version);
        let written = self
            .writer
            .patch::<BMCEventSubscription>(cache, self.key, patch)
            .await?;
        Ok(self.wrote(written.object(), facts))
    }

    /// Continues with the written object; a dry run ends.
    fn wrote(&mut self, written: Option<BMCEventSubscription>, facts: &mut Facts) -> Option<Next> {
        let Some(object) = written else {
            return Some(Next::Done);
        };
        self.object = Arc::new(object);
        facts.object = Object::of(&self.object, true);
        None
    }

    async fn permit(&self, ironic: &Client, op: &'static str) -> Result<SendPermit, Fault> {
        let permit = ironic.send_permit().await;
        (self.reconciler.permit)().map_err(|blocked| Fault::transient(op, Category::WRITE_BLOCKED, blocked))?;
        Ok(permit)
    }

    async fn create(&self, facts: &Facts, found: &Found) -> Result<Result<String, Failure>, Fault> {
        let OwnNode { node, ironic } = found
            .node
            .as_ref()
            .ok_or_else(|| Fault::bug("a subscription without node"))?;
        let wanted = &facts.object.wanted;
        let headers = match (&wanted.headers, &found.headers) {
            (None, _) => Vec::new(),
            (Some(_), secret) => secret
                .as_deref()
                .and_then(|secret| named_values(secret))
                .ok_or_else(|| Fault::bug("a subscription without its headers"))?,
        };
        let has_headers = !headers.is_empty();
        let new = NewSubscription {
            destination: wanted.destination.clone(),
            context: wanted.context.clone(),
            headers,
        };
        let op = "create an event subscription";
        let call = hardware::create_subscription(&NodeRef::from(&node.uuid), &new)
            .map_err(|_| Fault::bug("a subscription with a control character"))?;
        let permit = self.permit(ironic, op).await?;
        let sent = ironic.send_with(&permit, &call).await;
        Ok(sent.map(|created| created.value.id).map_err(|error| {
            let failure = failure(&error, !has_headers);
            tracing::warn!(subscription = %self.key, node = %node.uuid, why = failure.text, "{op}: it failed");
            failure
        }))
    }

    /// The next list shows whether it had an effect: Ironic reports a failure of the BMC as a missing subscription.
    async fn delete(&self, id: &str, found: &Found) -> Result<Result<(), Failure>, Fault> {
        let OwnNode { node, ironic } = found
            .node
            .as_ref()
            .ok_or_else(|| Fault::bug("a subscription without node"))?;
        let op = "delete an event subscription";
        let call = hardware::delete_subscription(&NodeRef::from(&node.uuid), id)
            .map_err(|error| Fault::transient(op, IRONIC, error))?;
        let permit = self.permit(ironic, op).await?;
        match ironic.send_with(&permit, &call).await {
            Ok(_) => {
                tracing::info!(subscription = %self.key, node = %node.uuid, id, "deleted an event subscription");
                Ok(Ok(()))
            }
            Err(error) => {
                let failure = failure(&error, true);
                tracing::warn!(subscription = %self.key, node = %node.uuid, id, why = failure.text, "{op}: it failed");
                Ok(Err(failure))
            }
        }
    }

    /// Records the identifier, also when the object changed during the request: it might not be found again.
    async fn adopt(&mut self, id: &str, how: &str) -> Result<Next, Fault> {
        let mut attempts = 1;
        let written = loop {
            let change = |object: &mut BMCEventSubscription| {
                object.status.subscription_id = Some(id.to_owned());
                object.status.error = None;
            };
            match self.write_status(change).await {
                Err(fault) if fault.category() == Category::CONFLICT.as_str() && attempts < ADOPTIONS => {
                    attempts = attempts.saturating_add(1);
                    if self.read().await?.is_none() {
                        return Ok(Next::Requeue);
                    }
                }
                written => break written?,
            }
        };
        if written {
            let host = self.object.spec.host_name.as_deref().unwrap_or_default();
            let note = format!("the BMC of host {host} has the subscription {id} ({how})");
            self.event(Importance::Normal, CREATED, note);
        }
        Ok(Next::Done)
    }

    async fn forget(&mut self, id: &str, facts: &mut Facts) -> Result<Option<Next>, Fault> {
        let note = format!(
            "its host has another node now, and its BMC does not have the subscription {id}; it is created again"
        );
        let error = note.clone();
        let written = self
            .write_status(|object| {
                object.status.subscription_id = None;
                object.status.error = Some(error);
            })
            .await?;
        if !written {
            return Ok(Some(Next::Done));
        }
        self.event(Importance::Warning, LOST, note);
        facts.object = Object::of(&self.object, true);
        Ok(None)
    }

    /// Returns whether it was written.
    async fn release(&self) -> Result<bool, Fault> {
        let at = Identity::of(&*self.object).map_err(|error| self.bug(&error))?;
        let present = self.object.metadata.finalizers.as_deref().unwrap_or_default();
        let Some(patch) = remove_finalizer(present, SUBSCRIPTION_FINALIZER, &at.version) else {
            return Ok(false);
        };
        let cache = &self.reconciler.caches.subscriptions;
        let written = self.writer.patch::<BMCEventSubscription>(cache, self.key, patch);
        Ok(matches!(written.await?, Written::Object(_) | Written::Deleted))
    }

    /// Reports the wait, once: the status has it afterwards.
    pub(super) async fn wait(&mut self, wait: Wait) -> Result<Next, Fault> {
        let is_new = self.object.status.error.as_ref() != Some(&wait.message);
        if wait.is_reported && is_new {
            let message = wait.message.clone();
            if self.write_status(|object| object.status.error = Some(message)).await? {
                self.event(Importance::Warning, wait.reason, wait.message.clone());
            }
        }
        Ok(match wait.recheck {
            Some(recheck) => Next::waiting_with_recheck(wait.reason, wait.message, recheck),
            None => Next::waiting(wait.reason, wait.message),
        })
    }

    /// Changes the status of the version that was read. Returns whether it was written.
    async fn write_status(&mut self, change: impl FnOnce(&mut BMCEventSubscription) + Send) -> Result<bool, Fault> {
        let mut changed = BMCEventSubscription::clone(&self.object);
        change(&mut changed);
        let changes = Changes::between(&self.document(&self.object)?, &self.document(&changed)?);
        let Some(patch) = changes.status else {
            return Ok(false);
        };
        let at = Identity::of(&*self.object).map_err(|error| self.bug(&error))?;
        let cache = &self.reconciler.caches.subscriptions;
        let patch = patch.with_precondition(&at.version);
        let written = self
            .writer
            .patch_status::<BMCEventSubscription>(cache, self.key, patch)
            .await?;
        let Some(object) = written.object() else {
            return Ok(false);
        };
        self.object = Arc::new(object);
        Ok(true)
    }

    fn event(&self, importance: Importance, reason: Reason, note: String) {
        self.reconciler.events.record(&*self.object, importance, reason, note);
    }

    fn document(&self, object: &BMCEventSubscription) -> Result<Value, Fault> {
        serde_json::to_value(object).map_err(|error| self.bug(&error))
    }

    fn bug(&self, error: &dyn std::error::Error) -> Fault {
        Fault::bug(format!("{}: {error}", self.key))
    }
}
