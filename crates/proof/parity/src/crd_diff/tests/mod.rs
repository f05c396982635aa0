//! Every aspect in both directions, as rows.

mod allow;
mod definition;
mod schema;

use super::difference::{Difference, Direction, Node};

/// Path, aspect and direction of a difference.
type Row = (String, String, Direction);

fn row(path: &str, aspect: &str, direction: Direction) -> Row {
    (path.to_owned(), aspect.to_owned(), direction)
}

fn outline(differences: &[Difference]) -> Vec<Row> {
    let mut rows: Vec<_> = differences
        .iter()
        .map(|difference| row(&difference.node.path, &difference.aspect, difference.direction))
        .collect();
    rows.sort();
    rows
}

fn root() -> Node {
    Node {
        kind: "Thing".into(),
        version: Some("v1".into()),
        path: String::new(),
    }
}
