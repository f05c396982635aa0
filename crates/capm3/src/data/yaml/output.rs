//! The output with its current column.

/// Columns per level of indentation.
pub(super) const STEP: usize = 2;

#[derive(Default)]
pub(super) struct Output {
    text: String,
    column: usize,
}

impl Output {
    pub(super) const fn column(&self) -> usize {
        self.column
    }

    pub(super) fn push(&mut self, character: char) {
        self.text.push(character);
        self.column = if character == '\n' { 0 } else { self.column + 1 };
    }

    pub(super) fn push_str(&mut self, text: &str) {
        text.chars().for_each(|character| self.push(character));
    }

    pub(super) fn indent(&mut self, columns: usize) {
        (0..columns).for_each(|_| self.push(' '));
    }

    /// Ends the line, unless a block has ended it.
    pub(super) fn end_line(&mut self) {
        if self.column > 0 {
            self.push('\n');
        }
    }

    /// Continues on the next line, indented.
    pub(super) fn fold(&mut self, indent: usize) {
        self.push('\n');
        self.indent(indent);
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }
}
