mod cluster;
mod model;
mod steps;

use k8s_openapi::api::coordination::v1::Lease;

crate::role! {
    /// What a candidate declares.
    pub(crate) struct Leading {
        Lease: Get, Watch, Create, Update;
    }
}
