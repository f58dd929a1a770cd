//! Declaration of the command line: all commands with their options and help. The files of `run` execute them.

#[cfg(feature = "lab")]
mod lab;
pub(crate) mod session;
pub(crate) mod topics;
mod view_options;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use server::connections::MAX_MEMBERS;
use stream::FilmSlabs;

#[cfg(feature = "lab")]
pub(crate) use lab::{BenchOptions, EmulatorEngine, LabAction, LabLink, LabOptions, LabUp, LinkNature};
pub(crate) use view_options::ViewOptions;

/// View and read arrays that are stored on other hosts, at the speed of the network.
#[derive(Debug, Parser)]
#[command(name = "corridor", version, max_term_width = 100, disable_help_subcommand = true, after_help = MORE_HELP)]
pub(crate) struct Cli {
    /// Command to run.
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Log more to standard error; give it twice to log everything.
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub(crate) verbose: u8,
}

const MORE_HELP: &str = "\
More help:
  corridor help COMMAND      options of a command, with examples
  corridor help urls         addresses of data
  corridor help exit-codes   exit codes, for scripts
  corridor help environment  environment variables and configuration file";

/// Largest value of `--clients`.
const MAX_CLIENTS: usize = 65_536;

fn clients(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| (1..=MAX_CLIENTS).contains(count));
    count.ok_or_else(|| format!("expected a number from 1 to {MAX_CLIENTS}"))
}

/// Commands of the program.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve and view the bundled sample in one process; prints a link.
    Demo(DemoOptions),
    /// Export arrays to other hosts.
    Serve(ServeOptions),
    /// View a volume in the browser: renderer, session and viewer on one port.
    View(ViewCommandOptions),
    /// Take part in a viewing session from a program: set the view, follow, point, record, notes.
    Session(session::SessionOptions),
    /// Draw a volume into a file: a picture, a film or slabs.
    Render(RenderOptions),
    /// Describe arrays: shapes, types, units, levels.
    Info(InfoOptions),
    /// Copy a selection of an array to a file.
    Get(GetOptions),
    /// Report on the network path to a host, with advice on how to send over it.
    Path(PathOptions),
    /// Show the size of the cache of levels and indexes, or clear it.
    Cache(CacheOptions),
    /// Run reproducible measurements.
    #[cfg(feature = "lab")]
    Bench(BenchOptions),
    /// Emulate network links between namespaces, for measurements; needs root.
    #[cfg(feature = "lab")]
    Lab(LabOptions),
    /// Run reproducible measurements (this program is built without them: feature `lab`).
    #[cfg(not(feature = "lab"))]
    Bench(WithoutLab),
    /// Emulate network links, for measurements (this program is built without it: feature `lab`).
    #[cfg(not(feature = "lab"))]
    Lab(WithoutLab),
    /// Print the help of a command or of a topic.
    Help(HelpOptions),
}

/// `corridor help`
#[derive(Args, Debug)]
#[command(after_help = MORE_HELP)]
pub(crate) struct HelpOptions {
    /// Command, such as `get` or `cache clear`, or topic [default: an overview].
    #[arg(value_name = "COMMAND|TOPIC")]
    pub(crate) words: Vec<String>,
}

