//! Clients without sockets.

use std::sync::Arc;

use metal3_ironic::Client;
use metal3_ironic::endpoint::{Endpoint, EndpointError, Settings};

use crate::simulator::Ironic;

impl Ironic {
    /// A client without sockets.
    ///
    /// # Errors
    /// Never in practice: the address is a constant.
    pub fn client(&self) -> Result<Client, EndpointError> {
        self.client_for(1)
    }

    /// The same for machines that are `speed` times faster than real ones: its feed polls that much more often.
    ///
    /// # Errors
    /// As [`Ironic::client`].
    pub fn client_for(&self, speed: u32) -> Result<Client, EndpointError> {
        let settings = Settings::new(Endpoint::parse("http://ironicsim")?);
        Ok(Client::over(
            Arc::new(self.clone()),
            settings.faster(speed),
            self.clock(),
        ))
    }
}
