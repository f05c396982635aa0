mod graph;
mod model;
mod properties;
mod rows;
mod scene;
mod tables;
