//! Follows every history, and tells the first that goes wrong.

use std::collections::HashSet;

use super::world::World;

struct Met {
    from: usize,
    step: String,
}

/// How many states there are, or the first history that goes wrong.
pub(super) fn explore(start: World, most: usize) -> Result<usize, String> {
    let mut met = HashSet::from([start.figure()]);
    let mut tree = vec![Met {
        from: 0,
        step: String::new(),
    }];
    let mut open = vec![(start, 0)];
    while let Some((world, at)) = open.pop() {
        if let Some(why) = &world.wrong {
            return Err(story(&tree, at, why));
        }
        let (own, mut is_at_rest) = (world.figure(), true);
        for (step, next) in world.next() {
            let figure = next.figure();
            is_at_rest &= figure == own;
            if met.insert(figure) {
                tree.push(Met { from: at, step });
                open.push((next, tree.len() - 1));
            }
        }
        if is_at_rest {
            world.check_at_rest().map_err(|why| story(&tree, at, &why))?;
        }
        assert!(met.len() < most, "{}", story(&tree, at, "too many states, for example"));
    }
    Ok(met.len())
}

fn story(tree: &[Met], end: usize, why: &str) -> String {
    let (mut steps, mut at) = (Vec::new(), end);
    while at != 0 {
        steps.push(tree[at].step.clone());
        at = tree[at].from;
    }
    steps.reverse();
    format!("{why}\n{}", steps.join("\n"))
}
