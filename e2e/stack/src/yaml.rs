//! Reads files of several YAML documents.

use serde_json::Value;

/// The documents of a text, without empty ones.
pub(crate) fn documents(text: &str) -> anyhow::Result<Vec<Value>> {
    let mut parts = vec![String::new()];
    for line in text.lines() {
        match parts.last_mut() {
            Some(part) if line.trim_end() != "---" => {
                part.push_str(line);
                part.push('\n');
            }
            _ => parts.push(String::new()),
        }
    }
    let mut all = Vec::new();
    for part in parts {
        let document: Value = serde_saphyr::from_str(&part)?;
        all.extend((!document.is_null()).then_some(document));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn empty_documents_and_comments_are_none() {
        let text = "---\n# first\n---\na: 1\n---\n\n---\nb: |\n  x\n  y\n";
        assert_eq!(documents(text).unwrap(), [json!({"a": 1}), json!({"b": "x\ny\n"})]);
        assert!(documents("a: [").is_err());
    }
}
