use std::collections::BTreeSet;

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

#[test]
fn pods_are_as_restricted_as_their_namespace_demands() {
    for form in FORMS {
        let documents = ipam_documents(IMAGE, form);
        let pod = &find(&documents, "Deployment")["spec"]["template"]["spec"];
        let container = &pod["containers"][0];
        assert_eq!(container["name"], "manager");
        let security = &container["securityContext"];
        assert_eq!(security["allowPrivilegeEscalation"], false);
        assert_eq!(security["capabilities"]["drop"], json!(["ALL"]));
        assert_eq!(security["readOnlyRootFilesystem"], true);
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
        assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
        assert!(container["resources"]["requests"].is_object() && container["resources"]["limits"].is_object());
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
        let parsed = metal3_manager::flags::parse(arguments);
        assert!(
            matches!(parsed, Ok(metal3_manager::flags::Request::Run(_))),
            "{parsed:?}"
        );
    }
}

#[test]
fn what_is_written_reads_back_as_it_was() {
    let artefacts = artefacts(IMAGE, String::new());
    for (name, form) in [
        ("ipam-components.yaml", CertificateSource::Mounted),
        ("ipam-components-self-managed.yaml", CertificateSource::SelfManaged),
    ] {
        let read: Vec<Value> = serde_saphyr::from_multiple(&artefacts[Path::new(name)]).unwrap();
        assert_eq!(read, ipam_documents(IMAGE, form));
    }
    assert_eq!(artefacts.len(), 5);
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
