use std::collections::BTreeSet;

use metal3_runtime::{guard, patch};
use serde_json::from_value;

use super::*;

pub(super) const IMAGE: &str = "registry.example.org/capm3:v1";
pub(super) const FORMS: [CertificateSource; 2] = [CertificateSource::Mounted, CertificateSource::SelfManaged];

fn ipam_documents(form: CertificateSource) -> Vec<Value> {
    documents_of(&layout::IPAM, IMAGE, form)
}

pub(super) fn find<'a>(documents: &'a [Value], kind: &str) -> &'a Value {
    documents.iter().find(|document| document["kind"] == kind).unwrap()
}

pub(super) fn of_kind<'a>(documents: &'a [Value], kind: &str) -> impl Iterator<Item = &'a Value> {
    documents.iter().filter(move |document| document["kind"] == kind)
}

/// The only namespace comes first and holds all namespaced objects, and names are unique.
pub(super) fn assert_names(documents: &[Value], namespace: &str) {
    assert_eq!(documents[0]["kind"], "Namespace");
    assert_eq!(documents[0]["metadata"]["name"], namespace);
    assert_eq!(of_kind(documents, "Namespace").count(), 1);
    let mut names = BTreeSet::new();
    for document in documents {
        let own = &document["metadata"]["namespace"];
        assert!(own.is_null() || own == namespace, "{document}");
        assert!(names.insert((document["kind"].to_string(), document["metadata"]["name"].to_string())));
    }
}

pub(super) fn assert_provider(documents: &[Value], provider: &str) {
    for document in documents {
        let label = &document["metadata"]["labels"]["cluster.x-k8s.io/provider"];
        assert_eq!(label, provider, "{document}");
    }
}

/// Group, resource and verb of each permission in the roles: exactly the declared ones.
pub(super) fn granted(layout: &Layout, form: CertificateSource) -> BTreeSet<(String, String, String)> {
    let documents = documents_of(layout, IMAGE, form);
    let rules = ["Role", "ClusterRole"].map(|kind| find(&documents, kind)["rules"].clone());
    let text = serde_json::to_string(&rules).unwrap();
    assert!(!text.contains('*'), "{text}");
    let mut granted = Vec::new();
    for rule in rules.iter().flat_map(|rules| rules.as_array().unwrap()) {
        let all = |member: &str| -> Vec<String> { from_value(rule[member].clone()).unwrap() };
        let group = all("apiGroups").first().cloned().unwrap_or_default();
        for resource in all("resources") {
            granted.extend(
                all("verbs")
                    .into_iter()
                    .map(|verb| (group.clone(), resource.clone(), verb)),
            );
        }
    }
    let granted_to = install::granted(layout, form);
    let needs = granted_to.iter().flat_map(|(_, needs)| needs);
    let declared: Vec<_> = needs
        .map(|need| (need.group.clone(), need.path(), need.verb.to_owned()))
        .collect();
    assert_eq!(granted.len(), declared.len());
    let granted = BTreeSet::from_iter(granted);
    assert_eq!(granted, BTreeSet::from_iter(declared));
    granted
}

/// The Deployment is the one that the guard checks, and its labels are selected. As in the Go manager: a selector cannot
/// be changed in place.
pub(super) fn assert_guarded(documents: &[Value], place: (&str, &str), selector: &Value) {
    let deployment = find(documents, "Deployment");
    let found = [&deployment["metadata"]["namespace"], &deployment["metadata"]["name"]];
    assert_eq!(found, [place.0, place.1]);
    assert_eq!(deployment["spec"]["selector"]["matchLabels"], *selector);
    let labels = &deployment["spec"]["template"]["metadata"]["labels"];
    assert_eq!(labels[guard::PART_OF_LABEL.0], guard::PART_OF_LABEL.1);
    for selected in [selector, &find(documents, "Service")["spec"]["selector"]] {
        let mut selected = selected.as_object().unwrap().iter();
        assert!(selected.all(|(name, value)| labels[name] == *value));
    }
}

