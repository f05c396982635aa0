//! Creating objects.

use metal3_schema::{FieldError, Scope, metadata_errors};
use serde_json::Value;

use super::builtin;
use super::discovery::priority;
use super::golang::printed;
use super::managed_fields::{Managers, StoredManagers};
use super::metadata::{generated_name, read_body, timestamp, uid, with_separate_metadata};
use super::object;
use super::openapi::Decoder;
use super::options::{FieldValidation, WriteOptions};
use super::refusal::Refusal;
use super::request::{Call, Verb};
use super::{Answer, ObjectKey, Store};

/// The group whose kinds may have any name that fits into a path.
const RBAC_GROUP: &str = "rbac.authorization.k8s.io";
/// Attempts to find a free generated name.
const NAME_ATTEMPTS: usize = 8;

/// Metadata that a client cannot set on a new object.
const WIPED: [&str; 4] = [
    "resourceVersion",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
];

/// An object to create.
pub(super) struct Draft {
    pub(super) body: Value,
    pub(super) managers: Managers,
    pub(super) warnings: Vec<String>,
    /// Whether the client set `resourceVersion`, which a create rejects.
    pub(super) given_version: bool,
}

impl Store {
    pub(super) fn create(&mut self, call: &Call<'_>) -> Result<Answer, Refusal> {
        let options = WriteOptions::read(call.request, "CreateOptions")?;
        let mut body = read_body(call)?;
        self.check_kind_stays(&call.kind, object::text(&body, "name"))?;
        let given_version = !object::text(&body, "resourceVersion").is_empty();
        let given = object::take(&mut body, "managedFields");
        let warnings = self.prepare_fields(call, &mut body, options.fields)?;
        for name in WIPED {
            object::unset(&mut body, name);
        }
        let managers = Managers::requested(given.as_ref(), &StoredManagers::default());
        let managers = self.tracker(call).updated(None, &body, managers, &options.manager);
        let draft = Draft {
            body,
            managers,
            warnings,
            given_version,
        };
        self.create_object(call, &options, draft)
    }

    /// Creates an object whose fields and field managers are known.
    pub(super) fn create_object(
        &mut self,
        call: &Call<'_>,
        options: &WriteOptions,
        draft: Draft,
    ) -> Result<Answer, Refusal> {
        let Draft {
            mut body,
            managers,
            mut warnings,
            given_version,
        } = draft;
        // A Node may bring its status.
        if call.has_status() && (call.kind.is_custom() || call.kind.kind != "Node") {
            object::as_map(&mut body).remove("status");
        }
        self.check_namespace(call, &body)?;
        self.initialize(call, &mut body);
        self.hooks.run_mutating(call, None, &mut body)?;
        self.check_created(call, &body)?;
        self.check_owners(call, None, &body)?;
        warnings.extend(self.hooks.run_validating(call, None, Some(&body))?);
        if given_version {
            return Err(Refusal::internal(
                "resourceVersion should not be set on objects to be created",
            ));
        }
        warnings.extend(finalizer_warnings(call, None, &body));
        let key: ObjectKey = (call.target.namespace.clone(), object::text(&body, "name").to_owned());
        if let Some(stored) = self.stored(&call.kind, &key) {
            let mut refusal = Refusal::already_exists(&call.kind, &key.1);
            if object::deleting(stored) {
                refusal.message = format!("object is being deleted: {}", refusal.message);
            }
            return Err(refusal);
        }
        let stored_managers = managers.packed(&mut self.texts);
        let body = if options.dry_run {
            stored_managers.show(&mut body);
            body
        } else {
            let stored = self.to_storage(&call.kind, &body)?;
            check_size(&stored)?;
            let stored = self.commit_with_managers(&call.kind, &key, stored, stored_managers);
            self.after_write(&call.kind, &key);
            self.shown(&call.kind, &stored, &call.target.version)?
        };
        Ok(Answer::Document {
            code: 201,
            body: self.represented(call, body)?,
            warnings,
        })
    }

