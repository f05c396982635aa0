//! The macro that declares a role.

/// Declares a role: a type that may use these verbs on these kinds, and nothing else.
///
/// The verbs are the types of [`access::verb`](crate::access::verb). See [`access`](crate::access) for an example.
#[macro_export]
macro_rules! role {
    (
        $(#[$meta:meta])*
        $vis:vis struct $role:ident {
            $($kind:ty: $($verb:ident),+ $(,)?;)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        $vis struct $role;

        impl $crate::access::Role for $role {
            const NAME: &'static str = stringify!($role);

            fn permissions() -> ::std::collections::BTreeSet<$crate::access::Permission> {
                ::std::collections::BTreeSet::from([
                    $($($crate::access::Permission::of::<$crate::access::verb::$verb, $kind>(),)+)*
                ])
            }
        }

        $($(
            impl $crate::access::Permits<$crate::access::verb::$verb, $kind> for $role {}
        )+)*
    };
}
