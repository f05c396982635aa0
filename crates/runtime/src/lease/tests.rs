mod cluster;
mod model;
mod steps;
