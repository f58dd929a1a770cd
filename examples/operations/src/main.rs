//! `serve-with-operations PATH...`: a data server with three additional operations. Prints its address; runs until Ctrl-C.

use std::io::Write;

use array::{Error, Result};
use client::directories::UserDirectories;
use node::assemble::Context;
use node::memory::MemoryBudget;
use node::node::{Listen, ServerOptions, open, start};
use node::operations::of_data_server;
use server::identity::IdentityChoice;
use server::public_address::ReverseProxy;
use server::token::{Admission, Token};

#[tokio::main]
async fn main() -> std::process::ExitCode {
    match serve().await {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            writeln!(std::io::stderr(), "error: {error}").unwrap_or_default();
            std::process::ExitCode::FAILURE
        }
    }
}

async fn serve() -> Result<()> {
    let paths: Vec<String> = std::env::args().skip(1).collect();
    if paths.is_empty() {
        return Err(Error::invalid("usage: `serve-with-operations PATH...`"));
    }
    let options = ServerOptions {
        locations: paths.iter().map(|path| path.parse()).collect::<Result<_>>()?,
        listen: Listen::Loopback(0),
        admission: Admission::Token(Token::random()?),
        identity: IdentityChoice::Own,
        names: Vec::new(),
        proxies: ReverseProxy::default(),
        explores_folders: false,
        peers: Vec::new(),
        waiting_clients: Vec::new(),
        most_bytes_per_sec: None,
        context: Context::new(
            UserDirectories::of_user()?,
            MemoryBudget::serving(MemoryBudget::default_bytes()),
            None,
        ),
    };
    let shared = open(&options).await?;
    let mut registry = of_data_server();
    operations::add_to(&mut registry);
    let node = start(&options, shared, registry).await?;
    for export in node.exports().all().iter() {
        writeln!(std::io::stdout(), "{}", node.url(&export.name))?;
    }
    tokio::select! {
        () = node.run() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
    Ok(())
}
