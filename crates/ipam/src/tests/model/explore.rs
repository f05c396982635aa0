//! Explores all histories and reports the first that fails.

use std::collections::HashSet;

use super::state::{Plans, State, Step};

/// A node in the tree of histories: the step that led to it, and its parent.
struct Node {
    from: usize,
    step: Option<Step>,
}

/// Explores all histories; returns the number of states, or the first failing history.
pub(super) fn explore(start: State, most: usize) -> Result<usize, String> {
    let (mut visited, mut plans) = (HashSet::from([start.content_hash()]), Plans::new());
    let mut tree = vec![Node { from: 0, step: None }];
    let mut open = vec![(start, 0)];
    while let Some((state, at)) = open.pop() {
        state.check().map_err(|why| trace(&tree, at, &why))?;
        let next = state.next(&mut plans);
        if next.is_empty() {
            state.check_when_idle().map_err(|why| trace(&tree, at, &why))?;
        }
        for (step, state) in next {
            if visited.insert(state.content_hash()) {
                tree.push(Node {
                    from: at,
                    step: Some(step),
                });
                open.push((state, tree.len() - 1));
            }
        }
        assert!(
            visited.len() < most,
            "{}",
            trace(&tree, at, "too many states, for example")
        );
    }
    Ok(visited.len())
}

fn trace(tree: &[Node], end: usize, why: &str) -> String {
    let (mut steps, mut at) = (Vec::new(), end);
    while let Some(step) = &tree[at].step {
        steps.push(format!("{step:?}"));
        at = tree[at].from;
    }
    steps.reverse();
    format!("{why}\n{}", steps.join("\n"))
}
