//! `interpret`: what the values of a viewing node's file mean, as people who look at it say.

use std::sync::Arc;

use array::{Error, Meaning, Result};
use bytes::Bytes;
use serde::Deserialize;
use stream::Session;
use wire::ops;

use crate::ops::{Begun, Call, Handler};

/// Changes the meaning for everybody in the session.
pub(crate) struct Interpret {
    session: Arc<Session>,
}

/// Parameters: `null` leaves it to the file and its names.
#[derive(Deserialize)]
struct Parameters {
    meaning: Option<Meaning>,
}

impl Interpret {
    pub(crate) fn new(session: Arc<Session>) -> Self {
        Self { session }
    }
}

impl Handler for Interpret {
    type Work = Option<Meaning>;

    fn name(&self) -> &'static str {
        ops::INTERPRET
    }

    fn is_passed_on(&self) -> bool {
        false
    }

    fn begin(&self, parameters: Bytes) -> Result<Begun<Option<Meaning>>> {
        let Parameters { meaning } = serde_json::from_slice(&parameters)
            .map_err(|e| Error::invalid(format!("expected parameters of `interpret` in JSON: {e}")))?;
        if matches!(meaning, Some(Meaning::Text | Meaning::Colors)) {
            return Err(Error::invalid(
                "expected `intensity`, `labels` or null as meaning, found another one",
            ));
        }
        Ok(Begun::Work(meaning))
    }

    async fn run(&self, meaning: Option<Meaning>, call: &Call) -> Result<()> {
        let all = call.node.exports.all();
        let [export] = &*all else {
            return Err(Error::unsupported("expected a server of one data set, found several"));
        };
        export.interpret(meaning).await?;
        self.session.describe_again();
        Ok(())
    }
}
