//! `corridor bench`

use lab::bench;
use node::array::{Error, Result};

use crate::cli::Bench;
use crate::common::print;

pub(crate) async fn run(options: &Bench) -> Result<()> {
    if options.name == "list" {
        return bench::ALL.iter().try_for_each(|(name, what)| print(&format!("{name:<16} {what}")));
    }
    let program = std::env::current_exe().map_err(Error::from)?;
    let names: Vec<&str> = match options.name.as_str() {
        "all" => bench::ALL.iter().map(|(name, _)| *name).collect(),
        name => vec![name],
    };
    for name in names {
        let report = bench::run(name, &program).await?;
        if options.json {
            let text = serde_json::to_string(&report)
                .map_err(|e| Error::internal(format!("a report in JSON: {e}")))?;
            print(&text)?;
        } else {
            print(bench::table(&report).trim_end())?;
        }
    }
    Ok(())
}
