//! Ignition's files and the script of its unit, in the form of cloud-init's.
//!
//! Ignition renders no templates. A machine that needs its metadata exports them in a unit of its own, and substitutes
//! variables in the configuration of kubeadm: here `${METADATA_UUID}` stands for `uuid` of the config drive.

use k8s_openapi::ByteString;
use serde_json::{Map, Value, json};

use super::text_at;
use crate::bootstrap::SCRIPT;

const PREFIX: &str = "${METADATA_";
const ENCODED: &str = "data:;base64,";

/// The files and commands of an Ignition configuration.
///
/// # Errors
/// The defect in it, and its place.
pub(super) fn read(text: &str, meta_data: &Map<String, Value>) -> Result<Value, String> {
    let config: Value = serde_json::from_str(text).map_err(|error| format!("user data: no Ignition: {error}"))?;
    if text_at(&config, "/ignition/version").is_empty() {
        return Err("user data: ignition.version is missing".to_owned());
    }
    let files = config.pointer("/storage/files").and_then(Value::as_array);
    let files: Result<Vec<Value>, String> = files.into_iter().flatten().map(|file| plain(file, meta_data)).collect();
    let files = files?;
    let is_run = |unit: &Value| {
        let line = format!("ExecStart={SCRIPT}");
        unit.get("enabled") == Some(&json!(true)) && text_at(unit, "/contents").contains(&line)
    };
    let units = config.pointer("/systemd/units").and_then(Value::as_array);
    let runs = units.into_iter().flatten().any(is_run);
    let script = files.iter().find(|file| runs && text_at(file, "/path") == SCRIPT);
    let lines: Vec<&str> = script
        .map_or("", |script| text_at(script, "/content"))
        .lines()
        .collect();
    Ok(json!({ "write_files": files, "runcmd": lines }))
}

fn plain(file: &Value, meta_data: &Map<String, Value>) -> Result<Value, String> {
    let (path, source) = (text_at(file, "/path"), text_at(file, "/contents/source"));
    let encoded = source
        .strip_prefix(ENCODED)
        .ok_or_else(|| format!("user data: {path}: its source is no data in base64"))?;
    let ByteString(bytes) =
        serde_json::from_value(json!(encoded)).map_err(|error| format!("user data: {path}: {error}"))?;
    let content = substituted(&String::from_utf8_lossy(&bytes), meta_data)?;
    Ok(json!({ "path": path, "content": content }))
}

fn substituted(text: &str, meta_data: &Map<String, Value>) -> Result<String, String> {
    let mut pieces = text.split(PREFIX);
    let mut filled = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (name, rest) = piece
            .split_once('}')
            .ok_or("user data: a variable that begins with ${ does not end")?;
        let is_named = |key: &String| key.replace('-', "_").to_uppercase() == name;
        let (_, value) = meta_data
            .iter()
            .find(|(key, _)| is_named(key))
            .ok_or_else(|| format!("user data: {PREFIX}{name}}} is nothing in the metadata"))?;
        filled.push_str(value.as_str().unwrap_or_default());
        filled.push_str(rest);
    }
    Ok(filled)
}
