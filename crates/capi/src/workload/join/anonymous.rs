//! A kubeconfig for a machine that has no credentials yet.

use kube::config::{AuthInfo, Context, Kubeconfig, NamedAuthInfo, NamedCluster, NamedContext};

const NAME: &str = "without-credentials";

/// The kubeconfig with this endpoint as its server, with its certificate authority, and with no credentials. `None` without a
/// usable context.
pub(super) fn kubeconfig(config: &Kubeconfig, host: &str, port: u16) -> Option<Kubeconfig> {
    let current = config.current_context.as_deref()?;
    let context = config.contexts.iter().find(|context| context.name == current)?;
    let named = &context.context.as_ref()?.cluster;
    let found = config.clusters.iter().find(|cluster| cluster.name == *named)?;
    let mut cluster = found.cluster.clone()?;
    let is_ipv6 = host.parse::<std::net::Ipv6Addr>().is_ok();
    cluster.server = Some(match is_ipv6 {
        true => format!("https://[{host}]:{port}"),
        false => format!("https://{host}:{port}"),
    });
    // A machine compares the certificate with the address that it connects to.
    cluster.tls_server_name = None;
    Some(Kubeconfig {
        clusters: vec![NamedCluster {
            name: NAME.to_owned(),
            cluster: Some(cluster),
            ..NamedCluster::default()
        }],
        auth_infos: vec![NamedAuthInfo {
            name: NAME.to_owned(),
            auth_info: Some(AuthInfo::default()),
            ..NamedAuthInfo::default()
        }],
        contexts: vec![NamedContext {
            name: NAME.to_owned(),
            context: Some(Context {
                cluster: NAME.to_owned(),
                user: Some(NAME.to_owned()),
                ..Context::default()
            }),
            ..NamedContext::default()
        }],
        current_context: Some(NAME.to_owned()),
        ..Kubeconfig::default()
    })
}
