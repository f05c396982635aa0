//! What `clusterctl upgrade plan` prints. Pure.

use anyhow::ensure;

/// The providers of this project.
const PROVIDERS: [&str; 2] = ["infrastructure-metal3", "ipam-metal3"];

/// The plan offers both providers at the version: it is the last column of their lines.
pub(super) fn offers(plan: &str, version: &str) -> anyhow::Result<()> {
    for provider in PROVIDERS {
        let is_it = |line: &str| {
            let mut words = line.split_whitespace();
            words.next() == Some(provider) && words.next_back() == Some(version)
        };
        ensure!(
            plan.lines().any(is_it),
            "the plan does not offer {provider} at {version}:\n{plan}"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plan_offers_both_providers_at_the_version() {
        let line =
            |provider: &str, from: &str, to: &str| format!("{provider}   a-system   AnyProvider   {from}   {to}\n");
        let (capm3, ipam) = (
            line(PROVIDERS[0], "v1.14.0", "v1.15.0"),
            line(PROVIDERS[1], "v1.14.0", "v1.15.0"),
        );
        for (plan, is_offered) in [
            (format!("NAME NAMESPACE\n{capm3}{ipam}\nYou can now apply\n"), true),
            (capm3.clone(), false),
            (ipam.clone(), false),
            (format!("{capm3}{}", line(PROVIDERS[1], "v1.14.0", "v1.15.1")), false),
            (
                format!("{capm3}{}", line(PROVIDERS[1], "v1.15.0", "Already up to date")),
                false,
            ),
            (format!("{capm3}{}", line("ipam-metal3-b", "v1.14.0", "v1.15.0")), false),
            (String::new(), false),
        ] {
            assert_eq!(offers(&plan, "v1.15.0").is_ok(), is_offered, "{plan}");
        }
    }
}
