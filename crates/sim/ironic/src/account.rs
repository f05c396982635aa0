//! The account of a BMC.

use std::fmt;

/// The user name and the password of a BMC, as Ironic presents or the BMC requires them.
#[derive(Clone, PartialEq, Eq)]
pub struct BmcAccount {
    /// The user name.
    pub username: String,
    /// The password.
    pub password: String,
}

impl fmt::Debug for BmcAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BmcAccount(not shown)")
    }
}
