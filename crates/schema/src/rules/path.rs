//! `fieldPath` of a rule: `.spec.size` or `.labels['app.example.org/name']`.

use crate::model::Schema;

/// The path in the format of error fields; `None` if the schema has no such field.
pub(crate) fn field_path(schema: &Schema, path: &str) -> Option<String> {
    let (mut here, mut rest, mut spelled) = (schema, path, String::new());
    while !rest.is_empty() {
        let (name, after) = step(rest)?;
        rest = after;
        if here.properties.is_empty() {
            here = here.additional_schema()?;
            spelled.push_str(&format!("[{name}]"));
        } else {
            here = here.properties.get(&name)?;
            if !spelled.is_empty() {
                spelled.push('.');
            }
            spelled.push_str(&name);
        }
    }
    Some(spelled)
}

/// The first name of a path, and the rest.
fn step(path: &str) -> Option<(String, &str)> {
    if let Some(rest) = path.strip_prefix('.') {
        let end = rest.find(['.', '[', ']']).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        return (!name.is_empty()).then(|| (name.to_owned(), after));
    }
    let mut rest = path.strip_prefix("['")?.chars();
    let mut name = String::new();
    loop {
        match rest.next()? {
            '\'' => return Some((name, rest.as_str().strip_prefix(']')?)),
            '\\' => name.push(unescaped(rest.next()?)?),
            c => name.push(c),
        }
    }
}

fn unescaped(c: char) -> Option<char> {
    Some(match c {
        'a' => '\u{07}',
        'b' => '\u{08}',
        'f' => '\u{0c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{0b}',
        '\'' | '\\' => c,
        _ => return None,
    })
}
