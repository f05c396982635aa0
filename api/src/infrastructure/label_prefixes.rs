//! The annotation of a Metal3Cluster that selects labels of hosts for their Nodes.

use std::collections::BTreeSet;
use std::fmt;

use metal3_domain::names::{NameError, check_subdomain};

use super::names::LABEL_PREFIXES_ANNOTATION;

/// Prefixes that are read. Each costs a comparison for every label.
const MOST: usize = 100;

/// Why the annotation selects no labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LabelPrefixError {
    /// A prefix that no label can have.
    Prefix {
        /// The prefix.
        prefix: String,
        /// What is wrong with it.
        why: NameError,
    },
    /// There are more than are read.
    TooMany,
}

impl fmt::Display for LabelPrefixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the annotation {LABEL_PREFIXES_ANNOTATION} of the Metal3Cluster ")?;
        match self {
            Self::Prefix { prefix, why } => {
                let beginning: String = prefix.chars().take(MOST).collect();
                write!(
                    f,
                    "contains {beginning:?}, which cannot be the prefix of a label: {why}; "
                )?;
            }
            Self::TooMany => write!(f, "contains more than {MOST} prefixes; ")?,
        }
        f.write_str("name prefixes such as example.com, separated by commas")
    }
}

impl std::error::Error for LabelPrefixError {}

/// The prefixes in the text of the annotation. An empty text has none.
///
/// # Errors
/// When one of them cannot be the prefix of a label, or there are too many.
pub fn label_prefixes(text: &str) -> Result<BTreeSet<&str>, LabelPrefixError> {
    let mut prefixes = BTreeSet::new();
    for prefix in text.split(',').map(str::trim).filter(|prefix| !prefix.is_empty()) {
        check_subdomain(prefix).map_err(|why| LabelPrefixError::Prefix {
            prefix: prefix.to_owned(),
            why,
        })?;
        prefixes.insert(prefix);
        if prefixes.len() > MOST {
            return Err(LabelPrefixError::TooMany);
        }
    }
    Ok(prefixes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_separated_by_commas_and_each_is_checked() {
        let of = |text| {
            label_prefixes(text)
                .map(Vec::from_iter)
                .map_err(|error| error.to_string())
        };
        assert_eq!(of(" b.example.com, ,a "), Ok(vec!["a", "b.example.com"]));
        assert_eq!(of(""), Ok(vec![]));
        let long = "x".repeat(1 << 18);
        for (text, named) in [
            ("a,Example.com", "\"Example.com\""),
            ("a/b", "\"a/b\""),
            ("*.example.com", "\"*.example.com\""),
            (long.as_str(), "xxx"),
        ] {
            let error = of(text).unwrap_err();
            assert!(error.contains(named) && error.len() < 500, "{error}");
            assert!(error.contains("metal3.io/metal3-label-sync-prefixes"), "{error}");
        }
        let many: Vec<String> = (0..=MOST).map(|number| format!("p{number}")).collect();
        assert!(of(&many.join(",")).unwrap_err().contains("more than 100"));
    }
}
