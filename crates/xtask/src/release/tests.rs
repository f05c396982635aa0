use std::collections::BTreeSet;

use metal3_runtime::patch;

use super::*;

const IMAGE: &str = "registry.example.org/capm3:v1";
const FORMS: [CertificateSource; 2] = [CertificateSource::Mounted, CertificateSource::SelfManaged];

fn ipam_documents(image: &str, form: CertificateSource) -> Vec<Value> {
    documents_of(&layout::IPAM, image, form)
}

fn find<'a>(documents: &'a [Value], kind: &str) -> &'a Value {
    documents.iter().find(|document| document["kind"] == kind).unwrap()
}

#[test]
fn there_is_one_namespace_it_comes_first_and_all_that_lives_in_one_lives_in_it() {
    for form in FORMS {
        let documents = ipam_documents(IMAGE, form);
        assert_eq!(documents[0]["kind"], "Namespace");
        let namespace = &documents[0]["metadata"]["name"];
        assert_eq!(
            documents
                .iter()
                .filter(|document| document["kind"] == "Namespace")
                .count(),
            1
        );
        for document in &documents {
            let own = &document["metadata"]["namespace"];
            assert!(own.is_null() || own == namespace, "{document}");
        }
    }
}

#[test]
fn every_object_carries_the_label_of_the_provider_and_has_a_name_of_its_own() {
    for form in FORMS {
        let documents = ipam_documents(IMAGE, form);
        let mut names = BTreeSet::new();
        for document in &documents {
            assert_eq!(
                document["metadata"]["labels"]["cluster.x-k8s.io/provider"], "ipam-metal3",
                "{document}"
            );
            assert!(names.insert((document["kind"].to_string(), document["metadata"]["name"].to_string())));
        }
    }
}

#[test]
fn roles_grant_no_wildcard_and_no_more_than_was_declared() {
    for form in FORMS {
        let documents = ipam_documents(IMAGE, form);
        let rules = ["Role", "ClusterRole"].map(|kind| find(&documents, kind)["rules"].clone());
        let text = serde_json::to_string(&rules).unwrap();
        assert!(!text.contains('*'), "{text}");
        let granted: usize = rules
            .iter()
            .flat_map(|rules| rules.as_array().unwrap())
            .map(|rule| rule["resources"].as_array().unwrap().len() * rule["verbs"].as_array().unwrap().len())
            .sum();
        let declared: usize = install::granted(&layout::IPAM, form)
            .iter()
            .map(|(_, needs)| needs.len())
            .sum();
        assert_eq!(granted, declared);
    }
}

fn pod(form: CertificateSource) -> Value {
    let documents = ipam_documents(IMAGE, form);
    find(&documents, "Deployment")["spec"]["template"]["spec"].clone()
}

#[test]
fn pods_keep_every_control_of_the_level_that_their_namespace_demands() {
    for form in FORMS {
        let documents = ipam_documents(IMAGE, form);
        let labels = &documents[0]["metadata"]["labels"];
        assert_eq!(labels["pod-security.kubernetes.io/enforce"], "restricted");
        assert_eq!(restricted::broken(&pod(form)), <[&str; 0]>::default());
    }
}

