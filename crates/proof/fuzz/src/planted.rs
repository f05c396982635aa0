//! A parser with a planted defect, to show that a target finds one.
//!
//! The defect is in the behaviour, not in the bytes: the parser panics on what the real parser has accepted and what
//! shows the rare structure of the target. An input that is rejected never reaches it.

use crate::target::{Answer, Target};

/// The parser of the target with its planted defect.
pub fn planted(target: Target) -> impl Fn(&[u8]) -> Answer {
    move |input| {
        let answer = (target.parse)(input);
        assert!(!reaches(&target, &answer), "the planted defect");
        answer
    }
}

/// Whether the answer reaches the planted defect.
#[must_use]
pub fn reaches(target: &Target, answer: &Answer) -> bool {
    answer
        .accepted()
        .is_some_and(|shown| target.rare.iter().all(|part| shown.contains(part)))
}
