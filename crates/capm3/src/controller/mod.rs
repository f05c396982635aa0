//! The controllers of clusters, machines and data, over caches that they share.
//!
//! | Step | Where |
//! |---|---|
//! | what is watched, and whom a change concerns | [`caches`], `watches` |
//! | machines: what is known, and doing what was decided | [`machines`] |
//! | Metal3Clusters | [`clusters`] |
//! | what Events tell | `news` |
//! | what others say of an endpoint | [`sources`] |
//! | templates of data, and what is rendered from them | [`data`] |
//!
//! They need no leader to be correct, and decide nothing themselves.

pub mod alone;
pub mod caches;
pub mod clusters;
pub mod data;
pub mod machines;
mod news;
pub mod sources;
mod watches;

#[cfg(test)]
mod tests;
