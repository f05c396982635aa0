//! Claims about kinds of workloads: Nodes, Deployments, Pods, Services.

use serde_json::{Value, json};

use super::rows;
use crate::outcome::{CheckResult, expect};
use crate::{Claim, Subject};

pub(super) fn rows() -> Vec<Claim> {
    rows! {
        "kinds", "Node", "a node's status path also changes labels" => node;
        "kinds", "Deployment", "the generation counts changes of the spec, not of the status" => deployment;
        "kinds", "Deployment", "the selector is required, immutable and matches the template; replicas default to one" => deployment_rules;
        "kinds", "Service", "ports are required; type, address and an empty status are set" => service;
        "kinds", "ServiceAccount", "it has only metadata" => service_account;
        "kinds", "EndpointSlice", "the address type is required and immutable, and generations count" => endpoint_slice;
        "kinds", "Pod", "containers are required, it is pending, and it has a status path" => pod;
        "kinds", "Pod", "a field selector selects Pods by Node" => pods_of_node;
        "kinds", "RoleBinding", "it and the one without a namespace have no generation and are read by name" => bindings;
        "kinds", "VolumeAttachment", "it has no namespace and no generation" => volume_attachment;
    }
}

async fn node(s: Subject) -> CheckResult {
    let name = format!("node-of-{}", s.namespace());
    let path = format!("/api/v1/nodes/{name}");
    let made = s.post("/api/v1/nodes", &json!({"metadata": {"name": name}})).await?;
    made.expect("generation", 201, "/metadata/generation", Value::Null)?;
    let patch =
        json!({"metadata": {"labels": {"a": "b"}}, "spec": {"providerID": "p"}, "status": {"phase": "Running"}});
    let reply = s.merge(&format!("{path}/status"), &patch).await?;
    reply.expect("status", 200, "/status/phase", "Running")?;
    reply.holds("label", "/metadata/labels/a", "b")?;
    reply.holds("spec", "/spec/providerID", Value::Null)?;
    let body = json!({"spec": {"providerID": "p"}, "status": {"phase": "Pending"}});
    let reply = s.merge(&path, &body).await?;
    reply.holds("spec by the object's path", "/spec/providerID", "p")?;
    reply.holds("status by the object's path", "/status/phase", "Running")?;
    expect("deleted", s.delete(&path, &Value::Null).await?.code, 200)
}

async fn deployment(s: Subject) -> CheckResult {
    let path = format!("/apis/apps/v1/namespaces/{}/deployments", s.namespace());
    let labels = json!({"app": "a"});
    let body = json!({
        "metadata": {"name": "a"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "a", "image": "a:1"}]},
            },
        },
    });
    let made = s.post(&path, &body).await?;
    made.expect("created", 201, "/metadata/generation", 1)?;
    let one = format!("{path}/a");
    let scaled = s
        .merge(&one, &json!({"spec": {"replicas": 2}, "status": {"replicas": 9}}))
        .await?;
    scaled.expect("scaled", 200, "/metadata/generation", 2)?;
    let status = s
        .merge(
            &format!("{one}/status"),
            &json!({"spec": {"replicas": 3}, "status": {"replicas": 2}}),
        )
        .await?;
    status.expect("status", 200, "/status/replicas", 2)?;
    status.holds("spec and generation", "/spec/replicas", 2)?;
    status.holds("spec and generation", "/metadata/generation", 2)
}

async fn deployment_rules(s: Subject) -> CheckResult {
    let path = format!("/apis/apps/v1/namespaces/{}/deployments", s.namespace());
    let template =
        json!({"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "a", "image": "a:1"}]}});
    let body = json!({"metadata": {"name": "a"}, "spec": {"template": template}});
    let reply = s.post(&path, &body).await?;
    let fields: Vec<String> = [0, 1]
        .map(|at| reply.text(&format!("/details/causes/{at}/field")))
        .to_vec();
    let expected = ["spec.selector", "spec.template.metadata.labels"]
        .map(str::to_owned)
        .to_vec();
    expect("no selector", (reply.code, fields), (422, expected))?;
    let spec = json!({"template": template, "selector": {"matchLabels": {"app": "a"}}});
    let reply = s.post(&path, &json!({"metadata": {"name": "a"}, "spec": spec})).await?;
    reply.expect("replicas", 201, "/spec/replicas", 1)?;
    let other = json!({"spec": {"selector": {"matchLabels": {"app": "b"}}, "template": {"metadata": {"labels": {"app": "b"}}}}});
    let reply = s.merge(&format!("{path}/a"), &other).await?;
    reply.expect("selector", 422, "/details/causes/0/field", "spec.selector")
}

async fn service(s: Subject) -> CheckResult {
    let reply = s
        .create(
            "services",
            json!({"metadata": {"name": "a"}, "spec": {"selector": {"a": "b"}}}),
        )
        .await?;
    let message = "Service \"a\" is invalid: spec.ports: Required value";
    reply.expect("no ports", 422, "/message", message)?;
    let body = json!({"metadata": {"name": "a"}, "spec": {"type": "LoadBalancer", "ports": [{"port": 6443}]}});
    let reply = s.create("services", body).await?;
    reply.expect("code", 201, "/metadata/generation", Value::Null)?;
    let port = reply.at("/spec/ports/0");
    let seen = (port.get("protocol").cloned(), port.get("targetPort").cloned());
    expect("port", seen, (Some(json!("TCP")), Some(json!(6443))))?;
    expect("address", reply.text("/spec/clusterIP").starts_with("10.96."), true)?;
    reply.holds("status", "/status", json!({"loadBalancer": {}}))?;
    let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}});
    let reply = s.merge(&s.core("services/a/status"), &status).await?;
    reply.holds("ingress", "/status/loadBalancer/ingress/0/ip", "192.0.2.1")
}

