//! Server-side apply requests: reads the body and passes the merged object to create or update.

use chrono::SubsecRound as _;
use serde_json::Value;

use super::builtin;
use super::create::{Draft, deprecation};
use super::managed_fields::{Applied, FieldTracker};
use super::metadata::{normalize_type, with_separate_metadata};
use super::object;
use super::openapi::Decoder;
use super::options::WriteOptions;
use super::refusal::Refusal;
use super::request::Call;
use super::update::{Revision, check_name};
use super::{Answer, Store};

/// The annotation of client-side `kubectl apply`.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

impl Store {
    pub(super) fn tracker<'a>(&'a self, call: &'a Call<'_>) -> FieldTracker<'a> {
        FieldTracker {
            kind: &call.kind,
            hooks: &self.hooks,
            api_version: call.kind.api_version(&call.target.version),
            subresource: &call.target.subresource,
            // `managedFields` times have a resolution of one second.
            now: call.now.trunc_subsecs(0),
        }
    }

    pub(super) fn apply(&mut self, call: &Call<'_>, options: &WriteOptions) -> Result<Answer, Refusal> {
        let mut config = read(call)?;
        let live = self.stored(&call.kind, &call.key()).cloned();
        if live.is_none() && call.on_status() {
            return Err(Refusal::not_found(&call.kind, &call.target.name));
        }
        check_type(call, &config)?;
        let live = live.map(|_| self.current(call)).transpose()?;
        let client_side = live
            .as_ref()
            .and_then(|live| object::member(live, "annotations")?.get(LAST_APPLIED));
        let client_side = client_side
            .and_then(Value::as_str)
            .filter(|_| options.manager == "kubectl");
        let last = client_side.map(|text| serde_json::from_str::<Value>(text).unwrap_or_default());
        // Null means no managers. If it stayed, every such apply would count as a change.
        if object::take(&mut config, "managedFields").is_some_and(|managers| !managers.is_null()) {
            return Err(Refusal::bad_request("metadata.managedFields must be nil"));
        }
        if call.kind.kind == "Secret" && !call.kind.is_custom() && config.get("stringData").is_some() {
            return Err(Refusal::unsupported("server-side apply of a Secret with stringData"));
        }
        let managers = self.stored_managers(&call.kind, &call.key()).unpacked();
        let by = (options.manager.as_str(), call.request.flag("force"));
        let Applied { mut object, managers } = match &last {
            None => self.tracker(call).apply(live.as_ref(), &config, &managers, by)?,
            Some(last) => self
                .tracker(call)
                .apply_after(last, live.as_ref(), &config, &managers, by)?,
        };
        if last.is_some() {
            // For applies on the client's side after this one.
            set_last_applied(&mut object, &config);
        }
        match live {
            Some(live) => {
                check_name(call, &object)?;
                let (new, warnings) = normalized(call, object, &config)?;
                let revision = Revision {
                    new,
                    managers,
                    warnings,
                };
                self.update(call, options, &live, revision)
            }
            None => self.create_applied(call, options, &config, Applied { object, managers }),
        }
    }

    fn create_applied(
        &mut self,
        call: &Call<'_>,
        options: &WriteOptions,
        config: &Value,
        Applied { object, managers }: Applied,
    ) -> Result<Answer, Refusal> {
        self.authorize_creation(call.request)?;
        let name = &call.target.name;
        let uid = object::text(&object, "uid");
        if !uid.is_empty() {
            let why =
                format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found");
            return Err(Refusal::conflict(&call.kind, name, &why));
        }
        if object::text(&object, "name").is_empty() {
            let why = format!("the name of the object ({name} based on URL) was undeterminable: name must be provided");
            return Err(Refusal::bad_request(why));
        }
        check_name(call, &object)?;
        self.check_kind_stays(&call.kind, name)?;
        let (body, warnings) = normalized(call, object, config)?;
        let draft = Draft {
            body,
            managers,
            warnings,
            given_version: false,
        };
        self.create_object(call, options, draft)
    }
}

fn set_last_applied(object: &mut Value, config: &Value) {
    let mut applied = config.clone();
    if let Some(annotations) = applied.pointer_mut("/metadata/annotations") {
        object::as_map(annotations).remove(LAST_APPLIED);
    }
    if let Some(Value::Object(annotations)) = object.pointer_mut("/metadata/annotations") {
        annotations.insert(LAST_APPLIED.to_owned(), format!("{applied}\n").into());
    }
}

/// Returns the defaulted object and the warnings of the write. `config` is the applied configuration.
fn normalized(call: &Call<'_>, object: Value, config: &Value) -> Result<(Value, Vec<String>), Refusal> {
    let mut object = normalize_type(call, object)?;
    if !call.kind.is_custom() {
        let version = call.version();
        if let Some(shape) = version.and_then(|version| version.shape.as_deref()) {
            with_separate_metadata(&mut object, |object| shape.default(object));
        }
        let typed = version.and_then(|version| version.typed.as_deref());
        builtin::decode(typed, Decoder::Converted, &call.kind.kind, &mut object).map_err(|why| {
            let qualified = call.kind.qualified(&call.target.version);
            let (namespace, name) = (object::text(config, "namespace"), object::text(config, "name"));
            let bytes = if why.contains("base64") {
                "error decoding from json: "
            } else {
                ""
            };
            Refusal::internal(format!(
                "failed to convert new object ({namespace}/{name}; {qualified}) to proper version: unable to convert \
                 unstructured object to {qualified}: {bytes}{why}"
            ))
        })?;
    }
    if let Some(schema) = call.version().and_then(|version| version.schema.as_ref()) {
        with_separate_metadata(&mut object, |object| schema.default_applied(object));
    }
    Ok((object, deprecation(call).into_iter().collect()))
}

/// Reads the body, which is YAML or JSON.
fn read(call: &Call<'_>) -> Result<Value, Refusal> {
    let undecodable = |why: &str| Refusal::bad_request(format!("error decoding YAML: {why}"));
    let body = &call.request.body;
    let config: Value = match serde_json::from_slice(body) {
        Ok(config) => config,
        Err(_) => serde_saphyr::from_slice(body).map_err(|error| undecodable(&error.to_string()))?,
    };
    if config.is_object() {
        return Ok(config);
    }
    let what = object::type_name(&config);
    Err(undecodable(&format!(
        "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {what} into Go value of type \
         map[string]interface {{}}"
    )))
}

fn check_type(call: &Call<'_>, config: &Value) -> Result<(), Refusal> {
    let text = |name: &str| config.get(name).and_then(Value::as_str).unwrap_or_default();
    let (version, kind) = (text("apiVersion"), text("kind"));
    if version == call.kind.api_version(&call.target.version) && kind == call.kind.kind {
        return Ok(());
    }
    let version = if version.is_empty() { "/" } else { version };
    Err(Refusal::bad_request(format!(
        "invalid object type: {version}, Kind={kind}"
    )))
}
