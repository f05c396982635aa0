//! The states of a node, as Ironic spells them.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! spelled {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(from = "String", into = "String")]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)+
            /// A value that this version does not know.
            Other(String),
        }

        impl $name {
            /// Every known value.
            pub const KNOWN: &'static [Self] = &[$(Self::$variant),+];

            /// Ironic's spelling.
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $text,)+
                    Self::Other(text) => text,
                }
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                match text.as_str() {
                    $($text => Self::$variant,)+
                    _ => Self::Other(text),
                }
            }
        }

        impl From<$name> for String {
            fn from(state: $name) -> Self {
                state.as_str().to_owned()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

spelled! {
    /// The provision state of a node.
    ProvisionState {
        /// Created; credentials not verified.
        Enroll = "enroll",
        /// Verifying credentials.
        Verifying = "verifying",
        /// Managed, not available.
        Manageable = "manageable",
        /// Inspection begins, or its data is processed.
        Inspecting = "inspecting",
        /// The ramdisk inspects.
        InspectWait = "inspect wait",
        /// Inspection failed.
        InspectFailed = "inspect failed",
        /// Cleaning.
        Cleaning = "cleaning",
        /// The ramdisk cleans.
        CleanWait = "clean wait",
        /// A step requested a hold.
        CleanHold = "clean hold",
        /// Cleaning failed; maintenance is set.
        CleanFailed = "clean failed",
        /// Available for deployment.
        Available = "available",
        /// Deploying.
        Deploying = "deploying",
        /// The ramdisk deploys.
        WaitCallBack = "wait call-back",
        /// A step requested a hold.
        DeployHold = "deploy hold",
        /// Deployment failed.
        DeployFailed = "deploy failed",
        /// Deployed.
        Active = "active",
        /// Tearing down.
        Deleting = "deleting",
        /// Tear-down failed.
        Error = "error",
        /// Adopting a running machine.
        Adopting = "adopting",
        /// Adoption failed.
        AdoptFailed = "adopt failed",
        /// Servicing an active node.
        Servicing = "servicing",
        /// The ramdisk services.
        ServiceWait = "service wait",
        /// A step requested a hold.
        ServiceHold = "service hold",
        /// Service failed; maintenance is set.
        ServiceFailed = "service failed",
        /// Starting the rescue ramdisk.
        Rescuing = "rescuing",
        /// Waiting for the rescue ramdisk.
        RescueWait = "rescue wait",
        /// In the rescue ramdisk.
        Rescue = "rescue",
        /// Rescue failed.
        RescueFailed = "rescue failed",
        /// Leaving rescue.
        Unrescuing = "unrescuing",
        /// Leaving rescue failed.
        UnrescueFailed = "unrescue failed",
    }
}

impl ProvisionState {
    /// Whether Ironic leaves this state without a request. True for an unknown state: polling too often is harmless.
    #[must_use]
    pub const fn is_transitional(&self) -> bool {
        match self {
            Self::Verifying
            | Self::Inspecting
            | Self::InspectWait
            | Self::Cleaning
            | Self::CleanWait
            | Self::Deploying
            | Self::WaitCallBack
            | Self::Deleting
            | Self::Adopting
            | Self::Servicing
            | Self::ServiceWait
            | Self::Rescuing
            | Self::RescueWait
            | Self::Unrescuing
            | Self::Other(_) => true,
            Self::Enroll
            | Self::Manageable
            | Self::InspectFailed
            | Self::CleanHold
            | Self::CleanFailed
            | Self::Available
            | Self::DeployHold
            | Self::DeployFailed
            | Self::Active
            | Self::Error
            | Self::AdoptFailed
            | Self::ServiceHold
            | Self::ServiceFailed
            | Self::Rescue
            | Self::RescueFailed
            | Self::UnrescueFailed => false,
        }
    }

    /// Whether a node in this state takes a slot: it loads the provisioning network.
    #[must_use]
    pub const fn is_busy(&self) -> bool {
        matches!(
            self,
            Self::Cleaning
                | Self::CleanWait
                | Self::Inspecting
                | Self::InspectWait
                | Self::Deploying
                | Self::WaitCallBack
                | Self::Deleting
        )
    }
}

spelled! {
    /// The power state of a machine.
    PowerState {
        /// On.
        On = "power on",
        /// Off.
        Off = "power off",
        /// Restarting.
        Rebooting = "rebooting",
        /// The BMC did not report it.
        Error = "error",
    }
}

never_blank!(Option<PowerState>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_reads_back_from_its_spelling() {
        for state in ProvisionState::KNOWN {
            assert_eq!(&ProvisionState::from(state.as_str().to_owned()), state);
        }
        for state in PowerState::KNOWN {
            assert_eq!(&PowerState::from(state.as_str().to_owned()), state);
        }
    }

    #[test]
    fn an_unknown_state_keeps_its_spelling_and_is_transitional() {
        let state: ProvisionState = serde_json::from_str(r#""polishing""#).unwrap();
        assert_eq!(state, ProvisionState::Other("polishing".into()));
        assert!(state.is_transitional() && !state.is_busy());
        assert_eq!(serde_json::to_string(&state).unwrap(), r#""polishing""#);
    }

    #[test]
    fn every_busy_state_is_transitional() {
        for state in ProvisionState::KNOWN {
            assert!(!state.is_busy() || state.is_transitional(), "{state}");
        }
    }
}
