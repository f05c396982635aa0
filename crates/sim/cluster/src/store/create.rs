//! Creating objects.

use metal3_schema::{FieldError, Scope, metadata_errors};
use serde_json::Value;

use super::builtin;
use super::discovery::priority;
use super::managed_fields::{Managers, StoredManagers};
use super::metadata::{generated_name, read_body, timestamp, uid, with_separate_metadata};
use super::object;
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
        if call.has_status() {
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
            builtin::decode(shape, &call.kind.kind, body).map_err(|why| undecodable(call, body, &why))?;
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
        if call.kind.kind == "Namespace" && !call.kind.is_custom() {
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

/// The error for a body that does not decode as its built-in kind. The error of a patch quotes the whole object.
fn undecodable(call: &Call<'_>, body: &Value, why: &str) -> Refusal {
    if call.verb != Verb::Patch {
        return unreadable(call, why);
    }
    Refusal::invalid("", "", "", &[FieldError::invalid("patch", body.to_string(), why)])
}

fn unreadable(call: &Call<'_>, why: &str) -> Refusal {
    let kind = &call.kind.kind;
    Refusal::bad_request(format!(
        "{kind} in version {:?} cannot be handled as a {kind}: {why}",
        call.target.version
    ))
}

/// The warning of every request in a deprecated version, with the newest version that is not.
pub(super) fn deprecation(call: &Call<'_>) -> Option<String> {
    let name = call.kind.api_version(&call.target.version);
    let deprecated = call.version().is_some_and(|version| version.deprecated);
    let newer = call
        .kind
        .versions
        .iter()
        .filter(|version| !version.deprecated && priority(&version.name) > priority(&call.target.version));
    let newest = newer.max_by_key(|version| priority(&version.name));
    let cure = newest.map(|version| format!("; use {} {}", call.kind.api_version(&version.name), call.kind.kind));
    deprecated.then(|| format!("{name} {} is deprecated{}", call.kind.kind, cure.unwrap_or_default()))
}
