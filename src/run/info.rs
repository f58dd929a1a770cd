//! `corridor info`

use array::{Dataset, Error, Result, Source};
use node::describe;
use node::geometry;
use node::memory::{MIN_BUDGET_BYTES, MemoryBudget};

use crate::cli::InfoOptions;
use crate::common::{context, open, print};
use crate::progress::ProgressOutput;

pub(crate) async fn run(options: &InfoOptions) -> Result<()> {
    if let Some(description) = geometry::description(&options.location).await? {
        return print(&if options.json { description.json()? } else { description.text() });
    }
    let budget = MemoryBudget::viewing(MIN_BUDGET_BYTES);
    // Standard output is the description and nothing else.
    let progress = if options.json { ProgressOutput::JsonAside } else { ProgressOutput::Bar };
    let context = context(budget, options.cache_dir.as_deref(), &options.reaching, progress)?;
    let (stack, array) = open(&options.location, &context).await?;
    let dataset = stack.source.describe().await?;
    let shown = if array.is_empty() { (*dataset).clone() } else { only(&dataset, &array)? };
    if options.json {
        let mut value = describe::json(&shown)?;
        let servers = stack.servers();
        if !servers.is_empty() {
            value["servers"] = describe::servers(&servers);
        }
        let text = serde_json::to_string_pretty(&value)
            .map_err(|e| Error::internal(format!("a description in JSON: {e}")))?;
        return print(&text);
    }
    print(describe::text(&shown).trim_end())
}

/// Returns the description with one array.
fn only(dataset: &Dataset, name: &str) -> Result<Dataset> {
    let (_, array) = dataset.find(name)?;
    Ok(Dataset { arrays: vec![array.clone()], left_out: Vec::new(), ..dataset.clone() })
}
