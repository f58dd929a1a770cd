//! The file in which paths are remembered: an SQLite database, one row for each host, shared by all processes of this
//! user.
//!
//! Rows and bytes are limited, and old rows are deleted. A file that is corrupt or not ours is renamed with a warning;
//! a file of a newer version is left alone. In both cases, and without a directory, measurements are kept in memory.

use std::net::IpAddr;
use std::path::Path as FilePath;
use std::time::Duration;

use array::{Error, Result};
use plan::{
    ALL_BYTES_PER_HOUR, Direction, MAX_AGE, Measurement, NetworkPrefix, PATH_BYTES_PER_HOUR, Path,
    ProbeBudget, Signature,
};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use super::RecalledPath;
use super::probe_lease::refused;
use crate::directories::private_folder;

/// Maximum number of hosts that are remembered; the one that was updated longest ago is deleted first.
const MAX_HOSTS: u32 = 1024;
/// Maximum number of remembered hosts of one network, so that somebody who controls all its addresses cannot displace
/// hosts of other networks.
const MAX_HOSTS_PER_NETWORK: u32 = 128;
/// Maximum number of hosts of one network that are compared.
const MAX_NEIGHBORS: u32 = 32;
/// Maximum length of the text of a path, in bytes.
const MAX_PATH_BYTES: u32 = 256 << 10;
/// Timeout for a lock that another process holds on the file.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);
/// SQLite application id of our files: "Corr".
const APPLICATION_ID: i32 = 0x436f_7272;
/// Version of the schema.
const VERSION: i32 = 1;
const TABLE: &str = "
    CREATE TABLE IF NOT EXISTS path (
        host TEXT PRIMARY KEY, network TEXT NOT NULL, told_at INTEGER NOT NULL, known TEXT NOT NULL) STRICT;
    CREATE INDEX IF NOT EXISTS path_network ON path (network, told_at);
    CREATE TABLE IF NOT EXISTS probing (network TEXT PRIMARY KEY, at INTEGER NOT NULL, budget TEXT NOT NULL) STRICT;";
/// Key of the row with the probe costs of all networks together.
const ALL_NETWORKS: &str = "all";
/// Age at which spent probe bytes are deleted and no longer count.
const BUDGET_PERIOD: Duration = Duration::from_secs(2 * 3600);

/// Change to the probe budget.
#[derive(Clone, Copy, Debug)]
pub(super) enum BudgetChange {
    /// A probe begins.
    Begin,
    /// This number of bytes will be sent.
    Bytes(u64),
    /// The probe has ended.
    End,
}

/// An open database.
pub(super) struct PathDatabase(Connection);

/// Reason that a file is not used.
enum Unusable {
    /// The file is not our database, or is corrupt: it is renamed.
    Foreign(String),
    /// The file cannot be used now, and is left alone.
    Now(String),
}

impl From<rusqlite::Error> for Unusable {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
        match error.sqlite_error_code() {
            Some(DatabaseCorrupt | NotADatabase) => Self::Foreign(error.to_string()),
            _ => Self::Now(error.to_string()),
        }
    }
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::internal(format!("the database of paths: {error}"))
}

impl PathDatabase {
    /// Opens the database in `folder`, or else one in memory.
    pub(super) fn open(folder: &FilePath) -> Self {
        let file = folder.join("paths.sqlite");
        let opened = private_folder(folder).map_err(|e| Unusable::Now(e.to_string())).and_then(|()| {
            try_open(&file).or_else(|unusable| match unusable {
                Unusable::Foreign(why) => {
                    rename_foreign(&file, &why)?;
                    try_open(&file)
                }
                now @ Unusable::Now(_) => Err(now),
            })
        });
        let connection = opened.or_else(|unusable| {
            let (Unusable::Foreign(why) | Unusable::Now(why)) = unusable;
            tracing::warn!(why, file = %file.display(), "paths are remembered by this process only");
            let connection = Connection::open_in_memory()?;
            connection.execute_batch(TABLE)?;
            Ok::<_, rusqlite::Error>(connection)
        });
        #[expect(clippy::expect_used, reason = "opening a database in memory does not fail")]
        Self(connection.expect("a database in memory"))
    }

