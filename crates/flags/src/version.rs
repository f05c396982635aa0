//! Version of the program: the newest series of `clusterctl-metadata.yaml` and a patch number.
//!
//! clusterctl selects a release by its series, so both come from one file. A release build sets the environment
//! variable `CAPM3_PATCH` to the part after the series, such as `0` or `1-rc.0`.

const METADATA: &str = include_str!("../../../clusterctl-metadata.yaml");

/// Patch part of a development build.
const DEVELOPMENT: &str = "0-dev";

/// The version, such as `v1.15.0`.
#[must_use]
pub fn version() -> String {
    let (major, minor) = series(METADATA).unwrap_or_default();
    format!("v{major}.{minor}.{}", option_env!("CAPM3_PATCH").unwrap_or(DEVELOPMENT))
}

/// The newest series, from lines like `- { major: 1, minor: 15, contract: v1beta2 }`.
fn series(metadata: &str) -> Option<(u32, u32)> {
    let number = |line: &str, member: &str| {
        let (_, rest) = line.split_once(member)?;
        let digits = rest.trim_start().split(|c: char| !c.is_ascii_digit()).next()?;
        digits.parse().ok()
    };
    let lines = metadata.lines().map(str::trim).filter(|line| line.starts_with('-'));
    lines
        .filter_map(|line| Some((number(line, "major:")?, number(line, "minor:")?)))
        .max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata {
        release_series: Vec<Series>,
    }

    #[derive(serde::Deserialize)]
    struct Series {
        major: u32,
        minor: u32,
    }

    #[test]
    fn the_version_has_the_newest_series_of_the_metadata() {
        let read: Result<Metadata, _> = serde_saphyr::from_str(METADATA);
        let listed = read.map(|read| read.release_series).unwrap_or_default();
        let newest = listed.iter().map(|series| (series.major, series.minor)).max();
        assert!(newest.is_some());
        assert_eq!(series(METADATA), newest);
        let (major, minor) = newest.unwrap_or_default();
        assert!(version().starts_with(&format!("v{major}.{minor}.")), "{}", version());
    }

    #[test]
    fn series_compare_as_numbers() {
        let lines = "releaseSeries:\n- { major: 1, minor: 9 }\n- {major: 1,minor: 10}\n# - { major: 7, minor: 0 }\n";
        assert_eq!(series(lines), Some((1, 10)));
        assert_eq!(series("- { major: x, minor: 1 }\n- nothing"), None);
    }
}
