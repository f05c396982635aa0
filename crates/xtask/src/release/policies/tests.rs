use kube_cel::KubeCelExt as _;
use kube_cel::cel::{Context, Program, Value as Cel};

use super::super::{documents_of, layout, tests::IMAGE};
use super::*;
use metal3_flags::CertificateSource;

fn installed(layout: &Layout, form: CertificateSource, kind: &str) -> Vec<Value> {
    let documents = documents_of(layout, IMAGE, form).into_iter();
    documents.filter(|document| document["kind"] == kind).collect()
}

/// Whether the policies about a resource accept a write of the account.
fn accepts(layout: &Layout, resource: &str, old: &Value, new: &Value) -> bool {
    let policies = installed(layout, CertificateSource::SelfManaged, "ValidatingAdmissionPolicy");
    let about = |policy: &&Value| {
        let resources = policy["spec"]["matchConstraints"]["resourceRules"][0]["resources"].as_array();
        resources.unwrap().iter().any(|found| found == resource)
    };
    let policy = policies.iter().find(about).unwrap();
    let user = format!("system:serviceaccount:{}:{}", layout.suite.namespace, layout.account);
    let request = json!({ "userInfo": { "username": user } });
    let evaluate = |expression: &Value| {
        let mut context = Context::default().with_all();
        for (name, value) in [("object", new), ("oldObject", old), ("request", &request)] {
            context.add_variable(name, value).unwrap();
        }
        let program = Program::compile(expression.as_str().unwrap()).unwrap();
        // An error rejects the write, by the failure policy.
        matches!(program.execute(&context), Ok(Cel::Bool(true)))
    };
    assert_eq!(policy["spec"]["failurePolicy"], "Fail");
    assert!(evaluate(&policy["spec"]["matchConditions"][0]["expression"]));
    evaluate(&policy["spec"]["validations"][0]["expression"])
}

fn secret(namespace: &str, name: &str, kind: &str, data: &Value) -> Value {
    json!({ "metadata": { "namespace": namespace, "name": name, "labels": {} }, "type": kind, "data": data })
}

/// Whether the policy for machines accepts each write of a Secret.
fn assert_secrets(table: &[(&str, Value, Value, bool)]) {
    for (write, old, new, accepted) in table {
        assert_eq!(
            accepts(&layout::INFRASTRUCTURE, "secrets", old, new),
            *accepted,
            "{write}"
        );
    }
}

/// The garbage collector deletes an object that has only such owners.
fn absent_owner() -> Value {
    json!([{ "apiVersion": "v1", "kind": "Namespace", "name": "gone", "uid": "00000000-0000-4000-8000-000000000000" }])
}

fn machine_data() -> Value {
    secret("tenant", "m-user", SECRET_TYPE, &json!({ "userData": "eA==" }))
}

#[test]
fn of_new_secrets_only_data_of_machines_and_own_certificates_are_written() {
    let (home, own) = (layout::INFRASTRUCTURE.suite.namespace, "capm3-webhook-certificates");
    let token = secret("tenant", "t", "kubernetes.io/service-account-token", &Value::Null);
    let of_user = secret("tenant", "bmc", "Opaque", &json!({ "password": "eA==" }));
    let certificates = |namespace: &str, key: &str| secret(namespace, own, "Opaque", &json!({ "tls.key": key }));
    assert_secrets(&[
        ("data of a machine", Value::Null, machine_data(), true),
        ("a token", Value::Null, token, false),
        ("a Secret of a user", Value::Null, of_user, false),
        ("certificates", Value::Null, certificates(home, "eA=="), true),
        (
            "renewed certificates",
            certificates(home, "eA=="),
            certificates(home, "eQ=="),
            true,
        ),
        (
            "certificates elsewhere",
            Value::Null,
            certificates("tenant", "eA=="),
            false,
        ),
    ]);
    for (layout, accepted) in [
        (layout::IPAM, false),
        (layout::HOSTS, false),
        (layout::ALL_IN_ONE, true),
    ] {
        assert_eq!(
            accepts(&layout, "secrets", &Value::Null, &machine_data()),
            accepted,
            "{}",
            layout.name
        );
    }
}

