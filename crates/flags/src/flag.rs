//! A flag of the command line.

/// Type of the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A boolean; the value is optional.
    Switch,
    /// Text.
    Text,
    /// Texts, separated by commas; the flag may be repeated.
    List,
    /// A number.
    Number,
    /// A duration such as `10s` or `1h30m`.
    Span,
}

/// The Go managers that have the flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The manager of clusters and machines.
    Capm3,
    /// The manager of IP addresses.
    Ipam,
    /// The manager of hosts.
    Hosts,
}

impl Owner {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Ipam, Self::Capm3, Self::Hosts];

    /// Name of its controllers.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Capm3 => "capm3",
            Self::Ipam => "ipam",
            Self::Hosts => "hosts",
        }
    }
}

/// How the program handles a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handling {
    /// Supported.
    Supported,
    /// An alias of this flag.
    Alias(&'static str),
    /// Accepted without effect; the log states the reason.
    Ignored(&'static str),
    /// Rejected at start, with the reason.
    Refused(&'static str),
}

/// One flag.
#[derive(Clone, Copy, Debug)]
pub struct Flag {
    /// Name without dashes.
    pub name: &'static str,
    /// Type of the value.
    pub shape: Shape,
    /// Default value.
    pub default: &'static str,
    /// Go managers that have it; empty for a flag of this program only.
    pub owners: &'static [Owner],
    /// How it is handled.
    pub handling: Handling,
    /// Description.
    pub description: &'static str,
}
