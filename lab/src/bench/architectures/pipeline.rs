//! Pipeline: asking, answering and taking the answers are stages that work at the same time on different operations. Nothing
//! waits for a round trip, but each operation is sent by itself.

use array::{Error, Result};
use bytes::Bytes;
use tokio::sync::mpsc;

use super::architecture::{
    AnswersFuture, Architecture, ConnectionSource, KeptConnection, UNDER_WAY, answer, only,
};

pub(super) struct PlainPipeline;

impl Architecture for PlainPipeline {
    fn name(&self) -> &'static str {
        "pipeline"
    }

    fn kept_connections(&self) -> usize {
        1
    }

    fn most_under_way(&self) -> usize {
        UNDER_WAY
    }

    fn run<'a>(
        &'a self,
        _: &'a dyn ConnectionSource,
        kept: &'a [KeptConnection],
        asks: &'a [Bytes],
    ) -> AnswersFuture<'a> {
        Box::pin(async move { stages(only(kept)?, asks).await })
    }
}

/// The client's two stages; the server's are in between.
async fn stages(connection: &KeptConnection, asks: &[Bytes]) -> Result<Vec<Bytes>> {
    let (asked, mut waiting) = mpsc::channel(UNDER_WAY);
    let ask = async {
        // Moved in, so that its end ends the other stage.
        let asked = asked;
        for parameters in asks {
            let operation = connection.ask(parameters).await?;
            asked.send(operation).await.map_err(|_| Error::internal("the taking stage ended"))?;
            // Each leaves by itself.
            tokio::task::yield_now().await;
        }
        Ok::<(), Error>(())
    };
    let take = async {
        let mut answers = Vec::with_capacity(asks.len());
        while let Some(operation) = waiting.recv().await {
            answers.push(answer(operation).await?);
        }
        Ok::<_, Error>(answers)
    };
    let ((), answers) = tokio::try_join!(ask, take)?;
    Ok(answers)
}