    /// Prunes and defaults the body, and returns warnings for unknown fields.
    pub(super) fn prepare_fields(
        &self,
        call: &Call<'_>,
        body: &mut Value,
        fields: FieldValidation,
    ) -> Result<Vec<String>, Refusal> {
        let mut warnings = Vec::new();
        let version = call.version();
        let shape = version.and_then(|version| version.shape.as_deref());
        let schema = version.and_then(|version| version.schema.as_ref()).or(shape);
        let unknown = schema.map(|schema| {
            with_separate_metadata(body, |body| {
                let unknown = schema.prune(body);
                schema.default(body);
                unknown
            })
        });
        let unknown_metadata = builtin::prune_metadata(body);
        if !call.kind.is_custom() {
            let typed = version.and_then(|version| version.typed.as_deref());
            let decoder = match is_strategic(call) {
                true => Decoder::Converted,
                false => Decoder::Json,
            };
            builtin::decode(typed, decoder, &call.kind.kind, body).map_err(|why| undecodable(call, body, &why))?;
        }
        let mut unknown: Vec<String> = unknown.into_iter().flatten().collect();
        unknown.extend(unknown_metadata);
        let unknown: Vec<String> = unknown.iter().map(|path| format!("unknown field {path:?}")).collect();
        match fields {
            FieldValidation::Ignore => {}
            FieldValidation::Warn => warnings.extend(unknown),
            FieldValidation::Strict if unknown.is_empty() => {}
            FieldValidation::Strict => {
                let why = format!("strict decoding error: {}", unknown.join(", "));
                return Err(unreadable(call, &why));
            }
        }
        warnings.extend(deprecation(call));
        Ok(warnings)
    }

    fn check_namespace(&self, call: &Call<'_>, body: &Value) -> Result<(), Refusal> {
        let name = &call.target.namespace;
        if !call.kind.namespaced {
            return Ok(());
        }
        let Some(namespaces) = self.kinds.get(&(String::new(), "namespaces".to_owned())) else {
            return Ok(());
        };
        match self.stored(namespaces, &(String::new(), name.clone())) {
            None => Err(Refusal::not_found(namespaces, name)),
            Some(namespace) if object::deleting(namespace) => {
                Err(Refusal::terminating(&call.kind, object::text(body, "name"), name))
            }
            Some(_) => Ok(()),
        }
    }

    /// Sets the metadata that only the server sets: name, uid, creation time and generation.
    fn initialize(&mut self, call: &Call<'_>, body: &mut Value) {
        for name in WIPED {
            object::unset(body, name);
        }
        let prefix = object::text(body, "generateName").to_owned();
        if object::text(body, "name").is_empty() && !prefix.is_empty() {
            for _ in 0..NAME_ATTEMPTS {
                let name = generated_name(&prefix, &mut self.random);
                object::set(body, "name", name.clone());
                if self
                    .stored(&call.kind, &(call.target.namespace.clone(), name))
                    .is_none()
                {
                    break;
                }
            }
        }
        object::set(body, "uid", uid(&mut self.random));
        object::set(body, "creationTimestamp", timestamp(call.now));
        if call.kind.counts_generations() {
            object::set(body, "generation", 1);
        }
        if !call.kind.is_custom() {
            let number = self.version;
            builtin::initialize(&call.kind.kind, body, number);
        }
    }

    fn check_created(&self, call: &Call<'_>, body: &Value) -> Result<(), Refusal> {
        let scope = if call.kind.namespaced {
            Scope::Namespaced
        } else {
            Scope::Cluster
        };
        let mut errors = metadata_errors(body, scope);
        if matches!(call.kind.kind.as_str(), "Namespace" | "Service") && !call.kind.is_custom() {
            builtin::check_label(object::text(body, "name"), &mut errors);
        }
        if call.kind.group == RBAC_GROUP && is_path_segment(object::text(body, "name")) {
            errors.retain(|error| error.field != "metadata.name");
        }
        if let Some(schema) = call.version().and_then(|version| version.schema.as_ref()) {
            errors.extend(schema.validate(body));
        }
        if !call.kind.is_custom() {
            errors.extend(builtin::errors(&call.kind.kind, body, None));
        }
        if errors.is_empty() {
            return self.check_definition(call, body);
        }
        let name = object::text(body, "name");
        Err(Refusal::invalid(&call.kind.kind, &call.kind.group, name, &errors))
    }
}

