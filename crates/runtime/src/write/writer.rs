//! The requests.

use std::fmt;
use std::marker::PhantomData;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::Request;
use kube::core::params::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube_core::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::access::{Permits, Role, verb};
use crate::cache::{AnswerContent, Identity, Key};
use crate::patch::MergePatch;
use crate::queue::RequestSource;

use super::effect::Effect;
use super::error::{WriteError, WriteErrorKind};
use super::target::{Expected, PendingWrite, WriteTarget};

/// Whether effects happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// They do.
    Perform,
    /// They are printed, and that is all.
    ObserveOnly,
}

/// What a write left behind.
#[derive(Debug, Clone, PartialEq)]
pub enum Written<K> {
    /// The object as the server has it now.
    Object(K),
    /// The object is gone.
    Deleted,
    /// Nothing was to be written.
    Unchanged,
    /// Nothing: this program only observes.
    DryRun,
}

impl<K> Written<K> {
    /// The object, where there is one.
    #[must_use]
    pub fn object(self) -> Option<K> {
        match self {
            Self::Object(object) => Some(object),
            Self::Deleted | Self::Unchanged | Self::DryRun => None,
        }
    }
}

/// Writes what role `R` declared, in the name of one key or of nobody. Cheap to clone.
pub struct Writer<R> {
    pub(super) client: kube::Client,
    mode: Mode,
    source: Option<RequestSource>,
    role: PhantomData<R>,
}

impl<R> Clone for Writer<R> {
    fn clone(&self) -> Self {
        Self {
            client: self.client.clone(),
            mode: self.mode,
            source: self.source.clone(),
            role: PhantomData,
        }
    }
}

impl<R: Role> fmt::Debug for Writer<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("role", &R::NAME)
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}

/// What can be written.
pub trait Writable: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + Send {}

impl<K: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + Send> Writable for K {}

impl<R: Role> Writer<R> {
    /// Writes through `client`, in nobody's name.
    #[must_use]
    pub const fn new(client: kube::Client, mode: Mode) -> Self {
        Self {
            client,
            mode,
            source: None,
            role: PhantomData,
        }
    }

    /// The same, in the name of `source`: its own writes do not wake it, and it is not observed again before they show.
    #[must_use]
    pub fn for_key(&self, source: RequestSource) -> Self {
        Self {
            source: Some(source),
            ..self.clone()
        }
    }

    /// Whether it writes in somebody's name.
    pub(super) const fn has_source(&self) -> bool {
        self.source.is_some()
    }

