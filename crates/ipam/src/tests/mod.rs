//! The decision, held against a small API server: tables, properties, and every history of a small world.

mod model;
mod passes;
mod standing;
mod world;
