mod graph;
mod model;
mod properties;
mod recorded;
mod rows;
mod scene;
mod tables;