    /// Adds measurements to the remembered path to `host`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn record(&mut self, host: IpAddr, at: Duration, measured: Vec<Measurement>) -> Result<()> {
        let change = self.0.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        let mut path = read(&change, host).unwrap_or_default();
        for one in measured {
            path.record(at, one);
        }
        let text = serde_json::to_string(&path).map_err(failed)?;
        if text.len() > MAX_PATH_BYTES as usize {
            return Err(Error::internal(format!("expected a path of at most {MAX_PATH_BYTES} bytes")));
        }
        let row = params![host.to_string(), NetworkPrefix::of(host).to_string(), seconds(at), text];
        let put = "INSERT OR REPLACE INTO path (host, network, told_at, known) VALUES (?1, ?2, ?3, ?4)";
        change.execute(put, row).map_err(failed)?;
        let oldest = seconds(at.saturating_sub(MAX_AGE));
        change.execute("DELETE FROM path WHERE told_at < ?1", [oldest]).map_err(failed)?;
        let surplus = "DELETE FROM path WHERE host IN
            (SELECT host FROM path WHERE network = ?1 ORDER BY told_at DESC, rowid DESC LIMIT -1 OFFSET ?2)";
        let network = NetworkPrefix::of(host).to_string();
        change.execute(surplus, params![network, MAX_HOSTS_PER_NETWORK]).map_err(failed)?;
        let surplus = "DELETE FROM path WHERE host IN
            (SELECT host FROM path ORDER BY told_at DESC, rowid DESC LIMIT -1 OFFSET ?1)";
        change.execute(surplus, [MAX_HOSTS]).map_err(failed)?;
        change.commit().map_err(failed)
    }

    /// Counts the cost of probing the path to `host`.
    ///
    /// # Errors
    /// `Busy` if the budget does not allow it now; an error if the file cannot be written, because only probes that are
    /// counted are allowed.
    pub(super) fn spend(&mut self, host: IpAddr, at: Duration, what: BudgetChange) -> Result<()> {
        let change = self.0.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        let network = NetworkPrefix::of(host).to_string();
        let (mut of_path, mut of_all) = (budget(&change, &network), budget(&change, ALL_NETWORKS));
        match what {
            BudgetChange::Begin => of_path.begin(at).map_err(refused)?,
            BudgetChange::Bytes(bytes) => {
                of_path.spend(at, bytes, PATH_BYTES_PER_HOUR).map_err(refused)?;
                of_all.spend(at, bytes, ALL_BYTES_PER_HOUR).map_err(refused)?;
            }
            BudgetChange::End => of_path.end(),
        }
        for (network, budget) in [(network.as_str(), of_path), (ALL_NETWORKS, of_all)] {
            let text = serde_json::to_string(&budget).map_err(failed)?;
            let put = "INSERT OR REPLACE INTO probing (network, at, budget) VALUES (?1, ?2, ?3)";
            change.execute(put, params![network, seconds(at), text]).map_err(failed)?;
        }
        let oldest = seconds(at.saturating_sub(BUDGET_PERIOD));
        change.execute("DELETE FROM probing WHERE at < ?1", [oldest]).map_err(failed)?;
        change.commit().map_err(failed)
    }

    /// Returns the remembered path to `host`, or else, if `rtt_secs` is known, the path to another host of its network
    /// behind the same bottleneck.
    pub(super) fn recall(&self, host: IpAddr, rtt_secs: Option<f64>, now: Duration) -> Option<RecalledPath> {
        if let Some(path) = read(&self.0, host) {
            return Some(RecalledPath { path, of_neighbour: None });
        }
        let signature = Signature { rtt_secs: rtt_secs?, capacity_bytes_per_sec: None };
        let hosts = self.neighbors(host).unwrap_or_default();
        let mut known = hosts.into_iter().filter_map(|of| Some((of, read(&self.0, of)?)));
        let fits =
            |path: &Path| path.signature(now, Direction::Up).is_some_and(|known| known.fits(&signature));
        let (of, path) = known.find(|(_, path)| fits(path))?;
        Some(RecalledPath { path, of_neighbour: Some(of) })
    }

    /// Returns hosts of the same network, the last updated one first.
    fn neighbors(&self, host: IpAddr) -> rusqlite::Result<Vec<IpAddr>> {
        let find = "SELECT host FROM path WHERE network = ?1 ORDER BY told_at DESC LIMIT ?2";
        let mut rows = self.0.prepare(find)?;
        let found = rows.query_map(params![NetworkPrefix::of(host).to_string(), MAX_NEIGHBORS], |row| {
            Ok(row.get_ref(0)?.as_str()?.parse().ok())
        })?;
        Ok(found.flatten().flatten().collect())
    }
}

