//! User data for Ignition, with the configuration of kubeadm in it.

use k8s_openapi::ByteString;
use serde_json::{Value, json};

/// Path of the script that runs the commands.
pub(crate) const SCRIPT: &str = "/etc/kubeadm.sh";
const VERSION: &str = "3.4.0";

/// Renders files and commands, which a unit runs once.
pub(super) fn write(files: &[Value], commands: &[Value]) -> String {
    let lines: Vec<&str> = commands.iter().filter_map(Value::as_str).collect();
    let script = format!("#!/bin/bash\nset -e\n{}\n", lines.join("\n"));
    let script = json!({ "path": SCRIPT, "permissions": "0700", "content": script });
    let files: Vec<Value> = files.iter().chain([&script]).map(file).collect();
    let unit = format!(
        "[Unit]\nDescription=kubeadm\n[Service]\nType=oneshot\nExecStart={SCRIPT}\n[Install]\nWantedBy=multi-user.target\n"
    );
    let config = json!({
        "ignition": { "version": VERSION },
        "storage": { "files": files },
        "systemd": { "units": [{ "name": "kubeadm.service", "enabled": true, "contents": unit }] },
    });
    config.to_string()
}

fn file(of: &Value) -> Value {
    let text = |member: &str| of.get(member).and_then(Value::as_str).unwrap_or_default();
    let mode = u32::from_str_radix(text("permissions"), 8).unwrap_or(0o644);
    let encoded = serde_json::to_value(ByteString(text("content").into())).unwrap_or_default();
    let source = format!("data:;base64,{}", encoded.as_str().unwrap_or_default());
    json!({ "path": text("path"), "mode": mode, "overwrite": true, "contents": { "source": source } })
}
