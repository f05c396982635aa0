//! The two versions of a kind, and the conversion between them through the annotation.

use super::annotation;
use super::error::ConversionError;
use kube_core::Resource;

use super::merge::merge_objects;
use crate::kind::Kind;

/// The stored version of a kind, with its conversion to and from the older one.
///
/// Both functions convert members only. They may lose members that the other version does not have.
pub trait Hub: Kind {
    /// The older version.
    type Spoke: Kind;

    /// Converts to the older version.
    fn to_spoke(&self) -> Self::Spoke;

    /// Converts from the older version.
    ///
    /// # Errors
    ///
    /// When the newer version cannot express a member.
    fn from_spoke(spoke: &Self::Spoke) -> Result<Self, ConversionError>;
}

/// Converts a stored object to the older version and attaches the stored object in an annotation.
///
/// # Errors
///
/// When the object cannot be written as JSON, which no object of these kinds does.
pub fn spoke_from_hub<H: Hub>(hub: &H) -> Result<H::Spoke, ConversionError> {
    let mut spoke = hub.to_spoke();
    annotation::attach(spoke.meta_mut(), annotation::render(hub)?);
    Ok(spoke)
}

/// Converts an object of an older client: its changes, merged into the stored object from the annotation.
///
/// differs: conversion-older-change-counts
///
/// # Errors
///
/// When the newer version cannot express a member, or the annotation is invalid.
pub fn hub_from_spoke<H: Hub>(spoke: &H::Spoke) -> Result<H, ConversionError> {
    let mut edited = H::from_spoke(spoke)?;
    let Some(text) = annotation::detach(edited.meta_mut()) else {
        return Ok(edited);
    };
    let stored: H = annotation::parse(&text)?;
    let mut base = H::from_spoke(&stored.to_spoke())?;
    *base.meta_mut() = edited.meta().clone();
    let mut merged = match base == edited {
        true => stored,
        false => merge_objects(&base, &stored, &edited).map_err(annotation::invalid_annotation)?,
    };
    *merged.meta_mut() = base.meta().clone();
    Ok(merged)
}

/// Implements [`Hub`] for a kind whose members have functions: to the older version, and from it.
macro_rules! hub {
    ($kind:ident { $($member:ident: $to_spoke:path, $from_spoke:path;)+ }) => {
        impl $crate::infrastructure::conversion::pair::Hub for $crate::infrastructure::v1beta2::$kind {
            type Spoke = $crate::infrastructure::v1beta1::$kind;

            fn to_spoke(&self) -> Self::Spoke {
                Self::Spoke {
                    metadata: self.metadata.clone(),
                    $($member: $to_spoke(&self.$member)),+
                }
            }

            fn from_spoke(
                spoke: &Self::Spoke,
            ) -> Result<Self, $crate::infrastructure::conversion::error::ConversionError> {
                use $crate::infrastructure::conversion::error::Inside;
                Ok(Self {
                    metadata: spoke.metadata.clone(),
                    $($member: $from_spoke(&spoke.$member).inside(stringify!($member))?),+
                })
            }
        }
    };
}
pub(super) use hub;
