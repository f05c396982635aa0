//! Admission policies about the writes of the service account.
//!
//! It has permissions that RBAC cannot narrow down: a role names no type of a Secret and no member of an object. With its own
//! certificates it has the most of them. `clusterctl` does not know these kinds, and what has policies is installed without it.

use metal3_api::infrastructure::names::SECRET_TYPE;
use metal3_api::infrastructure::v1beta2::Metal3Cluster;
use metal3_api::kind::Kind as _;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_flags::CertificateSource;
use metal3_runtime::access::{Permission, verb};
use serde_json::{Value, json};

use super::install::cluster_object;
use super::layout::Layout;

const ADMISSION: &str = "admissionregistration.k8s.io/v1";

/// A rule about writes: the resources, and a CEL expression that is true for an accepted write.
struct Policy {
    name: &'static str,
    resources: Value,
    expression: String,
    message: String,
}

/// The policies with their bindings. The account of a layout that takes the place of a Go manager is also that of the Go manager,
/// which writes more: with certificates of others, of which that one has the same, it has no policies.
pub(super) fn documents(layout: &Layout, certificates: CertificateSource) -> Vec<Value> {
    let mut policies = match certificates {
        CertificateSource::SelfManaged => vec![secrets(layout), configurations(), definitions()],
        CertificateSource::Mounted if layout.has_own_account => vec![secrets(layout)],
        CertificateSource::Mounted => return Vec::new(),
    };
    policies.extend(hosts(layout));
    policies
        .into_iter()
        .flat_map(|policy| policy.documents(layout))
        .collect()
}

impl Policy {
    fn documents(self, layout: &Layout) -> [Value; 2] {
        let name = layout.suite.named(self.name);
        let account = format!("system:serviceaccount:{}:{}", layout.suite.namespace, layout.account);
        let spec = json!({
            "failurePolicy": "Fail",
            "matchConstraints": { "resourceRules": [self.resources] },
            "matchConditions": [{
                "name": "own-account", "expression": format!("request.userInfo.username == '{account}'"),
            }],
            "validations": [{ "expression": self.expression, "message": self.message }],
        });
        let binding = json!({ "policyName": name, "validationActions": ["Deny"] });
        [
            cluster_object(
                layout,
                ADMISSION,
                "ValidatingAdmissionPolicy",
                &name,
                json!({ "spec": spec }),
            ),
            cluster_object(
                layout,
                ADMISSION,
                "ValidatingAdmissionPolicyBinding",
                &name,
                json!({ "spec": binding }),
            ),
        ]
    }
}

fn resources(group: &str, operations: &[&str], resources: &[&str]) -> Value {
    json!({ "apiGroups": [group], "apiVersions": ["v1"], "operations": operations, "resources": resources })
}

/// The same metadata. An owner that does not exist would let the garbage collector delete the object, which needs no
/// permission to delete; an annotation could have another program write the object.
fn kept_metadata() -> String {
    let members = ["ownerReferences", "finalizers", "labels", "annotations"];
    let same = members.map(|member| format!("({})", kept(&format!("metadata.{member}"))));
    same.join(" && ")
}

/// Equal members, of which both or none are present.
fn kept(member: &str) -> String {
    let (new, old) = (format!("object.{member}"), format!("oldObject.{member}"));
    format!("has({new}) == has({old}) && (!has({new}) || {new} == {old})")
}

/// Whether a Metal3Cluster owns an object, so that the Secret holds its rendered endpoint.
fn is_of_cluster(object: &str) -> String {
    format!(
        "has({object}.metadata.ownerReferences) && {object}.metadata.ownerReferences.exists(owner, \
         owner.kind == '{}' && owner.apiVersion.startsWith('{}/'))",
        Metal3Cluster::KIND,
        Metal3Cluster::GROUP,
    )
}

/// Whether a Secret is the copy for a HostClaim that a host controls.
fn is_of_claim(object: &str) -> String {
    format!(
        "{object}.metadata.name.matches('[.]claim-(user-data|network-data|meta-data|registry-login)$') && \
         {object}.type in ['Opaque', 'kubernetes.io/dockerconfigjson'] && has({object}.metadata.ownerReferences) && \
         {object}.metadata.ownerReferences.exists(owner, owner.kind == '{}' && \
         owner.apiVersion.startsWith('{}/') && has(owner.controller) && owner.controller)",
        BareMetalHost::KIND,
        BareMetalHost::GROUP,
    )
}

