//! The requests of a writer.

use std::fmt;
use std::marker::PhantomData;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::Request;
use kube::core::params::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use secrecy::zeroize::Zeroizing;
use serde_json::Value;

use crate::access::{Permits, Role, Verb, verb};
use crate::cache::{AnswerContent, Identity, Key, prune};
use crate::patch::MergePatch;
use crate::queue::RequestSource;

use super::dry_run::{Work, WriteMode, assume};
use super::effect::Effect;
use super::error::{WriteError, WriteErrorKind};
use super::target::{Expected, PendingWrite, Writable, WriteTarget};

type BuiltRequest = Result<http::Request<Vec<u8>>, kube::core::request::Error>;

/// Whether writes are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Writes are sent.
    Perform,
    /// Dry run: writes are logged only.
    ObserveOnly,
}

/// The result of a write.
#[derive(Debug, Clone, PartialEq)]
pub enum Written<K> {
    /// The object after the write.
    Object(K),
    /// The object is deleted.
    Deleted,
    /// There was nothing to write.
    Unchanged,
    /// Nothing was sent in a dry run.
    DryRun,
}

impl<K> Written<K> {
    /// The object, if there is one.
    #[must_use]
    pub fn object(self) -> Option<K> {
        match self {
            Self::Object(object) => Some(object),
            Self::Deleted | Self::Unchanged | Self::DryRun => None,
        }
    }
}

/// Writes with the permissions of role `R`, for one key or without a source. Cheap to clone.
pub struct Writer<R> {
    pub(super) client: kube::Client,
    mode: WriteMode,
    source: Option<RequestSource>,
    role: PhantomData<R>,
}

impl<R> Clone for Writer<R> {
    fn clone(&self) -> Self {
        Self {
            client: self.client.clone(),
            mode: self.mode.clone(),
            source: self.source.clone(),
            role: PhantomData,
        }
    }
}

impl<R: Role> Writer<R> {
    /// Writes through `client`, without a source.
    #[must_use]
    pub fn new(client: kube::Client, mode: impl Into<WriteMode>) -> Self {
        Self {
            client,
            mode: mode.into(),
            source: None,
            role: PhantomData,
        }
    }

    /// The same for `source`: its own writes do not enqueue it, and it is held until the cache has them.
    #[must_use]
    pub fn for_key(&self, source: RequestSource) -> Self {
        Self {
            source: Some(source),
            ..self.clone()
        }
    }

    /// Whether writes are sent.
    #[must_use]
    pub const fn mode(&self) -> Mode {
        self.mode.mode
    }

    /// Whether a dry run goes on as if patches had been done.
    #[must_use]
    pub const fn assumes_writes(&self) -> bool {
        self.mode.observer.is_some()
    }

    /// The same mode, with who learns of a dry run: for a writer of another cluster.
    #[must_use]
    pub fn write_mode(&self) -> WriteMode {
        self.mode.clone()
    }

    /// Reports a request to another system, for this object, that a dry run does not send. `interrupts`: it may interrupt or
    /// erase a machine.
    pub fn leave_out_order<K: Writable>(&self, object: &Key, verb: &'static str, interrupts: bool) {
        if let Some(observer) = &self.mode.observer {
            observer.order(&K::kind(&()), object, verb, interrupts);
        }
    }

    /// Reports that work of a dry run began or ended.
    pub(crate) fn report_work(&self, work: Work, began: bool) {
        if let Some(observer) = &self.mode.observer {
            observer.works(work, began);
        }
    }

    /// Reports the end of a reconcile of a dry run; `failure` says why what it would do is not known.
    pub(crate) fn report_reconcile(&self, controller: &'static str, key: &impl fmt::Display, failure: Option<String>) {
        if let Some(observer) = &self.mode.observer {
            observer.reconciled(controller, &key.to_string(), failure);
        }
    }

    /// Creates an object. It needs a name, so that a retry finds the object of the first attempt.
    ///
    /// # Errors
    /// When the server rejects the request, or the outcome is unknown.
    pub async fn create<K: Writable>(&self, target: &impl WriteTarget<K>, object: &K) -> Result<Written<K>, WriteError>
    where
        R: Permits<verb::Create, K>,
    {
        let key = Key::of(object);
        let body = serde_json::to_value(object).map_err(|error| malformed::<verb::Create, K>(&key, error))?;
        let effect = Effect::of::<verb::Create, K>(&key, &body);
        if key.name.is_empty() {
            let why = "metadata.name: missing; give the object a name, so that a second attempt finds the first";
            return Err(WriteError::new(effect, WriteErrorKind::Malformed, why));
        }
        let request = path::<K>(&key).create(&PostParams::default(), body.to_string().into_bytes());
        // A new object contains no change of another client.
        self.send(target, (effect, None), &key, request).await
    }

