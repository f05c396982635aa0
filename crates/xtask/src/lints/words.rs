//! The list of coined words that code and documents do not use, each with the plain word (`docs/style.md`).
//!
//! A word is compared in lower case, as a whole word of a sentence or as a part of an identifier (`snake_case` and
//! `CamelCase` are split).

/// A banned word and its replacement.
const BANNED: &[(&str, &str)] = &[
    ("abreast", "up to date"),
    ("abroad", "in the workload cluster"),
    ("afresh", "again"),
    ("anew", "again"),
    ("anybody", "name the actor"),
    ("aside", "skip, ignore"),
    ("believe", "assume, accept"),
    ("believed", "assumed, accepted"),
    ("believes", "assumes, accepts"),
    ("beside", "next to, in addition to"),
    ("betrayed", "revealed"),
    ("blow", "fault"),
    ("blows", "faults"),
    ("contender", "leader elector"),
    ("deed", "change, action, request"),
    ("deeds", "changes, actions, requests"),
    ("everybody", "all clients, all controllers"),
    ("forgets", "removes, loses"),
    ("forgot", "removed, lost"),
    ("garbled", "undecodable"),
    ("glance", "read from the cache"),
    ("heard", "received, observed"),
    ("hears", "receives, observes"),
    ("heed", "respect, check"),
    ("hurry", "poll soon"),
    ("lookout", "watch configuration"),
    ("mandate", "write access"),
    ("nameless", "without metadata"),
    ("nobody", "name the actor"),
    ("obey", "follow, accept"),
    ("obeys", "follows, accepts"),
    ("robbed", "missed"),
    ("sayings", "conditions"),
    ("somebody", "name the actor"),
    ("struck", "injected, failed"),
    ("tidings", "events"),
    ("told", "reported, recorded, configured"),
    ("troubles", "errors"),
    ("trouble", "error"),
    ("verdict", "decision, result"),
    ("verdicts", "decisions, results"),
    ("whoever", "name the actor"),
    ("whom", "name the actor"),
];

/// Complaints about the words of a text, each with its line number.
pub(super) fn complaints(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for word in words(line) {
            if let Some((banned, plain)) = BANNED.iter().find(|(banned, _)| *banned == word) {
                found.push((number + 1, format!("\"{banned}\" is no plain word: write {plain}")));
            }
        }
    }
    found
}

/// The words of a line, in lower case.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in line.chars() {
        let starts_new = !c.is_alphabetic() || (c.is_uppercase() && was_lower);
        if starts_new && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphabetic()) {
            word.extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A banned word in two halves, so that this file does not contain it outside the table.
    const WORD: &str = concat!("de", "ed");

    #[test]
    fn banned_words_are_found_in_sentences_and_identifiers() {
        let title = concat!("De", "ed");
        for line in [
            format!("// a {WORD} of the host"),
            format!("fn last_{WORD}() {{}}"),
            format!("struct Host{title} {{}}"),
        ] {
            let found = complaints(&line);
            assert_eq!(found.len(), 1, "{line}");
            assert!(
                found.iter().all(|(number, why)| *number == 1 && why.contains("change")),
                "{found:?}"
            );
        }
    }

    #[test]
    fn other_words_that_contain_a_banned_one_are_accepted() {
        assert_eq!(complaints(&format!("in{WORD}, {WORD}less")), []);
    }

    #[test]
    fn the_list_is_in_lower_case_and_gives_a_replacement() {
        for (banned, plain) in BANNED {
            assert!(!plain.is_empty() && *banned == banned.to_lowercase(), "{banned}");
        }
    }
}
