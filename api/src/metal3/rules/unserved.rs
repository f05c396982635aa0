//! Kinds without rules that no controller of this program serves, or only one with a setting: each request that writes their spec gets a warning.

use crate::metal3::v1alpha1::BareMetalSwitch;
use crate::rules::{AdmissionRules, Rule, Unserved};

macro_rules! unserved {
    ($($kind:ty: $unserved:expr;)+) => {$(
        impl AdmissionRules for $kind {
            const RULES: &'static [Rule<Self>] = &[];
            const UNSERVED: Option<Unserved> = Some($unserved);
        }
    )+};
}

unserved! {
    BareMetalSwitch: Unserved::without("IRONIC_NETWORKING_ENABLED", "no switch is configured");
}
