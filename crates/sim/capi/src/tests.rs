//! What is due, as tables: for each state of the world the next writes.

mod brought;
mod machines;
mod nodes;
mod rolling;
mod scene;
