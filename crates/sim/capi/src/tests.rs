//! Tables of snapshots and the writes that are due for them.

mod byoh;
mod fixture;
mod machines;
mod nodes;
mod rollout;
