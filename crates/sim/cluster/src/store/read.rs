//! Reading one object or many.

use std::sync::Arc;

use serde_json::{Value, json};

use super::object;
use super::options::{At, limit, list_at};
use super::refusal::Refusal;
use super::request::{Call, Verb};
use super::selector::Selector;
use super::{Answer, ObjectKey, Objects, Store, Stored, resource_key};

impl Store {
    pub(super) fn get(&self, call: &Call<'_>) -> Result<Answer, Refusal> {
        self.check_reached(call.request.option("resourceVersion"))?;
        let stored = if call.lag == 0 {
            self.stored(&call.kind, &call.key()).cloned()
        } else {
            self.objects_at(&call.kind, self.lagging(call)).remove(&call.key())
        };
        let stored = stored.ok_or_else(|| Refusal::not_found(&call.kind, &call.target.name))?;
        let body = self.shown(&call.kind, &stored, &call.target.version)?;
        Ok(Answer::ok(self.represented(call, body)?))
    }

    /// Answers a version from the future with a timeout, as the real server does.
    fn check_reached(&self, version: &str) -> Result<(), Refusal> {
        match version.parse::<u64>() {
            Ok(wanted) if wanted > self.version => Err(Refusal::too_new(wanted, self.version)),
            _ => Ok(()),
        }
    }

    fn lagging(&self, call: &Call<'_>) -> u64 {
        self.version.saturating_sub(call.lag).max(self.oldest())
    }

    pub(super) fn list(&self, call: &Call<'_>) -> Result<Answer, Refusal> {
        let limit = limit(call.request)?.filter(|_| call.verb == Verb::List);
        let token = call.request.option("continue");
        let (version, start) = if token.is_empty() {
            self.check_reached(call.request.option("resourceVersion"))?;
            match list_at(call.request)? {
                At::Exact(version) => (version, String::new()),
                At::Newest | At::Any | At::NotOlderThan(_) => (self.lagging(call), String::new()),
            }
        } else {
            if !matches!(call.request.option("resourceVersion"), "" | "0") {
                let message = "specifying resource version is not allowed when using continue";
                return Err(Refusal::bad_request(message));
            }
            read_token(token)?
        };
        self.check_kept(version, !token.is_empty())?;
        let selected = self.selected(call, version)?;
        let rest = selected.into_iter().filter(|(key, _)| position(key) > start);
        self.page(call, rest.collect(), version, limit)
    }

    fn check_kept(&self, version: u64, paging: bool) -> Result<(), Refusal> {
        if version >= self.oldest() {
            return Ok(());
        }
        Err(Refusal::expired(if paging {
            "The provided continue parameter is too old to display a consistent list result. You can start a new list \
             without the continue parameter."
        } else {
            "The resourceVersion for the provided list is too old."
        }))
    }

    /// The stored objects that match the namespace and the selectors of a request.
    pub(super) fn selected(&self, call: &Call<'_>, version: u64) -> Result<Objects, Refusal> {
        let selector = Selector::of(call)?;
        let (namespace, name) = (&call.target.namespace, &call.target.name);
        let chosen = |key: &ObjectKey, object: &Stored| {
            (namespace.is_empty() || key.0 == *namespace)
                && (name.is_empty() || key.1 == *name)
                && selector.matches(object)
        };
        if version >= self.version {
            // For the current version, only selected objects are copied.
            let objects = self.objects.get(&resource_key(&call.kind)).into_iter().flatten();
            let objects = objects.filter(|(key, object)| chosen(key, object));
            return Ok(objects.map(|(key, object)| (key.clone(), Arc::clone(object))).collect());
        }
        let mut objects = self.objects_at(&call.kind, version);
        objects.retain(|key, object| chosen(key, object));
        Ok(objects)
    }

    fn page(&self, call: &Call<'_>, rest: Objects, version: u64, limit: Option<usize>) -> Result<Answer, Refusal> {
        let total = rest.len();
        let taken = limit.unwrap_or(total).min(total);
        let mut items = Vec::with_capacity(taken);
        let mut last = String::new();
        for (key, stored) in rest.into_iter().take(taken) {
            last = position(&key);
            let shown = self.shown(&call.kind, &stored, &call.target.version);
            items.push(shown.map_err(|refusal| match limit {
                None => refusal.uncached(&call.kind, &call.target.version),
                Some(_) => refusal,
            })?);
        }
        let mut metadata = json!({"resourceVersion": version.to_string()});
        if taken < total {
            let map = object::as_map(&mut metadata);
            map.insert("continue".into(), token(version, &last).into());
            let selects =
                !call.request.option("labelSelector").is_empty() || !call.request.option("fieldSelector").is_empty();
            // With a selector the server does not know the remaining count.
            if !selects {
                map.insert("remainingItemCount".into(), total.saturating_sub(taken).into());
            }
        }
        Ok(Answer::ok(self.represented_list(call, metadata, items)?))
    }
}

/// The sort key of an object in lists.
fn position(key: &(String, String)) -> String {
    format!("{}/{}", key.0, key.1)
}

fn token(version: u64, last: &str) -> String {
    let text = json!({"v": "meta.k8s.io/v1", "rv": version, "start": last}).to_string();
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

fn read_token(token: &str) -> Result<(u64, String), Refusal> {
    let invalid = || Refusal::bad_request("invalid continue token: continue key is not valid");
    let digit = |character: char| character.to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let digits: Option<Vec<u8>> = token.chars().map(digit).collect();
    let bytes: Option<Vec<u8>> = digits
        .ok_or_else(invalid)?
        .chunks(2)
        .map(|pair| match pair {
            [high, low] => Some(high.wrapping_mul(16).wrapping_add(*low)),
            _ => None,
        })
        .collect();
    let value: Value = serde_json::from_slice(&bytes.ok_or_else(invalid)?).map_err(|_| invalid())?;
    let version = value.get("rv").and_then(Value::as_u64).ok_or_else(invalid)?;
    let start = value.get("start").and_then(Value::as_str).ok_or_else(invalid)?;
    Ok((version, start.to_owned()))
}
