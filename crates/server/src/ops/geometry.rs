//! `geometry`: a file of geometry beside a data set of a served folder, piece by piece.

use array::Result;
use bytes::Bytes;
use wire::ops::{self, GeometryParameters, MAX_GEOMETRY_PIECE_BYTES};

use super::{BeginOutcome, Handler, OperationCall};

/// Answers `geometry`: a piece of a file of geometry.
pub struct GeometryHandler;

impl Handler for GeometryHandler {
    type Work = GeometryParameters;

    fn name(&self) -> &'static str {
        ops::GEOMETRY
    }

    fn only_reads(&self) -> bool {
        true
    }

    fn begin(&self, parameters: Bytes) -> Result<BeginOutcome<GeometryParameters>> {
        GeometryParameters::decode(parameters).map(BeginOutcome::Work)
    }

    async fn run(&self, asked: GeometryParameters, call: &OperationCall) -> Result<()> {
        let _memory = call.enter(MAX_GEOMETRY_PIECE_BYTES as u64).await;
        let (body, piece) = call.node.exports.geometry(&asked, call.operation.urgency()).await?;
        call.operation.item(body.encode(), piece).await
    }
}