    /// Patches an object. A patch that [replaces a list](MergePatch::replaces_list) which other clients write, too,
    /// needs a [precondition](MergePatch::with_precondition).
    ///
    /// # Errors
    /// When the server rejects the request, or the outcome is unknown.
    pub async fn patch<K: Writable>(
        &self,
        target: &impl WriteTarget<K>,
        object: &Key,
        patch: MergePatch,
    ) -> Result<Written<K>, WriteError>
    where
        R: Permits<verb::Patch, K>,
    {
        let body = patch.into_document();
        let request = path::<K>(object).patch(&object.name, &PatchParams::default(), &Patch::Merge(&body));
        self.send_patch::<verb::Patch, K>(target, object, &body, request).await
    }

    /// Patches the status of an object.
    ///
    /// # Errors
    /// When the server rejects the request, or the outcome is unknown.
    pub async fn patch_status<K: Writable>(
        &self,
        target: &impl WriteTarget<K>,
        object: &Key,
        patch: MergePatch,
    ) -> Result<Written<K>, WriteError>
    where
        R: Permits<verb::PatchStatus, K>,
    {
        let body = patch.into_document();
        let (params, patch) = (PatchParams::default(), Patch::Merge(&body));
        let request = path::<K>(object).patch_subresource("status", &object.name, &params, &patch);
        self.send_patch::<verb::PatchStatus, K>(target, object, &body, request)
            .await
    }

    /// Deletes an object, with UID and version as preconditions. An object that does not exist counts as deleted.
    ///
    /// # Errors
    /// When the server rejects the request, or the outcome is unknown.
    pub async fn delete<K: Writable>(&self, target: &impl WriteTarget<K>, object: &K) -> Result<Written<K>, WriteError>
    where
        R: Permits<verb::Delete, K>,
    {
        let last = Identity::of(object).map_err(|error| malformed::<verb::Delete, K>(&Key::of(object), error))?;
        self.delete_at(target, &last).await
    }

    /// The same as [`Writer::delete`], with the identity alone.
    ///
    /// # Errors
    /// When the server rejects the request, or the outcome is unknown.
    pub async fn delete_at<K: Writable>(
        &self,
        target: &impl WriteTarget<K>,
        last: &Identity,
    ) -> Result<Written<K>, WriteError>
    where
        R: Permits<verb::Delete, K>,
    {
        let key = &last.key;
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                resource_version: Some(last.version.as_str().to_owned()),
                uid: Some(last.uid.clone()),
            }),
            ..DeleteParams::default()
        };
        let body = serde_json::to_value(&params).map_err(|error| malformed::<verb::Delete, K>(key, error))?;
        let effect = Effect::of::<verb::Delete, K>(key, &body);
        let request = path::<K>(key).delete(&key.name, &params);
        let Some(request) = self.unless_dry_run(&effect, request)? else {
            return Ok(Written::DryRun);
        };
        let pending = target.begin_write(self.source.as_ref(), key);
        let answer = match self.client.request_text(request).await {
            Ok(text) => text,
            Err(error) => {
                let error = WriteError::of(effect, error);
                if error.kind == WriteErrorKind::NotFound {
                    // Deleted already: the watch reports it and enqueues the keys that depend on it.
                    pending.deleted(last);
                    return Ok(Written::Deleted);
                }
                return Err(reject(pending, error));
            }
        };
        match remaining_object::<K>(&answer).map_err(|error| unreadable(&effect, error))? {
            Some(object) => {
                pending
                    .wrote(&object, AnswerContent::OwnChange)
                    .map_err(|error| unreadable(&effect, error))?;
                Ok(Written::Object(object))
            }
            None => {
                pending.deleted(last);
                Ok(Written::Deleted)
            }
        }
    }

    /// Sends a patch; a source compares the response with its own change.
    pub(super) async fn send_patch<V: Verb, K: Writable>(
        &self,
        target: &impl WriteTarget<K>,
        object: &Key,
        body: &Value,
        request: BuiltRequest,
    ) -> Result<Written<K>, WriteError> {
        let effect = Effect::of::<V, K>(object, body);
        let expected = self.source.is_some().then(|| Expected::of(target, object, body));
        self.send(target, (effect, expected), object, request).await
    }

    async fn send<K: Writable>(
        &self,
        target: &impl WriteTarget<K>,
        (effect, expected): (Effect, Option<Expected>),
        key: &Key,
        request: BuiltRequest,
    ) -> Result<Written<K>, WriteError> {
        if self.assumes_writes() {
            let request = self.dry_run_of(&effect, request)?;
            let assumed = assume(target, (self.source.as_ref(), key), &request);
            return Ok(assumed.map_or(Written::DryRun, Written::Object));
        }
        let Some(request) = self.unless_dry_run(&effect, request)? else {
            return Ok(Written::DryRun);
        };
        let pending = target.begin_write(self.source.as_ref(), key);
        // Decoded here, because the client would log a body that it cannot decode.
        let answer = self.client.request_text(request).await;
        let answer = match answer {
            // It may be a Secret.
            Ok(answer) => Zeroizing::new(answer),
            Err(error) => return Err(reject(pending, WriteError::of(&effect, error))),
        };
        let mut object: K =
            serde_json::from_str(&answer).map_err(|error| WriteError::of(&effect, kube::Error::SerdeError(error)))?;
        // As in the cache: the object is copied into it, and into each plan that follows in the same reconcile.
        prune(&mut object);
        if is_deleted(object.meta()) && !has_namespace_finalizers::<K>(&answer) {
            // The server returns the last form with its old version, which must not enter the cache.
            let last = Identity::of(&object).map_err(|error| unreadable(&effect, error))?;
            pending.deleted(&last);
            return Ok(Written::Deleted);
        }
        let content = expected.map_or(AnswerContent::OwnChange, |expected| expected.content(&object));
        pending
            .wrote(&object, content)
            .map_err(|error| unreadable(&effect, error))?;
        Ok(Written::Object(object))
    }

    /// The request, or `None` after logging it in a dry run.
    pub(super) fn unless_dry_run(
        &self,
        effect: &Effect,
        request: BuiltRequest,
    ) -> Result<Option<http::Request<Vec<u8>>>, WriteError> {
        if self.mode() == Mode::ObserveOnly {
            return self.dry_run_of(effect, request).map(|_| None);
        }
        request
            .map(Some)
            .map_err(|error| WriteError::new(effect, WriteErrorKind::Malformed, error))
    }

    /// The request, after reporting it instead of sending it.
    fn dry_run_of(&self, effect: &Effect, request: BuiltRequest) -> Result<http::Request<Vec<u8>>, WriteError> {
        let request = request.map_err(|error| WriteError::new(effect, WriteErrorKind::Malformed, error))?;
        effect.log(R::NAME);
        if let Some(observer) = &self.mode.observer {
            observer.write(effect);
        }
        Ok(request)
    }
}

