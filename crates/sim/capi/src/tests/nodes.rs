//! Nodes derived from user data.

use serde_json::{Map, Value, json};

use crate::node::{Boot, Role, first_boot};

fn metadata() -> Map<String, Value> {
    let text =
        json!({ "local-hostname": "m0", "name": "machine-0", "uuid": "c0ffee", "providerid": "default/host/m0" });
    text.as_object().unwrap().clone()
}

fn user_data(file: &str, command: &str) -> String {
    let content: String = file.lines().map(|line| format!("      {line}\n")).collect();
    format!(
        "## template: jinja\n#cloud-config\nwrite_files:\n  - path: /run/kubeadm/k.yaml\n    content: |\n{content}runcmd:\n  - {command}\n"
    )
}

const INIT: &str = "kind: ClusterConfiguration\ncontrolPlaneEndpoint: 192.0.2.10:6443\n---\nkind: InitConfiguration\nnodeRegistration:\n  name: '{{ ds.meta_data.name }}'\n";
const JOIN: &str = "kind: JoinConfiguration\ndiscovery:\n  bootstrapToken:\n    apiServerEndpoint: 192.0.2.10:6443\n    token: abc.def\n";

fn boot(file: &str, command: &str) -> Boot {
    first_boot(&user_data(file, command), &metadata()).unwrap().unwrap()
}

#[test]
fn user_data_selects_kubeadm_init_or_join() {
    let init = boot(INIT, "kubeadm init --config /run/kubeadm/k.yaml && echo done");
    assert_eq!((init.endpoint.as_str(), init.role), ("192.0.2.10:6443", Role::Init));
    assert_eq!(init.node["metadata"]["name"], "machine-0");
    assert_eq!(
        init.node["metadata"]["labels"]["node-role.kubernetes.io/control-plane"],
        ""
    );
    let join = boot(JOIN, "[kubeadm, join, --config, /run/kubeadm/k.yaml]");
    assert_eq!(join.role, Role::Join("abc.def".to_owned()));
    assert_eq!(
        join.node["metadata"]["name"], "m0",
        "without a name, the host name of the metadata"
    );
    assert_eq!(
        join.node["metadata"]["labels"].get("node-role.kubernetes.io/control-plane"),
        None
    );
    assert!(join.node["spec"].get("providerID").is_none());
}

#[test]
fn arguments_of_the_kubelet_are_read_in_both_forms() {
    let labels = "metal3.io/uuid={{ ds.meta_data.uuid }},zone=a";
    let id = "metal3://{{ ds.meta_data.providerid }}";
    for arguments in [
        format!("{{ node-labels: '{labels}', provider-id: '{id}' }}"),
        format!("[{{ name: node-labels, value: '{labels}' }}, {{ name: provider-id, value: '{id}' }}]"),
    ] {
        let file = format!("{JOIN}nodeRegistration:\n  kubeletExtraArgs: {arguments}\n");
        let node = boot(&file, "kubeadm join --config /run/kubeadm/k.yaml").node;
        assert_eq!(node["metadata"]["labels"]["metal3.io/uuid"], "c0ffee", "{arguments}");
        assert_eq!(node["metadata"]["labels"]["zone"], "a");
        assert_eq!(node["spec"]["providerID"], "metal3://default/host/m0");
    }
}

#[test]
fn user_data_without_kubeadm_gives_no_node() {
    for text in [
        "",
        "#!/bin/sh\nkubeadm join",
        "#cloud-config\nruncmd: [reboot]\n",
        "#cloud-config\n{}\n",
    ] {
        assert_eq!(first_boot(text, &metadata()), Ok(None), "{text:?}");
    }
}

#[test]
fn invalid_user_data_is_rejected_with_the_reason() {
    let command = "kubeadm join --config /run/kubeadm/k.yaml";
    for (text, word) in [
        (user_data("kind: {{ ds.meta_data.absent }}", command), "absent"),
        (user_data("kind: {{ ds.meta_data.name", command), "does not end"),
        (user_data("kind: Other", command), "JoinConfiguration"),
        (user_data("kind: JoinConfiguration", command), "endpoint"),
        (user_data(JOIN, "kubeadm join --config /elsewhere"), "/elsewhere"),
        ("#cloud-config\n[".to_owned(), "YAML"),
    ] {
        let why = first_boot(&text, &metadata()).unwrap_err();
        assert!(why.contains(word), "{why}");
    }
    let without_name = first_boot(&user_data(JOIN, command), &Map::new()).unwrap_err();
    assert!(without_name.contains("host name"), "{without_name}");
}

fn ignition(files: &[(&str, &str)]) -> String {
    let files: Vec<Value> = files
        .iter()
        .map(|(path, content)| {
            let encoded = serde_json::to_value(k8s_openapi::ByteString(content.as_bytes().to_vec())).unwrap();
            let source = format!("data:;base64,{}", encoded.as_str().unwrap());
            json!({ "path": path, "contents": { "source": source } })
        })
        .collect();
    let unit =
        json!({ "name": "kubeadm.service", "enabled": true, "contents": "[Service]\nExecStart=/etc/kubeadm.sh\n" });
    json!({ "ignition": { "version": "3.4.0" }, "storage": { "files": files }, "systemd": { "units": [unit] } })
        .to_string()
}

#[test]
fn machine_joins_with_ignition_and_substitutes_its_metadata() {
    let labels = "nodeRegistration:\n  kubeletExtraArgs: { node-labels: 'metal3.io/uuid=${METADATA_UUID}' }\n";
    let join = format!("{JOIN}{labels}");
    let script = (
        "/etc/kubeadm.sh",
        "#!/bin/bash\nkubeadm join --config /etc/kubeadm.yml\n",
    );
    let text = ignition(&[("/etc/kubeadm.yml", &join), script]);
    let boot = first_boot(&text, &metadata()).unwrap().unwrap();
    assert_eq!(boot.role, Role::Join("abc.def".to_owned()));
    assert_eq!(boot.node["metadata"]["labels"]["metal3.io/uuid"], "c0ffee");
    let other = join.replace("UUID", "SERIAL");
    let missing = first_boot(&ignition(&[("/etc/kubeadm.yml", &other), script]), &metadata());
    assert!(missing.unwrap_err().contains("${METADATA_SERIAL}"));
    assert_eq!(
        first_boot(&ignition(&[("/etc/kubeadm.yml", &join)]), &metadata()),
        Ok(None)
    );
    assert!(first_boot("{}", &metadata()).unwrap_err().contains("ignition.version"));
}