/// Options of listening: the address, and the clients that are admitted.
#[derive(Args, Clone, Debug)]
pub(crate) struct ListenOptions {
    /// Address and port to listen on [default: 127.0.0.1:26774 for serve, 127.0.0.1:26775 for view and demo].
    ///
    /// Port 0 takes a free port. If a default port is taken, another one is used and named in a message; a port that is
    /// given here is never replaced. On addresses other than loopback, browsers are served over TLS.
    #[arg(long, env = "CORRIDOR_LISTEN", hide_env = true, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<String>,
    /// Token that clients must send [default: a random one, printed].
    #[arg(long, env = "CORRIDOR_TOKEN", hide_env = true, value_name = "TEXT", conflicts_with = "no_token")]
    pub(crate) token: Option<String>,
    /// Admit everybody who can reach the port, without a token.
    #[arg(long)]
    pub(crate) no_token: bool,
    /// Certificate chain, a PEM file [default: self-signed, kept between runs].
    #[arg(long, env = "CORRIDOR_CERT", hide_env = true, requires = "key", value_name = "FILE")]
    pub(crate) cert: Option<PathBuf>,
    /// Private key of the certificate, a PEM file.
    #[arg(long, env = "CORRIDOR_KEY", hide_env = true, requires = "cert", value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    /// Address at which clients reach this server through a proxy, such as `https://viz.example.org/run42/`.
    ///
    /// It includes the path that the proxy adds. The first address is printed. May be given several times. See
    /// docs/deploy.md.
    #[arg(
        long = "public-url",
        env = "CORRIDOR_PUBLIC_URL",
        hide_env = true,
        value_name = "URL",
        value_delimiter = ','
    )]
    pub(crate) public_urls: Vec<String>,
    /// Address or network of proxies whose `X-Forwarded-` headers are believed, such as `10.0.0.5` or `10.0.0.0/8`.
    ///
    /// Proxies on this host are always believed. May be given several times.
    #[arg(
        long = "trusted-proxy",
        env = "CORRIDOR_TRUSTED_PROXY",
        hide_env = true,
        value_name = "ADDRESS",
        value_delimiter = ','
    )]
    pub(crate) trusted_proxies: Vec<String>,
    /// Resources that the process may use.
    #[command(flatten)]
    pub(crate) resources: ResourceOptions,
    /// Maximum number of clients at a time, at most a quarter of them from one network (loopback excepted).
    ///
    /// Each client may hold 1 MiB of answers, which --memory does not include.
    #[arg(long, value_name = "COUNT", default_value_t = MAX_MEMBERS, value_parser = clients)]
    pub(crate) clients: usize,
    /// Options of reaching other servers.
    #[command(flatten)]
    pub(crate) reaching: AccessOptions,
    /// Print JSON lines instead of text.
    ///
    /// Progress of long work while opening, such as indexing a compressed file, goes to standard error as lines
    /// {"progress": {"what": ..., "done": BYTES, "total": BYTES}}.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Resources of the machine that a process may use.
#[derive(Args, Clone, Debug)]
pub(crate) struct ResourceOptions {
    /// Memory for blocks and all work in progress, such as `512MiB` or `4GB` [default: a quarter of the machine's].
    #[arg(long, env = "CORRIDOR_MEMORY", hide_env = true, value_name = "SIZE")]
    pub(crate) memory: Option<String>,
    /// Folder for computed levels and indexes [default: corridor/levels in the user's cache folder].
    ///
    /// Its contents may be deleted at any time.
    #[arg(long, env = "CORRIDOR_CACHE_DIR", hide_env = true, value_name = "FOLDER")]
    pub(crate) cache_dir: Option<PathBuf>,
}

/// Device that draws pictures.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct DeviceOptions {
    /// Device that draws pictures.
    ///
    /// `auto` takes a graphics processor if there is one in hardware, and the CPU for what that cannot draw. `gpu` also
    /// accepts one that is emulated in software; it is an error if there is none, or if it cannot draw what is asked
    /// for. If a graphics processor fails, the CPU continues.
    #[arg(long, env = "CORRIDOR_DEVICE", hide_env = true, value_enum, default_value_t = DeviceChoice::Auto)]
    pub(crate) device: DeviceChoice,
}

/// Device that draws pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DeviceChoice {
    /// A graphics processor if there is one, else the CPU.
    Auto,
    /// All cores of the CPU.
    Cpu,
    /// A graphics processor.
    Gpu,
}

/// Meaning of the values of arrays; overrides that of their files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MeaningChoice {
    /// Categories: coarser levels contain the most frequent values.
    Labels,
    /// Quantities: coarser levels contain means.
    Intensity,
}

