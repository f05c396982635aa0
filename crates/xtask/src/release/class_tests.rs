//! Tests of the ClusterClass: what the topology controller makes of it for some variables is admitted.
//!
//! The patches are applied by a small interpreter of the templates.

mod templates;
mod variables;

use std::path::Path;

use json_patch::PatchOperation;
use metal3_api::rules::Operation;
use serde_json::from_value;

use super::*;
use templates::{Scope, fill, is_enabled, parts};
use variables::refused;

const CLASS_FILE: &str = "clusterclass-metal3.yaml";

fn is_selected(selector: &Value, template: &Value, of_control_plane: bool) -> bool {
    let matches = &selector["matchResources"];
    let is_placed = match selector["kind"].as_str().unwrap() {
        "Metal3ClusterTemplate" => matches["infrastructureCluster"] == true,
        _ if of_control_plane => matches["controlPlane"] == true,
        _ => matches["machineDeploymentClass"]["names"] == json!(["workers"]),
    };
    is_placed
        && ["apiVersion", "kind"]
            .iter()
            .all(|member| selector[*member] == template[*member])
}

/// The class and its templates.
fn class_and_templates() -> (Value, Vec<Value>) {
    let text = documents::text(&workspace::root().unwrap().join(TEMPLATES).join(CLASS_FILE)).unwrap();
    let mut all: Vec<Value> = serde_saphyr::from_multiple(&text.replace("${NAMESPACE}", "metal")).unwrap();
    (all.remove(0), all)
}

/// The templates of the class with its patches for these variables, which its schemas admit.
fn made(variables: &Value) -> Vec<Value> {
    assert_eq!(refused(variables), [""; 0], "{variables}");
    let (class, mut all) = class_and_templates();
    for template in &mut all {
        let of_control_plane = template["metadata"]["name"] == "metal3-controlplane";
        for patch in class["spec"]["patches"].as_array().unwrap() {
            if patch
                .get("enabledIf")
                .is_some_and(|condition| !is_enabled(condition, variables))
            {
                continue;
            }
            let definitions = patch["definitions"].as_array().unwrap().iter();
            for definition in definitions {
                if !is_selected(&definition["selector"], template, of_control_plane) {
                    continue;
                }
                for operation in definition["jsonPatches"].as_array().unwrap() {
                    apply(operation, template, variables);
                }
            }
        }
    }
    all
}

fn apply(operation: &Value, template: &mut Value, variables: &Value) {
    let from = &operation["valueFrom"];
    let scope = Scope { variables, turn: None };
    let value = if let Some(variable) = from["variable"].as_str() {
        variables[variable].clone()
    } else if let Some(text) = from["template"].as_str() {
        let filled = fill(&parts(text), &scope);
        serde_saphyr::from_str(&filled).unwrap_or_else(|error| panic!("{error}: {filled}"))
    } else {
        operation["value"].clone()
    };
    let patch = json!({ "op": operation["op"], "path": operation["path"], "value": value });
    let patch: PatchOperation = from_value(patch).unwrap();
    json_patch::patch(template, std::slice::from_ref(&patch)).unwrap_or_else(|error| panic!("{patch:?}: {error}"));
}

/// Asserts that an object of ours has known members alone, and is admitted.
fn assert_admitted(object: &Value) {
    let kind = object["kind"].as_str().unwrap();
    let definition = catalog::definitions().into_iter().find(|one| one.kind == kind).unwrap();
    let version = definition
        .versions
        .into_iter()
        .find(|one| one.name == "v1beta2")
        .unwrap();
    let again = (version.reencode)(object).unwrap();
    assert_eq!(again["spec"], object["spec"], "{kind}: members are lost");
    let reviewer = catalog::reviewers().into_iter().find(|one| one.kind == kind).unwrap();
    let decision = (reviewer.review)(Operation::Create, None, Some(object)).unwrap();
    let refusals: Vec<String> = decision.refusals().map(|finding| finding.detail()).collect();
    assert_eq!(refusals, [""; 0], "{object}");
}

fn find_kind<'a>(all: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let mut found = all
        .iter()
        .filter(|one| one["kind"] == kind && one["metadata"]["name"] == name);
    found.next().unwrap()
}

fn image() -> Value {
    json!({
        "url": "https://images.example/node.qcow2", "checksum": "https://images.example/node.qcow2.sha256sum",
        "checksumType": "sha256", "diskFormat": "qcow2",
    })
}

fn everything() -> Value {
    json!({
        "image": image(),
        "endpointSource": {
            "type": "IPPool", "ipPool": { "name": "vips" },
            "render": { "configMapName": "kube-vip", "key": "kube-vip.yaml", "secretName": "edge-kube-vip" },
        },
        "zones": [{ "name": "a", "dataTemplate": "edge-a" }, { "name": "b", "dataTemplate": "edge-b" }],
        "zonePolicy": "Required",
        "controlPlaneDataTemplate": "edge-controlplane", "workerDataTemplate": "edge-workers",
        "externalEtcd": { "endpoints": ["https://192.0.2.21:2379", "https://192.0.2.22:2379"] },
        "sshUser": "metal3", "sshAuthorizedKeys": ["ssh-ed25519 AAAA one", "ssh-ed25519 BBBB two"],
        "proxy": {
            "http": "http://proxy.example:3128", "https": "http://proxy.example:3129", "noProxy": ["192.0.2.0/24", ".cluster.local"],
        },
    })
}

