//! The files of a machine: what stands in a Secret is taken from there.

use k8s_openapi::ByteString;
use serde_json::{Value, json};

use crate::kinds::SECRET;
use crate::view::{Object, World, text_of};

/// All of them with their content.
///
/// # Errors
/// What is waited for.
pub(super) fn of(world: &World, config: &Object) -> Result<Vec<Value>, String> {
    let files = config.part("/spec/files");
    let files = files.as_array().cloned().unwrap_or_default();
    files
        .into_iter()
        .map(|file| filled(world, config.namespace(), file))
        .collect()
}

fn filled(world: &World, namespace: &str, mut file: Value) -> Result<Value, String> {
    let Some(from) = file.pointer("/contentFrom/secret").cloned() else {
        return Ok(file);
    };
    let (name, key) = (text_of(&from, "name"), text_of(&from, "key"));
    let secret = world.get(SECRET, namespace, name);
    let secret = secret.ok_or_else(|| format!("waiting for the Secret {name}"))?;
    let held = secret.at("/data").and_then(|data| data.get(key)).cloned();
    let held = held.ok_or_else(|| format!("waiting for the Secret {name} to have {key}"))?;
    let ByteString(bytes) =
        serde_json::from_value(held).map_err(|error| format!("the Secret {name}: {key}: {error}"))?;
    if let Some(members) = file.as_object_mut() {
        members.remove("contentFrom");
        members.insert("content".to_owned(), json!(String::from_utf8_lossy(&bytes)));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_waits_for_its_secret_and_says_for_which() {
        let at = |kind: &str, name: &str| json!({ "kind": kind, "metadata": { "name": name, "namespace": "n", "resourceVersion": "1" } });
        let mut config = at("KubeadmConfig", "c");
        config["spec"] = json!({ "files": [
            { "path": "/a", "content": "here" },
            { "path": "/b", "contentFrom": { "secret": { "name": "s", "key": "k" } } },
        ] });
        let config = Object(config);
        let mut world = World::default();
        assert_eq!(of(&world, &config).unwrap_err(), "waiting for the Secret s");
        let mut secret = at("Secret", "s");
        world.put(SECRET, Object(secret.clone()));
        assert_eq!(of(&world, &config).unwrap_err(), "waiting for the Secret s to have k");
        secret["metadata"]["resourceVersion"] = json!("2");
        secret["data"] = json!({ "k": ByteString(b"there".to_vec()) });
        world.put(SECRET, Object(secret));
        let files = of(&world, &config).unwrap();
        assert_eq!(files[0]["content"], "here");
        assert_eq!(files[1], json!({ "path": "/b", "content": "there" }));
    }
}
