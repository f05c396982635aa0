//! An image in a registry, and which of the logins that `docker` stored is the one to it.

/// Names of the registry that images without one come from.
const HUB: [&str; 3] = ["docker.io", "index.docker.io", "registry-1.docker.io"];

/// An image in a registry: `oci://registry/repository`, with a tag or a digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegistryImage<'a> {
    registry: &'a str,
    repository: &'a str,
}

impl<'a> RegistryImage<'a> {
    /// Reads what follows `oci://`; `None` when Ironic would read another registry.
    pub(super) fn of(rest: &'a str) -> Option<Self> {
        if has_user(rest) {
            return None;
        }
        let path = rest.split(['?', '#']).next().unwrap_or_default();
        let (registry, repository) = path.split_once('/').unwrap_or((path, ""));
        let repository = repository.split_once('@').map_or(repository, |(name, _)| name);
        let repository = match repository.rsplit_once(':') {
            Some((name, tag)) if !tag.contains('/') => name,
            _ => repository,
        };
        Some(Self { registry, repository })
    }

    /// The registry, with its port if the URL has one.
    #[must_use]
    pub const fn registry(&self) -> &'a str {
        self.registry
    }

    /// How closely the key of a stored login names this image: the length of the part of the repository that it names.
    /// `None`: it is the login to another registry or repository. A key may be a URL, as old versions of `docker` write it.
    #[must_use]
    pub fn closeness(&self, key: &str) -> Option<usize> {
        let key = key
            .strip_prefix("https://")
            .or_else(|| key.strip_prefix("http://"))
            .unwrap_or(key);
        let key = key.trim_end_matches('/');
        let (registry, rest) = key.split_once('/').unwrap_or((key, ""));
        // The versions of the protocol, not repositories.
        let prefix = if matches!(rest, "v1" | "v2") { "" } else { rest };
        if !is_same_registry(registry, self.registry) {
            return None;
        }
        let behind = self.repository.strip_prefix(prefix)?;
        (prefix.is_empty() || behind.is_empty() || behind.starts_with('/')).then_some(prefix.len())
    }
}

/// Whether what follows `oci://` has a part before an '@' that is not of a digest.
pub(crate) fn has_user(rest: &str) -> bool {
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    authority.contains('@')
}

fn is_same_registry(one: &str, other: &str) -> bool {
    let is_hub = |name: &str| HUB.iter().any(|hub| hub.eq_ignore_ascii_case(name));
    one.eq_ignore_ascii_case(other) || (is_hub(one) && is_hub(other))
}