/// Options of opening data: connections to other servers, and the meaning of the arrays of files.
#[derive(Args, Clone, Debug)]
pub(crate) struct AccessOptions {
    /// Protocol to other servers: `auto`, `tcp`, `quic`, `lossy` or `lossy+fec` [default: auto; quic with --controller,
    /// tcp with several --streams or --rails].
    ///
    /// `tcp` is TLS over TCP; `quic` is QUIC over UDP, on the same port. `auto` follows the advice from earlier
    /// measurements of the path (see `corridor path`), else takes QUIC if the round trip is 50 ms or more and UDP gets
    /// through. It never waits for UDP, and changes to the other protocol during a transfer if packets are lost or
    /// nothing arrives.
    ///
    /// `lossy` is QUIC datagrams, delivered out of order and retransmitted if lost. `lossy+fec` sends a tenth more,
    /// from which most lost datagrams are restored at once.
    #[arg(long, env = "CORRIDOR_LINK", hide_env = true, value_name = "PROTOCOL")]
    pub(crate) link: Option<String>,
    /// Number of TCP connections of one link, 1 to 16, or `auto` [default: auto].
    ///
    /// Each connection is encrypted by itself. Several are faster if losses or windows limit one connection, or if one
    /// core does not encrypt fast enough. `auto` is one, unless earlier measurements of the path show that several are
    /// faster.
    #[arg(long, env = "CORRIDOR_STREAMS", hide_env = true, value_name = "NUMBER")]
    pub(crate) streams: Option<String>,
    /// Other routes to the same server, for the further TCP connections of a link.
    ///
    /// A route is an address of the server, or an address of this host and `@`, or both, such as
    /// `10.1.0.2,10.2.0.1@10.2.0.2:26774,10.3.0.1@`. Each route gets at least one connection; routes that do not lead
    /// to the server are left out.
    #[arg(long, env = "CORRIDOR_RAILS", hide_env = true, value_name = "[FROM@]TO,...")]
    pub(crate) rails: Option<String>,
    /// Congestion controller of QUIC, optionally with a maximum rate [default: auto].
    ///
    /// `auto` finds the free capacity. `polite` never takes more than TCP would. `rate=400Mb/s` sends at that rate
    /// regardless of losses, for reserved paths. The others are published algorithms: `reno`, `cubic`, `bic`,
    /// `highspeed`, `scalable`, `westwood`, `vegas`, `bbr`. For TCP (`--link tcp`), only `rate=400Mb/s` is accepted; it
    /// limits the rate.
    ///
    /// `udt` and `tfrc` cannot be used on a link, because no protocol of Corridor provides the signals that they need;
    /// `corridor bench controllers` simulates them.
    #[arg(long, env = "CORRIDOR_CONTROLLER", hide_env = true, value_name = "NAME[=RATE]")]
    pub(crate) controller: Option<String>,
    /// Compression of data on the network: `auto`, `none`, `lz4` or `zstd` [default: auto].
    ///
    /// `auto` compresses if the server measures that data arrive sooner.
    #[arg(long, env = "CORRIDOR_COMPRESSION", hide_env = true, value_name = "NAME")]
    pub(crate) compression: Option<String>,
    /// Maximum rate at which this process receives from all servers together, such as `950Mb/s` [default: none].
    ///
    /// Use a little less than the rate of the slowest line that the servers share. All connections get equal shares;
    /// what one does not use is divided among the others.
    #[arg(long, env = "CORRIDOR_RECEIVE_RATE", hide_env = true, value_name = "RATE")]
    pub(crate) receive_rate: Option<String>,
    /// Relation of the servers in one URL: `auto`, `replicated`, `blocks` or `files` [default: auto].
    ///
    /// `replicated`: all have the same data. `blocks`: all have the same data, and each keeps a part of the blocks in
    /// memory. `files`: each has data sets of its own, as one catalogue in which data sets that follow one another in
    /// time are one array. `auto`: as the servers report.
    #[arg(long, env = "CORRIDOR_RULE", hide_env = true, value_name = "RULE")]
    pub(crate) rule: Option<String>,
    /// Meaning of the values of files [default: as the file says, else `labels` for integers in arrays with names such
    /// as `labels` or `seg`].
    #[arg(long, value_name = "MEANING")]
    pub(crate) meaning: Option<MeaningChoice>,
}

/// `corridor demo`
#[derive(Args, Debug)]
pub(crate) struct DemoOptions {
    /// Fetch one complete picture without a browser, check it, and exit.
    #[arg(long)]
    pub(crate) check: bool,
    /// Options of listening.
    #[command(flatten)]
    pub(crate) listening: ListenOptions,
}

