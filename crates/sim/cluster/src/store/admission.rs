//! Admission and conversion: closures in place of webhooks.
//!
//! Mutating hooks run before schema validation and validating hooks after it, in the order they were added. They are
//! pure and receive objects in the version of the request.

use std::sync::Arc;

use metal3_api::rules;
use serde_json::Value;

use super::kind::Kind;
use super::refusal::Refusal;
use super::request::Call;

/// The operation of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// A new object.
    Create,
    /// A stored object is replaced.
    Update,
    /// A stored object is deleted.
    Delete,
}

/// An admission request.
#[derive(Debug)]
pub struct Admission<'a> {
    /// The operation.
    pub operation: Operation,
    /// API group.
    pub group: &'a str,
    /// API version of the documents.
    pub version: &'a str,
    /// Kind.
    pub kind: &'a str,
    /// Subresource, mostly empty.
    pub subresource: &'a str,
    /// User name.
    pub user: &'a str,
    /// The stored object.
    pub old: Option<&'a Value>,
    /// The object to store.
    pub new: Option<&'a Value>,
}

/// A denied write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// HTTP status code.
    pub code: u16,
    /// Reason in the `Status`.
    pub reason: &'static str,
    /// Human-readable text.
    pub message: String,
    /// `details` of the `Status`, if there are any.
    pub details: Option<Value>,
}

impl Denial {
    /// The denial of a webhook that sets no code: 403.
    #[must_use]
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self {
            code: 403,
            reason: "Forbidden",
            message: message.into(),
            details: None,
        }
    }
}

/// Mutates an object before validation.
pub type Mutate = dyn Fn(&Admission<'_>, &mut Value) -> Result<(), Denial> + Send + Sync;
/// Admits a write with warnings, or denies it.
pub type Validate = dyn Fn(&Admission<'_>) -> Result<Vec<String>, Denial> + Send + Sync;
/// Converts an object to an API version of the same kind.
pub type Convert = dyn Fn(&Value, &str) -> Result<Value, String> + Send + Sync;

struct Named<F: ?Sized> {
    name: String,
    group: String,
    kind: String,
    function: Arc<F>,
}

impl<F: ?Sized> Clone for Named<F> {
    fn clone(&self) -> Self {
        named(&self.name, &self.group, &self.kind, Arc::clone(&self.function))
    }
}

/// All hooks of a server.
#[derive(Clone, Default)]
pub(crate) struct Hooks {
    mutating: Vec<Named<Mutate>>,
    validating: Vec<Named<Validate>>,
    converting: Vec<Named<Convert>>,
}

fn named<F: ?Sized>(name: &str, group: &str, kind: &str, function: Arc<F>) -> Named<F> {
    Named {
        name: name.to_owned(),
        group: group.to_owned(),
        kind: kind.to_owned(),
        function,
    }
}

impl Hooks {
    pub(crate) fn mutate(&mut self, name: &str, group: &str, kind: &str, function: Arc<Mutate>) {
        self.mutating.push(named(name, group, kind, function));
    }

    pub(crate) fn validate(&mut self, name: &str, group: &str, kind: &str, function: Arc<Validate>) {
        self.validating.push(named(name, group, kind, function));
    }

    pub(crate) fn convert(&mut self, group: &str, kind: &str, function: Arc<Convert>) {
        self.converting.push(named("", group, kind, function));
    }

    /// Adds the rules of a kind as its defaulting and validating webhooks.
    pub(crate) fn review(&mut self, reviewer: rules::Reviewer) {
        let prefix = |what: &str| format!("{what}.{}.{}", reviewer.plural, reviewer.group);
        let fill = move |_: &Admission<'_>, object: &mut Value| {
            *object = (reviewer.set_defaults)(object).map_err(|error| Denial::forbidden(error.to_string()))?;
            Ok(())
        };
        let review = move |admission: &Admission<'_>| {
            let operation = match admission.operation {
                Operation::Create => rules::Operation::Create,
                Operation::Update => rules::Operation::Update,
                Operation::Delete => rules::Operation::Delete,
            };
            let outcome = (reviewer.review)(operation, admission.old, admission.new)
                .map_err(|error| Denial::forbidden(error.to_string()))?;
            let refusals: Vec<String> = outcome.refusals().map(ToString::to_string).collect();
            if refusals.is_empty() {
                Ok(outcome.warnings())
            } else {
                Err(Denial::forbidden(refusals.join("; ")))
            }
        };
        self.mutate(&prefix("default"), reviewer.group, reviewer.kind, Arc::new(fill));
        self.validate(&prefix("validation"), reviewer.group, reviewer.kind, Arc::new(review));
    }

    pub(super) fn run_mutating(&self, call: &Call<'_>, old: Option<&Value>, new: &mut Value) -> Result<(), Refusal> {
        for hook in self
            .mutating
            .iter()
            .filter(|hook| hook.is_for(&call.kind) && !call.on_status())
        {
            let before = new.clone();
            let admission = admission(call, operation(old), old, Some(&before));
            (hook.function)(&admission, new).map_err(|denial| hook.denied(&denial))?;
        }
        Ok(())
    }

    pub(super) fn run_validating(
        &self,
        call: &Call<'_>,
        old: Option<&Value>,
        new: Option<&Value>,
    ) -> Result<Vec<String>, Refusal> {
        let mut warnings = Vec::new();
        let operation = if new.is_none() {
            Operation::Delete
        } else {
            operation(old)
        };
        for hook in self
            .validating
            .iter()
            .filter(|hook| hook.is_for(&call.kind) && !call.on_status())
        {
            let found = (hook.function)(&admission(call, operation, old, new));
            warnings.extend(found.map_err(|denial| hook.denied(&denial))?);
        }
        Ok(warnings)
    }

    /// Converts an object to another version of its kind.
    pub(super) fn converted(&self, kind: &Kind, object: &Value, version: &str) -> Result<Value, Refusal> {
        let wanted = kind.api_version(version);
        let found = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
        // An empty object is not sent to the webhook.
        let empty = object
            .as_object()
            .is_some_and(|map| map.keys().all(|name| name == "apiVersion" || name == "kind"));
        if found == wanted {
            return Ok(object.clone());
        }
        let hook = self.converting.iter().find(|hook| hook.is_for(kind));
        let mut converted = match hook {
            Some(hook) if !empty => convert_checked(&hook.function, object, version).map_err(|why| {
                Refusal::internal(format!("conversion webhook for {found}, Kind={} {why}", kind.kind))
            })?,
            None if kind.converts && !empty => {
                return Err(Refusal::unsupported(&format!(
                    "the conversion of {} without a function in place of its webhook",
                    kind.resource()
                )));
            }
            Some(_) | None => object.clone(),
        };
        super::object::as_map(&mut converted).insert("apiVersion".into(), wanted.into());
        if let Some(schema) = kind.version(version).and_then(|version| version.schema.as_ref()) {
            schema.prune(&mut converted);
        }
        Ok(converted)
    }
}

