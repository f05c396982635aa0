//! The plan of a machine: tables of decisions, random histories, and scripted races.

mod api_server;
mod by_hand;
mod case;
mod cleanup;
mod decisions;
mod histories;
mod labels;
mod members;
mod owners;
mod races;
mod reuse;
mod simulation;
mod template;
mod undone;
mod zones;
