//! Removes one member from every decoded object of a kind, for `xtask fields --prove`: the test of a row must then fail. Only with
//! the feature `drop-member`, which no package enables.

use std::sync::OnceLock;

use serde_json::Value;

/// Kind and path, as `Metal3Machine spec.image.url`.
const VARIABLE: &str = "METAL3_DROP_MEMBER";

/// Removes the member that the environment names, if it is one of this kind.
pub(crate) fn member(kind: &str, document: &mut Value) {
    static NAMED: OnceLock<Option<(String, Vec<String>)>> = OnceLock::new();
    let named = NAMED.get_or_init(|| {
        let text = std::env::var(VARIABLE).ok()?;
        let (kind, path) = text.split_once(' ')?;
        Some((kind.to_owned(), path.split('.').map(str::to_owned).collect()))
    });
    if let Some((named, path)) = named
        && named == kind
    {
        remove(document, path);
    }
}

/// Removes the member at a path in every item of the lists, and every value of the maps, on the way.
fn remove(value: &mut Value, path: &[String]) {
    let (Some((segment, rest)), Value::Object(members)) = (path.split_first(), value) else {
        return;
    };
    let name = segment.trim_end_matches("[]").trim_end_matches("{}");
    if rest.is_empty() {
        members.remove(name);
        return;
    }
    match members.get_mut(name) {
        Some(Value::Array(items)) if segment.ends_with("[]") => items.iter_mut().for_each(|item| remove(item, rest)),
        Some(Value::Object(values)) if segment.ends_with("{}") => {
            values.values_mut().for_each(|item| remove(item, rest))
        }
        Some(member) => remove(member, rest),
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn member_is_removed_from_each_item() {
        let mut document =
            json!({ "spec": { "a": [{ "b": 1, "c": 2 }, { "b": 3 }], "m": { "k": { "b": 4 } }, "d": 5 } });
        for path in ["spec.a[].b", "spec.m{}.b", "spec.d", "spec.none.x"] {
            let path: Vec<String> = path.split('.').map(str::to_owned).collect();
            remove(&mut document, &path);
        }
        assert_eq!(document, json!({ "spec": { "a": [{ "c": 2 }, {}], "m": { "k": {} } } }));
    }
}
