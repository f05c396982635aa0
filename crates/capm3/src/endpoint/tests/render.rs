//! Rendering: the writes, and their obstacles.

use k8s_openapi::api::core::v1::Secret;
use serde_json::json;

use super::super::render::{RenderInput, SecretWrite, render};
use super::super::rendered::{Digester, RenderedSecret};
use super::super::source::Template;
use super::*;

const KNOWN: &str = "192.0.2.5:6443";

fn with_source() -> Metal3Cluster {
    let render = json!({ "configMapName": "vip", "key": "vip.yaml", "secretName": "edge-vip" });
    object(json!({ "controlPlaneEndpointSource": { "type": "IPPool", "render": render } }))
}

fn secret(uid: &str, text: &str) -> Secret {
    let owner = json!({ "apiVersion": "x/v1", "kind": "Metal3Cluster", "name": "edge", "uid": uid });
    serde_json::from_value(json!({
        "metadata": { "name": "edge-vip", "resourceVersion": "3", "ownerReferences": [owner] },
        "data": { "vip.yaml": k8s_openapi::ByteString(text.as_bytes().to_vec()), "other": "AA==" },
    }))
    .unwrap()
}

fn plan(
    template: &Template,
    endpoint: Option<&str>,
    secret: Option<&Secret>,
    refused: Option<&str>,
) -> (Option<SecretWrite>, String) {
    let endpoint = endpoint.map(address);
    let (object, digester) = (with_source(), Digester::default());
    let secret = secret.map(|secret| RenderedSecret::of(secret, "vip.yaml", &digester));
    let input = RenderInput {
        object: &object,
        cluster: "edge",
        endpoint: endpoint.as_ref(),
        template: Some(template),
        secret: secret.as_ref(),
        digester: &digester,
        refused,
    };
    let (write, condition) = render(&input).unwrap();
    let condition = condition.standard(None, at(0));
    (
        write,
        format!("{:?} {} {}", condition.status, condition.reason, condition.message),
    )
}

fn text(text: &str) -> Template {
    Template::Text(text.to_owned())
}

#[test]
fn all_placeholders_of_host_and_port_are_replaced_and_nothing_else() {
    let template = text("${HOST} $HOST {{HOST}} ${PORT} ${HOST}${PORT} ${OTHER}");
    let (Some(SecretWrite::Create(new_secret)), condition) = plan(&template, Some("[2001:db8::5]:8443"), None, None)
    else {
        panic!("a Secret is made");
    };
    let content = &new_secret.data.as_ref().unwrap()["vip.yaml"].0;
    assert_eq!(
        String::from_utf8_lossy(content),
        "2001:db8::5 $HOST {{HOST}} 8443 2001:db8::58443 ${OTHER}"
    );
    assert_eq!(new_secret.metadata.owner_references.as_ref().unwrap()[0].uid, "u1");
    assert_eq!(condition, "True Rendered ");
}

#[test]
fn current_secret_is_not_written_and_another_is_patched_at_its_version() {
    let template = text("at ${HOST}");
    let kept = secret("u1", "at 192.0.2.5");
    assert_eq!(
        plan(&template, Some(KNOWN), Some(&kept), None),
        (None, "True Rendered ".to_owned())
    );
    let (Some(SecretWrite::Patch(name, patch)), _) = plan(&template, Some("192.0.2.6:6443"), Some(&kept), None) else {
        panic!("the Secret is changed");
    };
    let document = patch.into_document();
    assert_eq!(
        (name.as_str(), &document["metadata"]),
        ("edge-vip", &json!({ "resourceVersion": "3" }))
    );
    assert_eq!(document["data"].as_object().unwrap().len(), 1, "other data is kept");
}

fn assert_not_written((write, condition): &(Option<SecretWrite>, String), expected: &str) {
    assert_eq!(*write, None, "{condition}");
    assert!(condition.starts_with(&format!("False {expected}")), "{condition}");
}

#[test]
fn missing_template_is_reported_with_the_remedy_and_nothing_is_written() {
    let forbidden = Template::Forbidden {
        verb: "list",
        resource: "configmaps".to_owned(),
    };
    let kept = secret("u1", "old");
    for (template, expected) in [
        (
            Template::Absent,
            "TemplateNotFound ConfigMap vip does not exist; create it",
        ),
        (
            Template::WithoutKey,
            "TemplateNotFound ConfigMap vip has no key vip.yaml",
        ),
        (
            forbidden,
            "TemplateForbidden ConfigMap vip: this manager may not list configmaps",
        ),
        (
            Template::Unknown("odd".to_owned()),
            "WaitingForTemplate ConfigMap vip cannot be read: odd",
        ),
    ] {
        assert_not_written(&plan(&template, Some(KNOWN), Some(&kept), None), expected);
    }
}

#[test]
fn secret_that_cannot_be_written_is_reported_with_the_remedy() {
    let (own, foreign, mut deleting) = (secret("u1", "old"), secret("u2", "old"), secret("u1", "old"));
    deleting.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    for (endpoint, secret, refused, expected) in [
        (None, &own, None, "WaitingForEndpoint waiting for the endpoint"),
        (
            Some(KNOWN),
            &foreign,
            None,
            "SecretNotOurs Secret edge-vip has another owner; name another Secret",
        ),
        (
            Some(KNOWN),
            &deleting,
            None,
            "WaitingForSecret Secret edge-vip is being deleted",
        ),
        (
            Some(KNOWN),
            &own,
            Some("no"),
            "SecretRefused Secret edge-vip cannot be written: no",
        ),
    ] {
        assert_not_written(&plan(&text("x"), endpoint, Some(secret), refused), expected);
    }
}

#[test]
fn secret_of_a_cluster_is_not_rendered() {
    let digester = Digester::default();
    for name in ["edge-kubeconfig", "other-ca", "edge-apiserver-etcd-client"] {
        let render_to = json!({ "configMapName": "vip", "key": "value", "secretName": name });
        let object = object(json!({ "controlPlaneEndpointSource": { "type": "IPPool", "render": render_to } }));
        let endpoint = address(KNOWN);
        let template = text("x");
        let input = RenderInput {
            object: &object,
            cluster: "edge",
            endpoint: Some(&endpoint),
            template: Some(&template),
            secret: None,
            digester: &digester,
            refused: None,
        };
        let (write, condition) = render(&input).unwrap();
        let condition = condition.standard(None, at(0));
        assert!(write.is_none(), "{name}");
        assert!(
            condition.message.contains("render.secretName") && condition.message.contains("choose another"),
            "{}",
            condition.message
        );
    }
}

#[test]
fn debug_output_omits_the_content_of_a_secret() {
    let (write, _) = plan(&text("hush ${HOST}"), Some(KNOWN), None, None);
    let shown = format!("{:?}", write.unwrap());
    assert!(!shown.contains("hush") && shown.contains("Create(edge-vip)"), "{shown}");
}