/// Reads a row; `None` if its content is not valid.
fn read(connection: &Connection, host: IpAddr) -> Option<Path> {
    let find = "SELECT known FROM path WHERE host = ?1 AND length(known) <= ?2";
    let text = connection
        .query_row(find, params![host.to_string(), MAX_PATH_BYTES], |row| row.get::<_, String>(0))
        .optional()
        .inspect_err(|error| tracing::debug!(%error, "a path could not be read"))
        .ok()??;
    serde_json::from_str(&text).ok().filter(Path::is_sound)
}

/// Reads the probe budget of a network; an empty one if there is no row or its content is not valid.
fn budget(connection: &Connection, network: &str) -> ProbeBudget {
    let find = "SELECT budget FROM probing WHERE network = ?1";
    let text = connection.query_row(find, [network], |row| row.get::<_, String>(0)).optional();
    let found = text.ok().flatten().and_then(|text| serde_json::from_str(&text).ok());
    found.filter(ProbeBudget::is_sound).unwrap_or_default()
}

fn seconds(at: Duration) -> i64 {
    i64::try_from(at.as_secs()).unwrap_or(i64::MAX)
}

fn try_open(file: &FilePath) -> std::result::Result<Connection, Unusable> {
    let connection = Connection::open(file)?;
    connection.busy_timeout(LOCK_TIMEOUT)?;
    let number = |name: &str| connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, i32>(0));
    let tables: u32 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if tables > 0 && number("application_id")? != APPLICATION_ID {
        return Err(Unusable::Foreign("expected a database of paths, found another one".into()));
    }
    let version = number("user_version")?;
    if version > VERSION {
        return Err(Unusable::Now(format!("expected version {VERSION} of the file, found {version}")));
    }
    let check: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if check != "ok" {
        return Err(Unusable::Foreign(check));
    }
    // No write-ahead log, which readers map into memory: the process is killed if a network file system revokes the
    // mapping.
    connection.pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    if tables == 0 {
        connection.pragma_update(None, "application_id", APPLICATION_ID)?;
        connection.pragma_update(None, "user_version", VERSION)?;
    }
    connection.execute_batch(TABLE)?;
    Ok(connection)
}