/// Controls, and a change to the Pod that breaks each.
fn of_pod() -> Vec<(&'static str, Value)> {
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

/// The same for changes to its container.
fn of_container() -> Vec<(&'static str, Value)> {
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
fn each_control_is_broken_by_a_change_that_breaks_no_other() {
    let mut met = BTreeSet::new();
    for (control, change) in of_pod() {
        let mut changed = pod(CertificateSource::Mounted);
        patch::apply(&change, &mut changed);
        assert_eq!(restricted::broken(&changed), [control]);
        met.insert(control);
    }
    for (control, change) in of_container() {
        let mut changed = pod(CertificateSource::Mounted);
        patch::apply(&change, &mut changed["containers"][0]);
        assert_eq!(restricted::broken(&changed), [control]);
        met.insert(control);
    }
    assert_eq!(met, restricted::CONTROLS.iter().map(|(name, _)| *name).collect());
}

#[test]
fn containers_have_a_name_that_the_installer_knows_a_read_only_root_and_bounds() {
    for form in FORMS {
        let container = &pod(form)["containers"][0];
        assert_eq!(container["name"], "manager");
        assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
        assert!(container["resources"]["requests"].is_object() && container["resources"]["limits"].is_object());
    }
}

fn judge(text: &str) -> Vec<String> {
    match containerfile::parse(text) {
        Ok(instructions) => containerfile::faults(&instructions, &pod(CertificateSource::Mounted)),
        Err(fault) => vec![fault],
    }
}

#[test]
fn the_image_holds_the_program_alone_and_runs_it_as_the_user_of_the_pod() {
    let text = documents::text(&workspace::root().unwrap().join("Containerfile")).unwrap();
    assert_eq!(judge(&text), <[&str; 0]>::default());
}

#[test]
fn an_image_with_a_shell_a_loose_base_or_another_user_is_faulted() {
    let good = "FROM scratch\nCOPY --chmod=0555 capm3 /capm3\nUSER 65532:65532\nENTRYPOINT [\"/capm3\"]\n";
    assert_eq!(judge(good), <[&str; 0]>::default());
    let digest = format!("FROM example.org/static@sha256:{}", "0a".repeat(32));
    assert_eq!(judge(&good.replace("FROM scratch", &digest)), <[&str; 0]>::default());
    for (from, to, why) in [
        ("FROM scratch", "FROM debian:12", "neither scratch nor a digest"),
        ("FROM scratch", "FROM static@sha256:12", "neither scratch nor a digest"),
        ("FROM scratch", "FROM scratch AS one", "neither scratch nor a digest"),
        ("FROM scratch\n", "", "does not begin with FROM"),
        ("USER 65532:65532", "USER 0", "USER is"),
        ("USER 65532:65532", "USER nonroot", "USER is"),
        ("USER 65532:65532\n", "", "USER is"),
        ("[\"/capm3\"]", "/capm3", "ENTRYPOINT is not"),
        ("[\"/capm3\"]", "[\"/bin/sh\", \"-c\", \"/capm3\"]", "ENTRYPOINT is not"),
        ("[\"/capm3\"]", "[\"/capm3\"", "line 4: neither a list"),
        ("--chmod=0555 ", "", "is not `--chmod=0555`"),
        ("USER", "COPY --chmod=0555 sh /bin/sh\nUSER", "are in the image"),
        ("USER", "RUN chmod 4755 /capm3\nUSER", "RUN is not for"),
        ("USER", "ADD https://example.org/x /x\nUSER", "ADD is not for"),
        ("USER", "LABEL a=b \\\nUSER", "line 3: a line that goes on"),
        ("USER", "COPY <<EOF /etc/passwd\nUSER", "line 3: a document in place"),
        (
            "FROM scratch",
            "# syntax=example.org/frontend\nFROM scratch",
            "line 1: a directive",
        ),
    ] {
        let faults = judge(&good.replace(from, to));
        assert!(faults.iter().any(|fault| fault.contains(why)), "{to}: {faults:?}");
    }
}

#[test]
fn the_arguments_are_flags_of_the_program_once_the_variables_have_their_defaults() {
    for form in FORMS {
        let documents = ipam_documents(IMAGE, form);
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
        let parsed = metal3_flags::parse(arguments);
        assert!(matches!(parsed, Ok(metal3_flags::Request::Run(_))), "{parsed:?}");
    }
}

#[test]
fn what_is_written_reads_back_as_it_was() {
    let artefacts = artefacts(IMAGE, String::new()).unwrap();
    for (name, form) in [
        ("ipam-components.yaml", CertificateSource::Mounted),
        ("ipam-components-self-managed.yaml", CertificateSource::SelfManaged),
    ] {
        let read: Vec<Value> = serde_saphyr::from_multiple(&artefacts[Path::new(name)]).unwrap();
        assert_eq!(read, ipam_documents(IMAGE, form));
    }
    assert_eq!(artefacts.len(), 13);
}

#[test]
fn without_cert_manager_nothing_refers_to_it_and_the_flag_says_so() {
    let documents = ipam_documents(IMAGE, CertificateSource::SelfManaged);
    let text = serde_json::to_string(&documents).unwrap();
    assert!(!text.contains("cert-manager") && !text.contains("ipam-webhook-service-cert"));
    assert!(text.contains("--webhook-certificates=self-managed"));
    let with = serde_json::to_string(&ipam_documents(IMAGE, CertificateSource::Mounted)).unwrap();
    assert!(with.contains(INJECTION_ANNOTATION) && with.contains("ipam-webhook-service-cert"));
}

#[test]
fn who_makes_its_own_certificates_may_write_those_configurations_and_no_others() {
    let documents = ipam_documents(IMAGE, CertificateSource::SelfManaged);
    let rules = find(&documents, "ClusterRole")["rules"].as_array().unwrap();
    for (kind, resource, count) in [
        ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations", 1),
        ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations", 1),
        ("CustomResourceDefinition", "customresourcedefinitions", 3),
    ] {
        let installed: BTreeSet<&str> = documents
            .iter()
            .filter(|document| document["kind"] == kind)
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
    let none = ipam_documents(IMAGE, CertificateSource::Mounted);
    assert!(!find(&none, "Role")["rules"].to_string().contains("secrets"));
}
