//! Chooses the object of a form by conditions in a template.

use std::fmt::Write as _;

use crate::release::form::Form;

/// A condition of templates and the property of a form that it reads.
pub(super) struct Axis {
    condition: &'static str,
    holds: fn(&Form) -> bool,
}

/// Every property by which objects differ.
pub(super) const AXES: [Axis; 6] = [
    Axis {
        condition: r#"eq .Values.certificates "self-managed""#,
        holds: |form| form.is_self_managed,
    },
    Axis {
        condition: ".Values.watchNamespace",
        holds: |form| form.is_namespaced,
    },
    Axis {
        condition: ".Values.observeOnly",
        holds: |form| form.observes,
    },
    Axis {
        condition: ".Values.products.ipam",
        holds: |form| !form.left_out[0],
    },
    Axis {
        condition: ".Values.products.capm3",
        holds: |form| !form.left_out[1],
    },
    Axis {
        condition: ".Values.products.hosts",
        holds: |form| !form.left_out[2],
    },
];

/// Every form that the values select. A process that observes issues no certificates.
pub(super) fn forms() -> Vec<Form> {
    let bits = |number: u8| [1, 2, 4, 8, 16, 32].map(|bit: u8| number & bit != 0);
    let forms = (0..64)
        .map(bits)
        .map(|[is_self_managed, is_namespaced, ipam, capm3, hosts, observes]| Form {
            is_self_managed,
            is_namespaced,
            observes,
            left_out: [ipam, capm3, hosts],
        });
    let is_one = |form: &Form| form.left_out != [true; 3] && !(form.observes && form.is_self_managed);
    forms.filter(is_one).collect()
}

/// A form, and the text of an object in it: empty when the form does not have the object.
pub(super) type Case<'a> = (Form, &'a str);

/// A template that gives each form its text.
pub(super) fn template(cases: &[Case]) -> String {
    let mut text = String::new();
    write(cases, &mut text);
    text
}

fn write(cases: &[Case], out: &mut String) {
    let Some((_, first)) = cases.first() else { return };
    if cases.iter().all(|(_, text)| text == first) {
        out.push_str(first);
        return;
    }
    let splits = AXES.iter().filter_map(|axis| {
        let (with, without): (Vec<Case>, Vec<Case>) = cases.iter().copied().partition(|(form, _)| (axis.holds)(form));
        let is_split = !with.is_empty() && !without.is_empty();
        is_split.then(|| (texts(&with) + texts(&without), axis, with, without))
    });
    // The split that leaves the fewest texts to choose from.
    let Some((_, axis, with, without)) = splits.min_by_key(|(count, ..)| *count) else {
        return;
    };
    let condition = axis.condition;
    let (mut yes, mut no) = (String::new(), String::new());
    write(&with, &mut yes);
    write(&without, &mut no);
    // Writing to a String cannot fail.
    let _written = match (yes.is_empty(), no.is_empty()) {
        (false, true) => write!(out, "{{{{- if {condition} }}}}\n{yes}{{{{- end }}}}\n"),
        (true, false) => write!(out, "{{{{- if not ({condition}) }}}}\n{no}{{{{- end }}}}\n"),
        _ => write!(
            out,
            "{{{{- if {condition} }}}}\n{yes}{{{{- else }}}}\n{no}{{{{- end }}}}\n"
        ),
    };
}

/// The number of different texts.
fn texts(cases: &[Case]) -> usize {
    let texts: std::collections::BTreeSet<&str> = cases.iter().map(|(_, text)| *text).collect();
    texts.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_of_at_least_one_product_is_a_form() {
        let forms = forms();
        assert_eq!(forms.len(), 42);
        let whole = forms.iter().filter(|form| form.left_out == [false; 3]).count();
        assert_eq!(whole, 6);
    }

    #[test]
    fn a_text_has_the_conditions_on_which_it_depends_and_no_others() {
        let all = forms();
        let of = |text: fn(&Form) -> &'static str| {
            let cases: Vec<Case> = all.iter().map(|form| (*form, text(form))).collect();
            template(&cases)
        };
        assert_eq!(of(|_| "a\n"), "a\n");
        assert_eq!(of(|_| ""), "");
        let self_managed = r#"{{- if eq .Values.certificates "self-managed" }}"#;
        assert_eq!(
            of(|form| if form.is_self_managed { "a\n" } else { "b\n" }),
            format!("{self_managed}\na\n{{{{- else }}}}\nb\n{{{{- end }}}}\n")
        );
        assert_eq!(
            of(|form| if form.left_out[2] { "" } else { "a\n" }),
            "{{- if .Values.products.hosts }}\na\n{{- end }}\n"
        );
        assert_eq!(
            of(|form| if form.is_namespaced { "" } else { "a\n" }),
            "{{- if not (.Values.watchNamespace) }}\na\n{{- end }}\n"
        );
        let both = of(|form| {
            if form.is_namespaced && !form.left_out[0] {
                "a\n"
            } else {
                ""
            }
        });
        assert_eq!(both.matches("{{- if").count(), 2, "{both}");
        assert_eq!(both.matches("a\n").count(), 1, "{both}");
    }
}
