//! Compiled CEL expressions and their input.
//!
//! Without the feature `cel` no expression compiles, so a schema with rules is rejected instead of partly checked.

/// Why an expression has no result.
#[cfg_attr(
    not(feature = "cel"),
    expect(dead_code, reason = "without programs there are no problems")
)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Problem {
    /// Incompatible types.
    NoOverload,
    /// Any other error, with the text of the evaluator.
    Other(String),
}

impl Problem {
    /// The detail of the error, for a rule of that name.
    pub(crate) fn detail(&self, rule: &str) -> String {
        match self {
            Problem::NoOverload => format!(
                "'no such overload': call arguments did not match a supported operator, function or macro signature \
                 for rule: {rule}"
            ),
            Problem::Other(text) => format!("{text} evaluating rule: {rule}"),
        }
    }
}

#[cfg(feature = "cel")]
pub(crate) use self::with::{Program, Subject};
#[cfg(not(feature = "cel"))]
pub(crate) use self::without::{Program, Subject};

#[cfg(feature = "cel")]
mod with {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;

    use kube_cel::KubeCelExt;
    use kube_cel::cel::objects::OptionalValue;
    use kube_cel::cel::{Context, ExecutionError, Value as Cel};

    use super::Problem;

    /// Limit of a message; a longer one, or one of several lines, is not used.
    const MESSAGE_LIMIT: usize = 5 * 1024;

    #[derive(Debug, Clone)]
    pub(crate) struct Program(Arc<Compiled>);

    #[derive(Debug)]
    struct Compiled {
        program: kube_cel::cel::Program,
        uses_old_self: bool,
    }

    /// The input of a rule, converted once for all rules of a value.
    pub(crate) struct Subject {
        pub(crate) this: Cel,
        pub(crate) old: Option<Cel>,
    }

    impl Program {
        pub(crate) fn compile(source: &str) -> Result<Program, String> {
            let program = kube_cel::cel::Program::compile(source)
                .map_err(|error| error.to_string().lines().next().unwrap_or_default().to_owned())?;
            let references = program.references();
            let uses_old_self = references.has_variable("oldSelf");
            // The first by name: the references have no order.
            let undeclared = references.functions().into_iter().filter(|name| !is_declared(name));
            if let Some(name) = undeclared.min() {
                return Err(format!("the function `{name}` is not available"));
            }
            Ok(Program(Arc::new(Compiled { program, uses_old_self })))
        }

        pub(crate) fn uses_old_self(&self) -> bool {
            self.0.uses_old_self
        }

        /// Whether the rule holds.
        pub(crate) fn holds(&self, subject: &Subject, optional_old_self: bool) -> Result<bool, Problem> {
            match self.evaluate(subject, optional_old_self)? {
                Cel::Bool(holds) => Ok(holds),
                _ => Err(Problem::Other(String::from("the rule is neither true nor false"))),
            }
        }

        /// The message, if the expression returns a usable one.
        pub(crate) fn text(&self, subject: &Subject) -> Option<String> {
            let Ok(Cel::String(text)) = self.evaluate(subject, false) else {
                return None;
            };
            let text = text.trim();
            (!text.is_empty() && text.len() <= MESSAGE_LIMIT && !text.contains('\n')).then(|| text.to_owned())
        }

        fn evaluate(&self, subject: &Subject, optional_old_self: bool) -> Result<Cel, Problem> {
            let mut context = Context::default().with_all();
            context.add_variable_from_value("self", subject.this.clone());
            if optional_old_self {
                let old = subject.old.clone().map_or_else(OptionalValue::none, OptionalValue::of);
                context.add_variable_from_value("oldSelf", Cel::Opaque(Arc::new(old)));
            } else if let Some(old) = &subject.old {
                context.add_variable_from_value("oldSelf", old.clone());
            }
            // The evaluator panics for some values, such as quantity(".0e-2147483648").
            let run = AssertUnwindSafe(|| self.0.program.execute(&context));
            match catch_unwind(run) {
                Ok(result) => result.map_err(problem),
                Err(_) => Err(Problem::Other(String::from("the rule cannot be evaluated"))),
            }
        }
    }

    /// Namespaces of functions, as in `math.greatest(..)`.
    const NAMESPACES: [&str; 6] = ["", "cidr.", "format.", "ip.", "math.", "optional."];

    /// Whether a function exists. The evaluator resolves names only at run time, so the function is called.
    fn is_declared(name: &str) -> bool {
        let is_operator = !name.starts_with(|c: char| c.is_ascii_alphabetic());
        is_operator
            || NAMESPACES
                .into_iter()
                .any(|namespace| answers(&format!("{namespace}{name}()")))
    }

    fn answers(call: &str) -> bool {
        let undeclared = |error: &ExecutionError| matches!(error, ExecutionError::UndeclaredReference(_));
        kube_cel::cel::Program::compile(call).is_ok_and(|probe| {
            !probe
                .execute(&Context::default().with_all())
                .is_err_and(|error| undeclared(&error))
        })
    }

    /// With the text of the API server where it has one. Values are left out: they may be long or secret.
    fn problem(error: ExecutionError) -> Problem {
        Problem::Other(match error {
            ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
            ExecutionError::UndeclaredReference(name) => format!("undeclared reference to '{name}'"),
            ExecutionError::FunctionError { function, message } => format!("{function}: {message}"),
            ExecutionError::DivisionByZero(_) => String::from("division by zero"),
            ExecutionError::RemainderByZero(_) => String::from("modulus by zero"),
            ExecutionError::Overflow(..) => String::from("integer overflow"),
            ExecutionError::IndexOutOfBounds(Cel::Int(index)) => format!("index out of bounds: {index}"),
            _ => return Problem::NoOverload,
        })
    }
}

#[cfg(not(feature = "cel"))]
mod without {
    use std::convert::Infallible;

    use super::Problem;

    /// Never constructed.
    #[derive(Debug, Clone)]
    pub(crate) struct Program(Infallible);

    pub(crate) struct Subject;

    impl Program {
        pub(crate) fn compile(_: &str) -> Result<Program, String> {
            Err(String::from("rules need the feature `cel` of this crate"))
        }

        pub(crate) fn uses_old_self(&self) -> bool {
            match self.0 {}
        }

        pub(crate) fn holds(&self, _: &Subject, _: bool) -> Result<bool, Problem> {
            match self.0 {}
        }

        pub(crate) fn text(&self, _: &Subject) -> Option<String> {
            match self.0 {}
        }
    }
}
