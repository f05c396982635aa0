//! YAML quoted in prose: fenced blocks, and indented ones that begin with `apiVersion` or `kind`.
//!
//! Template tags (`{% raw %}`) are dropped. Blocks without a Kubernetes object are left out: shell, listings and
//! fragments without a kind.

/// The blocks of a text that contain objects.
#[must_use]
pub fn blocks(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut open: Option<Block> = None;
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        let is_fence = line.trim_start().starts_with("```");
        match &mut open {
            Some(block) if block.continues(line, indent, is_fence) => block.push(line),
            Some(block) => {
                // A fence ends a fenced block; the line after an indented one may open the next.
                let next = if block.fenced {
                    None
                } else {
                    Block::opened_by(line, indent, is_fence)
                };
                found.extend(std::mem::replace(&mut open, next));
            }
            None => open = Block::opened_by(line, indent, is_fence),
        }
    }
    found.extend(open);
    found
        .into_iter()
        .map(|block| block.text)
        .filter(|text| holds_object(text))
        .collect()
}

struct Block {
    fenced: bool,
    indent: usize,
    text: String,
}

impl Block {
    fn opened_by(line: &str, indent: usize, is_fence: bool) -> Option<Self> {
        let first = line.trim_start();
        let opens = indent >= 2 && (first.starts_with("apiVersion:") || first.starts_with("kind:"));
        if !is_fence && !opens {
            return None;
        }
        let mut block = Self {
            fenced: is_fence,
            indent,
            text: String::new(),
        };
        if !is_fence {
            block.push(line);
        }
        Some(block)
    }

    fn continues(&self, line: &str, indent: usize, is_fence: bool) -> bool {
        if self.fenced {
            !is_fence
        } else {
            line.trim().is_empty() || indent >= self.indent
        }
    }

    fn push(&mut self, line: &str) {
        if !line.trim_start().starts_with("{%") {
            self.text.push_str(line.get(self.indent..).unwrap_or_default());
            self.text.push('\n');
        }
    }
}

fn holds_object(text: &str) -> bool {
    let has = |member: &str| text.lines().any(|line| line.starts_with(member));
    has("apiVersion:") && has("kind:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fenced_blocks_are_found_whatever_their_indentation() {
        let text = "A word.\n\n```yaml\n{% raw %}\napiVersion: v1\nkind: A\n{% endraw %}\n```\n1. item\n   ```yaml\n   apiVersion: v1\n   kind: B\n   spec:\n     a: 1\n   ```\n```bash\necho kind: A\n```\n";
        assert_eq!(
            blocks(text),
            ["apiVersion: v1\nkind: A\n", "apiVersion: v1\nkind: B\nspec:\n  a: 1\n"]
        );
    }

    #[test]
    fn indented_blocks_end_where_the_indentation_does() {
        let text =
            "See:\n\n    kind: A\n    apiVersion: v1\n\n    spec: {}\n\nand\n\n  apiVersion: v1\n  kind: B\nEnd.\n";
        assert_eq!(
            blocks(text),
            ["kind: A\napiVersion: v1\n\nspec: {}\n\n", "apiVersion: v1\nkind: B\n"]
        );
    }

    #[test]
    fn prose_and_pieces_without_a_kind_are_left_out() {
        assert!(blocks("apiVersion: v1\nkind: A\n").is_empty());
        assert!(blocks("```yaml\napiVersion: v1\nspec: {}\n```\n").is_empty());
    }
}
