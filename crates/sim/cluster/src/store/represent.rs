//! Representations: whole objects, or only their metadata.

use serde_json::{Value, json};

use super::Store;
use super::object::as_map;
use super::refusal::Refusal;
use super::request::Call;

/// The representation that a client accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Whole,
    Metadata,
}

/// Reads `Accept` and returns the first supported choice.
fn form(accept: &str, list: bool) -> Result<Form, Refusal> {
    let mut refused = None;
    for choice in accept.split(',').map(str::trim).filter(|choice| !choice.is_empty()) {
        let mut parts = choice.split(';').map(str::trim);
        let media_type = parts.next().unwrap_or_default();
        let shape = parts.find_map(|part| part.strip_prefix("as="));
        match (media_type, shape) {
            ("application/json" | "*/*" | "application/*", None) => return Ok(Form::Whole),
            ("application/json", Some("PartialObjectMetadata")) if !list => return Ok(Form::Metadata),
            ("application/json", Some("PartialObjectMetadataList")) if list => return Ok(Form::Metadata),
            ("application/json", Some("PartialObjectMetadata")) => {
                let why = "you requested PartialObjectMetadata, but the requested object is a list \
                           (*unstructured.UnstructuredList)";
                refused = Some(Refusal::not_acceptable(why));
            }
            ("application/json", Some("PartialObjectMetadataList")) => {
                refused = Some(Refusal::internal("content is not a list"));
            }
            ("application/json", Some(other)) => {
                refused = Some(Refusal::unsupported(&format!("the representation {other:?}")));
            }
            _ => {}
        }
    }
    match refused {
        Some(refusal) => Err(refusal),
        None if accept.trim().is_empty() => Ok(Form::Whole),
        None => Err(Refusal::unsupported(&format!("the media type {accept:?}"))),
    }
}

/// The form of the single objects in a watch or an answer.
pub(super) fn item_form(call: &Call<'_>) -> Result<Form, Refusal> {
    form(&call.request.accept, false)
}

/// One object in a form.
pub(super) fn shaped(form: Form, object: Value) -> Value {
    match form {
        Form::Whole => object,
        Form::Metadata => json!({
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": object.get("metadata").cloned().unwrap_or_else(|| json!({})),
        }),
    }
}

impl Store {
    pub(super) fn represented(&self, call: &Call<'_>, object: Value) -> Result<Value, Refusal> {
        Ok(shaped(item_form(call)?, object))
    }

    pub(super) fn represented_list(
        &self,
        call: &Call<'_>,
        mut metadata: Value,
        items: Vec<Value>,
    ) -> Result<Value, Refusal> {
        let form = form(&call.request.accept, true)?;
        if form == Form::Whole && call.kind.is_custom() {
            // Of these kinds the server writes it for the last page, too.
            as_map(&mut metadata).entry("continue").or_insert_with(|| "".into());
        }
        let (api_version, kind) = match form {
            Form::Whole => (
                call.kind.api_version(&call.target.version),
                call.kind.list_kind.as_str(),
            ),
            Form::Metadata => ("meta.k8s.io/v1".to_owned(), "PartialObjectMetadataList"),
        };
        let items: Vec<Value> = items.into_iter().map(|item| shaped(form, item)).collect();
        let items = match form {
            // The real server writes an absent list here, not an empty one.
            Form::Metadata if items.is_empty() => Value::Null,
            Form::Metadata | Form::Whole => items.into(),
        };
        Ok(json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "items": items}))
    }
}