/// `corridor serve`
#[derive(Args, Debug)]
#[command(after_long_help = include_str!("help/serve.txt"))]
pub(crate) struct ServeOptions {
    /// Data to export: files, folders, or URLs of other servers.
    ///
    /// A folder stands for all data sets in it, at any depth and also those added later, named by their paths. Data of
    /// another server are offered again, with blocks cached in the memory of this one.
    #[arg(required_unless_present = "stdio", value_name = "PATH|URL")]
    pub(crate) locations: Vec<String>,
    /// Serve one client on standard input and output, as `ssh://` does on the other host.
    ///
    /// The client names the data; the server exits when the client does.
    #[arg(long, conflicts_with = "locations")]
    pub(crate) stdio: bool,
    /// URL of another server of the same data, as that server printed it.
    ///
    /// Clients receive this URL and read from both servers. Data sets have the same names on both, unless the URL names
    /// one. All clients of this server receive the token in the URL. May be given several times.
    #[arg(long = "peer", value_name = "URL")]
    pub(crate) peers: Vec<String>,
    /// URL of a client that waits for this server (`await://`), as that client printed it.
    ///
    /// For a server that clients cannot connect to, but that can connect to the client. May be given several times.
    #[arg(long = "to", value_name = "URL")]
    pub(crate) to: Vec<String>,
    /// Token that only allows reading Zarr over HTTP [default: with --cors a random one, printed].
    ///
    /// For programs and pages that should not be allowed anything else.
    #[arg(long, value_name = "TEXT", conflicts_with = "no_token")]
    pub(crate) zarr_token: Option<String>,
    /// Origin of web pages that may read Zarr with the token of --zarr-token, such as `https://viewer.example`
    /// [default: none].
    ///
    /// `*` stands for all pages. May be given several times.
    #[arg(long = "cors", value_name = "ORIGIN", conflicts_with = "no_token")]
    pub(crate) pages: Vec<String>,
    /// Maximum rate at which each connection sends, such as `400Mb/s` [default: none].
    ///
    /// It applies to all controllers that clients request; for TCP it is enforced on Linux only.
    #[arg(long, env = "CORRIDOR_MAX_RATE", hide_env = true, value_name = "RATE")]
    pub(crate) max_rate: Option<String>,
    /// Options of listening.
    #[command(flatten)]
    pub(crate) listening: ListenOptions,
}

/// `corridor view`
#[derive(Args, Debug)]
#[command(after_long_help = include_str!("help/view.txt"))]
pub(crate) struct ViewCommandOptions {
    /// Data to view.
    #[arg(value_name = "PATH|URL")]
    pub(crate) location: String,
    /// Form in which the volume is sent to viewers; this version sends pixels only.
    #[arg(long, value_enum, default_value_t = CutChoice::Auto)]
    pub(crate) cut: CutChoice,
    /// Layer over the array: another array, a file with one, or geometry. May be given up to 8 times.
    ///
    /// As for `corridor render`: members follow after commas, such as `seg.nii,opacity=0.5,labels=outlined`.
    #[arg(long = "layer", value_name = "ARRAY|FILE|JSON")]
    pub(crate) layers: Vec<String>,
    /// Role of guests, for whom a link of their own is printed. May be given several times.
    ///
    /// The first link makes its users owners of the session. Guests with the role `steer` change their own view,
    /// present it, pin notes and save bookmarks; those with the role `watch` follow others, chat and point.
    #[arg(long = "invite", value_enum, value_name = "ROLE", conflicts_with = "no_token")]
    pub(crate) invites: Vec<session::GuestChoice>,
    /// Device that draws.
    #[command(flatten)]
    pub(crate) drawing: DeviceOptions,
    /// Options of listening.
    #[command(flatten)]
    pub(crate) listening: ListenOptions,
}