/// A released file holds the documents of its form.
pub(super) fn assert_round_trip(layout: &Layout, product: &str) {
    let files = files(IMAGE, String::new()).unwrap();
    for (name, form) in [
        ("", CertificateSource::Mounted),
        ("-self-managed", CertificateSource::SelfManaged),
    ] {
        let text = &files[Path::new(&format!("{product}-components{name}.yaml"))];
        let read: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
        assert_eq!(read, documents_of(layout, IMAGE, form));
    }
}

pub(super) fn assert_runs(arguments: impl IntoIterator<Item = String>) {
    let parsed = metal3_flags::parse(arguments);
    assert!(matches!(parsed, Ok(metal3_flags::Request::Run(_))), "{parsed:?}");
}

#[test]
fn the_only_namespace_comes_first_and_holds_all_namespaced_objects() {
    for form in FORMS {
        assert_names(&ipam_documents(form), layout::IPAM.suite.namespace);
    }
}

#[test]
fn every_object_has_the_provider_label_and_a_unique_name() {
    for form in FORMS {
        let documents = ipam_documents(form);
        assert_provider(&documents, "ipam-metal3");
        assert_names(&documents, layout::IPAM.suite.namespace);
    }
}

#[test]
fn roles_grant_exactly_the_declared_permissions() {
    for form in FORMS {
        assert!(!granted(&layout::IPAM, form).is_empty());
    }
}

fn pod(form: CertificateSource) -> Value {
    let documents = ipam_documents(form);
    find(&documents, "Deployment")["spec"]["template"]["spec"].clone()
}

#[test]
fn pods_meet_the_pod_security_standard_of_their_namespace() {
    for form in FORMS {
        let documents = ipam_documents(form);
        let labels = &documents[0]["metadata"]["labels"];
        assert_eq!(labels["pod-security.kubernetes.io/enforce"], "restricted");
        assert_eq!(restricted::violated(&pod(form)), <[&str; 0]>::default());
    }
}

/// Controls, and a violating change of the Pod for each.
fn pod_changes() -> Vec<(&'static str, Value)> {
    vec![
        (
            "HostProcess",
            json!({ "securityContext": { "windowsOptions": { "hostProcess": true } } }),
        ),
        ("Host Namespaces", json!({ "hostPID": true })),
        (
            "AppArmor",
            json!({ "securityContext": { "appArmorProfile": { "type": "Unconfined" } } }),
        ),
        (
            "SELinux",
            json!({ "securityContext": { "seLinuxOptions": { "user": "system_u" } } }),
        ),
        (
            "Sysctls",
            json!({ "securityContext": { "sysctls": [{ "name": "kernel.msgmax", "value": "1" }] } }),
        ),
        (
            "Volume Types",
            json!({ "volumes": [{ "name": "host", "hostPath": { "path": "/" } }] }),
        ),
        (
            "Running as Non-root",
            json!({ "securityContext": { "runAsNonRoot": null } }),
        ),
        (
            "Running as Non-root user",
            json!({ "securityContext": { "runAsUser": 0 } }),
        ),
        ("Seccomp", json!({ "securityContext": { "seccompProfile": null } })),
    ]
}

/// The same for changes of its container.
fn container_changes() -> Vec<(&'static str, Value)> {
    vec![
        (
            "Privileged Containers",
            json!({ "securityContext": { "privileged": true } }),
        ),
        (
            "Host Ports",
            json!({ "ports": [{ "containerPort": 9443, "hostPort": 9443 }] }),
        ),
        (
            "Host Probes / Lifecycle Hooks",
            json!({ "livenessProbe": { "httpGet": { "host": "192.0.2.1" } } }),
        ),
        (
            "/proc Mount Type",
            json!({ "securityContext": { "procMount": "Unmasked" } }),
        ),
        (
            "Privilege Escalation",
            json!({ "securityContext": { "allowPrivilegeEscalation": null } }),
        ),
        (
            "Capabilities dropped",
            json!({ "securityContext": { "capabilities": { "drop": ["KILL"] } } }),
        ),
        (
            "Capabilities added",
            json!({ "securityContext": { "capabilities": { "add": ["NET_ADMIN"] } } }),
        ),
    ]
}

