//! Places of values in objects: a member gets a marker as its value, and the line of the marker becomes a template.
//!
//! A marker starts with `@`, which no object of the release contains, and is always quoted in YAML.

use serde_json::{Value, json};

/// The namespace of a release, in objects.
pub(super) const NAMESPACE: &str = "@namespace@";

/// How a value becomes YAML.
#[derive(Clone, Copy)]
enum Shape {
    /// A number or a word.
    Plain,
    /// A text.
    Text,
    /// A text; without it the member is left out.
    OptionalText,
    /// A map or a list; without items the member is left out.
    Tree,
    /// More items of a list.
    Items,
    /// More members of a map, or more items of a list, from an expression that renders YAML.
    Block,
}

/// A member of an object, and the expression of its value.
struct Slot {
    kind: &'static str,
    member: &'static str,
    expression: &'static str,
    shape: Shape,
}

const fn slot(kind: &'static str, member: &'static str, expression: &'static str, shape: Shape) -> Slot {
    Slot {
        kind,
        member,
        expression,
        shape,
    }
}

const POD: &str = "/spec/template/spec";
const DEPLOYMENT: &str = "Deployment";
/// With its own certificates the account writes so much that there are always policies. The values of an older chart lack the
/// second one.
const POLICIES: &str =
    r#"or (eq .Values.certificates "self-managed") (ne (toString .Values.admissionPolicies) "false")"#;
/// The settings of the process. A change of them restarts it.
pub(super) const CHECKSUM: &str = "checksum/settings";

const SLOTS: &[Slot] = &[
    slot(DEPLOYMENT, "/spec/replicas", ".Values.replicas", Shape::Plain),
    slot(
        DEPLOYMENT,
        "/spec/template/metadata/annotations/checksum~1settings",
        r#"list .Values.ironic.endpoint (include "metal3-rs.endpoints" .) .Values.ironic.name .Values.ironic.namespace .Values.fastTrack .Values.settings | toJson | sha256sum"#,
        Shape::Text,
    ),
    slot(
        DEPLOYMENT,
        "/spec/template/metadata/annotations/more",
        r#"include "metal3-rs.members" .Values.podAnnotations"#,
        Shape::Block,
    ),
    slot(
        DEPLOYMENT,
        "/spec/template/metadata/labels/more",
        r#"include "metal3-rs.members" .Values.podLabels"#,
        Shape::Block,
    ),
    slot(
        "ServiceAccount",
        "/metadata/annotations",
        ".Values.serviceAccountAnnotations",
        Shape::Tree,
    ),
    slot(
        DEPLOYMENT,
        "/spec/template/spec/affinity",
        ".Values.affinity",
        Shape::Tree,
    ),
    slot(
        DEPLOYMENT,
        "/spec/template/spec/topologySpreadConstraints",
        ".Values.topologySpreadConstraints",
        Shape::Tree,
    ),
    slot(
        DEPLOYMENT,
        "/spec/template/spec/imagePullSecrets",
        ".Values.imagePullSecrets",
        Shape::Tree,
    ),
    slot(
        DEPLOYMENT,
        "/spec/template/spec/nodeSelector",
        ".Values.nodeSelector",
        Shape::Tree,
    ),
    slot(
        DEPLOYMENT,
        "/spec/template/spec/priorityClassName",
        ".Values.priorityClassName",
        Shape::OptionalText,
    ),
    slot(
        DEPLOYMENT,
        "/spec/template/spec/tolerations",
        ".Values.tolerations",
        Shape::Tree,
    ),
    slot(
        DEPLOYMENT,
        "/spec/template/spec/containers/0/image",
        r#".Values.image | default (index .Chart.Annotations "metal3-rs/image")"#,
        Shape::Text,
    ),
    slot(
        DEPLOYMENT,
        "/spec/template/spec/containers/0/imagePullPolicy",
        ".Values.imagePullPolicy",
        Shape::Text,
    ),
    slot(
        DEPLOYMENT,
        "/spec/template/spec/containers/0/resources",
        ".Values.resources",
        Shape::Tree,
    ),
    slot(
        DEPLOYMENT,
        "/spec/template/spec/containers/0/args/0",
        r#"printf "--controllers=%s" (join "," (compact (list (ternary "ipam" "" .Values.products.ipam) (ternary "capm3" "" .Values.products.capm3) (ternary "hosts" "" .Values.products.hosts))))"#,
        Shape::Text,
    ),
    slot(
        DEPLOYMENT,
        "/spec/template/spec/containers/0/args/-",
        r#"ternary (list "--observe-only") (list) .Values.observeOnly"#,
        Shape::Items,
    ),
    slot(
        DEPLOYMENT,
        "/spec/template/spec/containers/0/args/-",
        ".Values.extraArgs",
        Shape::Items,
    ),
    slot("ConfigMap", "/data/CAPM3_FAST_TRACK", ".Values.fastTrack", Shape::Text),
    slot(
        "ConfigMap",
        "/data/IRONIC_ENDPOINT",
        r#".Values.ironic.endpoint | default (ternary "" (printf "https://ironic.%s.svc:6385" .Release.Namespace) (ne (print .Values.ironic.name (include "metal3-rs.endpoints" .)) ""))"#,
        Shape::Text,
    ),
    slot(
        "ConfigMap",
        "/data/IRONIC_ENDPOINTS",
        r#"include "metal3-rs.endpoints" ."#,
        Shape::Text,
    ),
    slot("ConfigMap", "/data/IRONIC_NAME", ".Values.ironic.name", Shape::Text),
    slot(
        "ConfigMap",
        "/data/IRONIC_NAMESPACE",
        ".Values.ironic.namespace",
        Shape::Text,
    ),
    slot(
        "ConfigMap",
        "/data/more",
        r#"include "metal3-rs.members" .Values.settings"#,
        Shape::Block,
    ),
    slot(
        DEPLOYMENT,
        "/spec/template/spec/volumes/-",
        r#"include "metal3-rs.volumes" ."#,
        Shape::Block,
    ),
    slot(
        DEPLOYMENT,
        "/spec/template/spec/containers/0/volumeMounts/-",
        r#"include "metal3-rs.mounts" ."#,
        Shape::Block,
    ),
    slot(
        "PodDisruptionBudget",
        "",
        ".Values.podDisruptionBudget.enabled",
        Shape::Plain,
    ),
    slot(
        "NetworkPolicy",
        "/spec/ingress",
        r#"fromYamlArray (include "metal3-rs.ingress" .)"#,
        Shape::Tree,
    ),
    slot(
        "NetworkPolicy",
        "/spec/policyTypes/-",
        r#"ternary (list) (list "Egress") (empty .Values.networkPolicy.egress)"#,
        Shape::Items,
    ),
    slot(
        "NetworkPolicy",
        "/spec/egress",
        ".Values.networkPolicy.egress",
        Shape::Tree,
    ),
    slot("NetworkPolicy", "", ".Values.networkPolicy.enabled", Shape::Plain),
    slot("ValidatingAdmissionPolicy", "", POLICIES, Shape::Plain),
    slot("ValidatingAdmissionPolicyBinding", "", POLICIES, Shape::Plain),
];