/// Slabs beside a picture of `render`.
#[derive(Args, Debug)]
pub(crate) struct SlabOptions {
    /// File for slabs, to write beside the picture; several with `x-%04d.slabs`.
    ///
    /// Slabs are thin pieces of the volume as images with their positions in space. `corridor render FILE.slabs` draws
    /// them from other cameras nearby, without the data.
    #[arg(long, value_name = "FILE")]
    pub(crate) slabs: Option<PathBuf>,
    /// Number of slabs, 1 to 64.
    #[arg(long, default_value_t = FilmSlabs::COUNT, value_name = "COUNT", requires = "slabs")]
    pub(crate) slab_count: u32,
    /// Direction in which the volume is cut into slabs.
    #[arg(long, value_enum, default_value_t = SlabCut::Planes, requires = "slabs")]
    pub(crate) slab_cut: SlabCut,
    /// Side of a texel of a slab, 1 to 8 pixels of the picture [default: 2; 1 with --slab-cut axis].
    #[arg(long, value_name = "PIXELS", requires = "slabs")]
    pub(crate) slab_texel: Option<u32>,
}

/// Direction in which a volume is cut into slabs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SlabCut {
    /// Parallel to the image.
    Planes,
    /// Across the axis of the volume that is closest to the direction of view.
    Axis,
}

impl SlabOptions {
    /// Returns the file for slabs and their options; `None` if no slabs are requested.
    pub(crate) fn request(&self) -> Option<(PathBuf, FilmSlabs)> {
        let is_across_axis = self.slab_cut == SlabCut::Axis;
        let slabs = FilmSlabs { is_across_axis, count: self.slab_count, reduction: self.slab_texel };
        self.slabs.clone().map(|output| (output, slabs))
    }
}

/// Point at which the pipeline is cut for a viewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CutChoice {
    /// The best choice for the network path.
    Auto,
    /// Blocks, which the viewer renders (not in this version).
    Data,
    /// Partial images, which the viewer composites (not in this version).
    Slabs,
    /// Frames.
    Pixels,
}

