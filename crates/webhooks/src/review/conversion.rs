//! Conversion reviews: lists of objects of any kinds, converted to one version.
//!
//! The API server rejects a response without all objects, so one failing object fails the review. A list may have
//! thousands of objects; one at a time is parsed, converted and written.

use std::fmt;

use axum::body::Bytes;
use metal3_api::catalog;
use metal3_api::infrastructure::conversion::{self, Version};
use metal3_api::rules::beginning;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Value, json};

use super::request::{InvalidReview, check_type, is_name, short_name};
use super::text::Text;

const API_VERSION: &str = "apiextensions.k8s.io/v1";
const KIND: &str = "ConversionReview";

/// Responds to a `ConversionReview`, with an answer of at most this length.
pub(crate) fn convert(body: &[u8], longest: usize) -> Result<Vec<Bytes>, InvalidReview> {
    let mut head = Head::default();
    read(body, Members::Head(&mut head)).map_err(|error| InvalidReview::not_json(&error, API_VERSION, KIND))?;
    let found = [head.api_version.as_deref(), head.kind.as_deref()];
    check_type(found, API_VERSION, KIND)?;
    let uid = head.uid.filter(|uid| !uid.is_empty() && is_name(uid));
    let uid = uid.ok_or_else(InvalidReview::without_uid)?;
    let mut objects = Objects {
        desired: &head.desired.unwrap_or_default(),
        longest,
        parts: Vec::new(),
        length: 0,
        are_given: false,
        problem: None,
    };
    // The error is that of the first object that is not converted.
    drop(read(body, Members::Objects(&mut objects)));
    let missing = || "request.objects: is missing; give the objects to convert".to_owned();
    let problem = objects.problem.or_else(|| (!objects.are_given).then(missing));
    let uid = Value::from(uid);
    Ok(match problem {
        None => enclosed(&uid, objects.parts),
        Some(problem) => {
            let response = json!({
                "uid": uid, "result": { "status": "Failure", "message": problem }, "convertedObjects": [],
            });
            vec![
                json!({ "apiVersion": API_VERSION, "kind": KIND, "response": response })
                    .to_string()
                    .into(),
            ]
        }
    })
}

/// A successful answer.
fn enclosed(uid: &Value, objects: Vec<Bytes>) -> Vec<Bytes> {
    let start = format!("{{\"apiVersion\":\"{API_VERSION}\",\"kind\":\"{KIND}\",\"response\":{{\"uid\":{uid},");
    let start = format!("{start}\"result\":{{\"status\":\"Success\"}},\"convertedObjects\":[");
    let parts = [vec![start.into()], objects, vec![Bytes::from_static(b"]}}")]];
    parts.into_iter().flatten().collect()
}

fn read(body: &[u8], members: Members<'_, '_>) -> serde_json::Result<()> {
    let mut document = serde_json::Deserializer::from_slice(body);
    members.deserialize(&mut document)?;
    document.end()
}

/// The usual error quotes the text, however long it is.
fn text_found<E: Error>() -> E {
    E::custom("found a text in place of an object or a list")
}

/// The members in front of and around the objects.
#[derive(Debug, Default)]
struct Head {
    api_version: Option<String>,
    kind: Option<String>,
    uid: Option<String>,
    desired: Option<String>,
}

