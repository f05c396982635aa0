mod graph;
mod model;
mod places;
mod properties;
mod recorded;
mod rows;
mod scene;
mod tables;
