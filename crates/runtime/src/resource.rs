//! The macro for kinds of other projects, reduced to the fields that are read.

/// Implements [`Resource`](kube_core::Resource) for a type with a field `metadata`: of one kind, or of a kind that is known at
/// run time only.
#[macro_export]
macro_rules! resource {
    ($type:ty: $scope:ident, $group:expr, $version:expr, $kind:expr, $plural:expr) => {
        impl ::kube_core::Resource for $type {
            type DynamicType = ();
            type Scope = ::kube_core::$scope;

            fn kind((): &()) -> ::std::borrow::Cow<'_, str> {
                $kind.into()
            }

            fn group((): &()) -> ::std::borrow::Cow<'_, str> {
                $group.into()
            }

            fn version((): &()) -> ::std::borrow::Cow<'_, str> {
                $version.into()
            }

            fn plural((): &()) -> ::std::borrow::Cow<'_, str> {
                $plural.into()
            }

            $crate::resource!(@metadata);
        }
    };
    ($type:ty: of any kind) => {
        impl ::kube_core::Resource for $type {
            type DynamicType = ::kube_core::ApiResource;
            type Scope = ::kube_core::DynamicResourceScope;

            fn kind(of: &::kube_core::ApiResource) -> ::std::borrow::Cow<'_, str> {
                of.kind.as_str().into()
            }

            fn group(of: &::kube_core::ApiResource) -> ::std::borrow::Cow<'_, str> {
                of.group.as_str().into()
            }

            fn version(of: &::kube_core::ApiResource) -> ::std::borrow::Cow<'_, str> {
                of.version.as_str().into()
            }

            fn api_version(of: &::kube_core::ApiResource) -> ::std::borrow::Cow<'_, str> {
                of.api_version.as_str().into()
            }

            fn plural(of: &::kube_core::ApiResource) -> ::std::borrow::Cow<'_, str> {
                of.plural.as_str().into()
            }

            $crate::resource!(@metadata);
        }
    };
    (@metadata) => {
        fn meta(&self) -> &::kube_core::ObjectMeta {
            &self.metadata
        }

        fn meta_mut(&mut self) -> &mut ::kube_core::ObjectMeta {
            &mut self.metadata
        }
    };
}