#[test]
fn of_secrets_that_exist_only_metadata_are_written() {
    let bmc = |change: fn(&mut Value)| {
        let mut secret = secret("tenant", "bmc", "Opaque", &json!({ "password": "eA==" }));
        change(&mut secret);
        secret
    };
    let labelled = bmc(|it| it["metadata"]["labels"] = json!({ "environment.metal3.io": "baremetal" }));
    let emptied = bmc(|it| drop(it.as_object_mut().unwrap().remove("data")));
    let rewritten = secret("tenant", "m-user", SECRET_TYPE, &json!({}));
    assert_secrets(&[
        ("a label", bmc(|_| ()), labelled, true),
        (
            "a password",
            bmc(|_| ()),
            bmc(|it| it["data"]["password"] = "eQ==".into()),
            false,
        ),
        (
            "another type",
            bmc(|_| ()),
            bmc(|it| it["type"] = SECRET_TYPE.into()),
            false,
        ),
        ("no data", bmc(|_| ()), emptied.clone(), false),
        ("a label without data", emptied.clone(), emptied, true),
        ("data of a machine", machine_data(), rewritten, false),
        (
            "no change any more",
            bmc(|_| ()),
            bmc(|it| it["immutable"] = true.into()),
            false,
        ),
        (
            "an owner that does not exist",
            bmc(|_| ()),
            bmc(|it| it["metadata"]["ownerReferences"] = absent_owner()),
            false,
        ),
    ]);
}

/// A Secret of a rendered endpoint: `spec.controlPlaneEndpointSource.render` of a Metal3Cluster.
#[test]
fn secrets_of_a_rendered_endpoint_are_written_and_no_secret_becomes_one() {
    let endpoint = |owner: &str, kind: &str, content: &str| {
        let mut secret = secret("tenant", "endpoint", kind, &json!({ "pod.yaml": content }));
        secret["metadata"]["ownerReferences"] = json!([
            { "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": owner, "name": "c", "uid": "u" },
        ]);
        secret
    };
    let of_cluster = |content: &str| endpoint("Metal3Cluster", "Opaque", content);
    let mut foreign = of_cluster("eA==");
    foreign["metadata"]["ownerReferences"][0]["apiVersion"] = "example.org/v1".into();
    let plain = secret("tenant", "endpoint", "Opaque", &json!({ "pod.yaml": "eA==" }));
    assert_secrets(&[
        ("a new endpoint", Value::Null, of_cluster("eA=="), true),
        ("another endpoint", of_cluster("eA=="), of_cluster("eQ=="), true),
        (
            "a token",
            Value::Null,
            endpoint("Metal3Cluster", "kubernetes.io/service-account-token", "eA=="),
            false,
        ),
        (
            "another owner",
            Value::Null,
            endpoint("Metal3Machine", "Opaque", "eA=="),
            false,
        ),
        ("another group", Value::Null, foreign, false),
        (
            "content of another owner",
            endpoint("Metal3Machine", "Opaque", "eA=="),
            endpoint("Metal3Machine", "Opaque", "eQ=="),
            false,
        ),
        ("a new owner", plain.clone(), of_cluster("eA=="), false),
        ("no owner any more", of_cluster("eA=="), plain, false),
    ]);
    assert!(!accepts(&layout::HOSTS, "secrets", &Value::Null, &of_cluster("eA==")));
}

