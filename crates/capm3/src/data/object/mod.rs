//! A Metal3Data: [`plan`] decides on [`action`]s from [`facts`], [`reconciler`] observes and performs them.

pub mod action;
pub mod facts;
pub mod plan;
pub mod reconciler;
