//! Output for a person, who may have gone, as `head` does.

use std::io::{self, ErrorKind, Write as _};

/// Prints a line.
macro_rules! say {
    ($($text:tt)*) => {
        $crate::out::print(&format!("{}\n", format_args!($($text)*)))
    };
}

/// Prints a text. Without a reader the program ends, quietly.
pub(crate) fn print(text: &str) {
    #[cfg(test)]
    tests::keep(text);
    let mut out = io::stdout();
    let printed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    if let Some(code) = printed.err().map(|error| exit_code(error.kind())) {
        std::process::exit(code);
    }
}

fn exit_code(kind: ErrorKind) -> i32 {
    if kind == ErrorKind::BrokenPipe { 0 } else { 1 }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::RefCell;

    use super::*;

    thread_local! {
        static PRINTED: RefCell<String> = const { RefCell::new(String::new()) };
    }

    pub(super) fn keep(text: &str) {
        PRINTED.with_borrow_mut(|printed| printed.push_str(text));
    }

    /// What this thread has printed.
    pub(crate) fn taken() -> String {
        PRINTED.take()
    }

    #[test]
    fn output_without_a_reader_is_no_failure() {
        say!("{} lines", 2);
        assert_eq!(taken(), "2 lines\n");
        assert_eq!(
            (exit_code(ErrorKind::BrokenPipe), exit_code(ErrorKind::StorageFull)),
            (0, 1)
        );
    }
}