/// `corridor render`
#[derive(Args, Debug)]
#[command(after_long_help = include_str!("help/render.txt"))]
pub(crate) struct RenderOptions {
    /// Data to draw, or a file of slabs (`x.slabs`).
    ///
    /// For slabs, only the options of the camera and the pictures can be given: --camera (in JSON), --view, --journey,
    /// --pictures, --fps and --size.
    #[arg(value_name = "PATH|URL")]
    pub(crate) location: String,
    /// File to write: a picture (`.png`, `.exr`), several (`x-%04d.png`), or a film (`.mp4`, `.webm`).
    ///
    /// `.exr` has floats in linear light and no background. Films are H.264, or AV1 with `--codec av1` and in `.webm`.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Width and height of the picture, pixels: up to 16384 each for one PNG file.
    ///
    /// A large picture is drawn in rows, so that it takes little memory. The levels are those that its size can show; if
    /// --memory does not suffice for them, the message and the file say which level is shown.
    #[arg(long, default_value = "1024x800", value_name = "WxH")]
    pub(crate) size: String,
    /// Complete view as JSON (schema in docs/view.md); the options below change parts of it.
    #[arg(long, value_name = "JSON")]
    pub(crate) view: Option<String>,
    /// Fields of the view.
    #[command(flatten)]
    pub(crate) fields: ViewOptions,
    /// Range of values that the colors cover: `usual`, `full` or LOW,HIGH [default: usual].
    ///
    /// `usual` excludes a few outliers, and values that look like padding. The option is used if neither --tf nor
    /// --view gives a range.
    #[arg(long, value_name = "RANGE", allow_hyphen_values = true)]
    pub(crate) range: Option<String>,
    /// Index along the time axis, or several with one picture each [default: that of the view; all for a film without
    /// --journey].
    #[arg(long, value_name = "STEP|START:STOP[:STEP]")]
    pub(crate) time: Option<String>,
    /// Draw axes, a scale bar, a color bar or legends, the orientation and the time into the picture.
    ///
    /// Axes have the coordinates and dates of the data. Legends are for the names of labels and channels, and for the colors of
    /// isosurfaces and of the levels of --grids.
    #[arg(long)]
    pub(crate) annotate: bool,
    /// Path of the camera from the first picture to the last: a turn, or the cameras of a JSON file.
    ///
    /// `turn` is once around the point that the camera looks at, `turn:90` is 90 degrees. FILE is a list of cameras as
    /// in a view, or of views, such as the bookmarks that the viewer saves as a journey. The camera follows a smooth curve
    /// through them, or with `straight:` straight lines. Each leg takes the same time; a camera that is listed twice stands
    /// still. The other fields of a view apply from its camera on, except those that options set.
    #[arg(long, value_name = "turn[:DEGREES]|[straight:]FILE")]
    pub(crate) journey: Option<String>,
    /// Number of pictures [default: one for each time step; 100 for a journey without time steps].
    ///
    /// Time steps are spread over the pictures, from the first step to the last.
    #[arg(long, value_name = "COUNT")]
    pub(crate) pictures: Option<u32>,
    /// Pictures per second of a film.
    #[arg(long, default_value_t = 25.0, value_name = "RATE")]
    pub(crate) fps: f64,
    /// Quality of a film, from 1 (small file) to 100 (best) [default: 75].
    #[arg(long, value_name = "1-100")]
    pub(crate) quality: Option<String>,
    /// Format of a film: `h264`, which plays everywhere, or `av1`, smaller and slower to write [default: h264; av1 in `.webm`].
    #[arg(long, value_name = "h264|av1")]
    pub(crate) codec: Option<String>,
    /// Slabs beside the picture.
    #[command(flatten)]
    pub(crate) slabs: SlabOptions,
    /// Number of ranks in this process that draw a picture together, on the CPU, 1 to 64 [default: 1].
    ///
    /// Each rank has its share of the volume and of the memory, as the processes of an MPI program have.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) ranks: Option<u32>,
    /// Method by which ranks combine their images: `auto`, `direct-send`, `binary-swap` or `radix-K`, such as
    /// `radix-4`.
    ///
    /// `binary-swap` needs a power of two of ranks.
    #[arg(long, value_name = "METHOD", default_value = "auto")]
    pub(crate) compositing: String,
    /// Device that draws.
    #[command(flatten)]
    pub(crate) drawing: DeviceOptions,
    /// Resources that the process may use.
    #[command(flatten)]
    pub(crate) resources: ResourceOptions,
    /// Options of reaching other servers.
    #[command(flatten)]
    pub(crate) reaching: AccessOptions,
    /// Print JSON lines: progress, then the facts of the picture.
    ///
    /// Progress while opening (bytes) and fetching (blocks) is {"progress": {"what": ..., "done": ..., "total": ...}}.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `corridor path`
#[derive(Args, Debug)]
#[command(after_long_help = include_str!("help/path.txt"))]
pub(crate) struct PathOptions {
    /// Host to report on, or URL of a server.
    #[arg(value_name = "HOST[:PORT]|URL")]
    pub(crate) target: String,
    /// Send packet trains in both directions, even if rates of the path are known.
    ///
    /// They need a server whose token is known. They are some MB of UDP, within a budget of 32 MiB per hour for the
    /// hosts of one network (/24, /48).
    #[arg(long)]
    pub(crate) probe: bool,
    /// Options of reaching servers.
    #[command(flatten)]
    pub(crate) reaching: AccessOptions,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `corridor info`
#[derive(Args, Debug)]
#[command(after_long_help = include_str!("help/info.txt"))]
pub(crate) struct InfoOptions {
    /// Data to describe.
    #[arg(value_name = "PATH|URL")]
    pub(crate) location: String,
    /// Folder for indexes of compressed files [default: corridor/levels in the user's cache folder].
    #[arg(long, env = "CORRIDOR_CACHE_DIR", hide_env = true, value_name = "FOLDER")]
    pub(crate) cache_dir: Option<PathBuf>,
    /// Options of reaching other servers.
    #[command(flatten)]
    pub(crate) reaching: AccessOptions,
    /// Print the complete description as one JSON object.
    ///
    /// Progress of long work goes to standard error, as JSON lines.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `corridor get`
#[derive(Args, Debug)]
#[command(after_long_help = include_str!("help/get.txt"))]
pub(crate) struct GetOptions {
    /// Data to read from.
    #[arg(value_name = "PATH|URL")]
    pub(crate) location: String,
    /// Elements to copy [default: all, if there is only one array].
    #[arg(value_name = "SELECTION", conflicts_with = "selections")]
    pub(crate) selection: Option<String>,
    /// File with many selections, one per line, to read over one connection without waiting for each.
    ///
    /// The output must be a `.raw` file; it has the results one after another, in order. Blank lines and lines that
    /// begin with `#` are skipped.
    #[arg(long, value_name = "FILE")]
    pub(crate) selections: Option<PathBuf>,
    /// File to write; its ending gives the format, see below. `-` is standard output, see --format.
    #[arg(short, long, value_name = "FILE|-")]
    pub(crate) output: PathBuf,
    /// Format on standard output, with `-o -`.
    #[arg(long, value_enum, default_value_t = GetFormat::Npy)]
    pub(crate) format: GetFormat,
    /// Level to read from; 0 is full resolution.
    #[arg(long, default_value_t = 0, value_name = "LEVEL")]
    pub(crate) level: u8,
    /// Apply scale, offset and fill value; missing values become NaN.
    #[arg(long)]
    pub(crate) decoded: bool,
    /// Write the isosurface at this decoded value as a mesh, to a .ply, .glb or .vtp file.
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true, conflicts_with = "selections")]
    pub(crate) iso: Option<f64>,
    /// Resources that the process may use.
    #[command(flatten)]
    pub(crate) resources: ResourceOptions,
    /// Options of reaching other servers.
    #[command(flatten)]
    pub(crate) reaching: AccessOptions,
    /// Print JSON lines: progress while opening and copying, then the result.
    ///
    /// Progress is {"progress": {"what": ..., "done": BYTES, "total": BYTES}}. The result is {"output": ..., "shape":
    /// ..., "dtype": ..., "bytes": ...}. With --selections, it has "selections", a list of their shapes, and "shape"
    /// and "dtype" are those of the last one. For data from a server, it has "carried": {"data_bytes": ...,
    /// "carried_bytes": ...}, the bytes of the data and the bytes on the network.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Format that `get` writes to standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GetFormat {
    /// numpy's format.
    Npy,
    /// The elements and nothing else.
    Raw,
    /// A table with coordinates.
    Csv,
}

/// `corridor cache`
#[derive(Args, Debug)]
#[command(after_long_help = include_str!("help/cache.txt"))]
pub(crate) struct CacheOptions {
    /// Action [default: show the folder and its size].
    #[command(subcommand)]
    pub(crate) action: Option<CacheAction>,
    /// Folder of the cache [default: corridor/levels in the user's cache folder].
    #[arg(long, env = "CORRIDOR_CACHE_DIR", hide_env = true, value_name = "FOLDER", global = true)]
    pub(crate) cache_dir: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// Action on the cache.
#[derive(Clone, Copy, Debug, Subcommand)]
pub(crate) enum CacheAction {
    /// Delete all entries.
    Clear,
}

/// `corridor bench` and `corridor lab` of a program that is built without them.
#[cfg(not(feature = "lab"))]
#[derive(Args, Debug)]
pub(crate) struct WithoutLab {
    /// Arguments for a program that has the command.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) arguments: Vec<String>,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use client::dial::ConnectOptionsText;

    use super::*;

    #[test]
    fn clap_accepts_the_declaration() {
        Cli::command().debug_assert();
    }

    #[test]
    fn help_describes_every_controller() {
        let words = ConnectOptionsText { controller: Some("nonsense"), ..ConnectOptionsText::default() };
        let refusal = words.reach().unwrap_err().to_string();
        let names: Vec<&str> = refusal.split('"').skip(1).step_by(2).collect();
        assert!(names.contains(&"udt"), "{refusal}");
        let command = Cli::command();
        let get = command.find_subcommand("get").unwrap();
        let option = get.get_arguments().find(|argument| argument.get_id() == "controller").unwrap();
        let help = option.get_long_help().unwrap().to_string();
        for name in names {
            assert!(help.contains(&format!("`{name}")), "{name}");
        }
    }
}
