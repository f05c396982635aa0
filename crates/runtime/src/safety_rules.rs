//! Safety rules of a reconciler, by name.
//!
//! A plan checks each rule. In tests a rule is a field, so that a test can switch one off and prove that histories then
//! go wrong. In every other build a rule is the constant `true`, and the branch without it is compiled out: no binary
//! contains a path that skips a safety rule.

/// Declares the type `Rules` of a reconciler: each name becomes a method, and in tests also a field.
#[macro_export]
macro_rules! safety_rules {
    ($($(#[$doc:meta])+ $rule:ident,)+) => {
        /// The safety rules in force.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[cfg_attr(test, expect(clippy::struct_excessive_bools, reason = "each is one rule, and all are independent"))]
        pub(crate) struct Rules {
            $(#[cfg(test)] $(#[$doc])+ pub(crate) $rule: bool,)+
        }

        impl Rules {
            /// All rules. Only tests use fewer.
            pub(crate) const ALL: Self = Self { $(#[cfg(test)] $rule: true,)+ };

            $(
                $(#[$doc])+
                #[cfg(test)]
                pub(crate) const fn $rule(&self) -> bool {
                    self.$rule
                }

                $(#[$doc])+
                #[cfg(not(test))]
                pub(crate) const fn $rule(&self) -> bool {
                    true
                }
            )+
        }
    };
}
