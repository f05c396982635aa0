//! The forms of the installation with all products in one process, which the chart and the overlays offer.

use std::collections::BTreeMap;

use metal3_flags::CertificateSource;
use serde_json::Value;

use super::layout::{self, Layout, WATCHED};
use super::{documents_of, namespaced};

/// One form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Form {
    /// Whether the program issues its certificates.
    pub(super) is_self_managed: bool,
    /// Whether it watches one namespace.
    pub(super) is_namespaced: bool,
    /// Whether it writes nothing.
    pub(super) observes: bool,
    /// The products that are left out: `ipam`, `capm3`, `hosts`.
    pub(super) left_out: [bool; 3],
}

/// Kind, namespace and name. The empty namespace is that of an object of the cluster.
pub(super) type Key = (String, String, String);

/// What identifies an object.
pub(super) fn key(object: &Value) -> Key {
    let text = |at: &str| {
        object
            .pointer(at)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    (text("/kind"), text("/metadata/namespace"), text("/metadata/name"))
}

/// The kind that only the chart of definitions has.
pub(super) const DEFINITION: &str = "CustomResourceDefinition";
/// The end of both kinds of configurations.
const WEBHOOKS: &str = "WebhookConfiguration";

impl Form {
    /// The source of its certificates.
    pub(super) fn certificates(&self) -> CertificateSource {
        match self.is_self_managed {
            true => CertificateSource::SelfManaged,
            false => CertificateSource::Mounted,
        }
    }

    /// The installation in a namespace.
    pub(super) fn layout(&self, namespace: Option<&'static str>) -> Layout {
        let mut layout = layout::ALL_IN_ONE.reduced(self.left_out);
        (layout.is_namespaced, layout.observes) = (self.is_namespaced, self.observes);
        layout.suite.namespace = namespace.unwrap_or(layout.suite.namespace);
        layout
    }

    /// All objects, in the order of the components. A process of one namespace has the objects of the file for it
    /// instead of those with the same name.
    pub(super) fn objects(&self, image: &str, namespace: Option<&'static str>) -> Vec<Value> {
        let layout = self.layout(namespace);
        let mut objects = documents_of(&layout, image, self.certificates());
        if self.is_namespaced {
            let limited = namespaced::documents(&layout, self.certificates())
                .into_iter()
                .map(of_watched);
            let mut limited: BTreeMap<Key, Value> = limited.map(|object| (key(&object), object)).collect();
            for object in &mut objects {
                if let Some(instead) = limited.remove(&key(object)) {
                    *object = instead;
                }
            }
            objects.extend(limited.into_values());
        }
        if self.observes {
            // The process serves no webhooks then, and those of the Go managers have the same names.
            objects.retain(|object| !key(object).0.ends_with(WEBHOOKS) && key(object).0 != DEFINITION);
        }
        objects
    }
}

/// The object in the watched namespace, if it has one.
fn of_watched(mut object: Value) -> Value {
    let kind = object.get("kind").and_then(Value::as_str);
    if matches!(kind, Some("Role" | "RoleBinding"))
        && let Some(Value::Object(metadata)) = object.get_mut("metadata")
    {
        metadata.insert("namespace".to_owned(), WATCHED.into());
    }
    object
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::release::tests::{IMAGE, assert_names, assert_runs, find, of_kind};

    fn arguments(objects: &[Value]) -> Vec<String> {
        let arguments = &find(objects, "Deployment")["spec"]["template"]["spec"]["containers"][0]["args"];
        serde_json::from_value(arguments.clone()).unwrap()
    }

    #[test]
    fn the_whole_form_is_the_all_in_one_installation() {
        let whole = Form::default().objects(IMAGE, None);
        assert_eq!(
            whole,
            documents_of(&layout::ALL_IN_ONE, IMAGE, CertificateSource::Mounted)
        );
    }

    #[test]
    fn a_product_that_is_left_out_has_no_controller_role_webhook_and_definition() {
        for (number, name, group) in [
            (0, "ipam", "ipam.metal3.io"),
            (1, "capm3", "infrastructure"),
            (2, "hosts", "/metal3.io"),
        ] {
            let mut form = Form::default();
            form.left_out[number] = true;
            let objects = form.objects(IMAGE, None);
            let controllers = arguments(&objects).remove(0);
            assert!(
                controllers.starts_with("--controllers=") && !controllers.contains(name),
                "{controllers}"
            );
            assert_runs(arguments(&objects));
            let role = format!("metal3-{name}-manager-role");
            assert!(objects.iter().all(|object| object["metadata"]["name"] != role));
            assert_eq!(of_kind(&objects, "Service").count(), 2);
            for definition in of_kind(&objects, "CustomResourceDefinition") {
                let own = format!("/{}", definition["spec"]["group"].as_str().unwrap());
                assert!(!own.contains(group), "{own}");
            }
            let reads_others = objects
                .iter()
                .any(|object| object["metadata"]["name"] == "metal3-endpoint-reader");
            assert_eq!(
                reads_others,
                name != "capm3",
                "the role for endpoints is that of clusters"
            );
        }
    }

    #[test]
    fn a_process_of_one_namespace_has_roles_in_it() {
        let form = Form {
            is_namespaced: true,
            ..Form::default()
        };
        let objects = form.objects(IMAGE, None);
        assert!(arguments(&objects).contains(&format!("--namespace={WATCHED}")));
        let watched = of_kind(&objects, "Role").filter(|role| role["metadata"]["namespace"] == WATCHED);
        assert_eq!(watched.count(), 3, "one for each product");
        for webhooks in of_kind(&objects, "ValidatingWebhookConfiguration") {
            assert!(webhooks["webhooks"][0]["namespaceSelector"].is_object(), "{webhooks}");
        }
    }

    #[test]
    fn a_process_that_observes_only_has_the_flag_for_it() {
        let form = Form {
            observes: true,
            ..Form::default()
        };
        let objects = form.objects(IMAGE, None);
        assert_names(&objects, "metal3-system");
        assert_eq!(arguments(&objects).last().unwrap(), "--observe-only");
        for kind in [
            "CustomResourceDefinition",
            "MutatingWebhookConfiguration",
            "ValidatingWebhookConfiguration",
        ] {
            assert_eq!(of_kind(&objects, kind).count(), 0, "{kind}");
        }
        assert_runs(arguments(&objects));
    }

    /// Verbs of the roles of the process, without the questions about callers.
    fn verbs(form: Form) -> BTreeSet<String> {
        let objects = form.objects(IMAGE, None);
        let roles = ["Role", "ClusterRole"]
            .into_iter()
            .flat_map(|kind| of_kind(&objects, kind));
        let rules = roles.filter(|role| role["metadata"]["name"] != "baremetal-operator-host-restore");
        let rules = rules.flat_map(|role| role["rules"].as_array().unwrap());
        let is_review = |rule: &&Value| rule["apiGroups"][0].as_str().unwrap().starts_with("auth");
        let verbs = rules
            .filter(|rule| !is_review(rule))
            .flat_map(|rule| rule["verbs"].as_array().unwrap());
        verbs.map(|verb| verb.as_str().unwrap().to_owned()).collect()
    }

    /// Those of the Go managers have the same names.
    #[test]
    fn a_process_that_observes_brings_no_webhooks_and_no_definitions() {
        for is_namespaced in [false, true] {
            let form = Form {
                observes: true,
                is_namespaced,
                ..Form::default()
            };
            let kinds = form.objects(IMAGE, None).into_iter().map(|object| key(&object).0);
            let others: Vec<String> = kinds
                .filter(|kind| kind.ends_with(WEBHOOKS) || kind == DEFINITION)
                .collect();
            assert!(others.is_empty(), "{others:?}");
        }
    }

    #[test]
    fn a_process_that_observes_only_may_read_and_not_write() {
        for is_namespaced in [false, true] {
            let form = |observes| Form {
                observes,
                is_namespaced,
                ..Form::default()
            };
            let all = verbs(form(false));
            assert!(all.contains("patch") && all.contains("create"), "{all:?}");
            let reading = ["get", "list", "watch"].map(str::to_owned);
            assert_eq!(verbs(form(true)), reading.into());
        }
    }
}
