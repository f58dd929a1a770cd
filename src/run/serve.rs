//! `corridor serve`

use node::array::Result;
use node::node::{Node, open, start};
use node::ops::Registry;
use serde_json::json;

use crate::cli::Serve;
use crate::common::{print, server, warn_of_exposure};

pub(crate) async fn run(options: &Serve) -> Result<()> {
    let is_json = options.listening.json;
    let peers: Result<_> = options.peers.iter().map(|peer| peer.parse()).collect();
    let mut options = server(&options.locations, &options.listening, false)?;
    options.peers = peers?;
    let shared = open(&options).await?;
    let node = start(&options, shared, Registry::of_data_server()).await?;
    for export in node.exports().all() {
        print(&line(&node, &export.name, is_json))?;
    }
    warn_of_exposure(&node);
    node.run().await;
    Ok(())
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