/// What is read in a pass over the document. The objects are the second pass: their version may come after them.
enum Members<'a, 'b> {
    Head(&'a mut Head),
    Objects(&'a mut Objects<'b>),
}

impl<'de> DeserializeSeed<'de> for Members<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, document: D) -> Result<(), D::Error> {
        document.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Members<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        Err(text_found())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<(), A::Error> {
        while let Some(name) = members.next_key::<Text>()? {
            match (name.0.as_deref().unwrap_or_default(), &mut self) {
                ("apiVersion", Self::Head(head)) => head.api_version = members.next_value::<Text>()?.0,
                ("kind", Self::Head(head)) => head.kind = members.next_value::<Text>()?.0,
                ("request", Self::Head(head)) => members.next_value_seed(Request(Members::Head(head)))?,
                ("request", Self::Objects(objects)) => {
                    members.next_value_seed(Request(Members::Objects(objects)))?;
                }
                _ => drop(members.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// The members of `request`.
struct Request<'a, 'b>(Members<'a, 'b>);

impl<'de> DeserializeSeed<'de> for Request<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, document: D) -> Result<(), D::Error> {
        document.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Request<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        Err(text_found())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<(), A::Error> {
        while let Some(name) = members.next_key::<Text>()? {
            match (name.0.as_deref().unwrap_or_default(), &mut self.0) {
                ("uid", Members::Head(head)) => head.uid = members.next_value::<Text>()?.0,
                ("desiredAPIVersion", Members::Head(head)) => head.desired = members.next_value::<Text>()?.0,
                ("objects", Members::Objects(objects)) => members.next_value_seed(&mut **objects)?,
                _ => drop(members.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// The objects, converted and written.
struct Objects<'a> {
    desired: &'a str,
    longest: usize,
    parts: Vec<Bytes>,
    length: usize,
    are_given: bool,
    problem: Option<String>,
}

impl Objects<'_> {
    /// Converts and writes an object.
    fn append(&mut self, position: usize, object: &Value) -> Result<(), String> {
        let converted = one(object, self.desired).map_err(|problem| located(position, object, &problem))?;
        let mut text = Vec::new();
        if position > 0 {
            text.push(b',');
        }
        serde_json::to_writer(&mut text, &converted).map_err(|error| located(position, object, &error.to_string()))?;
        text.shrink_to_fit();
        self.length = self.length.saturating_add(text.len());
        if self.length > self.longest {
            let problem = "the converted objects are too long for one answer; list fewer objects at once";
            return Err(located(position, object, problem));
        }
        self.parts.push(text.into());
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for &mut Objects<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, document: D) -> Result<(), D::Error> {
        document.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &mut Objects<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        Err(text_found())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        self.are_given = true;
        for position in 0_usize.. {
            let Some(object) = items.next_element::<Value>()? else {
                break;
            };
            if let Err(problem) = self.append(position, &object) {
                self.parts = Vec::new();
                self.problem = Some(problem);
                return Err(A::Error::custom("an object is not converted"));
            }
        }
        Ok(())
    }
}

fn one(object: &Value, desired: &str) -> Result<Value, String> {
    let found = text(object, "/apiVersion");
    if found == desired && is_served(found, text(object, "/kind")) {
        return Ok(object.clone());
    }
    let version = Version::from_api_version(desired).ok_or_else(|| {
        let [desired, found] = [desired, found].map(short_name);
        format!("desiredAPIVersion: {desired:?} is no version that {found:?} is converted to; request a served version")
    })?;
    conversion::convert(object, version).map_err(|error| beginning(&error, LONGEST_PROBLEM))
}

fn is_served(api_version: &str, kind: &str) -> bool {
    catalog::definitions().iter().any(|definition| {
        let mut versions = definition.versions.iter();
        definition.kind == kind
            && versions.any(|version| api_version == format!("{}/{}", definition.group, version.name))
    })
}

/// Longest message about an object, in bytes. The objects are not checked yet.
const LONGEST_PROBLEM: usize = 4096;

/// Adds the position and name of the object, because a list may have thousands.
fn located(position: usize, object: &Value, problem: &str) -> String {
    let member = |path: &str| short_name(text(object, path));
    let (kind, namespace, name) = (member("/kind"), member("/metadata/namespace"), member("/metadata/name"));
    let problem = beginning(&problem, LONGEST_PROBLEM);
    format!("request.objects[{position}] ({kind} {namespace}/{name}): {problem}")
}

fn text<'a>(document: &'a Value, path: &str) -> &'a str {
    document.pointer(path).and_then(Value::as_str).unwrap_or_default()
}