/// Secrets of the Pod, and the values with their names.
const SECRETS: [(&str, &str); 3] = [
    ("ironic-credentials", ".Values.ironic.credentialsSecret"),
    ("ironic-cacert", ".Values.ironic.caSecret"),
    ("ironic-client-cert", ".Values.ironic.clientCertificateSecret"),
];

/// The template of an object.
pub(super) fn template(mut object: Value) -> String {
    let kind = object
        .get("kind")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    let mut own: Vec<(String, &str, Shape)> = Vec::new();
    for (number, slot) in SLOTS
        .iter()
        .enumerate()
        .filter(|(_, slot)| slot.kind == kind && !slot.member.is_empty())
    {
        let marker = format!("@slot{number}@");
        set(&mut object, slot.member, marker.as_str().into());
        own.push((marker, slot.expression, slot.shape));
    }
    for (number, (secret, expression)) in SECRETS.iter().enumerate().filter(|_| kind == DEPLOYMENT) {
        let marker = format!("@secret{number}@");
        name_secret(&mut object, secret, &marker);
        own.push((marker, expression, Shape::Text));
    }
    let text = metal3_domain::yaml::document(&object).replace("{{", "{{ \"{{\" }}");
    let text: String = text.lines().map(|line| of_line(line, &own)).collect();
    let text = in_namespaces(&text);
    match SLOTS.iter().find(|slot| slot.kind == kind && slot.member.is_empty()) {
        Some(slot) => format!("{{{{- if {} }}}}\n{text}{{{{- end }}}}\n", slot.expression),
        None => text,
    }
}

/// Sets a member, and creates the maps above it; `-` appends to a list.
fn set(object: &mut Value, pointer: &str, value: Value) {
    let Some((parent, last)) = pointer.rsplit_once('/') else {
        return;
    };
    if object.pointer(parent).is_none() {
        set(object, parent, json!({}));
    }
    match object.pointer_mut(parent) {
        Some(Value::Array(items)) if last == "-" => items.push(value),
        Some(Value::Array(items)) => {
            let item = last.parse().ok().and_then(|number: usize| items.get_mut(number));
            item.into_iter().for_each(|item| item.clone_from(&value));
        }
        Some(Value::Object(members)) => {
            members.insert(last.replace("~1", "/"), value);
        }
        _ => {}
    }
}

/// The volume of a Secret refers to another name.
fn name_secret(object: &mut Value, secret: &str, name: &str) {
    let volumes = object
        .pointer_mut(&format!("{POD}/volumes"))
        .and_then(Value::as_array_mut);
    for volume in volumes.into_iter().flatten() {
        if let Some(reference) = volume.pointer_mut("/secret/secretName")
            && *reference == secret
        {
            *reference = name.into();
        }
    }
}