/// A Secret that exists is labelled only: it keeps its owners, without which it could be deleted or become a rendered
/// endpoint. New ones hold data of machines, a rendered endpoint, which is rendered again, or the copy for a HostClaim, which is
/// emptied. The Secret with the certificates is its own, if it issues them.
fn secrets(layout: &Layout) -> Policy {
    let (scope, namespace) = (layout.certificate_scope(), layout.suite.namespace);
    let own = format!(
        "object.metadata.namespace == '{namespace}' && object.metadata.name == '{}' && object.type == 'Opaque'",
        scope.secret(),
    );
    let same = ["type", "immutable", "metadata.ownerReferences"].map(|member| format!("({})", kept(member)));
    let (new, content) = match layout.parts().any(|part| part.creates_data) {
        true => (
            format!(
                "object.type == '{SECRET_TYPE}' || (object.type == 'Opaque' && {})",
                is_of_cluster("object")
            ),
            format!("({}) || ({})", is_of_cluster("oldObject"), kept("data")),
        ),
        false => ("false".to_owned(), kept("data")),
    };
    let (new, content) = match layout.parts().any(|part| part.unbound.is_some()) {
        true => (
            format!("({new}) || ({})", is_of_claim("object")),
            format!("{content} || ({})", is_of_claim("oldObject")),
        ),
        false => (new, content),
    };
    let changed = format!("{} && ({content})", same.join(" && "));
    Policy {
        name: "secret-writes",
        resources: resources("", &["CREATE", "UPDATE"], &["secrets"]),
        expression: format!("({own}) || (oldObject == null ? ({new}) : ({changed}))"),
        message: "this program creates Secrets with data of machines, endpoints and HostClaims, and changes no content of others"
            .to_owned(),
    }
}

/// Of a webhook only the CA changes.
fn configurations() -> Policy {
    let members = [
        "clientConfig.service",
        "clientConfig.url",
        "namespaceSelector",
        "objectSelector",
        "matchConditions",
        "timeoutSeconds",
        "reinvocationPolicy",
    ];
    let always = [
        "name",
        "rules",
        "failurePolicy",
        "sideEffects",
        "matchPolicy",
        "admissionReviewVersions",
    ];
    let mut same: Vec<String> = always
        .iter()
        .map(|member| format!("new.{member} == old.{member}"))
        .collect();
    same.extend(members.iter().map(|member| {
        let (new, old) = (format!("new.{member}"), format!("old.{member}"));
        format!("has({new}) == has({old}) && (!has({new}) || {new} == {old})")
    }));
    let expression = format!(
        "object.webhooks.size() == oldObject.webhooks.size() && \
         object.webhooks.all(new, oldObject.webhooks.exists(old, {}))",
        same.join(" && "),
    );
    Policy {
        name: "webhook-writes",
        resources: resources(
            "admissionregistration.k8s.io",
            &["CREATE", "UPDATE"],
            &["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
        ),
        expression: format!("oldObject != null && {} && {expression}", kept_metadata()),
        message: "this program changes only the CA of webhooks".to_owned(),
    }
}

/// Of a definition only the CA of its conversion changes.
fn definitions() -> Policy {
    let same = ["group", "names", "scope", "versions"]
        .map(|member| format!("object.spec.{member} == oldObject.spec.{member}"));
    let conversion = ["clientConfig.service", "clientConfig.url", "conversionReviewVersions"]
        .map(|member| format!("({})", kept(&format!("spec.conversion.webhook.{member}"))));
    Policy {
        name: "definition-writes",
        resources: resources(
            "apiextensions.k8s.io",
            &["CREATE", "UPDATE"],
            &["customresourcedefinitions"],
        ),
        expression: format!(
            "oldObject != null && {} && {} && object.spec.conversion.strategy == oldObject.spec.conversion.strategy && \
             ({}) && {}",
            kept_metadata(),
            same.join(" && "),
            kept("spec.preserveUnknownFields"),
            conversion.join(" && "),
        ),
        message: "this program changes only the CA of a conversion".to_owned(),
    }
}

/// A host is not deleted, and gets no owner: one that does not exist would let the garbage collector delete the host. The role of
/// machines may delete hosts, because an API server that enforces permissions of owner references requires that of who removes one.
fn hosts(layout: &Layout) -> Option<Policy> {
    let may_patch = Permission::of::<verb::Patch, BareMetalHost>();
    let mut granted = layout.parts().flat_map(|part| (part.grants)());
    granted
        .any(|(_, permissions)| permissions.contains(&may_patch))
        .then(|| Policy {
            name: "host-writes",
            resources: json!({
                "apiGroups": [BareMetalHost::GROUP], "apiVersions": ["*"], "operations": ["UPDATE", "DELETE"],
                "resources": [BareMetalHost::PLURAL],
            }),
            expression: "object != null && (!has(object.metadata.ownerReferences) || \
                     (has(oldObject.metadata.ownerReferences) && \
                     object.metadata.ownerReferences.all(owner, owner in oldObject.metadata.ownerReferences)))"
                .to_owned(),
            message: "this program deletes no host, and gives none an owner".to_owned(),
        })
}

#[cfg(test)]
mod tests;
