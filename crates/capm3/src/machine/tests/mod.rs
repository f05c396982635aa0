//! The decision about a machine, by tables, and by histories of a small world.

mod decisions;
mod histories;
mod server;
mod world;
