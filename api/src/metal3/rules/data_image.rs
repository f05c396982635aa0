//! DataImage: a URL with a supported scheme.

use super::check_fetchable;
use crate::metal3::v1alpha1::DataImage;
use crate::rules::{AdmissionRules, On, Rule};

impl AdmissionRules for DataImage {
    const RULES: &'static [Rule<Self>] = &[Rule {
        name: "url-fetchable",
        description: "`spec.url` is an absolute URL with the scheme `http`, `https`, `ftp`, `gopher` or `oci`.",
        on: On::Spec(|image, findings| check_fetchable("spec.url", &image.new.spec.url, findings)),
        differs: Some("unchanged-spec"),
    }];
}