    /// Whether effects happen.
    #[must_use]
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// Makes an object. It needs a name: then a second attempt finds the first.
    ///
    /// # Errors
    /// When the server refuses, or nobody knows.
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
        // What did not exist before is ours alone.
        self.send(target, (effect, None), &key, request).await
    }

    /// Changes an object. A patch that [replaces a list](MergePatch::replaces_list) others write too needs a
    /// [precondition](MergePatch::with_precondition).
    ///
    /// # Errors
    /// When the server refuses, or nobody knows.
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
        let effect = Effect::of::<verb::Patch, K>(object, &body);
        let expected = self.source.is_some().then(|| Expected::of(target, object, &body));
        let request = path::<K>(object).patch(&object.name, &PatchParams::default(), &Patch::Merge(body));
        self.send(target, (effect, expected), object, request).await
    }

    /// Changes the status of an object.
    ///
    /// # Errors
    /// When the server refuses, or nobody knows.
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
        let effect = Effect::of::<verb::PatchStatus, K>(object, &body);
        let expected = self.source.is_some().then(|| Expected::of(target, object, &body));
        let (params, patch) = (PatchParams::default(), Patch::Merge(body));
        let request = path::<K>(object).patch_subresource("status", &object.name, &params, &patch);
        self.send(target, (effect, expected), object, request).await
    }

    /// Removes an object, if it still is the one that was read and nobody changed it since. One that is gone already
    /// counts as removed.
    ///
    /// # Errors
    /// When the server refuses, or nobody knows.
    pub async fn delete<K: Writable>(&self, target: &impl WriteTarget<K>, object: &K) -> Result<Written<K>, WriteError>
    where
        R: Permits<verb::Delete, K>,
    {
        let last = Identity::of(object).map_err(|error| malformed::<verb::Delete, K>(&Key::of(object), error))?;
        self.delete_at(target, &last).await
    }

    /// As [`Writer::delete`], for those who kept no more than the identity.
    ///
    /// # Errors
    /// When the server refuses, or nobody knows.
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
        let Some(request) = self.permitted(&effect, request)? else {
            return Ok(Written::DryRun);
        };
        let pending = target.begin_write(self.source.as_ref(), key);
        let answer = match self.client.request_text(request).await {
            Ok(text) => text,
            Err(error) => {
                let error = WriteError::of(effect, error);
                if error.kind == WriteErrorKind::NotFound {
                    // Gone already. The watch says so too, and wakes whoever has to hear of it.
                    pending.deleted(last);
                    return Ok(Written::Deleted);
                }
                return Err(landed(pending, error));
            }
        };
        match still_there::<K>(&answer).map_err(|error| unreadable(&effect, error))? {
            Some(object) => {
                pending
                    .wrote(object.clone(), AnswerContent::OwnChange)
                    .map_err(|error| unreadable(&effect, error))?;
                Ok(Written::Object(object))
            }
            None => {
                pending.deleted(last);
                Ok(Written::Deleted)
            }
        }
    }

    pub(super) async fn send<K: Writable>(
        &self,
        target: &impl WriteTarget<K>,
        (effect, expected): (Effect, Option<Expected>),
        key: &Key,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<Written<K>, WriteError> {
        let Some(request) = self.permitted(&effect, request)? else {
            return Ok(Written::DryRun);
        };
        let pending = target.begin_write(self.source.as_ref(), key);
        // Decoded here, because the client would print what it cannot decode.
        let answer = self.client.request_text(request).await;
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return Err(landed(pending, WriteError::of(&effect, error))),
        };
        let object: K =
            serde_json::from_str(&answer).map_err(|error| WriteError::of(&effect, kube::Error::SerdeError(error)))?;
        if nothing_holds(object.meta()) && !holds_itself::<K>(&answer) {
            // The server shows its last form at the version it had before: no news for a cache, which would keep it.
            let last = Identity::of(&object).map_err(|error| unreadable(&effect, error))?;
            pending.deleted(&last);
            return Ok(Written::Deleted);
        }
        let part = expected.map_or(AnswerContent::OwnChange, |expected| expected.part(&object));
        pending
            .wrote(object.clone(), part)
            .map_err(|error| unreadable(&effect, error))?;
        Ok(Written::Object(object))
    }

    /// The request, if effects happen; otherwise it is printed.
    fn permitted(
        &self,
        effect: &Effect,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<Option<http::Request<Vec<u8>>>, WriteError> {
        let request = request.map_err(|error| WriteError::new(effect, WriteErrorKind::Malformed, error))?;
        if self.mode == Mode::ObserveOnly {
            effect.print(R::NAME);
            return Ok(None);
        }
        Ok(Some(request))
    }
}

/// The error, once those who wait for the outcome of the write know what it means for them.
fn landed<K>(pending: Box<dyn PendingWrite<K> + Send + '_>, error: WriteError) -> WriteError {
    if !error.kind.may_be_stale() {
        pending.refused();
    }
    error
}

pub(super) fn path<K: Writable>(object: &Key) -> Request {
    let namespace = (!object.namespace.is_empty()).then_some(object.namespace.as_str());
    Request::new(K::url_path(&(), namespace))
}

/// Whether an object that was going is gone, because this write took its last finalizer and no grace period runs.
fn nothing_holds(meta: &ObjectMeta) -> bool {
    meta.deletion_timestamp.is_some()
        && meta.finalizers.as_ref().is_none_or(Vec::is_empty)
        && meta.deletion_grace_period_seconds.unwrap_or_default() == 0
}

/// Whether a namespace still has to be emptied: it has a second list of finalizers, and the server works it off.
fn holds_itself<K: Writable>(answer: &str) -> bool {
    if !K::group(&()).is_empty() || K::plural(&()) != "namespaces" {
        return false;
    }
    let document: Value = serde_json::from_str(answer).unwrap_or_default();
    let finalizers = document.pointer("/spec/finalizers").and_then(Value::as_array);
    finalizers.is_some_and(|finalizers| !finalizers.is_empty())
}

/// What a delete left: the object while finalizers or a grace period hold it, otherwise nothing. A server may answer
/// with the last form of what is gone; that one does not say that it is being deleted.
fn still_there<K: Writable>(answer: &str) -> Result<Option<K>, kube::Error> {
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

pub(super) fn malformed<V: crate::access::Verb, K: Writable>(
    key: &Key,
    error: impl std::error::Error + Send + Sync + 'static,
) -> WriteError {
    WriteError::new(Effect::of::<V, K>(key, &Value::Null), WriteErrorKind::Malformed, error)
}

fn unreadable(effect: &Effect, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> WriteError {
    WriteError::new(effect, WriteErrorKind::Unreadable, error)
}
