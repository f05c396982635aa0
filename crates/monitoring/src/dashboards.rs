//! Dashboards for Grafana, from tables of panels.

mod table;

use serde_json::{Value, json};

pub use table::DASHBOARDS;

/// The columns of Grafana's grid.
const COLUMNS: usize = 24;
/// The height of a panel.
const HEIGHT: usize = 8;

/// The form of a panel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A number.
    Number,
    /// Lines over time.
    Lines,
    /// Stacked areas over time.
    Areas,
}

/// A panel.
#[derive(Debug, Clone, Copy)]
pub struct Panel {
    /// The title.
    pub title: &'static str,
    /// The form.
    pub form: Form,
    /// The columns of 24.
    pub width: usize,
    /// The unit, as Grafana names it.
    pub unit: &'static str,
    /// Legend and query of each line.
    pub queries: &'static [(&'static str, &'static str)],
}

/// A dashboard.
#[derive(Debug, Clone, Copy)]
pub struct Dashboard {
    /// The name of its file.
    pub file: &'static str,
    /// The title.
    pub title: &'static str,
    /// What it is for.
    pub about: &'static str,
    /// Variables that the user chooses: the name, which is a label, and the series whose values of it are offered.
    pub variables: &'static [(&'static str, &'static str)],
    /// The panels, from left to right and from the top.
    pub panels: &'static [Panel],
}

impl Dashboard {
    /// The file, as Grafana imports it.
    #[must_use]
    pub fn json(&self) -> Value {
        let (mut x, mut y) = (0_usize, 0_usize);
        let mut panels = Vec::new();
        for (number, panel) in (1_usize..).zip(self.panels) {
            if x.saturating_add(panel.width) > COLUMNS {
                (x, y) = (0, y.saturating_add(HEIGHT));
            }
            panels.push(panel.json(number, (x, y)));
            x = x.saturating_add(panel.width);
        }
        let source = json!({ "name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus" });
        let variable = |(name, series): &(&str, &str)| {
            let query = format!("label_values({series}, {name})");
            json!({
                "name": name, "type": "query", "datasource": datasource(), "query": query, "refresh": 2, "sort": 1,
            })
        };
        let variables: Vec<Value> = std::iter::once(source)
            .chain(self.variables.iter().map(variable))
            .collect();
        json!({
            "uid": format!("metal3-{}", self.file.trim_end_matches(".json")),
            "title": self.title,
            "description": self.about,
            "tags": ["metal3"],
            "annotations": { "list": [] },
            "editable": true,
            "refresh": "1m",
            "schemaVersion": 39,
            "time": { "from": "now-6h", "to": "now" },
            "templating": { "list": variables },
            "panels": panels,
        })
    }

    /// All queries, and the series of variables.
    pub fn queries(&self) -> impl Iterator<Item = &'static str> + use<> {
        let of_panels = self.panels.iter().flat_map(|panel| panel.queries);
        self.variables.iter().chain(of_panels).map(|(_, query)| *query)
    }
}

impl Panel {
    fn json(&self, number: usize, (x, y): (usize, usize)) -> Value {
        let target = |(letter, (legend, query)): (char, &(&str, &str))| json!({ "refId": letter.to_string(), "datasource": datasource(), "expr": query, "legendFormat": legend });
        let targets: Vec<Value> = ('A'..='Z').zip(self.queries).map(target).collect();
        let drawn = |fill: u8, stacking: &str| json!({ "fillOpacity": fill, "stacking": { "mode": stacking } });
        let (kind, custom) = match self.form {
            Form::Number => ("stat", json!({})),
            Form::Lines => ("timeseries", drawn(0, "none")),
            Form::Areas => ("timeseries", drawn(30, "normal")),
        };
        json!({
            "id": number,
            "title": self.title,
            "type": kind,
            "datasource": datasource(),
            "gridPos": { "x": x, "y": y, "w": self.width, "h": HEIGHT },
            "fieldConfig": { "defaults": { "unit": self.unit, "custom": custom }, "overrides": [] },
            "targets": targets,
        })
    }
}

fn datasource() -> Value {
    json!({ "type": "prometheus", "uid": "${source}" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{metrics, query};

    #[test]
    fn every_metric_of_a_query_is_in_the_table() {
        for dashboard in DASHBOARDS {
            for query in dashboard.queries() {
                let named = query::metrics(query);
                assert!(!named.is_empty(), "{}: {query}", dashboard.file);
                for name in named {
                    assert!(
                        metrics::find(&name).is_some(),
                        "{}: {name} is in no row",
                        dashboard.file
                    );
                }
            }
        }
    }

    #[test]
    fn panels_do_not_overlap_and_fit_the_grid() {
        for dashboard in DASHBOARDS {
            let json = dashboard.json();
            let panels = json["panels"].as_array().unwrap();
            assert_eq!(panels.len(), dashboard.panels.len());
            let place = |panel: &Value| ["x", "y", "w", "h"].map(|at| panel["gridPos"][at].as_u64().unwrap());
            for (number, panel) in panels.iter().enumerate() {
                let [x, y, w, _] = place(panel);
                assert!(x + w <= 24, "{}", panel["title"]);
                for other in &panels[..number] {
                    let [left, top, width, _] = place(other);
                    assert!(
                        top != y || left + width <= x,
                        "{} and {}",
                        panel["title"],
                        other["title"]
                    );
                }
            }
        }
    }

    #[test]
    fn variables_of_queries_are_those_of_the_dashboard() {
        for dashboard in DASHBOARDS {
            for query in dashboard.queries() {
                for part in query.split('$').skip(1) {
                    let name = part.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next();
                    let name = name.unwrap_or_default();
                    let known = dashboard.variables.iter().any(|(variable, _)| *variable == name);
                    assert!(known || name == "__rate_interval", "{}: {query}", dashboard.file);
                }
            }
        }
    }
}
