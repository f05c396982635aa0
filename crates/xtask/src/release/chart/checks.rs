//! What the chart of the program compares before Helm writes anything: values with each other, where a schema cannot, and with the
//! cluster.
//!
//! `lookup` finds nothing where Helm only renders, so then nothing is compared. A kind that is missing is no error here: the
//! program waits for it and names it.

use metal3_api::catalog;
use metal3_webhooks::manifest::INJECTION_ANNOTATION;
use serde_json::Value;

use super::product;
use crate::release::layout::ALL_IN_ONE;

/// The file below `templates`. It renders no object.
pub(super) const FILE: &str = "checks.yaml";

/// An upgrade for a namespace that is missing would fail after the roles of the cluster were narrowed to it. A definition is
/// converted by the Service, and with the certificate, that its own chart names.
const TEXT: &str = r#"{{- $namespace := .Release.Namespace }}
{{- with .Values.ironic }}
{{- if and $.Values.products.hosts .password .ca (eq .credentialsSecret .caSecret) }}
{{- fail "ironic.credentialsSecret and ironic.caSecret have one name: two Secrets are made" }}
{{- end }}
{{- $names := list }}
{{- range .further }}
{{- if has .name $names }}{{ fail (printf "ironic.further: two have the name %s" .name) }}{{ end }}
{{- $names = append $names .name }}
{{- end }}
{{- end }}
{{- $watched := .Values.watchNamespace }}
{{- if and $watched (ne $watched $namespace) (lookup "v1" "Namespace" "" "kube-system") }}
{{- if not (lookup "v1" "Namespace" "" $watched) }}
{{- fail (printf "watchNamespace: the namespace %s does not exist; create it first" $watched) }}
{{- end }}
{{- end }}
{{- $definitions := list }}
@definitions@{{- if .Values.observeOnly }}{{ $definitions = list }}{{ end }}
{{- range $name := $definitions }}
{{- $found := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" $name }}
{{- $home := dig "spec" "conversion" "webhook" "clientConfig" "service" "namespace" "" $found }}
{{- $injected := dig "metadata" "annotations" "@injection@" "" $found }}
{{- $wanted := ternary "@certificate@" "" (eq $.Values.certificates "cert-manager") }}
{{- if and $home (ne $home $namespace) }}
{{- fail (printf "%s is converted in namespace %s: install metal3-rs-crds and metal3-rs both in %s" $name $home $namespace) }}
{{- end }}
{{- if and $home (ne $injected $wanted) }}
{{- fail (printf "%s is not of certificates=%s: upgrade metal3-rs-crds with this value first" $name $.Values.certificates) }}
{{- end }}
{{- end }}
"#;

/// The template.
pub(super) fn template() -> String {
    let mut lines = String::new();
    for wanted in ["ipam", "capm3", "hosts"] {
        let definitions = catalog::definitions()
            .into_iter()
            .map(|definition| definition.manifest());
        let converted = definitions.filter(|manifest| manifest.pointer("/spec/conversion/webhook").is_some());
        let names: Vec<String> = converted
            .filter(|manifest| product(manifest) == wanted)
            .filter_map(|manifest| {
                Some(format!(
                    "\"{}\"",
                    manifest.pointer("/metadata/name").and_then(Value::as_str)?
                ))
            })
            .collect();
        if !names.is_empty() {
            lines.push_str(&format!(
                "{{{{- if .Values.products.{wanted} }}}}{{{{ $definitions = concat $definitions (list {}) }}}}{{{{ end }}}}\n",
                names.join(" ")
            ));
        }
    }
    let certificate = format!("(printf \"%s/{}\" $namespace)", ALL_IN_ONE.suite.named("serving-cert"));
    TEXT.replace("@definitions@", &lines)
        .replace("@injection@", INJECTION_ANNOTATION)
        .replace("\"@certificate@\"", &certificate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_definition_that_is_converted_is_compared() {
        let text = template();
        assert!(!text.contains('@'), "{text}");
        let mut compared = 0;
        for definition in catalog::definitions() {
            let manifest = definition.manifest();
            let name = format!("\"{}\"", manifest["metadata"]["name"].as_str().unwrap());
            let is_converted = !manifest["spec"]["conversion"]["webhook"].is_null();
            assert_eq!(text.contains(&name), is_converted, "{name}");
            compared += usize::from(is_converted);
        }
        assert!(compared > 5, "{compared}");
    }
}
