//! Files of the checkout, for the tools of the project.

pub mod documents;
pub mod workspace;
