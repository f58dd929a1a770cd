//! Declaration of the command line: every command with its options and help. Nothing is done here.

mod lab;
pub(crate) mod topics;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use ::lab::bench::report::Link;
use clap::{Args, Parser, Subcommand, ValueEnum};
use node::server::connections::MAX_MEMBERS;
use stream::SlabWish;

pub(crate) use lab::{Engine, Lab, LabAction, LabLink, LabUp, LinkNature};

/// See and use arrays that live somewhere else, at the speed of the network.
#[derive(Debug, Parser)]
#[command(name = "corridor", version, max_term_width = 100, disable_help_subcommand = true, after_help = MORE_HELP)]
pub(crate) struct Cli {
    /// Command to run.
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Say more on standard error; twice for everything.
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub(crate) verbose: u8,
}

const MORE_HELP: &str = "\
More help:
  corridor help COMMAND      options of a command, with examples
  corridor help urls         addresses of data
  corridor help exit-codes   exit codes, for scripts
  corridor help environment  environment variables and configuration file";

/// Most clients that can be asked for.
const MOST_CLIENTS: usize = 65_536;

fn clients(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| (1..=MOST_CLIENTS).contains(count));
    count.ok_or_else(|| format!("expected a number from 1 to {MOST_CLIENTS}"))
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Everything in one process on the bundled sample: a data server, a viewer connected to it, a link.
    Demo(Demo),
    /// Export arrays to other hosts.
    Serve(Serve),
    /// Look at a volume in the browser: renderer, session and viewer on one port.
    View(View),
    /// One picture, no browser.
    Render(Render),
    /// Arrays, shapes, types, units, levels.
    Info(Info),
    /// Copy a selection into a file.
    Get(Get),
    /// Report on the network path to a host, with advice on how to send over it.
    Path(Path),
    /// Shows the folder of made levels and indexes, and its size; `clear` deletes them.
    Cache(Cache),
    /// Reproducible measurements.
    Bench(Bench),
    /// Emulated links between network namespaces, for measurements; needs root.
    Lab(Lab),
    /// Print the help of a command or of a topic.
    Help(Help),
}

/// `corridor help`
#[derive(Args, Debug)]
#[command(after_help = MORE_HELP)]
pub(crate) struct Help {
    /// Command, such as `get` or `cache clear`, or topic [default: an overview].
    #[arg(value_name = "COMMAND|TOPIC")]
    pub(crate) words: Vec<String>,
}

/// Options of listening: the address, and the clients that are admitted.
#[derive(Args, Clone, Debug)]
pub(crate) struct Listening {
    /// Address and port to listen on; port 0 takes a free one. Addresses other than loopback get TLS for browsers too
    /// [default: 127.0.0.1:26774 for serve, 127.0.0.1:26775 for view and demo; where that port is taken another one, which is
    /// said. A port that is named here is never replaced].
    #[arg(long, env = "CORRIDOR_LISTEN", hide_env = true, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<String>,
    /// The token that clients must show [default: a random one, printed].
    #[arg(long, env = "CORRIDOR_TOKEN", hide_env = true, value_name = "TEXT", conflicts_with = "no_token")]
    pub(crate) token: Option<String>,
    /// Let everybody in who can reach the port.
    #[arg(long)]
    pub(crate) no_token: bool,
    /// Certificate chain, PEM [default: self-signed, kept between runs].
    #[arg(long, env = "CORRIDOR_CERT", hide_env = true, requires = "key", value_name = "FILE")]
    pub(crate) cert: Option<PathBuf>,
    /// Its private key, PEM.
    #[arg(long, env = "CORRIDOR_KEY", hide_env = true, requires = "cert", value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    /// The address at which people reach it through a proxy, with the path that the proxy puts before: such as
    /// `https://viz.example.org/run42/`. The first one is printed; may be given several times. See docs/deploy.md.
    #[arg(
        long = "public-url",
        env = "CORRIDOR_PUBLIC_URL",
        hide_env = true,
        value_name = "URL",
        value_delimiter = ','
    )]
    pub(crate) public_urls: Vec<String>,
    /// A proxy, or a network of some, on other hosts whose `X-Forwarded-` headers are believed, such as `10.0.0.5` or
    /// `10.0.0.0/8`; those on this host always are. May be given several times.
    #[arg(
        long = "trusted-proxy",
        env = "CORRIDOR_TRUSTED_PROXY",
        hide_env = true,
        value_name = "ADDRESS",
        value_delimiter = ','
    )]
    pub(crate) trusted_proxies: Vec<String>,
    /// Resources that it may use.
    #[command(flatten)]
    pub(crate) resources: Resources,
    /// Clients connected at a time, at most a quarter of them from one network (loopback excepted). Each may hold 1 MiB
    /// for answers besides --memory.
    #[arg(long, value_name = "COUNT", default_value_t = MAX_MEMBERS, value_parser = clients)]
    pub(crate) clients: usize,
    /// How other servers are reached.
    #[command(flatten)]
    pub(crate) reaching: Reaching,
    /// Print JSON lines instead of sentences. Progress of long work while opening (indexing a compressed file) goes to
    /// standard error, as lines {"progress": {"what": ..., "done": BYTES, "total": BYTES}}.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Resources of the machine that a process may use.
