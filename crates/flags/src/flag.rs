//! What is known of a flag.

/// What a flag takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Nothing, or `true` or `false` after an equals sign.
    Switch,
    /// Text.
    Text,
    /// Texts, separated by commas; may be given several times.
    List,
    /// A number.
    Number,
    /// A time such as `10s` or `1h30m`.
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

    /// The name of its controllers.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Capm3 => "capm3",
            Self::Ipam => "ipam",
            Self::Hosts => "hosts",
        }
    }
}

/// What becomes of a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It does what it says.
    Taken,
    /// It is another name of this flag.
    Means(&'static str),
    /// It does nothing, and the log says why.
    Ignored(&'static str),
    /// The program does not start, and says why.
    Refused(&'static str),
}

/// One flag.
#[derive(Clone, Copy, Debug)]
pub struct Flag {
    /// Without dashes.
    pub name: &'static str,
    /// What it takes.
    pub shape: Shape,
    /// What counts when it is not given.
    pub default: &'static str,
    /// Who has it; nobody when it is ours.
    pub owners: &'static [Owner],
    /// What becomes of it.
    pub fate: Fate,
    /// What it does.
    pub says: &'static str,
}
