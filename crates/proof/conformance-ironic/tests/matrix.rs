//! The committed matrix equals the generated one.

use std::path::Path;

use metal3_conformance_ironic::matrix;

#[test]
fn the_committed_matrix_names_every_claim() {
    let path = Path::new("../../../docs/ironic-claims.md");
    let generated = matrix::document();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, &generated).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        committed == generated,
        "docs/ironic-claims.md is not up to date: run this test with UPDATE=1"
    );
}
