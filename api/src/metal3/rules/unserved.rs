//! Kinds without rules that no controller of this program serves: each request that writes their spec gets a warning.

use crate::metal3::v1alpha1::{BareMetalSwitch, HostDeployPolicy, HostUpdatePolicy};
use crate::rules::{AdmissionRules, Rule, Unserved};

macro_rules! unserved {
    ($($kind:ty: $consequence:literal;)+) => {$(
        impl AdmissionRules for $kind {
            const RULES: &'static [Rule<Self>] = &[];
            const UNSERVED: Option<Unserved> = Some(Unserved::by_host_operator($consequence));
        }
    )+};
}

unserved! {
    BareMetalSwitch: "no switch is configured without IRONIC_NETWORKING_ENABLED";
    HostDeployPolicy: "no HostClaim is served";
    HostUpdatePolicy: "no setting and no firmware of a machine in use is changed";
}