#[derive(Args, Clone, Debug)]
pub(crate) struct Resources {
    /// Memory for blocks and everything under way, such as `512MiB` or `4GB` [default: a quarter of the machine's].
    #[arg(long, env = "CORRIDOR_MEMORY", hide_env = true, value_name = "SIZE")]
    pub(crate) memory: Option<String>,
    /// Folder for made levels and indexes, which may be deleted at any time [default: corridor/levels in the user's
    /// cache folder].
    #[arg(long, env = "CORRIDOR_CACHE_DIR", hide_env = true, value_name = "FOLDER")]
    pub(crate) cache_dir: Option<PathBuf>,
}

/// Device that draws pictures.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Drawing {
    /// Device that draws: `auto` is a graphics processor where there is one (never one in software), and the CPU for
    /// what that cannot draw; `gpu` also takes one in software, and is an error where there is none or it cannot draw
    /// what is asked for. If a graphics processor fails, the CPU goes on.
    #[arg(long, env = "CORRIDOR_DEVICE", hide_env = true, value_enum, default_value_t = Device::Auto)]
    pub(crate) device: Device,
}

/// Device that draws pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Device {
    /// The best there is.
    Auto,
    /// All cores.
    Cpu,
    /// A graphics processor.
    Gpu,
}

/// Meaning of the values of arrays, whatever their files say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Meaning {
    Labels,
    Intensity,
}

