//! A Metal3DataTemplate and the claims on it: [`plan`] decides, [`reconciler`] observes and writes.

pub mod plan;
pub mod reconciler;
