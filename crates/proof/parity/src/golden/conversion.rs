//! `conversion`: one object, converted to the other version and back.
//!
//! The annotation is compared as data, errors only by their presence. Where the recording states that the round trip
//! gives the same object, the annotation is left out. Both answers contain the converted object, which the rules need
//! because the schema adds defaults.

use metal3_api::infrastructure::conversion::{ConversionError, Version, convert};
use metal3_api::infrastructure::names::CONVERSION_DATA_ANNOTATION;
use serde_json::{Map, Value, json};

use super::case::Case;
use super::group::{Group, Rule};
use crate::values::text;

pub(super) const GROUP: Group = Group {
    name: "conversion",
    answer,
    expectation,
    rules: &[
        OUT_OF_RANGE,
        NO_CLOUD_PROVIDER,
        NO_EMPTY_IMAGE,
        RESTORES_STORED,
        ANNOTATES_EVERY_KIND,
        NO_EMPTY_MEMBERS,
    ],
};

const SAME: &str = "same";
/// Member of both answers: the input, as it is stored before the conversion.
const CONVERTED: &str = "converted";
/// The kinds for which upstream writes the annotation.
const ANNOTATED_UPSTREAM: [&str; 4] = [
    "Metal3Cluster",
    "Metal3ClusterTemplate",
    "Metal3Machine",
    "Metal3MachineTemplate",
];

/// Upstream keeps the low 32 bits.
const OUT_OF_RANGE: Rule = Rule {
    row: "conversion-integer-range",
    touches: |input| {
        contains(document(input), &|value| {
            value.as_i64().is_some_and(|number| i32::try_from(number).is_err())
        })
    },
    predict: |_, recorded| *recorded = json!({ "error": true }),
};

/// Upstream drops the older member, and its default then reverses the meaning.
const NO_CLOUD_PROVIDER: Rule = Rule {
    row: "conversion-no-cloud-provider",
    touches: |input| cluster_spec(document(input)).is_some_and(|spec| !spec.contains_key("cloudProviderEnabled")),
    predict: |input, recorded| {
        let without = cluster_spec(document(input)).and_then(|spec| spec.get("noCloudProvider")?.as_bool());
        if let Some(without) = without {
            for_each_object(recorded, &mut |object| {
                let older = is_older(object);
                if let Some(spec) = cluster_spec_mut(object) {
                    spec.insert("cloudProviderEnabled".into(), (!without).into());
                    if older {
                        spec.insert("noCloudProvider".into(), without.into());
                    }
                }
            });
        }
    },
};

/// Upstream converts an absent image into one without location, which its own schema rejects.
const NO_EMPTY_IMAGE: Rule = Rule {
    row: "conversion-no-empty-image",
    touches: |input| is_older(document(input)),
    predict: |_, recorded| {
        for_each_map(recorded, &mut |map| {
            if map.get("image") == Some(&json!({ "checksum": "" })) {
                map.remove("image");
            }
        });
    },
};

/// Upstream restores three members; this project restores the whole object.
const RESTORES_STORED: Rule = Rule {
    row: "conversion-restores-stored",
    touches: |input| !is_older(document(input)),
    predict: |_, recorded| {
        let stored = recorded.get(CONVERTED).cloned();
        if let (Some(back), Some(stored)) = (recorded.get_mut("roundTrip"), stored) {
            *back = stored;
        }
    },
};

/// Upstream has nothing to restore the other five kinds from.
const ANNOTATES_EVERY_KIND: Rule = Rule {
    row: "conversion-annotates-every-kind",
    touches: |input| {
        let kind = text(document(input), "/kind");
        !kind.is_empty() && !ANNOTATED_UPSTREAM.contains(&kind)
    },
    predict: |input, recorded| {
        let older = is_older(document(input));
        let (stored, shown) = match older {
            true => ("object", "roundTrip"),
            false => (CONVERTED, "object"),
        };
        let stored = recorded.get(stored).cloned();
        let compared = !older || recorded.get(SAME) == Some(&Value::Bool(false));
        if let (Some(Value::Object(mut stored)), true, Some(shown)) = (stored, compared, recorded.get_mut(shown)) {
            stored.remove("metadata");
            stored.entry("status").or_insert_with(|| json!({}));
            annotate(shown, stored.into());
        }
    },
};

/// Upstream writes absent members as empty text, zero or an empty reference; its own schema rejects many of them.
const NO_EMPTY_MEMBERS: Rule = Rule {
    row: "conversion-no-empty-members",
    touches: |_| true,
    predict: |_, recorded| {
        for name in ["object", "roundTrip"] {
            if let Some(Value::Object(object)) = recorded.get_mut(name) {
                let annotations = object.get_mut("metadata").map(Value::take);
                drop_empty(object);
                object.entry("spec").or_insert_with(|| json!({}));
                object.extend(annotations.map(|metadata| ("metadata".to_owned(), metadata)));
            }
        }
    },
};

