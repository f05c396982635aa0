//! Flags that exclude each other.

use super::flag::Owner;
use super::options::{CertificateSource, Options};
use super::parse::FlagError;

/// The errors of valid flags that contradict each other.
pub(super) fn errors(options: &Options) -> Vec<FlagError> {
    let mut errors = Vec::new();
    if options.controllers.contains(&Owner::Hosts) {
        refuse_for_hosts(options, &mut errors);
    }
    if options.webhook_client_ca.is_none() && !options.webhook_client_names.is_empty() {
        errors.push(FlagError::Refused {
            flag: "webhook-client-names",
            why: "no certificate is requested without --webhook-client-ca-file; name the file of the CA".to_owned(),
        });
    }
    if options.observe_only && options.certificates == CertificateSource::SelfManaged {
        errors.push(FlagError::Refused {
            flag: "webhook-certificates",
            why: "self-managed certificates are stored in a Secret and in webhook configurations, and --observe-only \
                  writes nothing; mount a certificate, serve metrics without one by --insecure-diagnostics, or \
                  disable them by --diagnostics-address=0"
                .to_owned(),
        });
    }
    errors
}

/// Rejects filters of other controllers that the host controllers do not support.
fn refuse_for_hosts(options: &Options, errors: &mut Vec<FlagError>) {
    if options.watch_filter.is_some() {
        errors.push(FlagError::Refused {
            flag: "watch-filter",
            why: "the host controllers watch every host whatever its labels, as their Go manager does; run them in \
                  a process of their own, without it"
                .to_owned(),
        });
    }
    // differs (`hosts-one-namespace`): the Go manager takes a list.
    if let Some(namespace) = options.namespace.as_ref().filter(|name| name.contains(',')) {
        errors.push(FlagError::Value {
            flag: "namespace",
            value: namespace.clone(),
            wanted: "one namespace; leave it empty for all, or run a process for each".to_owned(),
        });
    }
}