/// A line of YAML as a template, with its line end.
fn of_line(line: &str, own: &[(String, &str, Shape)]) -> String {
    let quoted = |marker: &str| format!("\"{marker}\"");
    let Some((marker, expression, shape)) = own.iter().find(|(marker, ..)| line.ends_with(&quoted(marker))) else {
        return format!("{line}\n");
    };
    let member = line.strip_suffix(&quoted(marker)).unwrap_or(line);
    let indent = member.len() - member.trim_start().len();
    match shape {
        Shape::Plain => format!("{member}{{{{ {expression} }}}}\n"),
        Shape::Text => format!("{member}{{{{ {expression} | quote }}}}\n"),
        Shape::OptionalText => {
            format!("{{{{- with {expression} }}}}\n{member}{{{{ . | quote }}}}\n{{{{- end }}}}\n")
        }
        Shape::Tree => {
            let (member, deeper) = (member.trim_end(), indent + 2);
            format!("{{{{- with {expression} }}}}\n{member}\n{{{{- toYaml . | nindent {deeper} }}}}\n{{{{- end }}}}\n")
        }
        Shape::Block => format!("{{{{- with {expression} }}}}\n{{{{- . | nindent {indent} }}}}\n{{{{- end }}}}\n"),
        Shape::Items => format!("{{{{- range {expression} }}}}\n{member}{{{{ . | quote }}}}\n{{{{- end }}}}\n"),
    }
}

/// The namespace of the release and the watched one. A text that is only a name is quoted: it may look like a number.
fn in_namespaces(text: &str) -> String {
    let watched = crate::release::layout::WATCHED;
    text.replace(NAMESPACE, "{{ .Release.Namespace }}")
        .replace(&format!(": {watched}\n"), ": {{ .Values.watchNamespace | quote }}\n")
        .replace(watched, "{{ .Values.watchNamespace }}")
}

/// A definition: kept when the release is uninstalled, with the annotation of cert-manager in that form only.
pub(super) fn definition(mut object: Value, injection: &str) -> String {
    set(
        &mut object,
        "/metadata/annotations/helm.sh~1resource-policy",
        "keep".into(),
    );
    let text = metal3_domain::yaml::document(&object).replace("{{", "{{ \"{{\" }}");
    let injected = format!("    {injection}: ");
    let lines = text.lines().map(|line| match line.starts_with(&injected) {
        true => format!("{{{{- if eq .Values.certificates \"cert-manager\" }}}}\n{line}\n{{{{- end }}}}\n"),
        false => format!("{line}\n"),
    });
    in_namespaces(&lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_of_a_text_are_not_a_template() {
        let object = json!({ "kind": "Role", "text": "a {{ b }}" });
        assert!(template(object).contains(r#"text: a {{ "{{" }} b }}"#));
    }

    #[test]
    fn each_shape_is_a_template_of_its_line() {
        let line = |shape| of_line("  member: \"@a@\"", &[("@a@".to_owned(), ".Values.a", shape)]);
        assert_eq!(line(Shape::Plain), "  member: {{ .Values.a }}\n");
        assert_eq!(line(Shape::Text), "  member: {{ .Values.a | quote }}\n");
        assert_eq!(
            line(Shape::OptionalText),
            "{{- with .Values.a }}\n  member: {{ . | quote }}\n{{- end }}\n"
        );
        assert_eq!(
            line(Shape::Tree),
            "{{- with .Values.a }}\n  member:\n{{- toYaml . | nindent 4 }}\n{{- end }}\n"
        );
        let item = of_line("  - \"@a@\"", &[("@a@".to_owned(), ".Values.a", Shape::Items)]);
        assert_eq!(item, "{{- range .Values.a }}\n  - {{ . | quote }}\n{{- end }}\n");
        assert_eq!(
            line(Shape::Block),
            "{{- with .Values.a }}\n{{- . | nindent 2 }}\n{{- end }}\n"
        );
    }

    #[test]
    fn a_namespace_alone_is_quoted_and_one_in_a_text_is_not() {
        let text = "a: \"@namespace@\"\nb: ${WATCHED_NAMESPACE}\nc: --namespace=${WATCHED_NAMESPACE}\n";
        assert_eq!(
            in_namespaces(text),
            "a: \"{{ .Release.Namespace }}\"\nb: {{ .Values.watchNamespace | quote }}\n\
             c: --namespace={{ .Values.watchNamespace }}\n"
        );
    }

    #[test]
    fn a_member_is_set_below_maps_and_lists() {
        let mut object = json!({ "list": [{ "a": 1 }] });
        set(&mut object, "/list/0/b", 2.into());
        set(&mut object, "/list/-", 3.into());
        set(&mut object, "/map/x~1y/z", 4.into());
        assert_eq!(
            object,
            json!({ "list": [{ "a": 1, "b": 2 }, 3], "map": { "x/y": { "z": 4 } } })
        );
    }
}
