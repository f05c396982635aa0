//! The decision about a machine, by tables, and by histories of a small world: drawn, and written down.

mod case;
mod decisions;
mod histories;
mod leftovers;
mod scripts;
mod server;
mod world;
