//! DataImage: an image that can be fetched.

use super::check_fetchable;
use crate::metal3::v1alpha1::DataImage;
use crate::rules::{On, Rule, Ruled};

impl Ruled for DataImage {
    const RULES: &'static [Rule<Self>] = &[Rule {
        name: "url-fetchable",
        says: "`spec.url` is an absolute URL with the scheme `http`, `https`, `ftp`, `gopher` or `oci`.",
        on: On::Spec(|image, findings| check_fetchable("spec.url", &image.new.spec.url, findings)),
        differs: Some("unchanged-spec"),
    }];
}
