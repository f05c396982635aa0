//! Patterns of member paths. `(a|b)` is either, `*` any text within a segment, and `**` at the end the whole subtree.
//! `[]` stands for the items of a list, `{}` for the values of a map, as in the collected paths.

/// A pattern as written, with its alternatives.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    text: String,
    alternatives: Vec<String>,
}

impl Pattern {
    pub(crate) fn new(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            alternatives: expanded(text),
        }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The patterns without `(a|b)` that it stands for.
    pub(crate) fn alternatives(&self) -> &[String] {
        &self.alternatives
    }

    pub(crate) fn matches(&self, path: &str) -> bool {
        self.alternatives.iter().any(|alternative| matches(alternative, path))
    }
}

/// The texts that a pattern with `(a|b)` stands for.
fn expanded(text: &str) -> Vec<String> {
    let Some((before, rest)) = text.split_once('(') else {
        return vec![text.to_owned()];
    };
    let Some((words, after)) = rest.split_once(')') else {
        return vec![text.to_owned()];
    };
    let ends = expanded(after);
    let joined = |word: &str| -> Vec<String> { ends.iter().map(|end| format!("{before}{word}{end}")).collect() };
    words.split('|').flat_map(joined).collect()
}

/// Whether a pattern without `(a|b)` matches a path.
pub(crate) fn matches(pattern: &str, path: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == path,
        Some((before, rest)) => {
            let Some(tail) = path.strip_prefix(before) else {
                return false;
            };
            if rest == "*" {
                return true;
            }
            let segment = tail.find('.').unwrap_or(tail.len());
            let ends = tail.char_indices().map(|(index, _)| index).chain([tail.len()]);
            ends.take_while(|end| *end <= segment)
                .any(|end| tail.get(end..).is_some_and(|tail| matches(rest, tail)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_paths() {
        let table = [
            ("spec.a", "spec.a", true),
            ("spec.a", "spec.a.b", false),
            ("spec.(a|b).c", "spec.b.c", true),
            ("spec.(a|b).(c|d)", "spec.a.d", true),
            ("spec.(a|b).c", "spec.ab.c", false),
            ("spec.*.c", "spec.x[].c", true),
            ("spec.*.c", "spec.x.y.c", false),
            ("spec.a.**", "spec.a.b[].c", true),
            ("spec.a.**", "spec.a", false),
            ("spec.v*[].id", "spec.vlans[].id", true),
            ("metal3_*", "metal3_a_b", true),
        ];
        for (pattern, path, is_match) in table {
            assert_eq!(Pattern::new(pattern).matches(path), is_match, "{pattern} {path}");
        }
    }
}
