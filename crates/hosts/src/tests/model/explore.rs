//! Explores every history, and reports the first with a violation.

use std::collections::HashSet;

use super::state::ModelState;

struct Visited {
    from: usize,
    step: String,
}

/// The number of states, or the first history with a violation.
pub(super) fn explore(start: ModelState, most: usize) -> Result<usize, String> {
    let mut visited = HashSet::from([start.fingerprint()]);
    let mut tree = vec![Visited {
        from: 0,
        step: String::new(),
    }];
    let mut open = vec![(start, 0)];
    while let Some((model, at)) = open.pop() {
        if let Some(why) = &model.violation {
            return Err(trace(&tree, at, why));
        }
        let (own, mut is_at_rest) = (model.fingerprint(), true);
        for (step, next) in model.next() {
            let fingerprint = next.fingerprint();
            is_at_rest &= fingerprint == own;
            if visited.insert(fingerprint) {
                tree.push(Visited { from: at, step });
                open.push((next, tree.len() - 1));
            }
        }
        if is_at_rest {
            model.check_at_rest().map_err(|why| trace(&tree, at, &why))?;
        }
        assert!(
            visited.len() < most,
            "{}",
            trace(&tree, at, "too many states, for example")
        );
    }
    Ok(visited.len())
}

fn trace(tree: &[Visited], end: usize, why: &str) -> String {
    let (mut steps, mut at) = (Vec::new(), end);
    while at != 0 {
        steps.push(tree[at].step.clone());
        at = tree[at].from;
    }
    steps.reverse();
    format!("{why}\n{}", steps.join("\n"))
}
