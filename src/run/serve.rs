//! `corridor serve`

use node::array::Result;
use node::lobby::Limits;
use node::memory::Budget;
use node::node::{Node, open, start};
use node::ops::Registry;
use node::ssh;
use serde_json::json;

use crate::cli::Serve;
use crate::common::{context, memory, print, rate, server, warn_of_exposure};
use crate::progress::Progress;

pub(crate) async fn run(options: &Serve) -> Result<()> {
    if options.stdio {
        return serve_stdio(options).await;
    }
    let is_json = options.listening.json;
    let limits = Limits::of_clients(options.listening.clients);
    let peers: Result<_> = options.peers.iter().map(|peer| peer.parse()).collect();
    let clients: Result<_> = options.to.iter().map(|client| client.parse()).collect();
    let most = options.max_rate.as_deref().map(rate).transpose()?;
    let mut options = server(&options.locations, &options.listening, false)?;
    options.peers = peers?;
    options.waiting_clients = clients?;
    options.most_bytes_per_sec = most;
    let shared = open(&options).await?;
    let node = start(&options, shared, Registry::of_data_server()).await?;
    for export in node.exports().all() {
        print(&line(&node, &export.name, is_json))?;
    }
    warn_of_exposure(&node);
    node.with_limits(limits).run().await;
    Ok(())
}

async fn serve_stdio(options: &Serve) -> Result<()> {
    let resources = &options.listening.resources;
    let budget = Budget::serving(memory(resources.memory.as_deref())?);
    // Standard error is somebody's terminal on another host.
    let context =
        context(budget, resources.cache_dir.as_deref(), &options.listening.reaching, Progress::Bar)?;
    ssh::serve(context, Registry::of_data_server()).await
}

fn line(node: &Node, export: &str, is_json: bool) -> String {
    let url = node.url(export);
    if is_json {
        return json!({
            "url": url.to_string(), "zarr": node.zarr(export), "fingerprint": node.fingerprint, "token": node.token(),
        })
        .to_string();
    }
    let zarr = node.zarr(export);
    format!(
        "{url}\n  look at it:  corridor view '{url}'\n  as Zarr v3:  {zarr}  (with `Authorization: Bearer TOKEN`)"
    )
}
