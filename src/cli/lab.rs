//! Options of `corridor lab`.

use clap::{Args, Subcommand, ValueEnum};

/// `corridor lab`
#[derive(Args, Debug)]
pub(crate) struct Lab {
    /// Action on a link.
    #[command(subcommand)]
    pub(crate) action: LabAction,
}

/// Action on an emulated link.
#[derive(Debug, Subcommand)]
pub(crate) enum LabAction {
    /// Make a link that exists while COMMAND runs; without COMMAND, until it is stopped.
    Up(Box<LabUp>),
    /// Change the properties of a link that was made by `--engine tun`.
    ///
    /// Properties that are not given stay as they are. Packets in transit keep their order.
    Change {
        /// Name of the link.
        name: String,
        #[command(flatten)]
        link: LinkNature,
    },
    /// End a link, and remove what a killed link has left behind.
    Down {
        /// Name of the link.
        name: String,
    },
    /// Print the counters of a link as one JSON object; they are updated every second.
    Stats {
        /// Name of the link.
        name: String,
    },
    /// Compare emulated links with theory by real packets; fails if a difference is too large.
    Check {
        /// Emulator to check.
        #[arg(long, value_enum, default_value_t = Engine::Auto)]
        engine: Engine,
        /// Print one JSON object instead of a table.
        #[arg(long)]
        json: bool,
    },
}

/// `corridor lab up`
#[derive(Args, Debug)]
#[command(after_long_help = include_str!("help/lab-up.txt"))]
pub(crate) struct LabUp {
    /// Name of the link: letters, digits and `_`.
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) link: LabLink,
    /// Emulator of the link.
    #[arg(long, value_enum, default_value_t = Engine::Auto)]
    pub(crate) engine: Engine,
    /// Command to run while the link is up.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// Emulator of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Engine {
    /// `netem` if the kernel has it and it can emulate the link, else `tun`.
    Auto,
    /// Emulation by this program, over TUN devices.
    Tun,
    /// Emulation by the kernel, over a veth pair.
    Netem,
    /// A veth pair without emulation, packet by packet, as fast as this machine (`--rate none --rtt 0ms`).
    Veth,
}

/// A link of `corridor lab`.
#[derive(Args, Debug)]
pub(crate) struct LabLink {
    #[command(flatten)]
    pub(crate) nature: LinkNature,
    /// Size of the largest IP packet, bytes.
    #[arg(long, default_value_t = 1500, value_name = "BYTES")]
    pub(crate) mtu: u32,
    /// Number of hosts on side b, which share the link.
    #[arg(long, default_value_t = 1, value_name = "COUNT")]
    pub(crate) hosts: u8,
    /// Seed of random losses; equal seeds give equal losses.
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    pub(crate) seed: u64,
}

/// Properties of a link that can change while it is up.
#[derive(Args, Clone, Debug)]
pub(crate) struct LinkNature {
    /// Rate of the link, counted in IP packets, such as `1gbit` or `100mbit/10mbit` [initially: 1gbit].
    ///
    /// `none` only delays.
    #[arg(long, value_name = "RATE")]
    pub(crate) rate: Option<String>,
    /// Round-trip time without a queue, half of it each way [initially: 20ms].
    #[arg(long, value_name = "TIME")]
    pub(crate) rtt: Option<String>,
    /// Largest variation of the delay, up or down, without reordering [initially: 0ms].
    #[arg(long, value_name = "TIME")]
    pub(crate) jitter: Option<String>,
    /// Size of the queue before the bottleneck: `1bdp` (rate x round trip), `200ms` at the rate, or `2MB`
    /// [initially: 1bdp].
    #[arg(long, value_name = "SIZE")]
    pub(crate) queue: Option<String>,
    /// Share of packets that are lost, such as `0.1%` [initially: 0%].
    ///
    /// `0.1%:10%` is loss in bursts, which begin and end with these probabilities. `100%` is an outage.
    #[arg(long, value_name = "SHARE")]
    pub(crate) loss: Option<String>,
    /// Share of packets that are delayed beyond the packets behind them, and the delay, such as `1%:5ms`
    /// [initially: none].
    #[arg(long, value_name = "SHARE:TIME")]
    pub(crate) late: Option<String>,
    /// Share of the rate that cross traffic takes [initially: 0%].
    #[arg(long, value_name = "SHARE")]
    pub(crate) cross: Option<String>,
}
