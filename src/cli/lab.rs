//! Options of the commands with the feature `lab`: `corridor bench` and `corridor lab`.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use lab::bench::report::Link;

/// `corridor bench`
#[derive(Args, Debug)]
pub(crate) struct BenchOptions {
    /// Name of the benchmark; `list` names all, `all` runs all.
    pub(crate) name: String,
    /// Use little data and few runs, as a quick test; the measurements are not precise.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Number of runs of each case [default: chosen by the benchmark].
    #[arg(long, value_name = "COUNT")]
    pub(crate) runs: Option<usize>,
    /// Groups of cases to run, separated by commas [default: all].
    ///
    /// Such as `random` and `split` of `access`, or `frames`, `scaling`, `slabs`, `compositing`, `overlap` and
    /// `watching` of `render`. An unknown name lists the groups.
    #[arg(long, value_name = "GROUP", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// Programs of other projects to compare with, or `none` [default: all].
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) peers: Option<Vec<String>>,
    /// Python interpreter that has the packages of peers; otherwise that of the system is used.
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) python: Option<PathBuf>,
    /// Files with real data to measure with, each a data set by itself.
    ///
    /// `access` only fetches them, and compares with rsync and scp. `render` (`--only slabs`) casts slabs of them.
    #[arg(long, value_name = "PATH", num_args = 1..)]
    pub(crate) files: Vec<PathBuf>,
    /// Prefix of commands that run on the server's side, such as `ip netns exec far` [default: none, they run here].
    #[arg(long, value_name = "WORDS", default_value = "", hide_default_value = true)]
    pub(crate) server_command: String,
    /// IP address of the server's side.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub(crate) server_address: IpAddr,
    /// Known properties of the link, for the report and its limits, in bytes per second, seconds, share of packets,
    /// bytes.
    #[arg(long, value_name = "rate=N,rtt=N,loss=N,mtu=N", default_value = "", hide_default_value = true)]
    pub(crate) link: Link,
    /// Command that makes a link and runs another command on it, for `transport` over several links.
    ///
    /// `lab` stands for `corridor lab up {name} --rate {rate} --rtt {rtt} --loss {loss} --`; give --server-address
    /// 10.77.0.1 with it.
    #[arg(long, value_name = "WORDS")]
    pub(crate) make_link: Option<String>,
    /// File that `ceiling` serves, as a limit to compare with; `access` starts it.
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) serve_file: Option<PathBuf>,
    /// Address and port on which `ceiling` or `messages` listens.
    #[arg(long, value_name = "ADDRESS:PORT", hide = true)]
    pub(crate) listen: Option<SocketAddr>,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `corridor lab`
#[derive(Args, Debug)]
pub(crate) struct LabOptions {
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
        #[arg(long, value_enum, default_value_t = EmulatorEngine::Auto)]
        engine: EmulatorEngine,
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
    #[arg(long, value_enum, default_value_t = EmulatorEngine::Auto)]
    pub(crate) engine: EmulatorEngine,
    /// Command to run while the link is up.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// Emulator of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EmulatorEngine {
    /// `netem` if the kernel has it and it can emulate the link, else `tun`.
    Auto,
    /// Emulation by this program, over TUN devices.
    Tun,
    /// Emulation by the kernel, over a veth pair.
    Netem,
    /// A veth pair without emulation, as fast as this machine (`--rate none --rtt 0ms`).
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
    /// `none` is a link without a rate limit.
    #[arg(long, value_name = "RATE")]
    pub(crate) rate: Option<String>,
    /// Round-trip time without a queue, half of it each way [initially: 20ms].
    #[arg(long, value_name = "TIME")]
    pub(crate) rtt: Option<String>,
    /// Maximum variation of the delay, up or down, without reordering [initially: 0ms].
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
    /// Share of packets that are delayed and thereby reordered, and the delay, such as `1%:5ms` [initially: none].
    #[arg(long, value_name = "SHARE:TIME")]
    pub(crate) late: Option<String>,
    /// Share of the rate that cross traffic takes [initially: 0%].
    #[arg(long, value_name = "SHARE")]
    pub(crate) cross: Option<String>,
}
