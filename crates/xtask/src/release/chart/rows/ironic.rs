//! The values about Ironic.

use serde_json::json;

use super::{Row, name, row, text};
use crate::release::chart::schemas::{OPTIONAL_NAMESPACE, further};

/// Where Ironic is, and how the program logs in.
pub(super) fn rows() -> Vec<Row> {
    vec![
        row(
            "ironic.endpoint",
            "".into(),
            json!({ "type": "string", "pattern": r"^(https?://[^\s,]+)?$" }),
            "URL of Ironic; empty for https://ironic.NAMESPACE.svc:6385. One of http:// needs --allow-insecure-ironic in extraArgs",
        ),
        row(
            "ironic.endpoints",
            "".into(),
            json!({ "type": "string", "pattern": r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?=https?://[^\s,]+(,\s*|$))*$" }),
            "further Ironics without a login: name=https://host:6385,name=https://host:6385",
        ),
        row(
            "ironic.further",
            json!([]),
            further(),
            "further Ironics: `name`, `endpoint`, and Secrets as below, `credentialsSecret`, `caSecret`, `clientCertificateSecret`",
        ),
        row(
            "ironic.name",
            "".into(),
            json!({ "type": "string", "pattern": r"^([a-z0-9]([-a-z0-9./]*[a-z0-9])?(,\s*|$))*$" }),
            "Ironic resource of ironic-standalone-operator in place of an endpoint, a login and a CA",
        ),
        row(
            "ironic.namespace",
            "".into(),
            json!({ "type": "string", "pattern": OPTIONAL_NAMESPACE, "maxLength": 63 }),
            "its namespace; empty for that of the release",
        ),
        text(
            "ironic.username",
            "",
            "with the password: the Secret with the login is created; for products.hosts",
        ),
        text(
            "ironic.password",
            "",
            "kept in the release; a Secret of your own is safer",
        ),
        text(
            "ironic.ca",
            "",
            "certificates of Ironic's CA in PEM: the Secret with them is created; for products.hosts",
        ),
        name(
            "ironic.credentialsSecret",
            "ironic-credentials",
            "Secret with username and password",
        ),
        name("ironic.caSecret", "ironic-cacert", "Secret with tls.crt, the CA"),
        name(
            "ironic.clientCertificateSecret",
            "ironic-client-cert",
            "Secret with a client certificate",
        ),
    ]
}