async fn service_account(s: Subject) -> CheckResult {
    let reply = s.create("serviceaccounts", json!({"metadata": {"name": "a"}})).await?;
    let seen = (reply.code, reply.text("/kind"), reply.at("/metadata/generation"));
    expect("made", seen, (201, "ServiceAccount".into(), Value::Null))
}

async fn endpoint_slice(s: Subject) -> CheckResult {
    let path = format!("/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices", s.namespace());
    let reply = s
        .post(&path, &json!({"metadata": {"name": "a"}, "endpoints": []}))
        .await?;
    let message = "EndpointSlice.discovery.k8s.io \"a\" is invalid: addressType: Required value";
    reply.expect("no type", 422, "/message", message)?;
    let body = json!({
        "metadata": {"name": "a"}, "addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}], "ports": [{"port": 80}],
    });
    let reply = s.post(&path, &body).await?;
    reply.expect("made", 201, "/metadata/generation", 1)?;
    reply.holds("port", "/ports/0", json!({"name": "", "port": 80, "protocol": "TCP"}))?;
    let reply = s.merge(&format!("{path}/a"), &json!({"ports": [{"port": 81}]})).await?;
    reply.expect("counted", 200, "/metadata/generation", 2)?;
    let reply = s.merge(&format!("{path}/a"), &json!({"addressType": "FQDN"})).await?;
    reply.expect("type", 422, "/details/causes/0/field", "addressType")
}

async fn pod(s: Subject) -> CheckResult {
    // Admission of the real server requires it.
    s.create("serviceaccounts", json!({"metadata": {"name": "default"}}))
        .await?;
    let reply = s
        .create("pods", json!({"metadata": {"name": "a"}, "spec": {"containers": []}}))
        .await?;
    let message = "Pod \"a\" is invalid: spec.containers: Required value";
    reply.expect("no containers", 422, "/message", message)?;
    let body = json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}});
    let reply = s.create("pods", body).await?;
    reply.expect("made", 201, "/status/phase", "Pending")?;
    let reply = s
        .merge(&s.core("pods/a/status"), &json!({"status": {"phase": "Running"}}))
        .await?;
    reply.expect("status", 200, "/status/phase", "Running")
}

async fn pods_of_node(s: Subject) -> CheckResult {
    s.create("serviceaccounts", json!({"metadata": {"name": "default"}}))
        .await?;
    let node = format!("node-of-{}", s.namespace());
    for (name, node) in [("a", "another"), ("b", node.as_str())] {
        let containers = json!([{"name": "c", "image": "i:1"}]);
        let spec = json!({"nodeName": node, "containers": containers, "terminationGracePeriodSeconds": 0});
        let reply = s
            .create("pods", json!({"metadata": {"name": name}, "spec": spec}))
            .await?;
        expect("made", reply.code, 201)?;
    }
    let list = s
        .get(&format!("/api/v1/pods?fieldSelector=spec.nodeName%3D{node}"))
        .await?;
    expect("names", list.names().join(" "), "b".into())
}

async fn bindings(s: Subject) -> CheckResult {
    const GROUP: &str = "rbac.authorization.k8s.io";
    let role = json!({"apiGroup": GROUP, "kind": "ClusterRole", "name": "nothing"});
    let subject = json!({"apiGroup": GROUP, "kind": "Group", "name": "no-one"});
    let places = [
        format!("/apis/{GROUP}/v1/namespaces/{}/rolebindings", s.namespace()),
        format!("/apis/{GROUP}/v1/clusterrolebindings"),
    ];
    for place in places {
        // Names of these kinds may contain colons.
        let name = format!("of:{}", s.namespace());
        let path = format!("{place}/{name}");
        let reply = s.get(&path).await?;
        expect("absent", reply.code, 404)?;
        let body = json!({"metadata": {"name": name}, "roleRef": role, "subjects": [subject]});
        let reply = s.post(&place, &body).await?;
        reply.expect("made", 201, "/metadata/generation", Value::Null)?;
        let reply = s.get(&path).await?;
        reply.holds("role", "/roleRef/name", "nothing")?;
        let reply = s.delete(&path, &Value::Null).await?;
        expect("deleted", reply.code, 200)?;
    }
    Ok(())
}

async fn volume_attachment(s: Subject) -> CheckResult {
    let (path, name) = (
        "/apis/storage.k8s.io/v1/volumeattachments",
        format!("of-{}", s.namespace()),
    );
    let spec = json!({"attacher": "example.org", "nodeName": "n", "source": {"persistentVolumeName": "v"}});
    let reply = s.post(path, &json!({"metadata": {"name": name}, "spec": spec})).await?;
    reply.expect("made", 201, "/metadata/generation", Value::Null)?;
    let found = s.get(path).await?;
    expect("listed", found.names().contains(&name), true)?;
    let reply = s.delete(&format!("{path}/{name}"), &Value::Null).await?;
    expect("deleted", reply.code, 200)
}
