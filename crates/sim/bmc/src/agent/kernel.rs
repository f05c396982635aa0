//! The kernel command line in the GRUB configuration of the boot ISO, with Ironic's parameters.

/// The agent's parameters. Debug output contains no token.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Parameters {
    /// The address for inspection data; `None` for no inspection.
    pub inspection_url: Option<String>,
    /// The root of Ironic's API; `None` for no lookup.
    pub api_url: Option<String>,
    /// The pre-generated token.
    pub token: Option<String>,
}

impl std::fmt::Debug for Parameters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parameters")
            .field("inspection_url", &self.inspection_url)
            .field("api_url", &self.api_url)
            .finish_non_exhaustive()
    }
}

/// Reads a GRUB configuration. `None` when its kernel is not a deploy ramdisk.
#[must_use]
pub fn parameters(grub: &str) -> Option<Parameters> {
    let line = grub.lines().map(str::trim).find(|line| line.starts_with("linux"))?;
    let mut found = Parameters::default();
    for (name, value) in line.split_whitespace().filter_map(|word| word.split_once('=')) {
        let value = || Some(value.to_owned());
        match name {
            "ipa-inspection-callback-url" => found.inspection_url = value(),
            // May be a list; all entries are the same Ironic.
            "ipa-api-url" => found.api_url = value().and_then(|list| list.split(',').next().map(trim_slash)),
            "ipa-agent-token" => found.token = value(),
            _ => {}
        }
    }
    (found.inspection_url.is_some() || found.api_url.is_some()).then_some(found)
}

fn trim_slash(url: &str) -> String {
    url.trim_end_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_command_line_has_url_and_token() {
        let grub = "set default=0\nmenuentry \"boot\" {\n  linuxefi /vmlinuz nofb ipa-api-url=https://a:1/,https://b \
                    ipa-agent-token=T= boot_method=vmedia --\n}";
        let found = parameters(grub).unwrap();
        assert_eq!(found.api_url.as_deref(), Some("https://a:1"));
        assert_eq!(found.token.as_deref(), Some("T="));
        assert_eq!(found.inspection_url, None);
    }

    #[test]
    fn other_kernel_is_no_ramdisk() {
        assert_eq!(parameters("linux /vmlinuz root=/dev/sda1"), None);
        assert_eq!(parameters(""), None);
    }

    #[test]
    fn token_is_not_shown_by_debug() {
        let found = parameters("linux /k ipa-api-url=u ipa-agent-token=hush").unwrap();
        assert!(!format!("{found:?}").contains("hush"));
    }
}
