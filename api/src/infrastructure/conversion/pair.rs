//! The two versions of a kind, and the way between them through the annotation.

use super::annotation;
use super::error::ConversionError;
use kube_core::Resource;

use super::merge::merge_objects;
use crate::kind::Kind;

/// A kind as it is stored, which knows its older form.
///
/// The two functions look at nothing but members. They may lose what the other version has no member for.
pub trait Hub: Kind {
    /// The older form.
    type Spoke: Kind;

    /// What an older client sees.
    fn to_spoke(&self) -> Self::Spoke;

    /// What an older client means, as far as it can say it.
    ///
    /// # Errors
    ///
    /// When a member has no meaning in the newer version.
    fn from_spoke(spoke: &Self::Spoke) -> Result<Self, ConversionError>;
}

/// The older form of a stored object. What is stored goes along in an annotation.
///
/// # Errors
///
/// When the object cannot be written as JSON, which no object of these kinds does.
pub fn down<H: Hub>(hub: &H) -> Result<H::Spoke, ConversionError> {
    let mut spoke = hub.to_spoke();
    annotation::attach(spoke.meta_mut(), annotation::render(hub)?);
    Ok(spoke)
}

/// The object an older client wants stored: what it changed, and for the rest what the annotation says is stored.
///
/// # Errors
///
/// When a member has no meaning in the newer version, or the annotation is not what it should be.
pub fn up<H: Hub>(spoke: &H::Spoke) -> Result<H, ConversionError> {
    let mut edited = H::from_spoke(spoke)?;
    let Some(text) = annotation::detach(edited.meta_mut()) else {
        return Ok(edited);
    };
    let stored: H = annotation::parse(&text)?;
    let mut base = H::from_spoke(&stored.to_spoke())?;
    *base.meta_mut() = edited.meta().clone();
    let mut merged = match base == edited {
        true => stored,
        false => merge_objects(&base, &stored, &edited).map_err(annotation::unusable)?,
    };
    *merged.meta_mut() = base.meta().clone();
    Ok(merged)
}
