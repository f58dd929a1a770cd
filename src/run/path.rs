//! `corridor path`

use array::{Error, Result};
use client::paths::{PathTarget, ProbeMode, inspect};
use node::memory::{MIN_BUDGET_BYTES, MemoryBudget};

use crate::cli::PathOptions;
use crate::common::{context, print};
use crate::progress::ProgressOutput;

pub(crate) async fn run(options: &PathOptions) -> Result<()> {
    let target: PathTarget = options.target.parse()?;
    let context =
        context(MemoryBudget::viewing(MIN_BUDGET_BYTES), None, &options.reaching, ProgressOutput::JsonAside)?;
    let probing = if options.probe { ProbeMode::Always } else { ProbeMode::WhereUnknown };
    let report = inspect(&target, &context.inspect_settings(), probing).await?;
    if options.json {
        let text = serde_json::to_string_pretty(&report)
            .map_err(|e| Error::internal(format!("a path in JSON: {e}")))?;
        return print(&text);
    }
    print(report.text().trim_end())
}