/// Completes the pending write according to the error.
fn reject<K>(pending: Box<dyn PendingWrite<K> + Send + '_>, error: WriteError) -> WriteError {
    if !error.kind.may_be_stale() {
        pending.refused();
    }
    error
}

pub(super) fn path<K: Writable>(object: &Key) -> Request {
    let namespace = (!object.namespace.is_empty()).then_some(object.namespace.as_str());
    Request::new(K::url_path(&(), namespace))
}

/// Whether this write deleted the object: it removed the last finalizer, and no grace period runs.
fn is_deleted(meta: &ObjectMeta) -> bool {
    meta.deletion_timestamp.is_some()
        && meta.finalizers.as_ref().is_none_or(Vec::is_empty)
        && meta.deletion_grace_period_seconds.unwrap_or_default() == 0
}

/// Whether a namespace still has to be emptied: its second list of finalizers is processed by the server.
fn has_namespace_finalizers<K: Writable>(answer: &str) -> bool {
    if !K::group(&()).is_empty() || K::plural(&()) != "namespaces" {
        return false;
    }
    let document: Value = serde_json::from_str(answer).unwrap_or_default();
    let finalizers = document.pointer("/spec/finalizers").and_then(Value::as_array);
    finalizers.is_some_and(|finalizers| !finalizers.is_empty())
}

/// The object after a delete, while finalizers or a grace period hold it. A server may respond with the last form of a
/// deleted object, without a deletion timestamp.
fn remaining_object<K: Writable>(answer: &str) -> Result<Option<K>, kube::Error> {
    let document: Value = serde_json::from_str(answer).map_err(kube::Error::SerdeError)?;
    let status = document.get("kind").and_then(Value::as_str) == Some("Status");
    let going = document.pointer("/metadata/deletionTimestamp").is_some();
    if status || !going {
        return Ok(None);
    }
    serde_json::from_value(document)
        .map(Some)
        .map_err(kube::Error::SerdeError)
}

pub(super) fn malformed<V: Verb, K: Writable>(
    key: &Key,
    error: impl std::error::Error + Send + Sync + 'static,
) -> WriteError {
    WriteError::new(Effect::of::<V, K>(key, &Value::Null), WriteErrorKind::Malformed, error)
}

fn unreadable(effect: &Effect, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> WriteError {
    WriteError::new(effect, WriteErrorKind::Unreadable, error)
}