/// Renames a file that is not ours; only the last such file is kept.
fn rename_foreign(file: &FilePath, why: &str) -> std::result::Result<(), Unusable> {
    let renamed = file.with_extension("sqlite.broken");
    tracing::warn!(why, file = %renamed.display(), "the database of paths is not usable: renaming it and creating a new one");
    std::fs::rename(file, &renamed).map_err(|e| Unusable::Now(e.to_string()))?;
    // Journals of the old file would be read as those of the new one.
    for beside in ["sqlite-journal", "sqlite-wal", "sqlite-shm"] {
        if let Err(error) = std::fs::remove_file(file.with_extension(beside))
            && error.kind() != std::io::ErrorKind::NotFound
        {
            return Err(Unusable::Now(error.to_string()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Duration = Duration::from_secs(2_000_000_000);

    fn host(n: u32) -> IpAddr {
        std::net::Ipv4Addr::from_bits(0xc633_6400 + n).into()
    }

    /// Returns a host of network `n`.
    fn host_of_network(n: u32) -> IpAddr {
        host(n * 256)
    }

    fn record(database: &mut PathDatabase, of: IpAddr, at: Duration) {
        database.record(of, at, vec![Measurement::RoundTrip(0.02)]).unwrap();
    }

    fn rows(database: &PathDatabase) -> u32 {
        database.0.query_row("SELECT count(*) FROM path", [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn files_of_other_programs_are_renamed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("paths.sqlite");
        let foreign = Connection::open(&file).unwrap();
        foreign.execute_batch("CREATE TABLE letters (text TEXT)").unwrap();
        drop(foreign);
        let as_foreign = std::fs::read(&file).unwrap();
        for content in [b"no database at all, but long enough to look like something".repeat(40), as_foreign]
        {
            std::fs::write(&file, &content).unwrap();
            let mut database = PathDatabase::open(folder.path());
            record(&mut database, host(1), AT);
            assert_eq!(rows(&PathDatabase::open(folder.path())), 1, "the new database is used");
            assert_eq!(std::fs::read(folder.path().join("paths.sqlite.broken")).unwrap(), content);
            drop(database);
            for beside in ["sqlite-journal", "sqlite-wal", "sqlite-shm"] {
                std::fs::remove_file(file.with_extension(beside)).unwrap_or_default();
            }
        }
    }

    #[test]
    fn a_file_of_a_newer_version_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        record(&mut PathDatabase::open(folder.path()), host(1), AT);
        let newer = Connection::open(folder.path().join("paths.sqlite")).unwrap();
        newer.pragma_update(None, "user_version", VERSION + 1).unwrap();
        let mut database = PathDatabase::open(folder.path());
        assert_eq!(rows(&database), 0);
        record(&mut database, host(2), AT);
        assert_eq!(newer.query_row("SELECT count(*) FROM path", [], |row| row.get::<_, u32>(0)).unwrap(), 1);
        assert!(!folder.path().join("paths.sqlite.broken").exists());
    }

    #[test]
    fn rows_are_bounded_and_old_ones_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let mut database = PathDatabase::open(folder.path());
        for n in 0..MAX_HOSTS + 3 {
            record(&mut database, host_of_network(n), AT + Duration::from_secs(n.into()));
        }
        assert_eq!(rows(&database), MAX_HOSTS);
        let is_known = |database: &PathDatabase, n| database.recall(host_of_network(n), None, AT).is_some();
        assert!(!is_known(&database, 2) && is_known(&database, 3));
        record(&mut database, host(0), AT + MAX_AGE * 2);
        assert_eq!(rows(&database), 1);
    }

    #[test]
    fn hosts_of_one_network_do_not_displace_others() {
        let folder = tempfile::tempdir().unwrap();
        let mut database = PathDatabase::open(folder.path());
        record(&mut database, host_of_network(9), AT);
        for n in 0..2 * MAX_HOSTS {
            let ip = (0x2001_0db8_0000_0000_u128 << 64) + (u128::from(n) << 64);
            let of_one: IpAddr = std::net::Ipv6Addr::from_bits(ip).into();
            record(&mut database, of_one, AT + Duration::from_secs(n.into()));
        }
        assert_eq!(rows(&database), MAX_HOSTS_PER_NETWORK + 1);
        assert!(database.recall(host_of_network(9), None, AT).is_some());
    }

    #[test]
    fn probes_of_all_processes_share_one_budget_and_take_turns() {
        let folder = tempfile::tempdir().unwrap();
        let (mut one, mut other) = (PathDatabase::open(folder.path()), PathDatabase::open(folder.path()));
        one.spend(host(1), AT, BudgetChange::Begin).unwrap();
        let busy = other.spend(host(2), AT, BudgetChange::Begin).unwrap_err();
        assert_eq!(busy.kind(), array::ErrorKind::Busy, "the same network: {busy}");
        one.spend(host(1), AT, BudgetChange::End).unwrap();
        other.spend(host(2), AT, BudgetChange::Begin).unwrap();
        let room = PATH_BYTES_PER_HOUR / 2;
        one.spend(host(1), AT, BudgetChange::Bytes(room)).unwrap();
        let spent = other.spend(host(2), AT, BudgetChange::Bytes(1 << 20)).unwrap_err();
        assert!(spent.to_string().contains("try again in 4 min"), "{spent}");
        for n in 1..8 {
            other.spend(host_of_network(n), AT, BudgetChange::Bytes(room)).unwrap();
        }
        assert!(
            one.spend(host_of_network(8), AT, BudgetChange::Bytes(room)).is_err(),
            "the budget of all networks is spent"
        );
        one.spend(host_of_network(8), AT + BUDGET_PERIOD * 2, BudgetChange::Bytes(room)).unwrap();
        let rows: u32 = one.0.query_row("SELECT count(*) FROM probing", [], |row| row.get(0)).unwrap();
        assert_eq!(rows, 2, "old rows are deleted");
    }

    #[test]
    fn processes_share_rows_and_invalid_rows_are_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let (mut one, mut other) = (PathDatabase::open(folder.path()), PathDatabase::open(folder.path()));
        for _ in 0..2 {
            record(&mut one, host(1), AT);
            record(&mut other, host(1), AT);
        }
        let samples =
            |of: &PathDatabase| of.recall(host(1), None, AT).unwrap().path.rtt.least(AT).unwrap().samples;
        assert_eq!((samples(&one), samples(&other)), (4, 4));
        one.0.execute("UPDATE path SET known = '{\"rtt\": 3}'", []).unwrap();
        assert!(one.recall(host(1), None, AT).is_none());
        record(&mut other, host(1), AT);
        assert_eq!(samples(&one), 1);
    }
}
