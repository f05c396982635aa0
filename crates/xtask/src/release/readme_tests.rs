//! The section `Install` of README.md: three ways of at most six lines, with files and names that the release has.

use super::*;

const PAGE: &str = "README.md";
/// Lines of a way.
const MOST: usize = 6;

/// The ways, by the words before each.
fn ways(page: &str) -> BTreeMap<String, String> {
    let section = page
        .split("\n## Install\n")
        .nth(1)
        .unwrap()
        .split("\n## ")
        .next()
        .unwrap();
    let mut parts = section.split("```");
    let mut ways = BTreeMap::new();
    while let (Some(before), Some(code)) = (parts.next(), parts.next()) {
        let name = before.trim().lines().last().unwrap().trim_end_matches(':').to_owned();
        ways.insert(name, code.strip_prefix("sh\n").unwrap().to_owned());
    }
    ways
}

#[test]
fn installation_is_six_lines_for_each_way() {
    let ways = ways(&documents::text(&workspace::root().unwrap().join(PAGE)).unwrap());
    assert_eq!(ways.keys().collect::<Vec<_>>(), ["Helm", "clusterctl", "kubectl"]);
    for (way, code) in &ways {
        assert!(code.lines().count() <= MOST, "{way}: {code}");
        assert!(code.contains(&format!("{} ", way.to_lowercase())), "{way}: {code}");
    }
}

#[test]
fn what_an_installation_names_is_in_the_release() {
    let page = documents::text(&workspace::root().unwrap().join(PAGE)).unwrap();
    let image = "r.example/a:1";
    let mut release = files(image, String::new()).unwrap();
    release.extend(clusterctl::repository(&release, "v1.15.0").unwrap());
    release.extend(
        chart::files(image)
            .into_iter()
            .map(|(path, text)| (Path::new("charts").join(path), text)),
    );
    let all: String = release.values().map(String::as_str).collect();
    let (mut paths, mut names) = (0, 0);
    for line in ways(&page).values().flat_map(|code| code.lines()) {
        for word in line.split_whitespace() {
            let is_path = word.ends_with(".yaml") || word.starts_with("charts/");
            if is_path {
                paths += 1;
                assert!(
                    release.keys().any(|path| path.starts_with(word)),
                    "the release has no {word}"
                );
            }
            if let Some(name) = word
                .strip_prefix("deployment/")
                .or_else(|| word.strip_prefix("ironic-"))
            {
                names += 1;
                assert!(all.contains(&format!("{name}\n")), "the release has no {word}");
            }
        }
        // The address that is replaced is in the file that the line names.
        if let Some(old) = line.strip_prefix("sed 's|").and_then(|rest| rest.split('|').next()) {
            let file = line.split_whitespace().find(|word| word.ends_with(".yaml")).unwrap();
            names += 1;
            assert!(release[Path::new(file)].contains(old), "{file} has no {old}");
        }
    }
    assert_eq!((paths, names), (5, 8));
}

#[test]
fn chart_has_the_values_of_the_installation() {
    let page = documents::text(&workspace::root().unwrap().join(PAGE)).unwrap();
    let helm = &ways(&page)["Helm"];
    let values = helm
        .split("--set")
        .skip(1)
        .filter_map(|rest| rest.split_whitespace().find(|word| word.contains('=')));
    let names: Vec<&str> = values.filter_map(|value| value.split('=').next()).collect();
    assert_eq!(names.len(), 4, "{names:?}");
    let templates: String = chart::files("r.example/a:1").into_values().collect();
    for name in names {
        assert!(
            templates.contains(&format!(".Values.{name}")),
            "the chart has no value {name}"
        );
    }
}