#[test]
fn each_control_has_a_change_that_violates_only_it() {
    let mut met = BTreeSet::new();
    for (control, change) in pod_changes() {
        let mut changed = pod(CertificateSource::Mounted);
        patch::apply(&change, &mut changed);
        assert_eq!(restricted::violated(&changed), [control]);
        met.insert(control);
    }
    for (control, change) in container_changes() {
        let mut changed = pod(CertificateSource::Mounted);
        patch::apply(&change, &mut changed["containers"][0]);
        assert_eq!(restricted::violated(&changed), [control]);
        met.insert(control);
    }
    assert_eq!(met, restricted::CONTROLS.iter().map(|(name, _)| *name).collect());
}

#[test]
fn containers_have_the_expected_name_a_read_only_root_and_limits() {
    for form in FORMS {
        let container = &pod(form)["containers"][0];
        assert_eq!(container["name"], "manager");
        assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
        assert!(container["resources"]["requests"].is_object() && container["resources"]["limits"].is_object());
    }
}

fn check(text: &str) -> Vec<String> {
    match containerfile::parse(text) {
        Ok(instructions) => containerfile::errors(&instructions, &pod(CertificateSource::Mounted)),
        Err(fault) => vec![fault],
    }
}

#[test]
fn the_image_contains_only_the_program_and_has_the_user_of_the_pod() {
    let text = documents::text(&workspace::root().unwrap().join("Containerfile")).unwrap();
    assert_eq!(check(&text), <[&str; 0]>::default());
}

#[test]
fn an_image_with_a_shell_an_unpinned_base_or_another_user_is_rejected() {
    let good = "FROM scratch\nCOPY --chmod=0555 capm3 /capm3\nUSER 65532:65532\nENTRYPOINT [\"/capm3\"]\n";
    assert_eq!(check(good), <[&str; 0]>::default());
    let digest = format!("FROM example.org/static@sha256:{}", "0a".repeat(32));
    assert_eq!(check(&good.replace("FROM scratch", &digest)), <[&str; 0]>::default());
    for (from, to, why) in [
        ("FROM scratch", "FROM debian:12", "neither scratch nor a digest"),
        ("FROM scratch", "FROM static@sha256:12", "neither scratch nor a digest"),
        ("FROM scratch", "FROM scratch AS one", "neither scratch nor a digest"),
        ("FROM scratch\n", "", "does not start with FROM"),
        ("USER 65532:65532", "USER 0", "USER is"),
        ("USER 65532:65532", "USER nonroot", "USER is"),
        ("USER 65532:65532\n", "", "USER is"),
        ("[\"/capm3\"]", "/capm3", "ENTRYPOINT is not"),
        ("[\"/capm3\"]", "[\"/bin/sh\", \"-c\", \"/capm3\"]", "ENTRYPOINT is not"),
        ("[\"/capm3\"]", "[\"/capm3\"", "line 4: neither a list"),
        ("--chmod=0555 ", "", "is not `--chmod=0555`"),
        ("USER", "COPY --chmod=0555 sh /bin/sh\nUSER", "the image contains"),
        ("USER", "RUN chmod 4755 /capm3\nUSER", "RUN is not permitted"),
        ("USER", "ADD https://example.org/x /x\nUSER", "ADD is not permitted"),
        ("USER", "LABEL a=b \\\nUSER", "line 3: a line continuation"),
        ("USER", "COPY <<EOF /etc/passwd\nUSER", "line 3: a here-document"),
        (
            "FROM scratch",
            "# syntax=example.org/frontend\nFROM scratch",
            "line 1: a parser directive",
        ),
    ] {
        let errors = check(&good.replace(from, to));
        assert!(errors.iter().any(|error| error.contains(why)), "{to}: {errors:?}");
    }
}

#[test]
fn the_arguments_with_default_variables_are_valid_flags() {
    for form in FORMS {
        let documents = ipam_documents(form);
        let arguments = &find(&documents, "Deployment")["spec"]["template"]["spec"]["containers"][0]["args"];
        let arguments = arguments.as_array().unwrap().iter().map(|argument| {
            let text = argument.as_str().unwrap();
            match text.split_once("=${") {
                Some((flag, variable)) => {
                    let default = variable.strip_suffix('}').unwrap().split_once(":=").unwrap().1;
                    format!("{flag}={default}")
                }
                None => text.to_owned(),
            }
        });
        assert_runs(arguments);
    }
}

