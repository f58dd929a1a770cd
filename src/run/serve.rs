//! `corridor serve`

use array::{Error, Result};
use node::memory::MemoryBudget;
use node::node::{ServerNode, open, start};
use node::operations::of_data_server;
use node::ssh;
use serde_json::json;
use server::connections::Limits;
use server::token::{Admission, Token, ZarrReaders};

use crate::cli::ServeOptions;
use crate::common::{ServerPurpose, context, memory, print, rate, say, server, warn_of_port};
use crate::progress::ProgressOutput;

pub(crate) async fn run(options: &ServeOptions) -> Result<()> {
    if options.stdio {
        return serve_stdio(options).await;
    }
    let is_json = options.listening.json;
    let limits = Limits::of_clients(options.listening.clients);
    let peers: Result<_> = options.peers.iter().map(|peer| peer.parse()).collect();
    let clients: Result<_> = options.to.iter().map(|client| client.parse()).collect();
    let max_rate = options.max_rate.as_deref().map(rate).transpose()?;
    let readers = readers(options)?;
    let mut options = server(&options.locations, &options.listening, ServerPurpose::Data)?;
    if let (Admission::Token(token), Some(readers)) = (&options.admission, readers) {
        options.admission = Admission::TokenAndReaders(token.clone(), readers);
    }
    options.peers = peers?;
    options.waiting_clients = clients?;
    options.most_bytes_per_sec = max_rate;
    let shared = open(&options).await?;
    let node = start(&options, shared, of_data_server()).await?;
    print_exports(&node, is_json)?;
    warn_of_port(&node);
    node.with_limits(limits).run().await;
    Ok(())
}

/// Maximum number of exports that are listed in text output; JSON output has all.
const MAX_LISTED: usize = 20;

/// Prints the addresses of each export; for a folder without exports, the address of the server.
fn print_exports(node: &ServerNode, is_json: bool) -> Result<()> {
    let all = node.exports().all();
    let shown = if is_json { all.len() } else { MAX_LISTED };
    for export in all.iter().take(shown) {
        print(&line(node, &export.name, is_json))?;
    }
    if all.len() > shown {
        print(&format!("and {} more; all of them:  corridor info '{}'", all.len() - shown, node.url("")))?;
    }
    if all.is_empty() {
        print(&line(node, "", is_json))?;
        say("warning: there are no data sets in the folder yet");
    }
    Ok(())
}

/// Returns the access of clients that may only read Zarr, if the options request it.
fn readers(options: &ServeOptions) -> Result<Option<ZarrReaders>> {
    if options.zarr_token.is_none() && options.pages.is_empty() {
        return Ok(None);
    }
    if options.zarr_token.is_some() && options.zarr_token == options.listening.token {
        return Err(Error::invalid("expected a token for Zarr that differs from the token for everything"));
    }
    let token = options.zarr_token.as_deref().map_or_else(Token::random, Token::chosen)?;
    ZarrReaders::new(token, &options.pages).map(Some)
}

async fn serve_stdio(options: &ServeOptions) -> Result<()> {
    let resources = &options.listening.resources;
    let budget = MemoryBudget::serving(memory(resources.memory.as_deref())?);
    // Standard error is a terminal on another host.
    let context =
        context(budget, resources.cache_dir.as_deref(), &options.listening.reaching, ProgressOutput::Bar)?;
    ssh::serve(context, of_data_server()).await
}

fn line(node: &ServerNode, export: &str, is_json: bool) -> String {
    let url = node.url(export);
    if is_json {
        return json!({
            "url": url.to_string(), "zarr": node.zarr(export), "fingerprint": node.fingerprint, "token": node.token(),
            "zarr_token": node.zarr_token(), "xarray": xarray(node, export),
        })
        .to_string();
    }
    let zarr = node.zarr(export);
    let token = node.zarr_token().unwrap_or("TOKEN");
    format!(
        "{url}\n  view it:     corridor view '{url}'\n  as Zarr v3:  {zarr}  (with `Authorization: Bearer {token}`)\n  \
         in xarray:   {}",
        xarray(node, export)
    )
}

/// Returns a Python expression that opens an export in xarray over HTTP, without Corridor's package. A self-signed
/// certificate is verified by its fingerprint there too.
fn xarray(node: &ServerNode, export: &str) -> String {
    let zarr = node.zarr(export);
    let token = node.zarr_token().or_else(|| node.token());
    let headers = token
        .map(|token| format!("\"headers\": {{\"Authorization\": {}}}", json!(format!("Bearer {token}"))));
    let own = format!("https://{}/", node.url("").authority());
    let is_pinned = node.is_self_signed && zarr.starts_with(&own);
    let pin = is_pinned.then(|| {
        let digits = node.fingerprint.trim_start_matches("sha256:");
        format!("\"ssl\": aiohttp.Fingerprint(bytes.fromhex(\"{digits}\"))")
    });
    let options: Vec<String> = headers.into_iter().chain(pin).collect();
    format!("xr.open_zarr({}, storage_options={{{}}})", json!(zarr), options.join(", "))
}
