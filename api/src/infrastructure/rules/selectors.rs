//! Checks of host selectors.

use metal3_domain::selector::{Expression, Requirement};

use crate::infrastructure::v1beta2::HostSelector;
use crate::rules::{FieldPath, Findings};

/// Warns about each invalid requirement. The Go manager accepts such a selector and then finds no host.
pub(super) fn warn(path: &str, selector: Option<&HostSelector>, findings: &mut Findings) {
    let requirements = selector.into_iter().flat_map(|selector| &selector.match_expressions);
    for (position, requirement) in requirements.enumerate() {
        let expression = Expression {
            key: &requirement.key,
            operator: &requirement.operator,
            values: &requirement.values,
        };
        if let Err(error) = Requirement::parse(&expression) {
            let path = FieldPath::new(path).child("matchExpressions").index(position);
            let problem = format!("{path}: {error}");
            findings.warn(path, problem, "no host matches until this is corrected");
        }
    }
}
