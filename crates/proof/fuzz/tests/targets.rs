//! Every target with its corpus and a fixed number of generated inputs, and its planted defect.

use std::collections::BTreeSet;

use metal3_fuzz::planted::{planted, reaches};
use metal3_fuzz::run::{corpus, run};
use metal3_fuzz::targets;

/// Generated inputs of each target, after its corpus.
const GENERATED: u64 = 150;

#[test]
fn no_target_has_a_finding() {
    for target in targets::all() {
        let corpus = corpus(&target).unwrap();
        let most = u64::try_from(corpus.len()).unwrap() + GENERATED;
        let summary = run(&target, &target.parse, &corpus, 1, |inputs| inputs < most);
        assert!(summary.finding.is_none(), "{}: {:?}", target.name, summary.finding);
        assert!(
            summary.accepted > 0 && summary.outcomes > 1,
            "{}: {summary:?}",
            target.name
        );
    }
}

#[test]
fn every_target_has_its_own_name_and_a_corpus_that_misses_its_planted_defect() {
    let targets = targets::all();
    let names: BTreeSet<&str> = targets.iter().map(|target| target.name).collect();
    assert_eq!(names.len(), targets.len());
    assert!(targets.len() >= 40, "{}", targets.len());
    for target in targets {
        let corpus = corpus(&target).unwrap();
        assert!(corpus.len() >= 5, "{}", target.name);
        for input in corpus {
            let answer = (target.parse)(&input);
            assert!(!reaches(&target, &answer), "{}: {answer:?}", target.name);
        }
    }
}

/// All of them are found by `make fuzz-planted`, which takes longer.
#[test]
fn planted_defects_are_found_and_shrunk() {
    for name in ["reboot-annotation", "ironic-version", "resource-version", "label"] {
        let target = targets::all().into_iter().find(|target| target.name == name).unwrap();
        let summary = run(&target, &planted(target), &corpus(&target).unwrap(), 1, |inputs| {
            inputs < 5000
        });
        let finding = summary.finding.unwrap_or_else(|| panic!("{name} misses its defect"));
        assert!(finding.problem.contains("planted"), "{name}: {finding:?}");
        assert!(finding.input.len() < 100, "{name}: {finding:?}");
    }
}