/// How data are opened: how other servers are reached, and what arrays of files mean.
#[derive(Args, Clone, Debug)]
pub(crate) struct Reaching {
    /// Protocol to other servers: `tcp`, `quic` (UDP on the same port), or `auto`: the one that is advised by what is
    /// remembered of the path (see `corridor path`), else QUIC where the round trip is 50 ms or more and UDP gets through. `auto`
    /// never waits for UDP, and changes to the other protocol during a transfer when packets are lost or nothing comes. Or
    /// `lossy`: QUIC on which each packet's data are put to their place when they come, whatever is missing before them, and
    /// lost ones come again; `lossy+fec` sends a tenth more, from which most of the lost ones are made again at once
    /// [default: auto; quic where a controller is asked for, tcp where several streams or rails are].
    #[arg(long, env = "CORRIDOR_LINK", hide_env = true, value_name = "PROTOCOL")]
    pub(crate) link: Option<String>,
    /// How many connections one link takes by TCP, each encrypted by itself, 1 to 16: more get more where losses or windows hold
    /// one back, or where one processor does not encrypt fast enough; `auto`: one, unless what is remembered of the path says
    /// that more fill it [default: auto].
    #[arg(long, env = "CORRIDOR_STREAMS", hide_env = true, value_name = "NUMBER")]
    pub(crate) streams: Option<String>,
    /// Other ways to the same server for the further connections of a link, of TCP: other addresses of it, and of this host
    /// before an `@`, such as `10.1.0.2,10.2.0.1@10.2.0.2:26774,10.3.0.1@`; one connection for each at the least. Those that
    /// lead nowhere are done without.
    #[arg(long, env = "CORRIDOR_RAILS", hide_env = true, value_name = "[FROM@]TO,...")]
    pub(crate) rails: Option<String>,
    /// How fast data may come. Of QUIC: `auto` finds the rate, `polite` takes no more than TCP would, `rate=400Mb/s` is that
    /// rate whatever is lost, for reserved paths; or cubic, bbr, reno, ... [default: auto]. By TCP (`--link tcp`) only
    /// `rate=400Mb/s`, which is not exceeded.
    #[arg(long, env = "CORRIDOR_CONTROLLER", hide_env = true, value_name = "NAME[=RATE]")]
    pub(crate) controller: Option<String>,
    /// Compression of data on the way: `auto` where the server measures that it is faster, `none`, or always `lz4` or `zstd`
    /// [default: auto].
    #[arg(long, env = "CORRIDOR_COMPRESSION", hide_env = true, value_name = "NAME")]
    pub(crate) compression: Option<String>,
    /// Highest rate at which this process receives from all servers together, such as `950Mb/s`: a little less than
    /// the slowest line that they share. Its connections get equal parts of it, in turns, and what one does not want
    /// is for the others [default: each connection takes what its own path gives].
    #[arg(long, env = "CORRIDOR_RECEIVE_RATE", hide_env = true, value_name = "RATE")]
    pub(crate) receive_rate: Option<String>,
    /// Data that the servers of one URL have: `replicated`, all the same; `blocks`, all the same, and each keeps a
    /// part of the blocks in its memory; `files`, each data sets of its own, as one catalogue in which data sets that
    /// follow one another in time are one array; or `auto`: as they say themselves [default: auto].
    #[arg(long, env = "CORRIDOR_RULE", hide_env = true, value_name = "RULE")]
    pub(crate) rule: Option<String>,
    /// Meaning of the values of files: `labels` (categories, whose coarser levels are modes) or `intensity` (whose coarser levels are
    /// means) [default: as the file says, else labels where whole numbers are named `labels`, `seg` or alike].
    #[arg(long, value_name = "MEANING")]
    pub(crate) meaning: Option<Meaning>,
}

/// `corridor demo`
#[derive(Args, Debug)]
pub(crate) struct Demo {
    /// Fetch one complete picture without a browser, check it, and end.
    #[arg(long)]
    pub(crate) check: bool,
    /// How to listen.
    #[command(flatten)]
    pub(crate) listening: Listening,
}

