//! Follows every history, and tells the first that goes wrong.

use std::collections::HashSet;

use super::state::{Plans, State, Step};

/// A state's place in the tree of histories: the step that led to it, and from where.
struct Met {
    from: usize,
    step: Option<Step>,
}

/// Follows every history; how many states it met, or the first that goes wrong.
pub(super) fn explore(start: State, most: usize) -> Result<usize, String> {
    let (mut met, mut plans) = (HashSet::from([start.figure()]), Plans::new());
    let mut tree = vec![Met { from: 0, step: None }];
    let mut open = vec![(start, 0)];
    while let Some((state, at)) = open.pop() {
        state.check().map_err(|why| story(&tree, at, &why))?;
        let next = state.next(&mut plans);
        if next.is_empty() {
            state.check_at_rest().map_err(|why| story(&tree, at, &why))?;
        }
        for (step, state) in next {
            if met.insert(state.figure()) {
                tree.push(Met {
                    from: at,
                    step: Some(step),
                });
                open.push((state, tree.len() - 1));
            }
        }
        assert!(met.len() < most, "{}", story(&tree, at, "too many states, for example"));
    }
    Ok(met.len())
}

fn story(tree: &[Met], end: usize, why: &str) -> String {
    let (mut steps, mut at) = (Vec::new(), end);
    while let Some(step) = &tree[at].step {
        steps.push(format!("{step:?}"));
        at = tree[at].from;
    }
    steps.reverse();
    format!("{why}\n{}", steps.join("\n"))
}
