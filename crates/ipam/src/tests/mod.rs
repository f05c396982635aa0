//! The decision, held against a small API server: tables, properties, and every history of a small world.

mod blows;
mod histories;
mod kinds;
mod lab;
mod many;
mod model;
mod passes;
mod record;
mod refusals;
mod replica;
mod restore;
mod standing;
mod world;