/// `corridor serve`
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  corridor serve run42.h5
  corridor serve --listen 0.0.0.0:26774 --memory 8GiB climate/*.nc brain.ome.zarr
  corridor serve /data/runs
  corridor serve run42.h5 --public-url https://viz.example.org/run42/
  corridor serve 'synthetic:waves?shape=4096,4096,4096&dtype=u8'
  corridor serve run42.h5 --peer 'corridor://second.example.org/#token=...&fp=sha256:...'
  corridor serve 'corridor://data.example.org/run42.h5#token=...&fp=sha256:...'
  corridor serve --cors https://viewer.example brain.ome.zarr

With --json the first lines are one object per export:
  {\"url\": ..., \"zarr\": ..., \"fingerprint\": ..., \"token\": ..., \"zarr_token\": ...}")]
pub(crate) struct Serve {
    /// Data to export. A folder stands for all data sets in it, at any depth, named by their paths in it, also those added later; a
    /// URL is another server, whose data are offered here again, with blocks kept in this one's memory.
    #[arg(required_unless_present = "stdio", value_name = "PATH|URL")]
    pub(crate) locations: Vec<String>,
    /// Serve one client on standard input and output, what it names and until it ends: what `ssh://` starts on the other
    /// host.
    #[arg(long, conflicts_with = "locations")]
    pub(crate) stdio: bool,
    /// Another server of the same data (same names, unless the URL names one): clients are told and read from both.
    /// Give the whole link that it printed; whoever may read here is told its token. May be given several times.
    #[arg(long = "peer", value_name = "URL")]
    pub(crate) peers: Vec<String>,
    /// Connect to a client that waits for this server (`await://`), where nobody can reach this host but it can reach
    /// them; give the whole URL that the client printed. May be given several times.
    #[arg(long = "to", value_name = "URL")]
    pub(crate) to: Vec<String>,
    /// Another token, which allows reading Zarr over HTTP and nothing else: for programs and pages that are trusted with no
    /// more [default: a random one, printed, where --cors is given].
    #[arg(long, value_name = "TEXT", conflicts_with = "no_token")]
    pub(crate) zarr_token: Option<String>,
    /// Pages of this origin, such as `https://viewer.example`, may read Zarr with that token; `*` for every page. May be given
    /// several times [default: no pages of other sites].
    #[arg(long = "cors", value_name = "ORIGIN", conflicts_with = "no_token")]
    pub(crate) pages: Vec<String>,
    /// The most that is sent by one connection, such as `400Mb/s`, whatever controller its client asks for; by TCP on Linux.
    #[arg(long, env = "CORRIDOR_MAX_RATE", hide_env = true, value_name = "RATE")]
    pub(crate) max_rate: Option<String>,
    /// How to listen.
    #[command(flatten)]
    pub(crate) listening: Listening,
}

/// `corridor view`
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  corridor view brain.nii.gz
  corridor view corridor://data.example.org/run42.h5#token=...
  corridor view --memory 2GiB 'synthetic:waves?shape=4096,4096,4096&dtype=u8'
  mpirun -n 8 corridor view run42.h5

With --json the first line is {\"url\": ..., \"fingerprint\": ..., \"token\": ...}.
Under `mpirun` or `srun` (a program built with `--features mpi`) the first process listens, and each fetches, draws and encodes
its share of every picture, on the CPU, with memory of its own (--memory is for each).")]
pub(crate) struct View {
    /// Data to look at.
    #[arg(value_name = "PATH|URL")]
    pub(crate) location: String,
    /// Point at which the pipeline is cut for viewers. This version sends pixels.
    #[arg(long, value_enum, default_value_t = Cut::Auto)]
    pub(crate) cut: Cut,
    /// Device that draws.
    #[command(flatten)]
    pub(crate) drawing: Drawing,
    /// How to listen.
    #[command(flatten)]
    pub(crate) listening: Listening,
}

/// Slabs beside a picture of `render`.
#[derive(Args, Debug)]
pub(crate) struct SlabOptions {
    /// Also write slabs: the volume in thin pieces with their places in space, which `corridor render FILE.slabs` draws from
    /// other cameras nearby, without the data. Several with `x-%04d.slabs`.
    #[arg(long, value_name = "FILE")]
    pub(crate) slabs: Option<PathBuf>,
    /// Into how many slabs, 1 to 64.
    #[arg(long, default_value_t = SlabWish::COUNT, value_name = "COUNT", requires = "slabs")]
    pub(crate) slab_count: u32,
    /// Along what the volume is cut into slabs.
    #[arg(long, value_enum, default_value_t = SlabCut::Planes, requires = "slabs")]
    pub(crate) slab_cut: SlabCut,
    /// Pixels of the picture along a side of each texel, 1 to 8 [default: 2; across an axis 1].
    #[arg(long, value_name = "PIXELS", requires = "slabs")]
    pub(crate) slab_texel: Option<u32>,
}

/// Along what a volume is cut into slabs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SlabCut {
    /// Parallel to the image.
    Planes,
    /// Across the axis of the volume that the camera sees most nearly from the front.
    Axis,
}

impl SlabOptions {
    /// Returns the file to write slabs to, and the slabs to make; `None` where none are asked for.
    pub(crate) fn wish(&self) -> Option<(PathBuf, SlabWish)> {
        let is_across_axis = self.slab_cut == SlabCut::Axis;
        let wish = SlabWish { is_across_axis, count: self.slab_count, reduction: self.slab_texel };
        self.slabs.clone().map(|output| (output, wish))
    }
}

/// Point at which the pipeline is cut for a viewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Cut {
    /// The planner's choice.
    Auto,
    /// Blocks go to the viewer, which renders.
    Data,
    /// Partial images with their places go to the viewer, which composites.
    Slabs,
    /// Frames go to the viewer.
    Pixels,
}

/// `corridor render`
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  corridor render brain.nii.gz -o brain.png
  corridor render run42.h5/rho -o rho.png --size 1920x1080 --time 10 --tf viridis
  corridor render run42.h5/rho -o iso.png --iso 0.5 --iso '1.2:#c03020:0.5'
  corridor render ct.nii.gz -o planes.png --slice x=50% --slice y=50% --slice z=40 --tf gray
  corridor render ct.nii.gz -o pair.png --size 2048x800 --stereo=1/25
  corridor render angio.nii.gz -o vessels.png --mode maximum --tf gray
  corridor render run42.h5/rho -o shock.png --iso 0.5 --colour-by temperature --tf magma
  corridor render run42.h5/rho -o rho.webm --quality 85
  corridor render run42.h5 -o same.png --view \"$(cat view.json)\"
  mpirun -n 8 corridor render run42.h5/rho -o rho.webm

The picture is the same for the same request on the same kind of processor, and by several ranks but for rounding. Under
`mpirun` or `srun` (a program built with `--features mpi`) each process fetches and draws its share of the volume, with memory
of its own (--memory is for each); the first one writes the file. All but --slabs and --grids is drawn so too.")]
pub(crate) struct Render {
    /// Data to draw; or slabs, `x.slabs`, for which only the options of the camera and the pictures count: --camera
    /// (in JSON), --view, --journey, --pictures, --fps and --size.
    #[arg(value_name = "PATH|URL")]
    pub(crate) location: String,
    /// File to write: a picture as `.png` or `.exr` (floats, linear light, no background), several as `x-%04d.png`,
    /// or a film as `.mp4` (H.264) or `.webm` (AV1, smaller and slower to write).
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Columns x rows, pixels.
    #[arg(long, default_value = "1024x800", value_name = "WxH")]
    pub(crate) size: String,
    /// Name of the array, where there are several [default: the first that has three dimensions].
    #[arg(long, value_name = "NAME")]
    pub(crate) array: Option<String>,
    /// A whole view as JSON (schema in docs/wire.md); the options below change parts of it.
    #[arg(long, value_name = "JSON")]
    pub(crate) view: Option<String>,
    /// Camera: JSON as in a view, or one of `front back left right top bottom`.
    #[arg(long, value_name = "CAMERA")]
    pub(crate) camera: Option<String>,
    /// Transfer function: name of a colour map, or JSON as in a view. With --colour-by the map is for those values.
    #[arg(long, value_name = "MAP|JSON")]
    pub(crate) tf: Option<String>,
    /// Values that the colours are spread over, where --tf and --view do not say it: `usual` (without a few outliers and what looks
    /// like padding), `full`, or LOW,HIGH [default: `usual`].
    #[arg(long, value_name = "RANGE", allow_hyphen_values = true)]
    pub(crate) range: Option<String>,
    /// Take all colours, of isosurfaces and slices too, from the values of another array whose voxels lie at the same places;
    /// what is seen, and how dense, is still what the array itself says. In JSON, such as
    /// `{"array":"t","at":{"c":1},"range":[0,900],"map":"magma"}`, all may be left out: the array for another place in the same one.
    #[arg(long, value_name = "NAME|JSON")]
    pub(crate) colour_by: Option<String>,
    /// An isosurface; may be given up to 20 times. COLOUR is `#rrggbb`, OPACITY goes from 0 to 1 [default: a colour of
    /// its own, opaque]. Replaces the surfaces of a view.
    #[arg(long, value_name = "VALUE[:COLOUR[:OPACITY]]", allow_hyphen_values = true)]
    pub(crate) iso: Vec<String>,
    /// A plane across an axis, opaque in the colours of the transfer function; may be given up to 16 times. AXIS is x, y
    /// or z, or its name in the file; INDEX counts voxels of level 0 from 0. Replaces the slices of a view.
    #[arg(long, value_name = "AXIS=INDEX|AXIS=SHARE%")]
    pub(crate) slice: Vec<String>,
    /// Drawing of the volume besides isosurfaces and slices [default: `surfaces` with --slice, or with --iso and no
    /// --tf, where there is no --view; else `composite`]. The map of --colour-by does not count as --tf here.
    #[arg(long, value_enum)]
    pub(crate) mode: Option<Mode>,
    /// Light what the transfer function shows by the gradient of the values [default: as in the view, else off].
    /// Isosurfaces are always lit.
    #[arg(long, value_enum)]
    pub(crate) shading: Option<Switch>,
    /// Draw the grids of an adaptive mesh as lines, in a colour for each level; 4,096 at most: of the finest that have room some, and none of finer ones.
    #[arg(long)]
    pub(crate) grids: bool,
    /// A stereo pair: two pictures side by side, each half as wide as --size says, the left eye's on the left, by off-axis frusta: what
    /// the camera looks at lies in the plane of the picture. PARALLAX is the distance of the eyes as a share of that to what they look at, such as
    /// `1/30`, which is taken where none is given, or `0.05`. Of perspective cameras only.
    #[arg(long, value_name = "PARALLAX", num_args = 0..=1, require_equals = true, default_missing_value = "1/30")]
    pub(crate) stereo: Option<String>,
    /// Index along the time axis, or several, one picture each [default: of a film without --journey all, else the view's].
    #[arg(long, value_name = "STEP|START:STOP[:STEP]")]
    pub(crate) time: Option<String>,
    /// Write into the picture what it shows: the volume's box with what it spans, a scale bar, legends of the colours (of values, isosurfaces
    /// and the levels of --grids), and the time.
    #[arg(long)]
    pub(crate) annotate: bool,
    /// Path of the camera from the first picture to the last: once around what it looks at (`turn`, or `turn:90` for
    /// 90 degrees), or through the cameras of a JSON file, a list of cameras as in a view, or of views: along a
    /// smooth curve, or with `straight:` along lines with a bend at each camera. Each leg takes as long as the
    /// others; a camera that is listed twice stands still.
    #[arg(long, value_name = "turn[:DEGREES]|[straight:]FILE")]
    pub(crate) journey: Option<String>,
    /// How many pictures; time steps are spread over them, the first and the last among them [default: one for each time step, also on a
    /// journey; 100 for a journey without].
    #[arg(long, value_name = "COUNT")]
    pub(crate) pictures: Option<u32>,
    /// Pictures a second of a film.
    #[arg(long, default_value_t = 25.0, value_name = "RATE")]
    pub(crate) fps: f64,
    /// How true a film is, from 1 (small) to 100 (true) [default: 75].
    #[arg(long, value_name = "1-100")]
    pub(crate) quality: Option<String>,
    /// Level to draw [default: the finest that shows and fits].
    #[arg(long, value_name = "LEVEL")]
    pub(crate) level: Option<u8>,
    /// Slabs beside the picture.
    #[command(flatten)]
    pub(crate) slabs: SlabOptions,
    /// Draw by so many ranks in this process, each with its share of the volume and of the memory, as the processes of an
    /// MPI program do, on the CPU [default: one].
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) ranks: Option<u32>,
    /// How ranks put the picture together: `auto`, `direct-send`, `binary-swap` (a power of two of them), or `radix-K`, such
    /// as `radix-4`.
    #[arg(long, value_name = "METHOD", default_value = "auto")]
    pub(crate) compositing: String,
    /// Device that draws.
    #[command(flatten)]
    pub(crate) drawing: Drawing,
    /// Resources that it may use.
    #[command(flatten)]
    pub(crate) resources: Resources,
    /// How other servers are reached.
    #[command(flatten)]
    pub(crate) reaching: Reaching,
    /// Print JSON lines: {"progress": {"what": ..., "done": ..., "total": ...}} while opening (bytes) and fetching
    /// (blocks), then the picture's facts.
    #[arg(long)]
    pub(crate) json: bool,
}

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    /// Done.
    On,
    /// Left out.
    Off,
}

/// Drawing of a volume besides its isosurfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// All that the transfer function shows.
    Composite,
    /// Nothing.
    Surfaces,
    /// The largest value along each ray, in its colour; opacity decides nothing.
    #[value(alias = "mip")]
    Maximum,
    /// The smallest value along each ray, in its colour; opacity decides nothing.
    #[value(alias = "minip")]
    Minimum,
}

/// `corridor path`
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  corridor path data.example.org
  corridor path data.example.org:22 --json | jq '.from.advice.protocol'
  corridor path 'corridor://data.example.org/#token=...&fp=sha256:...'

All that is known comes from connections that this user's commands have made, here or as a server, in the last 14 days
($XDG_STATE_HOME/corridor, or ~/.local/state/corridor). A server of Corridor whose token is known is asked five small
questions besides; at any other port that is named five connections are made. Rates in JSON are bytes per second.
Servers answer the same for whoever asks at GET /path, with the token.")]
pub(crate) struct Path {
    /// The other host.
    #[arg(value_name = "HOST[:PORT]|URL")]
    pub(crate) target: String,
    /// Send packet trains both ways also where rates of the path are known: some MB, within a budget of 32 MiB an hour for
    /// the hosts of one network (/24, /48). To a server whose token is known, by UDP.
    #[arg(long)]
    pub(crate) probe: bool,
    /// How servers are reached.
    #[command(flatten)]
    pub(crate) reaching: Reaching,
    /// One JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `corridor info`
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  corridor info run42.h5
  corridor info corridor://data.example.org/run42.h5 --json | jq '.arrays[].name'")]
pub(crate) struct Info {
    /// Data to describe.
    #[arg(value_name = "PATH|URL")]
    pub(crate) location: String,
    /// Folder for indexes of compressed files [default: corridor/levels in the user's cache folder].
    #[arg(long, env = "CORRIDOR_CACHE_DIR", hide_env = true, value_name = "FOLDER")]
    pub(crate) cache_dir: Option<PathBuf>,
    /// How other servers are reached.
    #[command(flatten)]
    pub(crate) reaching: Reaching,
    /// The whole description as one JSON object. Progress of long work goes to standard error, as JSON lines.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `corridor get`
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  corridor get run42.h5 'rho[0:10, ::2, 3, :]' -o rho.npy
  corridor get corridor://data.example.org/sst.nc 'sst[-1]' --decoded -o last.npy
  corridor get tooth.nhdr '[::4, ::4, ::4]' -o small.raw
  corridor get run42.h5 --selections parts.txt -o parts.raw
  corridor get tas.nc 'tas(time=2001-03-01:2001-03-31, lat=40:60)' -o march.nc
  corridor get tas.nc 'tas(time=2001-03, lat=52.5, lon=13.4)' --decoded -o - --format csv
  corridor get run42.h5 'rho[5]' --iso 0.8 -o surface.glb

A selection is numpy's: start:stop:step per axis, negative numbers count from the end, missing axes are whole, an
integer drops its axis. The name may be left out where there is one array; a name with brackets stands in quotes.

In parentheses it is by coordinates, as xarray's sel has it: ranges take both ends in, and a single number is the nearest sample
and drops its axis. A date stands for all samples of the year, month, day, hour, minute or second that it names. It drops its
axis if it is as precise as the times (a day where all are at midnight) and one sample is of it. A number outside of the samples
and a date without a sample are errors; of a range that reaches beyond the samples, what is there is taken, with a warning.

With --iso the output is that isosurface instead, as triangles in world coordinates: .ply, .glb (glTF) or .vtp (VTK).

Outputs:
  .npy         numpy's format, in this machine's byte order
  .raw .bin    the elements and nothing else, in this machine's byte order
  .nc          NetCDF-3 (64-bit data), with names of axes and units, and coordinates with their bounds
  .h5 .hdf5    HDF5, one contiguous data set with names of axes, units and attributes
  .zarr        a Zarr v3 array, uncompressed; the folder must not exist
  .csv         a table, one line for each element behind its coordinates; up to 1,048,576 elements

Values are as stored, unless --decoded. All kinds are written piece by piece: memory does not grow with the selection.
They are written beside their place and moved there when complete, then replacing a file of that name.")]
pub(crate) struct Get {
    /// Data to read from.
    #[arg(value_name = "PATH|URL")]
    pub(crate) location: String,
    /// Which elements [default: the whole of the only array].
    #[arg(value_name = "SELECTION", conflicts_with = "selections")]
    pub(crate) selection: Option<String>,
    /// Read many selections, one per line of this file, pipelined on one connection. The output must be a `.raw` file;
    /// the results stand in it one after another, in order. Blank lines and lines that begin with `#` are passed over.
    #[arg(long, value_name = "FILE")]
    pub(crate) selections: Option<PathBuf>,
    /// The file to write; its ending says which kind, see below. `-` is standard output, see --format.
    #[arg(short, long, value_name = "FILE|-")]
    pub(crate) output: PathBuf,
    /// Format on standard output, with `-o -`.
    #[arg(long, value_enum, default_value_t = Format::Npy)]
    pub(crate) format: Format,
    /// Level to read from; 0 is full resolution.
    #[arg(long, default_value_t = 0, value_name = "LEVEL")]
    pub(crate) level: u8,
    /// Apply scale, offset and fill value; missing values become NaN.
    #[arg(long)]
    pub(crate) decoded: bool,
    /// Write the isosurface of this decoded value as a mesh: into a .ply, .glb or .vtp file.
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true, conflicts_with = "selections")]
    pub(crate) iso: Option<f64>,
    /// Resources that it may use.
    #[command(flatten)]
    pub(crate) resources: Resources,
    /// How other servers are reached.
    #[command(flatten)]
    pub(crate) reaching: Reaching,
    /// Print JSON lines: {"progress": {"what": ..., "done": BYTES, "total": BYTES}} while opening and copying, then the
    /// result {"output": ..., "shape": ..., "dtype": ..., "bytes": ...}, with --selections also "selections": a list of
    /// their shapes ("shape" and "dtype" are the last one's); from a server also "carried": {"data_bytes": ...,
    /// "carried_bytes": ...}, what has come and how many bytes it took on the way.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Format that `get` writes to standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// numpy's format.
    Npy,
    /// The elements and nothing else.
    Raw,
    /// A table with coordinates.
    Csv,
}

/// `corridor cache`
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  corridor cache
  corridor cache clear

Whatever lies there may be deleted at any time, also while data are shown: it is made again when it is needed.")]
pub(crate) struct Cache {
    /// Action [default: show the folder and its size].
    #[command(subcommand)]
    pub(crate) action: Option<CacheAction>,
    /// Another folder than the user's.
    #[arg(long, env = "CORRIDOR_CACHE_DIR", hide_env = true, value_name = "FOLDER", global = true)]
    pub(crate) cache_dir: Option<PathBuf>,
    /// One JSON object.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// Action on the cache.
#[derive(Clone, Copy, Debug, Subcommand)]
pub(crate) enum CacheAction {
    /// Delete it.
    Clear,
}

/// `corridor bench`
#[derive(Args, Debug)]
pub(crate) struct Bench {
    /// Name of the benchmark; `list` names them, `all` runs them.
    pub(crate) name: String,
    /// Small data and few runs: shows that it works, measures little.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Runs of each case.
    #[arg(long, value_name = "COUNT")]
    pub(crate) runs: Option<usize>,
    /// Groups of cases to run, such as `random` and `split` of `access`, or `frames`, `scaling`, `slabs`, `compositing`, `overlap` and
    /// `watching` of `render`; one that there is not has them listed [default: all].
    #[arg(long, value_name = "GROUP", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// Other projects' programs to compare with, or `none` [default: all].
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) peers: Option<Vec<String>>,
    /// A Python that has the packages of peers.
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) python: Option<PathBuf>,
    /// Real files, each a data set by itself. `access` fetches them whole, beside rsync and scp, and does nothing else; `render` casts
    /// slabs of them (`--only slabs`).
    #[arg(long, value_name = "PATH", num_args = 1..)]
    pub(crate) files: Vec<PathBuf>,
    /// Words that start a command on the server's side, such as `ip netns exec far` [default: started here].
    #[arg(long, value_name = "WORDS", default_value = "")]
    pub(crate) server_command: String,
    /// The address of the server's side.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub(crate) server_address: IpAddr,
    /// Known facts of the link between the sides, for the report and its limits: bytes per second, seconds, share,
    /// bytes.
    #[arg(long, value_name = "rate=N,rtt=N,loss=N,mtu=N", default_value = "")]
    pub(crate) link: Link,
    /// Words that make a link before a command, for `transport` over several links; `lab` stands for
    /// `corridor lab up {name} --rate {rate} --rtt {rtt} --loss {loss} --`, whose side a has --server-address 10.77.0.1.
    #[arg(long, value_name = "WORDS")]
    pub(crate) make_link: Option<String>,
    /// The file that the `ceiling` serves, which others are compared with; it is started by `access` itself.
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) serve_file: Option<PathBuf>,
    /// Address on which it listens.
    #[arg(long, value_name = "ADDRESS:PORT", hide = true)]
    pub(crate) listen: Option<SocketAddr>,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_declaration_is_consistent() {
        Cli::command().debug_assert();
    }
}
