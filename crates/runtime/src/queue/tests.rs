mod model;
mod paused;
mod steps;