/// Converts an object and checks the result as the API server does.
fn convert_checked(convert: &Arc<Convert>, object: &Value, version: &str) -> Result<Value, String> {
    let mut converted = convert(object, version).map_err(|why| format!("failed: {why}"))?;
    let kind = |object: &Value| {
        object
            .get("kind")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let (expected, received) = (kind(object), kind(&converted));
    if expected != received {
        return Err(format!(
            "returned invalid object at index 0: invalid kind (expected {expected}, received {received})"
        ));
    }
    for (member, name) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let [before, after] = [object, &converted].map(|object| super::object::text(object, member));
        if before != after {
            return Err(format!(
                "returned invalid object: must have the same {name}: {before} != {after}"
            ));
        }
    }
    // A conversion may change labels and annotations, and no other metadata.
    let mut metadata = object.get("metadata").cloned().unwrap_or_default();
    for name in ["labels", "annotations"] {
        let map = super::object::as_map(&mut metadata);
        match super::object::member(&converted, name) {
            Some(value) => drop(map.insert(name.to_owned(), value.clone())),
            None => drop(map.remove(name)),
        }
    }
    super::object::as_map(&mut converted).insert("metadata".to_owned(), metadata);
    Ok(converted)
}

impl<F: ?Sized> Named<F> {
    fn is_for(&self, kind: &Kind) -> bool {
        self.group == kind.group && self.kind == kind.kind
    }

    fn denied(&self, denial: &Denial) -> Refusal {
        Refusal {
            details: denial.details.clone(),
            ..Refusal::denied(&self.name, denial.code, denial.reason, &denial.message)
        }
    }
}

fn operation(old: Option<&Value>) -> Operation {
    if old.is_some() {
        Operation::Update
    } else {
        Operation::Create
    }
}

fn admission<'a>(
    call: &'a Call<'_>,
    operation: Operation,
    old: Option<&'a Value>,
    new: Option<&'a Value>,
) -> Admission<'a> {
    Admission {
        operation,
        group: &call.kind.group,
        version: &call.target.version,
        kind: &call.kind.kind,
        subresource: &call.target.subresource,
        user: &call.request.user,
        old,
        new,
    }
}
