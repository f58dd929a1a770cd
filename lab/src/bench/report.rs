//! The one JSON object that `corridor bench NAME --json` prints. Field names are a contract: add, don't rename.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::Command;

use serde::{Deserialize, Serialize};

/// One benchmark run on one machine.
#[derive(Debug, Serialize, Deserialize)]
pub struct BenchReport {
    /// Name of the benchmark.
    pub bench: String,
    /// Command line that repeats it.
    #[serde(default)]
    pub command: String,
    /// Machine that it ran on.
    pub machine: MachineInfo,
    /// Commit of the code, with `+` where the tree had changes; `unknown` outside a checkout.
    pub commit: String,
    /// The link between the two sides.
    pub link: Link,
    /// Quantities that were measured.
    pub cases: Vec<Case>,
    /// Reason why cases are missing; left out if none is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The machine.
#[derive(Debug, Serialize, Deserialize)]
pub struct MachineInfo {
    /// Logical processors that the process may use.
    pub cores: usize,
    /// Processor model.
    pub cpu: String,
    /// Kernel release.
    pub kernel: String,
}

/// The link; null where there is none or it does not limit.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Link {
    /// Bytes per second.
    pub rate: Option<f64>,
    /// Round trip, seconds.
    pub rtt: Option<f64>,
    /// Share of packets lost, 0 to 1.
    pub loss: Option<f64>,
    /// Largest packet, bytes.
    pub mtu: Option<u32>,
}

/// Direction of better values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Lower values are better.
    Lower,
    /// Higher values are better.
    Higher,
}

/// One measured quantity.
#[derive(Debug, Serialize, Deserialize)]
pub struct Case {
    /// Name of the quantity.
    pub name: String,
    /// Its parameters.
    pub parameters: BTreeMap<String, serde_json::Value>,
    /// Unit of every figure of the case.
    pub unit: Cow<'static, str>,
    /// Direction of better values.
    pub better: Better,
    /// Median of the runs; null where it could not run.
    pub ours: Option<f64>,
    /// Number of runs.
    pub runs: usize,
    /// Smallest.
    pub min: Option<f64>,
    /// Largest.
    pub max: Option<f64>,
    /// Peers measured in the same run; null with `why` where one is not there.
    pub peers: BTreeMap<String, Option<f64>>,
    /// Physical limit of this link or machine.
    pub limit: Option<f64>,
    /// Explanation of the limit.
    pub limit_why: String,
    /// Value to reach.
    pub goal: Option<f64>,
    /// Whether the goal is met; null if a peer or device is missing.
    pub meets_goal: Option<bool>,
    /// Reason for values that are null.
    pub why: String,
}

impl Case {
    /// A case from its measured values.
    #[must_use]
    pub fn measured(name: &str, unit: &'static str, better: Better, mut values: Vec<f64>) -> Self {
        let ours = median(&mut values);
        Self {
            name: name.to_owned(),
            parameters: BTreeMap::new(),
            unit: unit.into(),
            better,
            ours,
            runs: values.len(),
            min: values.first().copied(),
            max: values.last().copied(),
            peers: BTreeMap::new(),
            limit: None,
            limit_why: String::new(),
            goal: None,
            meets_goal: None,
            why: String::new(),
        }
    }

    /// Adds a parameter.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<serde_json::Value>) -> Self {
        self.parameters.insert(name.to_owned(), value.into());
        self
    }

    /// Adds the physical limit.
    #[must_use]
    pub fn limited(mut self, limit: f64, why: &str) -> Self {
        self.limit = Some(limit);
        why.clone_into(&mut self.limit_why);
        self
    }

    /// Adds the goal and whether the median meets it.
    #[must_use]
    pub fn aiming(mut self, goal: f64) -> Self {
        self.goal = Some(goal);
        self.meets_goal = self.ours.map(|ours| match self.better {
            Better::Lower => ours <= goal,
            Better::Higher => ours >= goal,
        });
        self
    }

    /// Leaves open whether the goal is met, because less was measured than it is for.
    pub(crate) fn leave_open(&mut self) {
        if self.meets_goal.take().is_some() {
            let why = "less was measured than the goal is for (`--quick`)";
            self.why = if self.why.is_empty() { why.into() } else { format!("{}; {why}", self.why) };
        }
    }
}

