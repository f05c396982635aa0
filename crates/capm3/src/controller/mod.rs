//! The controllers: who watches, and who writes what was decided.

pub mod data;
