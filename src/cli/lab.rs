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
    /// Make a link; it lives as long as COMMAND, or until it is asked to end.
    Up(Box<LabUp>),
    /// Make another link of one that is up by `--engine tun`; what is not named stays, packets on their way keep their order.
    Change {
        /// Its name.
        name: String,
        #[command(flatten)]
        link: LinkNature,
    },
    /// End a link, and remove what one that was killed has left.
    Down {
        /// Its name.
        name: String,
    },
    /// Counters of a link that is up, as one JSON object; renewed each second.
    Stats {
        /// Its name.
        name: String,
    },
    /// Compare links with theory, with real packets; fails when something is further off than it may be.
    Check {
        /// Emulator of the links.
        #[arg(long, value_enum, default_value_t = Engine::Auto)]
        engine: Engine,
        /// Print one JSON object instead of a table.
        #[arg(long)]
        json: bool,
    },
}

/// `corridor lab up`
#[derive(Args, Debug)]
#[command(after_long_help = "\
Side a is network namespace NAME-a with address 10.77.0.1, side b NAME-b with 10.77.0.2, its further hosts NAME-b2 with
10.77.0.3 and so on. X/Y gives X from a to b and Y from b to a. COMMAND finds names and addresses in LAB_A, LAB_B,
LAB_A_ADDRESS and LAB_B_ADDRESS; its exit code is returned. What still runs in the namespaces is ended with the link.

Examples:
  corridor lab up wan --rate 1gbit --rtt 150ms --loss 0.01% -- sh -c '
    ip netns exec $LAB_A corridor serve --listen $LAB_A_ADDRESS:26774 --token t run42.h5 & sleep 1
    ip netns exec $LAB_B corridor get corridor://$LAB_A_ADDRESS/run42.h5#token=t rho -o rho.npy'
  corridor lab up thin --rate 50mbit/5mbit --rtt 40ms --queue 200ms &
  corridor lab change thin --loss 100%; sleep 5; corridor lab change thin --loss 0% --rate 20mbit
  corridor lab stats thin; corridor lab down thin")]
pub(crate) struct LabUp {
    /// Letters, digits and `_`.
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) link: LabLink,
    /// Emulator of the link: `netem` is the kernel's, `tun` is this program, `auto` takes netem where it can; `veth`
    /// emulates nothing, and is as fast as this machine (`--rate none --rtt 0ms`).
    #[arg(long, value_enum, default_value_t = Engine::Auto)]
    pub(crate) engine: Engine,
    /// Command to run while the link is up.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// Emulator of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Engine {
    /// The kernel's where it is there and can do the link, else ours.
    Auto,
    /// This program, over TUN devices.
    Tun,
    /// The kernel's, over a veth pair.
    Netem,
    /// A veth pair by itself, packet by packet.
    Veth,
}

/// A link of `corridor lab`.
#[derive(Args, Debug)]
pub(crate) struct LabLink {
    #[command(flatten)]
    pub(crate) nature: LinkNature,
    /// Largest IP packet, bytes.
    #[arg(long, default_value_t = 1500, value_name = "BYTES")]
    pub(crate) mtu: u32,
    /// Hosts on side b, which share the link.
    #[arg(long, default_value_t = 1, value_name = "COUNT")]
    pub(crate) hosts: u8,
    /// Equal seeds, equal losses.
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    pub(crate) seed: u64,
}

/// Properties of a link that can change while it is up.
#[derive(Args, Clone, Debug)]
pub(crate) struct LinkNature {
    /// Bytes of IP per time, such as `1gbit` or `100mbit/10mbit`; `none` only delays [at first: 1gbit].
    #[arg(long, value_name = "RATE")]
    pub(crate) rate: Option<String>,
    /// Round trip without queue; half of it each way [at first: 20ms].
    #[arg(long, value_name = "TIME")]
    pub(crate) rtt: Option<String>,
    /// The delay wanders within plus or minus this much, without reordering [at first: 0ms].
    #[arg(long, value_name = "TIME")]
    pub(crate) jitter: Option<String>,
    /// Room in front of the bottleneck: `1bdp` (rate x round trip), `200ms` at the rate, or `2MB` [at first: 1bdp].
    #[arg(long, value_name = "SIZE")]
    pub(crate) queue: Option<String>,
    /// Share of packets lost, such as `0.1%`; `0.1%:10%` in bursts that begin and end with these probabilities; `100%` is
    /// an outage [at first: 0%].
    #[arg(long, value_name = "SHARE")]
    pub(crate) loss: Option<String>,
    /// Share of packets that come later than those behind them, and how much later, such as `1%:5ms` [at first: none].
    #[arg(long, value_name = "SHARE:TIME")]
    pub(crate) late: Option<String>,
    /// Share of the rate that other people's packets take [at first: 0%].
    #[arg(long, value_name = "SHARE")]
    pub(crate) cross: Option<String>,
}