/// Whether a text is a valid name of the kinds of [`RBAC_GROUP`], such as `kubeadm:get-nodes`.
fn is_path_segment(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '%'])
}

/// Whether it is a strategic merge patch.
fn is_strategic(call: &Call<'_>) -> bool {
    let media_type = &call.request.content_type;
    media_type.starts_with("application/strategic-merge-patch+json") && call.verb == Verb::Patch
}

/// The error for a body that does not decode as its built-in kind. The error of a patch quotes the whole object.
fn undecodable(call: &Call<'_>, body: &Value, why: &str) -> Refusal {
    if call.verb != Verb::Patch {
        return unreadable(call, why);
    }
    let (quoted, bytes) = match is_strategic(call) {
        true => {
            let patch: Value = serde_json::from_slice(&call.request.body).unwrap_or_default();
            (printed(&patch), why.contains("base64"))
        }
        false => (body.to_string(), false),
    };
    let prefix = if bytes { "error decoding from json: " } else { "" };
    Refusal::invalid(
        "",
        "",
        "",
        &[FieldError::invalid("patch", quoted, format!("{prefix}{why}"))],
    )
}

fn unreadable(call: &Call<'_>, why: &str) -> Refusal {
    let kind = &call.kind.kind;
    Refusal::bad_request(format!(
        "{kind} in version {:?} cannot be handled as a {kind}: {why}",
        call.target.version
    ))
}

/// The most bytes of a stored object.
const LARGEST: usize = 3 << 19;

/// Rejects an object that is too large to be stored.
pub(super) fn check_size(object: &Value) -> Result<(), Refusal> {
    if size(object) > LARGEST {
        return Err(Refusal::internal("etcdserver: request is too large"));
    }
    Ok(())
}

/// The bytes of a document, about.
fn size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 4,
        Value::String(text) => text.len().saturating_add(3),
        Value::Array(items) => items.iter().map(size).sum(),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| name.len().saturating_add(4).saturating_add(size(value)))
            .sum(),
    }
}

/// Warnings of new finalizers of custom kinds that have no path.
pub(super) fn finalizer_warnings(call: &Call<'_>, old: Option<&Value>, new: &Value) -> Vec<String> {
    if !call.kind.is_custom() || !object::has_finalizers(new) {
        return Vec::new();
    }
    let known = old.map(object::finalizers).unwrap_or_default();
    let added = object::finalizers(new).into_iter().filter(|name| !known.contains(name));
    let pathless =
        added.filter(|name| !name.contains('/') && !["foregroundDeletion", "orphan"].contains(&name.as_str()));
    pathless
        .map(|name| {
            format!(
                "metadata.finalizers: {name:?}: prefer a domain-qualified finalizer name including a path (/) to avoid \
                 accidental conflicts with other finalizer writers"
            )
        })
        .collect()
}

/// The warning of every request in a deprecated version, with the newest version that is not.
pub(super) fn deprecation(call: &Call<'_>) -> Option<String> {
    let name = call.kind.api_version(&call.target.version);
    let version = call.version().filter(|version| version.deprecated)?;
    if let Some(warning) = &version.warning {
        return Some(warning.clone());
    }
    let newer = call
        .kind
        .versions
        .iter()
        .filter(|version| !version.deprecated && priority(&version.name) > priority(&call.target.version));
    let newest = newer.max_by_key(|version| priority(&version.name));
    let cure = newest.map(|version| format!("; use {} {}", call.kind.api_version(&version.name), call.kind.kind));
    Some(format!(
        "{name} {} is deprecated{}",
        call.kind.kind,
        cure.unwrap_or_default()
    ))
}