fn drop_empty(map: &mut Map<String, Value>) {
    for value in map.values_mut() {
        for_each_own_map(value, &mut drop_empty);
    }
    map.retain(|name, value| {
        let empty_text = value.as_str().is_some_and(str::is_empty) || value.is_null();
        let empty_map = value.as_object().is_some_and(Map::is_empty);
        !match name.as_str() {
            "apiGroup" | "bondXmitHashPolicy" | "checksumType" | "errorMessage" | "format" | "fromHostInterface"
            | "kind" | "string" => empty_text,
            "fromPoolRef" => *value == json!({ "name": "" }),
            "image" => *value == json!({ "url": "" }),
            "controlPlaneEndpoint" => *value == json!({ "host": "", "port": 0 }),
            "hostSelector" | "links" | "networks" | "services" | "status" => empty_map,
            _ => false,
        }
    });
}

fn document(input: &Value) -> &Value {
    input.get("object").unwrap_or(&Value::Null)
}

fn is_older(object: &Value) -> bool {
    Version::from_api_version(text(object, "/apiVersion")) == Some(Version::V1Beta1)
}

fn cluster_spec(object: &Value) -> Option<&Map<String, Value>> {
    match object.get("kind")?.as_str()? {
        "Metal3Cluster" => object.get("spec"),
        "Metal3ClusterTemplate" => object.pointer("/spec/template/spec"),
        _ => None,
    }?
    .as_object()
}

fn cluster_spec_mut(object: &mut Value) -> Option<&mut Map<String, Value>> {
    match object.get("kind")?.as_str()? {
        "Metal3Cluster" => object.get_mut("spec"),
        "Metal3ClusterTemplate" => object.pointer_mut("/spec/template/spec"),
        _ => None,
    }?
    .as_object_mut()
}

fn contains(value: &Value, wanted: &dyn Fn(&Value) -> bool) -> bool {
    wanted(value)
        || match value {
            Value::Object(map) => map.values().any(|value| contains(value, wanted)),
            Value::Array(items) => items.iter().any(|value| contains(value, wanted)),
            _ => false,
        }
}

fn for_each_own_map(value: &mut Value, act: &mut dyn FnMut(&mut Map<String, Value>)) {
    match value {
        Value::Object(map) => act(map),
        Value::Array(items) => items.iter_mut().for_each(|item| for_each_own_map(item, act)),
        _ => {}
    }
}

fn for_each_map(value: &mut Value, act: &mut dyn FnMut(&mut Map<String, Value>)) {
    for_each_own_map(value, &mut |map| {
        act(map);
        map.values_mut().for_each(|value| for_each_map(value, act));
    });
}

/// Calls `act` with both objects of an answer, and with the objects in their annotations.
fn for_each_object(answer: &mut Value, act: &mut dyn FnMut(&mut Value)) {
    for name in ["object", "roundTrip"] {
        if let Some(object) = answer.get_mut(name).filter(|object| object.is_object()) {
            act(object);
            let content = object.pointer_mut("/metadata/annotations");
            if let Some(content) = content.and_then(|annotations| annotations.get_mut(CONVERSION_DATA_ANNOTATION)) {
                act(content);
            }
        }
    }
}

fn answer(case: &Case) -> Value {
    let input = stored_input(case);
    let (there, back) = match is_older(input) {
        true => (Version::V1Beta2, Version::V1Beta1),
        false => (Version::V1Beta1, Version::V1Beta2),
    };
    let both = || {
        let object = convert(input, there)?;
        let round_trip = convert(&object, back)?;
        Ok::<_, ConversionError>((object, round_trip))
    };
    match both() {
        Ok((object, round_trip)) => compared(case, object, round_trip),
        Err(_) => json!({ "error": true }),
    }
}

fn expectation(case: &Case) -> Value {
    if case.expect.get("error").is_some() {
        return json!({ "error": true });
    }
    let expected = |name: &str| case.expect.get(name).cloned().unwrap_or_default();
    let back = match expected("roundTrip") == SAME {
        true => stored_input(case).clone(),
        false => expected("roundTrip"),
    };
    compared(case, expected("object"), back)
}

/// The compared part of an answer.
fn compared(case: &Case, object: Value, back: Value) -> Value {
    let same = case.expect.get("roundTrip").is_some_and(|back| back == SAME);
    let back = match same {
        true => without_annotation(back),
        false => read_annotation(back),
    };
    json!({ CONVERTED: stored_input(case), SAME: same, "object": read_annotation(object), "roundTrip": back })
}

/// The input after the schema of its version was applied.
fn stored_input(case: &Case) -> &Value {
    case.expect
        .get("inputAsStored")
        .unwrap_or_else(|| document(&case.input))
}

fn annotate(object: &mut Value, content: Value) {
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
        if let Value::Object(annotations) = annotations {
            annotations.insert(CONVERSION_DATA_ANNOTATION.into(), content);
        }
    }
}

fn read_annotation(mut object: Value) -> Value {
    let annotations = object.pointer_mut("/metadata/annotations");
    if let Some(content) = annotations.and_then(|annotations| annotations.get_mut(CONVERSION_DATA_ANNOTATION)) {
        let read = content.as_str().and_then(|text| serde_json::from_str(text).ok());
        *content = read.unwrap_or_default();
    }
    object
}

fn without_annotation(mut object: Value) -> Value {
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
            annotations.remove(CONVERSION_DATA_ANNOTATION);
        }
        if metadata.get("annotations") == Some(&json!({})) {
            metadata.remove("annotations");
        }
    }
    object
}
