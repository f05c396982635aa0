//! The arguments of `capm3 console`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use anyhow::{Context as _, Result, bail, ensure};
use metal3_runtime::client::Chosen;

/// How the command is used.
pub const USAGE: &str =
    "use console [--address 127.0.0.1:PORT] [-n|--namespace NAME] [--read-only] [--kubeconfig FILE] [--context NAME]";

/// The arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arguments {
    /// The address to listen on.
    pub address: SocketAddr,
    /// The only namespace to read.
    pub namespace: Option<String>,
    /// Whether pages change nothing.
    pub is_read_only: bool,
    /// The kubeconfig and its context.
    pub chosen: Chosen,
}

/// Parses the arguments after `console`.
///
/// # Errors
/// Names the argument and the valid ones.
pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Arguments> {
    let (mut address, mut namespace, mut chosen) = (None, None, Chosen::default());
    let mut is_read_only = false;
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        if argument == "--read-only" {
            is_read_only = true;
            continue;
        }
        let (name, value) = match argument.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => (argument, None),
        };
        let place = match name.as_str() {
            "--address" => &mut address,
            "-n" | "--namespace" => &mut namespace,
            "--kubeconfig" => &mut chosen.kubeconfig,
            "--context" => &mut chosen.context,
            _ => bail!("{name:?}: {USAGE}"),
        };
        let value = value.or_else(|| arguments.next().filter(|next| !next.starts_with('-')));
        let value = value.filter(|value| !value.is_empty());
        let value = value.with_context(|| format!("{name} has no value; {USAGE}"))?;
        ensure!(place.is_none(), "{name} is given twice; {USAGE}");
        *place = Some(value);
    }
    let address = match address {
        Some(text) => loopback(&text)?,
        None => SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
    };
    Ok(Arguments {
        address,
        namespace,
        is_read_only,
        chosen,
    })
}

/// An address of loopback: the console has no TLS and one user, who is at this machine.
fn loopback(text: &str) -> Result<SocketAddr> {
    let parsed = text.parse::<SocketAddr>().ok();
    let parsed = parsed.or_else(|| Some(SocketAddr::from((text.parse::<IpAddr>().ok()?, 0))));
    let address = parsed.with_context(|| format!("--address {text:?} is no address such as 127.0.0.1:8080"))?;
    ensure!(
        address.ip().is_loopback(),
        "--address {text}: only an address of this machine itself is accepted, such as 127.0.0.1:8080 or [::1]:8080: the console \
         shows what your kubeconfig may read, without TLS"
    );
    Ok(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Arguments> {
        parse(line.split_whitespace().map(ToOwned::to_owned))
    }

    #[test]
    fn addresses_of_loopback_are_accepted_and_no_others() {
        for (line, address) in [
            ("", Some("127.0.0.1:0")),
            ("--address 127.0.0.1:8080", Some("127.0.0.1:8080")),
            ("--address=127.0.0.1", Some("127.0.0.1:0")),
            ("--address [::1]:9", Some("[::1]:9")),
            ("--address 0.0.0.0:8080", None),
            ("--address 192.0.2.1", None),
            ("--address localhost:80", None),
            ("--address", None),
        ] {
            let found = parsed(line).ok().map(|found| found.address.to_string());
            assert_eq!(found.as_deref(), address, "{line}");
        }
        let why = parsed("--address 0.0.0.0:1").unwrap_err().to_string();
        assert!(
            why.contains("only an address of this machine itself is accepted"),
            "{why}"
        );
    }

    #[test]
    fn errors_name_the_argument_and_the_valid_ones() {
        for (line, part) in [
            ("--listen x", "\"--listen\""),
            ("-n", "-n has no value"),
            ("-n a --namespace b", "--namespace is given twice"),
            ("hosts", "\"hosts\""),
        ] {
            let why = parsed(line).unwrap_err().to_string();
            assert!(why.contains(part) && why.contains(USAGE), "{why}");
        }
        assert!(!parsed("").unwrap().is_read_only && parsed("--read-only").unwrap().is_read_only);
        let found = parsed("-n lab --kubeconfig k --context c").unwrap();
        let chosen = (found.chosen.kubeconfig.as_deref(), found.chosen.context.as_deref());
        assert_eq!(
            (found.namespace.as_deref(), chosen),
            (Some("lab"), (Some("k"), Some("c")))
        );
    }
}
