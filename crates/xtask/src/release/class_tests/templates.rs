//! A small interpreter of the templates that the ClusterClass uses: values, two functions, `range`, and `if` of an index.

use serde_json::{Value, json};

/// A value that a template may name, and the values of its loops.
pub(super) struct Scope<'a> {
    pub(super) variables: &'a Value,
    /// `$i` and `$one`, or the dot.
    pub(super) turn: Option<(usize, &'a Value)>,
}

impl<'a> Scope<'a> {
    fn value(&self, expression: &str) -> &'a Value {
        match expression {
            "." | "$one" => self.turn.unwrap().1,
            path => {
                let pointer = path.replace('.', "/");
                let here = self.turn.and_then(|(_, value)| value.pointer(&pointer));
                let found = here.or_else(|| self.variables.pointer(&pointer));
                found.unwrap_or_else(|| panic!("{path}: no such variable"))
            }
        }
    }
}

/// The parts of a template: texts, and the actions between braces with whether they trim the text before them.
pub(super) fn parts(template: &str) -> Vec<(String, Option<String>)> {
    let mut parts: Vec<(String, Option<String>)> = Vec::new();
    let mut rest = template;
    while let Some((text, after)) = rest.split_once("{{") {
        let (action, after) = after.split_once("}}").unwrap();
        let (text, action) = match action.strip_prefix('-') {
            Some(action) => (text.trim_end(), action),
            None => (text, action),
        };
        parts.push((text.to_owned(), Some(action.trim().to_owned())));
        rest = after;
    }
    parts.push((rest.to_owned(), None));
    parts
}

/// The place of the `end` of the block that begins before `from`.
fn end_of(parts: &[(String, Option<String>)], from: usize) -> usize {
    let mut depth = 1;
    for (place, (_, action)) in parts.iter().enumerate().skip(from) {
        match action.as_deref() {
            Some("end") => depth -= 1,
            Some(action) if action.starts_with("range ") || action.starts_with("if ") => depth += 1,
            _ => {}
        }
        if depth == 0 {
            return place;
        }
    }
    panic!("a block does not end")
}

/// A value as text, after the function of its pipe.
fn shown(action: &str, scope: &Scope<'_>) -> String {
    let (expression, function) = action.split_once(" | ").unwrap_or((action, ""));
    let value = scope.value(expression);
    let text = value.as_str().unwrap();
    match function {
        "" => text.to_owned(),
        "toJson" => value.to_string(),
        r#"replace "%" "%%""# => text.replace('%', "%%"),
        other => panic!("{other}: the interpreter has no such function"),
    }
}

pub(super) fn fill(parts: &[(String, Option<String>)], scope: &Scope<'_>) -> String {
    let (mut text, mut place) = (String::new(), 0);
    while let Some((before, action)) = parts.get(place) {
        text.push_str(before);
        place += 1;
        let Some(action) = action else { continue };
        if let Some(of) = action.strip_prefix("range ") {
            let end = end_of(parts, place);
            let of = of.split_once(":= ").map_or(of, |(_, of)| of);
            for turn in scope.value(of).as_array().unwrap().iter().enumerate() {
                let inner = Scope {
                    variables: scope.variables,
                    turn: Some(turn),
                };
                text.push_str(&fill(&parts[place..end], &inner));
                text.push_str(&parts[end].0);
            }
            place = end + 1;
        } else if action == "if $i" {
            let end = end_of(parts, place);
            if scope.turn.unwrap().0 > 0 {
                text.push_str(&fill(&parts[place..end], scope));
                text.push_str(&parts[end].0);
            }
            place = end + 1;
        } else {
            text.push_str(&shown(action, scope));
        }
    }
    text
}

/// Whether a condition holds, which names the variables that it needs: `{{ if .a }}{{ if .a.b }}true{{ end }}{{ end }}`.
pub(super) fn is_enabled(condition: &Value, variables: &Value) -> bool {
    let parts = parts(condition.as_str().unwrap_or_default());
    let needed = parts
        .iter()
        .filter_map(|(_, action)| action.as_deref()?.strip_prefix("if "));
    // In the templates of Go, what is empty is false.
    let is_true = |value: &Value| *value != json!("") && *value != json!([]) && *value != json!({}) && !value.is_null();
    let mut needed = needed.peekable();
    assert!(needed.peek().is_some(), "{condition}: a condition names a variable");
    needed.all(|name| variables.pointer(&name.replace('.', "/")).is_some_and(is_true))
}
