//! Files of a machine, with content from Secrets resolved.

use k8s_openapi::ByteString;
use serde_json::{Value, json};

use crate::kinds::SECRET;
use crate::view::{Object, Snapshot, text_of};

/// All files with their content.
///
/// # Errors
/// The object that is missing.
pub(super) fn with_content(snapshot: &Snapshot, config: &Object) -> Result<Vec<Value>, String> {
    let files = config.part("/spec/files");
    let files = files.as_array().cloned().unwrap_or_default();
    files
        .into_iter()
        .map(|file| filled(snapshot, config.namespace(), file))
        .collect()
}

fn filled(snapshot: &Snapshot, namespace: &str, mut file: Value) -> Result<Value, String> {
    let Some(from) = file.pointer("/contentFrom/secret").cloned() else {
        return Ok(file);
    };
    let (name, key) = (text_of(&from, "name"), text_of(&from, "key"));
    let secret = snapshot.get(SECRET, namespace, name);
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
    fn a_file_waits_for_its_secret_by_name() {
        let at = |kind: &str, name: &str| json!({ "kind": kind, "metadata": { "name": name, "namespace": "n", "resourceVersion": "1" } });
        let mut config = at("KubeadmConfig", "c");
        config["spec"] = json!({ "files": [
            { "path": "/a", "content": "here" },
            { "path": "/b", "contentFrom": { "secret": { "name": "s", "key": "k" } } },
        ] });
        let config = Object(config);
        let mut snapshot = Snapshot::default();
        assert_eq!(
            with_content(&snapshot, &config).unwrap_err(),
            "waiting for the Secret s"
        );
        let mut secret = at("Secret", "s");
        snapshot.put(SECRET, Object(secret.clone()));
        assert_eq!(
            with_content(&snapshot, &config).unwrap_err(),
            "waiting for the Secret s to have k"
        );
        secret["metadata"]["resourceVersion"] = json!("2");
        secret["data"] = json!({ "k": ByteString(b"there".to_vec()) });
        snapshot.put(SECRET, Object(secret));
        let files = with_content(&snapshot, &config).unwrap();
        assert_eq!(files[0]["content"], "here");
        assert_eq!(files[1], json!({ "path": "/b", "content": "there" }));
    }
}