#[test]
fn what_the_class_makes_is_admitted_with_few_variables_and_with_all() {
    let few = json!({ "image": image(), "endpoint": { "host": "192.0.2.10", "port": 6443 } });
    for variables in [few, everything()] {
        let all = made(&variables);
        for template in all
            .iter()
            .filter(|one| one["kind"].as_str().unwrap().starts_with("Metal3"))
        {
            assert_admitted(template);
        }
        let cluster = find_kind(&all, "Metal3ClusterTemplate", "metal3-cluster");
        assert_admitted(&json!({
            "apiVersion": cluster["apiVersion"], "kind": "Metal3Cluster",
            "metadata": { "name": "edge-x7k2p", "namespace": "metal" }, "spec": cluster["spec"]["template"]["spec"],
        }));
    }
}

#[test]
fn each_variable_reaches_the_objects_of_the_cluster() {
    let variables = everything();
    let all = made(&variables);
    let cluster = &find_kind(&all, "Metal3ClusterTemplate", "metal3-cluster")["spec"]["template"]["spec"];
    assert_eq!(cluster["controlPlaneEndpointSource"], variables["endpointSource"]);
    assert_eq!(cluster["failureDomainPolicy"], "Required");
    assert_eq!(
        cluster["failureDomains"][1],
        json!({ "name": "b", "controlPlane": true })
    );
    assert_eq!(
        cluster["deploymentZones"][1],
        json!({ "name": "b", "dataTemplate": { "name": "edge-b" } })
    );
    let planes = &find_kind(&all, "KubeadmControlPlaneTemplate", "metal3-controlplane")["spec"]["template"]["spec"];
    let etcd = &planes["kubeadmConfigSpec"]["clusterConfiguration"]["etcd"]["external"];
    assert_eq!(etcd["endpoints"], variables["externalEtcd"]["endpoints"]);
    assert_eq!(etcd["caFile"], "/etc/kubernetes/pki/etcd/ca.crt");
    let workers = &find_kind(&all, "KubeadmConfigTemplate", "metal3-workers")["spec"]["template"]["spec"];
    for (machines, template) in [
        ("metal3-controlplane", "edge-controlplane"),
        ("metal3-workers", "edge-workers"),
    ] {
        let spec = &find_kind(&all, "Metal3MachineTemplate", machines)["spec"]["template"]["spec"];
        assert_eq!(spec["image"], image(), "{machines}");
        assert_eq!(spec["dataTemplate"]["name"], template);
    }
    for config in [&planes["kubeadmConfigSpec"], workers] {
        let keys = &config["users"][0]["sshAuthorizedKeys"];
        assert_eq!(*keys, json!(["ssh-ed25519 AAAA one", "ssh-ed25519 BBBB two"]));
        let file = |path: &str| {
            let mut files = config["files"].as_array().unwrap().iter();
            let found = files.find(|one| one["path"] == path).unwrap();
            found["content"].as_str().unwrap().to_owned()
        };
        let environment = file("/etc/environment");
        assert!(
            environment.contains("https_proxy=\"http://proxy.example:3129\"\n"),
            "{environment}"
        );
        assert!(
            environment.contains("NO_PROXY=\"192.0.2.0/24,.cluster.local\"\n"),
            "{environment}"
        );
        let services = file("/etc/systemd/system.conf.d/10-proxy.conf");
        assert!(
            services.contains("\"HTTP_PROXY=http://proxy.example:3128\""),
            "{services}"
        );
        let runtime = file("/etc/systemd/system/containerd.service.d/10-proxy.conf");
        assert!(
            runtime.contains("Environment=\"NO_PROXY=192.0.2.0/24,.cluster.local\"\n"),
            "{runtime}"
        );
        assert!(config["preKubeadmCommands"][0].as_str().unwrap().contains("containerd"));
    }
    let manifest = &planes["kubeadmConfigSpec"]["files"][1];
    assert_eq!(manifest["path"], "/etc/kubernetes/manifests/kube-vip.yaml");
    assert_eq!(manifest["contentFrom"]["secret"]["name"], "edge-kube-vip");
}

