//! Operation `interpret`: sets the meaning of the values in the file of a viewing node.

use std::sync::Arc;

use array::{Error, Meaning, Result};
use bytes::Bytes;
use serde::Deserialize;
use server::ops::{BeginOutcome, Handler, OperationCall};
use stream::Session;
use wire::ops;

/// Answers `interpret`: changes the meaning for all participants of the session.
pub(crate) struct InterpretHandler {
    session: Arc<Session>,
}

/// Parameters of `interpret`; `null` restores the meaning that the file and the names of its arrays imply.
#[derive(Deserialize)]
struct InterpretParameters {
    meaning: Option<Meaning>,
}

impl InterpretHandler {
    pub(crate) fn new(session: Arc<Session>) -> Self {
        Self { session }
    }
}

impl Handler for InterpretHandler {
    type Work = Option<Meaning>;

    fn name(&self) -> &'static str {
        ops::INTERPRET
    }

    fn is_forwarded(&self) -> bool {
        false
    }

    fn begin(&self, parameters: Bytes) -> Result<BeginOutcome<Option<Meaning>>> {
        let InterpretParameters { meaning } = serde_json::from_slice(&parameters)
            .map_err(|e| Error::invalid(format!("expected parameters of `interpret` in JSON: {e}")))?;
        if let Some(other @ (Meaning::Text | Meaning::Colors)) = meaning {
            let found = serde_json::json!(other);
            return Err(Error::invalid(format!(
                "expected `intensity`, `labels` or null as meaning, found {found}"
            )));
        }
        Ok(BeginOutcome::Work(meaning))
    }

    async fn run(&self, meaning: Option<Meaning>, call: &OperationCall) -> Result<()> {
        let all = call.node.exports.all();
        let [export] = &*all else {
            return Err(Error::unsupported(
                "`interpret` needs a server of a single data set; this one has several",
            ));
        };
        // The session is informed only of changes.
        if export.interpret(meaning).await? {
            self.session.describe_again();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble::Context;
    use crate::memory::MemoryBudget;
    use client::directories::UserDirectories;
    use server::exports::Exports;

    #[tokio::test]
    async fn setting_the_present_meaning_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.nrrd");
        let header = b"NRRD0004\ntype: uchar\ndimension: 3\nsizes: 4 4 4\nencoding: raw\n\n";
        std::fs::write(&path, [&header[..], &[7; 64]].concat()).unwrap();
        let locations = [path.to_str().unwrap().parse().unwrap()];
        let context =
            Context::new(UserDirectories::below(folder.path()), MemoryBudget::viewing(64 << 20), None);
        let exports = Exports::open(&locations, &context, false).await.unwrap();
        let export = exports.find("").await.unwrap();
        for (meaning, changes) in [
            (Some(Meaning::Intensity), false),
            (Some(Meaning::Labels), true),
            (Some(Meaning::Labels), false),
            (None, true),
            (None, false),
        ] {
            assert_eq!(export.interpret(meaning).await.unwrap(), changes, "{meaning:?}");
        }
    }
}