#[test]
fn manifests_round_trip() {
    assert_round_trip(&layout::IPAM, "ipam");
    assert_eq!(files(IMAGE, String::new()).unwrap().len(), 29);
}

#[test]
fn self_managed_manifests_do_not_refer_to_cert_manager() {
    let documents = ipam_documents(CertificateSource::SelfManaged);
    let text = serde_json::to_string(&documents).unwrap();
    assert!(!text.contains("cert-manager") && !text.contains("ipam-webhook-service-cert"));
    assert!(text.contains("--webhook-certificates=self-managed"));
    let with = serde_json::to_string(&ipam_documents(CertificateSource::Mounted)).unwrap();
    assert!(with.contains(INJECTION_ANNOTATION) && with.contains("ipam-webhook-service-cert"));
}

#[test]
fn self_managed_certificates_permit_writing_only_the_own_webhook_configurations() {
    let documents = ipam_documents(CertificateSource::SelfManaged);
    let rules = find(&documents, "ClusterRole")["rules"].as_array().unwrap();
    for (kind, resource, count) in [
        ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations", 1),
        ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations", 1),
        ("CustomResourceDefinition", "customresourcedefinitions", 3),
    ] {
        let installed: BTreeSet<&str> = of_kind(&documents, kind)
            .map(|document| document["metadata"]["name"].as_str().unwrap())
            .collect();
        assert_eq!(installed.len(), count);
        let rule = rules
            .iter()
            .find(|rule| rule["resources"] == json!([resource]))
            .unwrap();
        assert_eq!(rule["verbs"], json!(["get", "patch"]));
        let named = rule["resourceNames"].as_array().unwrap().iter();
        assert_eq!(
            named.map(|name| name.as_str().unwrap()).collect::<BTreeSet<_>>(),
            installed
        );
    }
    let own = find(&documents, "Role")["rules"].as_array().unwrap();
    let secrets: Vec<&Value> = own
        .iter()
        .filter(|rule| rule["resources"] == json!(["secrets"]))
        .collect();
    let (create, rest): (Vec<&Value>, Vec<&Value>) =
        secrets.into_iter().partition(|rule| rule["verbs"] == json!(["create"]));
    assert_eq!((create.len(), rest.len()), (1, 1));
    assert_eq!(rest[0]["resourceNames"], json!(["ipam-webhook-certificates"]));
    let none = ipam_documents(CertificateSource::Mounted);
    assert!(!find(&none, "Role")["rules"].to_string().contains("secrets"));
}

#[test]
fn each_series_of_the_go_managers_has_its_contract() {
    let text = std::fs::read_to_string(metal3_files::workspace::root().unwrap().join(METADATA)).unwrap();
    let metadata: Value = serde_saphyr::from_str(&text).unwrap();
    let series = metadata["releaseSeries"].as_array().unwrap();
    for minor in 1..=14 {
        let expected = if minor < 13 { "v1beta1" } else { "v1beta2" };
        let found: Vec<&Value> = series
            .iter()
            .filter(|row| row["major"] == 1 && row["minor"] == minor)
            .collect();
        assert_eq!(found.len(), 1, "1.{minor}");
        assert_eq!(found[0]["contract"], expected, "1.{minor}");
    }
}

/// clusterctl asks for the value of a variable whose default is empty.
#[test]
fn no_default_of_a_template_is_empty() {
    let release = files("r.example/a:1", String::new()).unwrap();
    let names: Vec<&str> = templates().filter(|name| name.ends_with(".yaml")).collect();
    for name in &names {
        let text = &release[Path::new(name)];
        assert!(text.contains('$'), "{name} has no variable");
        for empty in [":=}", ":-}", "=}"] {
            assert!(!text.contains(empty), "{name} has a variable with an empty default");
        }
    }
    assert_eq!(names.len(), 6, "{names:?}");
}