/// YAML takes a bare `1` for a number and a bare `no` for false; a name or a comment of a key may have any sign.
#[test]
fn values_stay_texts_whatever_they_contain() {
    let odd = ["1", "no", "007", "null", "1e3"];
    let keys = [
        "ssh-ed25519 AAAA bob's \"laptop\"",
        "command=\"a b\",no-pty ssh-ed25519 AAAA a:b#c",
        "ssh-ed25519 AAAA one\n",
    ];
    let mut variables = everything();
    variables["zones"] = odd
        .iter()
        .map(|name| json!({ "name": name, "dataTemplate": name }))
        .collect();
    variables["sshAuthorizedKeys"] = json!(keys);
    for name in ["controlPlaneDataTemplate", "workerDataTemplate"] {
        variables[name] = json!("0x1f");
    }
    variables["sshUser"] = json!("_1");
    let all = made(&variables);
    let cluster = &find_kind(&all, "Metal3ClusterTemplate", "metal3-cluster")["spec"]["template"]["spec"];
    for (place, name) in odd.iter().enumerate() {
        assert_eq!(cluster["failureDomains"][place]["name"], *name);
        assert_eq!(cluster["deploymentZones"][place]["dataTemplate"]["name"], *name);
    }
    let workers = &find_kind(&all, "KubeadmConfigTemplate", "metal3-workers")["spec"]["template"]["spec"];
    assert_eq!(workers["users"][0]["sshAuthorizedKeys"], json!(keys));
    assert_eq!(workers["users"][0]["name"], "_1");
    let machines = &find_kind(&all, "Metal3MachineTemplate", "metal3-workers")["spec"]["template"]["spec"];
    assert_eq!(machines["dataTemplate"]["name"], "0x1f");
}

/// The data templates that the flavour names win over those of zones.
#[test]
fn zones_give_data_to_machines_without_data_templates() {
    let mut variables = everything();
    for name in ["controlPlaneDataTemplate", "workerDataTemplate"] {
        variables.as_object_mut().unwrap().remove(name);
    }
    let all = made(&variables);
    for machines in ["metal3-controlplane", "metal3-workers"] {
        let spec = &find_kind(&all, "Metal3MachineTemplate", machines)["spec"]["template"]["spec"];
        assert_eq!(spec.get("dataTemplate"), None, "{machines}");
    }
    let (class, _) = class_and_templates();
    let described = class["spec"]["variables"].to_string();
    assert!(
        described.contains("without controlPlaneDataTemplate and workerDataTemplate"),
        "{described}"
    );
}

/// The parsers of this test are stricter than YAML 1.1, which the topology controller reads.
#[test]
fn each_value_that_is_no_part_of_a_text_is_quoted() {
    let text = documents::text(&workspace::root().unwrap().join(TEMPLATES).join(CLASS_FILE)).unwrap();
    let lines = text
        .lines()
        .map(str::trim)
        .filter(|line| line.ends_with("}}") && !line.contains("ds.meta_data"));
    let bare = lines.filter(|line| line.contains(": {{ ") || line.starts_with("- {{ "));
    let mut count = 0;
    for line in bare {
        assert!(line.ends_with("| toJson }}"), "{line}");
        count += 1;
    }
    assert!(count >= 8, "{count}");
}

/// A login has its special signs as `%40`, which begins a specifier in the files of systemd.
#[test]
fn proxy_with_an_encoded_login_reaches_systemd() {
    let mut variables = everything();
    variables["proxy"]["http"] = json!("http://u:p%40ss@proxy.example:3128");
    variables["proxy"]["noProxy"] = json!([]);
    let all = made(&variables);
    let workers = &find_kind(&all, "KubeadmConfigTemplate", "metal3-workers")["spec"]["template"]["spec"];
    let files = workers["files"].as_array().unwrap();
    let content = |path: &str| files.iter().find(|one| one["path"] == path).unwrap()["content"].to_string();
    let environment = content("/etc/environment");
    assert!(
        environment.contains("http://u:p%40ss@proxy") && environment.contains(r#"NO_PROXY=\"\""#),
        "{environment}"
    );
    for unit in [
        "/etc/systemd/system.conf.d/10-proxy.conf",
        "/etc/systemd/system/containerd.service.d/10-proxy.conf",
    ] {
        assert!(content(unit).contains("HTTP_PROXY=http://u:p%%40ss@proxy"), "{unit}");
    }
}

/// `source example_variables.rc` suffices for each template that the release has.
#[test]
fn each_variable_without_default_has_an_example() {
    let files = files("registry.example/capm3:v1", String::new()).unwrap();
    let example = &files[Path::new("example_variables.rc")];
    // Options of clusterctl set these.
    let mut known: Vec<String> = ["CLUSTER_NAME", "NAMESPACE"].map(str::to_owned).into();
    let exports = example
        .lines()
        .filter_map(|line| line.strip_prefix("export ")?.split_once('='));
    known.extend(exports.map(|(name, _)| name.to_owned()));
    for name in [TEMPLATE]
        .into_iter()
        .chain(FLAVOURS)
        .chain(["cluster-template-topology.yaml", CLASS_FILE])
    {
        for piece in files[Path::new(name)].split("${").skip(1) {
            let (inside, _) = piece.split_once('}').unwrap();
            let has_default = inside.contains(":=") || inside.contains(":-");
            // `${NAME#v}` is NAME without the prefix.
            let name_of = inside.split('#').next().unwrap();
            assert!(
                has_default || known.iter().any(|one| one == name_of),
                "{name}: {inside}"
            );
        }
    }
}