/// The middle value of `values`, which it sorts; the mean of the two middle ones for an even number.
pub(crate) fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        n if n % 2 == 1 => Some(values[middle]),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
}

/// The smallest of `shares` over the largest: 1 if all are equal, 0 if one is 0.
pub(crate) fn smallest_over_largest(shares: &[f64]) -> f64 {
    let largest = shares.iter().copied().fold(0.0, f64::max);
    shares.iter().copied().fold(largest, f64::min) / largest.max(f64::MIN_POSITIVE)
}

impl BenchReport {
    /// An empty report of `bench` on this machine.
    #[must_use]
    pub fn here(bench: &str, link: Link) -> Self {
        Self {
            bench: bench.to_owned(),
            command: command_line(std::env::args_os()),
            machine: MachineInfo::here(),
            commit: commit(),
            link,
            cases: Vec::new(),
            error: None,
        }
    }
}

impl MachineInfo {
    fn here() -> Self {
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let cpu = cpuinfo.lines().find_map(|l| l.strip_prefix("model name")).unwrap_or_default();
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Self {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            cpu: cpu.trim_start_matches([' ', '\t', ':']).to_owned(),
            kernel: kernel.trim().to_owned(),
        }
    }
}

/// Command line for a shell from the words of a process; the program stands in it by name, without its folder.
fn command_line(words: impl Iterator<Item = OsString>) -> String {
    let words = words.enumerate().map(|(at, word)| {
        let text = word.to_string_lossy();
        let name = text.rsplit('/').next().unwrap_or_default();
        quoted(if at == 0 { name } else { &text })
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Word as a shell reads it back.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+%@".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn commit() -> String {
    let git = |arguments: &[&str]| {
        let out = Command::new("git").args(arguments).output().ok().filter(|o| o.status.success())?;
        String::from_utf8(out.stdout).ok().map(|t| t.trim().to_owned())
    };
    let Some(hash) = git(&["rev-parse", "--short=12", "HEAD"]) else { return "unknown".into() };
    let changed = git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|t| !t.is_empty());
    if changed { format!("{hash}+") } else { hash }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        let of = |values: &[f64]| Case::measured("x", "s", Better::Lower, values.to_vec()).ours;
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(of(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn shares_are_alike_or_not() {
        assert_eq!(smallest_over_largest(&[2.0, 4.0, 3.0]), 0.5);
        assert_eq!(smallest_over_largest(&[0.3, 0.3]), 1.0);
        assert_eq!(smallest_over_largest(&[0.0, 4.0]), 0.0);
        assert_eq!(smallest_over_largest(&[0.0, 0.0]), 0.0);
    }

    #[test]
    fn a_command_line_can_be_given_to_a_shell() {
        let of = |words: &[&str]| command_line(words.iter().map(OsString::from));
        let words = ["target/release/corridor", "bench", "--server-command", "ip netns exec far", "it's", ""];
        assert_eq!(of(&words), r"corridor bench --server-command 'ip netns exec far' 'it'\''s' ''");
        assert_eq!(of(&[]), "");
        let report = serde_json::to_value(BenchReport::here("access", Link::default())).unwrap();
        assert!(report["command"].as_str().is_some_and(|command| !command.is_empty()));
    }

    #[test]
    fn a_goal_knows_its_direction() {
        let case = |better| Case::measured("x", "s", better, vec![2.0]).aiming(3.0).meets_goal;
        assert_eq!(case(Better::Lower), Some(true));
        assert_eq!(case(Better::Higher), Some(false));
    }
}
