//! Ignition's files and the script of its unit, in the form of cloud-init's.
//!
//! Ignition renders no templates. A machine exports its metadata in a command before kubeadm, and substitutes variables in
//! kubeadm's configuration: `${METADATA_UUID}` is `uuid` of the config-drive.

use anyhow::{Context, ensure};
use serde_json::{Value, json};

const PREFIX: &str = "${METADATA_";
/// The script that the unit of Cluster API's bootstrap provider runs.
const SCRIPT: &str = "/etc/kubeadm.sh";

/// The files and commands of an Ignition configuration.
pub(super) fn read(text: &str, meta_data: &Value) -> anyhow::Result<Value> {
    let config: Value = serde_json::from_str(text).context("user_data is no Ignition")?;
    let version = config["ignition"]["version"].as_str().unwrap_or_default();
    ensure!(version.starts_with(['2', '3']), "Ignition of the version {version:?}");
    let units = config["systemd"]["units"].as_array().context("no units")?;
    let runs = |unit: &Value| {
        let contents = unit["contents"].as_str().unwrap_or_default();
        unit["enabled"] == true && contents.contains("ExecStart=") && contents.contains(SCRIPT)
    };
    ensure!(units.iter().any(runs), "no unit runs {SCRIPT}");
    let files = config["storage"]["files"].as_array().context("no files")?;
    let files = files.iter().map(|file| plain(file, meta_data));
    let files = files.collect::<anyhow::Result<Vec<Value>>>()?;
    let script = files.iter().find(|file| file["path"] == SCRIPT);
    let script = script.with_context(|| format!("there is no {SCRIPT}"))?;
    let lines: Vec<&str> = script["content"].as_str().unwrap_or_default().lines().collect();
    Ok(json!({"write_files": files, "runcmd": lines}))
}

fn plain(file: &Value, meta_data: &Value) -> anyhow::Result<Value> {
    let path = file["path"].as_str().context("a file without a path")?;
    let source = file["contents"]["source"].as_str().unwrap_or_default();
    let encoded = source.strip_prefix("data:,");
    let encoded = encoded.with_context(|| format!("{path}: its source is no text"))?;
    let content = substituted(&decoded(encoded).with_context(|| path.to_owned())?, meta_data)?;
    Ok(json!({"path": path, "content": content}))
}

/// The text of percent-encoded bytes.
fn decoded(text: &str) -> anyhow::Result<String> {
    let mut pieces = text.split('%');
    let mut bytes = pieces.next().unwrap_or_default().as_bytes().to_vec();
    for piece in pieces {
        let (code, rest) = piece.split_at_checked(2).context("an incomplete escape")?;
        bytes.push(u8::from_str_radix(code, 16)?);
        bytes.extend(rest.as_bytes());
    }
    Ok(String::from_utf8(bytes)?)
}

fn substituted(text: &str, meta_data: &Value) -> anyhow::Result<String> {
    let mut pieces = text.split(PREFIX);
    let mut filled = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (variable, rest) = piece.split_once('}').context("a variable without end")?;
        let members = meta_data.as_object().into_iter().flatten();
        let mut named = members.filter(|(key, _)| key.replace('-', "_").to_uppercase() == variable);
        let value = named.next().and_then(|(_, value)| value.as_str());
        filled.push_str(value.with_context(|| format!("meta_data.json has nothing for {PREFIX}{variable}}}"))?);
        filled.push_str(rest);
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(script: &str, kubeadm: &str) -> String {
        let file = |path: &str, text: &str| json!({"path": path, "contents": {"source": format!("data:,{text}")}});
        let unit = json!({"name": "kubeadm.service", "enabled": true, "contents": "[Service]\nExecStart=/bin/bash /etc/kubeadm.sh"});
        let files = [file(SCRIPT, script), file("/etc/kubeadm.yml", kubeadm)];
        json!({"ignition": {"version": "2.3.0"}, "systemd": {"units": [unit]}, "storage": {"files": files}}).to_string()
    }

    #[test]
    fn files_are_decoded_and_filled_with_metadata() {
        let text = config(
            "set%20-e%0Akubeadm%20join",
            "name%3A%20%24%7BMETADATA_LOCAL_HOSTNAME%7D%20%C3%BC",
        );
        let read = read(&text, &json!({"local-hostname": "one"})).unwrap();
        assert_eq!(read["runcmd"], json!(["set -e", "kubeadm join"]));
        assert_eq!(read["write_files"][1]["content"], "name: one \u{fc}");
    }

    #[test]
    fn errors_name_the_defect() {
        let text = config("kubeadm", "%24%7BMETADATA_UUID%7D");
        for (text, part) in [
            (text.clone(), "METADATA_UUID"),
            (text.replace("%7BM", "%ZZ"), "kubeadm.yml"),
            (text.replace("data:,kubeadm", "https://192.0.2.1/"), "no text"),
            (text.replace("2.3.0", "1"), "\"1\""),
            (text.replace("true", "false"), "no unit"),
            ("#cloud-config".to_owned(), "no Ignition"),
        ] {
            let error = format!("{:#}", read(&text, &Value::Null).unwrap_err());
            assert!(error.contains(part), "{part}: {error}");
        }
    }
}