/// The copy of a Secret for the host of a HostClaim, with `--hostclaims`.
#[test]
fn copies_for_claims_are_written_by_the_program_of_hosts_and_no_secret_becomes_one() {
    let copy = |name: &str, controller: Value, content: &str| {
        let mut secret = secret("metal", name, "Opaque", &json!({ "userData": content }));
        secret["metadata"]["ownerReferences"] = json!([
            { "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "name": "h", "uid": "u", "controller": controller },
        ]);
        secret
    };
    let own = |content: &str| copy("h.claim-user-data", json!(true), content);
    let login = |content: &str| copy("bmc", json!(true), content);
    let plain = secret("metal", "h.claim-user-data", "Opaque", &json!({ "userData": "eA==" }));
    for (write, old, new, accepted) in [
        ("a new copy", Value::Null, own("eA=="), true),
        ("other content", own("eA=="), own("eQ=="), true),
        ("another name", Value::Null, login("eA=="), false),
        ("content of another name", login("eA=="), login("eQ=="), false),
        (
            "an owner that is no controller",
            Value::Null,
            copy("h.claim-user-data", json!(false), "eA=="),
            false,
        ),
        (
            "content of a Secret without owner",
            plain.clone(),
            {
                let mut changed = plain.clone();
                changed["data"]["userData"] = "eQ==".into();
                changed
            },
            false,
        ),
        ("a new owner", plain, own("eA=="), false),
    ] {
        assert_eq!(accepts(&layout::HOSTS, "secrets", &old, &new), accepted, "{write}");
        assert!(
            !accepted || !accepts(&layout::INFRASTRUCTURE, "secrets", &old, &new),
            "{write}"
        );
    }
}

/// The names of the certificate Secrets are those of the program.
#[test]
fn the_own_secret_is_named_in_each_policy() {
    for layout in [layout::IPAM, layout::INFRASTRUCTURE, layout::HOSTS, layout::ALL_IN_ONE] {
        let scope = layout.certificate_scope();
        let own = secret(
            layout.suite.namespace,
            scope.secret(),
            "Opaque",
            &json!({ "a": "eA==" }),
        );
        assert!(accepts(&layout, "secrets", &Value::Null, &own), "{}", layout.name);
    }
}

/// Members of webhooks and definitions that stay.
fn changes_beyond_the_ca() -> [(&'static str, Value); 16] {
    [
        ("/webhooks/0/clientConfig/service/namespace", "other".into()),
        ("/webhooks/0/failurePolicy", "Ignore".into()),
        ("/webhooks/0/rules/0/resources", json!(["secrets"])),
        ("/webhooks", json!([])),
        (
            "/spec/conversion/webhook/clientConfig/service/namespace",
            "other".into(),
        ),
        ("/spec/conversion/strategy", "None".into()),
        ("/spec/versions/0/served", false.into()),
        ("/spec/names/plural", "other".into()),
        ("/webhooks/0/timeoutSeconds", 1.into()),
        ("/webhooks/0/admissionReviewVersions", json!(["v1beta1"])),
        ("/webhooks/0/namespaceSelector", json!({ "matchLabels": { "a": "b" } })),
        ("/spec/conversion/webhook/conversionReviewVersions", json!(["v1beta1"])),
        ("/metadata/ownerReferences", absent_owner()),
        ("/metadata/finalizers", json!(["example.org/never"])),
        (
            "/metadata/annotations",
            json!({ "cert-manager.io/inject-ca-from": "tenant/certificate" }),
        ),
        ("/metadata/labels", json!({ "a": "b" })),
    ]
}

#[test]
fn of_webhooks_and_conversions_only_the_ca_is_written() {
    for layout in [layout::IPAM, layout::INFRASTRUCTURE, layout::HOSTS, layout::ALL_IN_ONE] {
        let mut checked = 0;
        for (kind, resource, ca) in [
            (
                "MutatingWebhookConfiguration",
                "mutatingwebhookconfigurations",
                "/webhooks/0/clientConfig",
            ),
            (
                "ValidatingWebhookConfiguration",
                "validatingwebhookconfigurations",
                "/webhooks/0/clientConfig",
            ),
            (
                "CustomResourceDefinition",
                "customresourcedefinitions",
                "/spec/conversion/webhook/clientConfig",
            ),
        ] {
            for stored in installed(&layout, CertificateSource::SelfManaged, kind) {
                let Some(client) = stored.pointer(ca) else { continue };
                let mut injected = stored.clone();
                let mut with_ca = client.clone();
                with_ca["caBundle"] = "eA==".into();
                *injected.pointer_mut(ca).unwrap() = with_ca;
                assert!(
                    accepts(&layout, resource, &stored, &injected),
                    "{}",
                    stored["metadata"]["name"]
                );
                assert!(!accepts(&layout, resource, &Value::Null, &injected));
                for (path, value) in &changes_beyond_the_ca() {
                    let mut changed = injected.clone();
                    let (parent, name) = path.rsplit_once('/').unwrap();
                    let is_foreign = path.starts_with("/webhooks") && kind == "CustomResourceDefinition";
                    let Some(parent) = changed.pointer_mut(parent).filter(|_| !is_foreign) else {
                        continue;
                    };
                    parent[name] = value.clone();
                    assert!(!accepts(&layout, resource, &stored, &changed), "{kind} {path}");
                    checked += 1;
                }
            }
        }
        assert!(checked >= 3, "{}: {checked}", layout.name);
    }
}

/// Every member of a webhook in `admissionregistration.k8s.io/v1` is compared; of the client, all but the CA.
#[test]
fn each_member_of_a_webhook_is_in_the_policy() {
    let expression = configurations().expression;
    for member in [
        "name",
        "admissionReviewVersions",
        "clientConfig.service",
        "clientConfig.url",
        "failurePolicy",
        "matchConditions",
        "matchPolicy",
        "namespaceSelector",
        "objectSelector",
        "reinvocationPolicy",
        "rules",
        "sideEffects",
        "timeoutSeconds",
    ] {
        let same = format!("new.{member} == old.{member}");
        assert!(expression.contains(&same), "{member}");
    }
}

#[test]
fn hosts_are_not_deleted_and_lose_owners_and_get_none() {
    let host = |owners: &Value| json!({ "metadata": { "name": "h", "ownerReferences": owners } });
    let none = json!({ "metadata": { "name": "h" } });
    for layout in [layout::INFRASTRUCTURE, layout::HOSTS, layout::ALL_IN_ONE] {
        let accepts = |old: &Value, new: &Value| accepts(&layout, "baremetalhosts", old, new);
        let owned = host(&absent_owner());
        assert!(accepts(&owned, &none) && accepts(&owned, &owned) && accepts(&none, &none));
        assert!(!accepts(&none, &owned) && !accepts(&host(&json!([])), &owned));
        assert!(
            !accepts(&none, &Value::Null) && !accepts(&owned, &Value::Null),
            "deleted"
        );
        let policies = installed(&layout, CertificateSource::SelfManaged, "ValidatingAdmissionPolicy");
        let rules = policies
            .iter()
            .map(|one| &one["spec"]["matchConstraints"]["resourceRules"][0]);
        let mut rules = rules.filter(|rule| rule["resources"] == json!(["baremetalhosts"]));
        assert_eq!(rules.next().unwrap()["operations"], json!(["UPDATE", "DELETE"]));
    }
}

#[test]
fn policies_are_bound_and_an_account_that_go_managers_have_too_has_them_only_with_own_certificates() {
    for layout in [layout::IPAM, layout::INFRASTRUCTURE, layout::HOSTS, layout::ALL_IN_ONE] {
        let name = |document: &Value| document["metadata"]["name"].clone();
        let writes_hosts = usize::from(layout.name != layout::IPAM.name);
        let is_own = layout.name == layout::ALL_IN_ONE.name;
        let with_others = if is_own { 1 + writes_hosts } else { 0 };
        for (form, count) in [
            (CertificateSource::SelfManaged, 3 + writes_hosts),
            (CertificateSource::Mounted, with_others),
        ] {
            let policies = installed(&layout, form, "ValidatingAdmissionPolicy");
            let bindings = installed(&layout, form, "ValidatingAdmissionPolicyBinding");
            assert_eq!((policies.len(), bindings.len()), (count, count), "{}", layout.name);
            for (policy, binding) in policies.iter().zip(&bindings) {
                assert_eq!(
                    (&binding["spec"]["policyName"], name(binding)),
                    (&name(policy), name(policy))
                );
                assert_eq!(binding["spec"]["validationActions"], json!(["Deny"]));
            }
        }
    }
}

/// So what is tested here of one form, and on a real API server, holds for both.
#[test]
fn secrets_and_hosts_have_the_same_policies_with_each_issuer_of_certificates() {
    let of = |form| installed(&layout::ALL_IN_ONE, form, "ValidatingAdmissionPolicy");
    let with_own = of(CertificateSource::SelfManaged);
    let mut about = Vec::new();
    for policy in of(CertificateSource::Mounted) {
        assert!(with_own.contains(&policy), "{policy}");
        about.push(policy["spec"]["matchConstraints"]["resourceRules"][0]["resources"].clone());
    }
    assert_eq!(about, [json!(["secrets"]), json!(["baremetalhosts"])]);
}
