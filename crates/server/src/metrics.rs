//! Counters of a server since its start, and their text for Prometheus.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::time::Instant;

/// Counters of one server. All but `connected` only grow.
#[derive(Debug)]
pub struct Metrics {
    started: Instant,
    /// Accepted connections, by TCP or QUIC.
    pub connections: AtomicU64,
    /// Open connections.
    pub connected: AtomicU64,
    /// Clients of the wire protocol that were admitted.
    pub clients: AtomicU64,
    /// Clients and HTTP requests that were denied: no token, or a wrong one.
    pub denied: AtomicU64,
    /// Requests by HTTP.
    pub http_requests: AtomicU64,
    /// HTTP requests that were answered with a status of 400 or more.
    pub http_errors: AtomicU64,
    /// Bytes of the bodies of HTTP responses.
    pub http_bytes: AtomicU64,
    /// Reads and blocks that were answered.
    pub reads: AtomicU64,
    /// Operations that failed, for any reason.
    pub failed: AtomicU64,
    /// Bytes of data sent for reads and blocks, before compression.
    pub read_bytes: AtomicU64,
}

impl Default for Metrics {
    fn default() -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            started: Instant::now(),
            connections: zero(),
            connected: zero(),
            clients: zero(),
            denied: zero(),
            http_requests: zero(),
            http_errors: zero(),
            http_bytes: zero(),
            reads: zero(),
            failed: zero(),
            read_bytes: zero(),
        }
    }
}

/// Adds to a counter.
pub(crate) fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

/// Counts as an open connection until it is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionCount<'a>(&'a Metrics);

impl Metrics {
    /// Counts a connection.
    pub(crate) fn connect(&self) -> ConnectionCount<'_> {
        add(&self.connections, 1);
        add(&self.connected, 1);
        ConnectionCount(self)
    }

    /// Counts an HTTP response.
    pub(crate) fn count_http(&self, status: u16, body_bytes: u64) {
        add(&self.http_requests, 1);
        add(&self.http_errors, u64::from(status >= 400));
        add(&self.http_bytes, body_bytes);
    }

    /// Returns the counters in Prometheus' text format, with the number of data sets.
    #[must_use]
    pub fn text(&self, datasets: usize) -> String {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let io = store::process_io_counts();
        let mut text = String::new();
        let mut line = |name: &str, kind: &str, help: &str, value: u64| {
            let written = write!(
                text,
                "# HELP corridor_{name} {help}\n# TYPE corridor_{name} {kind}\ncorridor_{name} {value}\n"
            );
            // Writing to a string does not fail.
            written.unwrap_or_default();
        };
        let uptime = self.started.elapsed().as_secs();
        line("uptime_seconds", "gauge", "Time since the server started.", uptime);
        line("datasets", "gauge", "Data sets that are exported now.", datasets as u64);
        line("connections_total", "counter", "Accepted connections.", get(&self.connections));
        line("connected", "gauge", "Open connections.", get(&self.connected));
        line(
            "clients_total",
            "counter",
            "Clients of the wire protocol that were admitted.",
            get(&self.clients),
        );
        line("denied_total", "counter", "Clients and requests without the right token.", get(&self.denied));
        line("http_requests_total", "counter", "Requests by HTTP.", get(&self.http_requests));
        line(
            "http_errors_total",
            "counter",
            "Requests by HTTP answered with a status of 400 or more.",
            get(&self.http_errors),
        );
        line("http_sent_bytes_total", "counter", "Bytes of answers by HTTP.", get(&self.http_bytes));
        line("reads_total", "counter", "Reads and blocks answered by the wire protocol.", get(&self.reads));
        line(
            "operations_failed_total",
            "counter",
            "Operations of the wire protocol that failed.",
            get(&self.failed),
        );
        line(
            "read_bytes_total",
            "counter",
            "Bytes of data sent by the wire protocol, before compression.",
            get(&self.read_bytes),
        );
        line("file_requests_total", "counter", "Read calls for files.", io.requests);
        line("file_read_bytes_total", "counter", "Bytes requested from files.", io.bytes);
        text
    }
}

impl Drop for ConnectionCount<'_> {
    fn drop(&mut self) {
        self.0.connected.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_counter_is_described_once() {
        let metrics = Metrics::default();
        add(&metrics.read_bytes, 7);
        {
            let _one = metrics.connect();
            assert!(metrics.text(3).contains("\ncorridor_connected 1\n"));
        }
        let text = metrics.text(3);
        assert!(text.contains("corridor_read_bytes_total 7\n") && text.contains("corridor_datasets 3\n"));
        assert!(text.contains("corridor_connected 0\n") && text.contains("corridor_connections_total 1\n"));
        let (mut types, mut values) = (0, 0);
        for line in text.lines() {
            match line.split(' ').collect::<Vec<_>>()[..] {
                ["#", "TYPE", _, "gauge" | "counter"] => types += 1,
                ["#", "HELP", ..] => {}
                [name, value] => {
                    assert!(name.starts_with("corridor_") && value.parse::<u64>().is_ok(), "{line}");
                    values += 1;
                }
                _ => panic!("{line}"),
            }
        }
        assert_eq!(types, values);
    }
}
