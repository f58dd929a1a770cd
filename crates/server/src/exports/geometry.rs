//! Geometry beside the data sets that a node serves.

use std::sync::Arc;

use array::{Error, ErrorKind, Result, Urgency};
use bytes::Bytes;
use client::upstream::ask_one;
use wire::ops::{GeometryBody, GeometryParameters};

use super::{Export, Exports};
use crate::geometry_origin::read_beside;

impl Exports {
    /// Returns a piece of a file of geometry beside a data set: from the folder of the data set if a folder that holds it is
    /// served, or from the server that has the data.
    ///
    /// # Errors
    /// `Denied` for data sets that are served by themselves; the errors of [`read_beside`] and of the other server.
    pub(crate) async fn geometry(
        &self,
        asked: &GeometryParameters,
        urgency: Urgency,
    ) -> Result<(GeometryBody, Bytes)> {
        let (stack, _) = self.at(&asked.place).await?;
        let is_own = |export: &&Arc<Export>| export.open_stack().is_some_and(|own| Arc::ptr_eq(&own, &stack));
        let all = self.all();
        let served = all.iter().find(is_own).and_then(|export| {
            let root = &export.lazy.as_ref()?.root;
            Some(export.path()?.parent()?.to_owned()).filter(|folder| folder.starts_with(root))
        });
        if let Some(folder) = served {
            return read_beside(folder, asked.name.clone(), asked.offset_bytes).await;
        }
        let (remotes, place) = stack.upstream.computing(&asked.place).await?;
        let there = GeometryParameters { place, ..asked.clone() };
        ask_one(&remotes, &there, urgency).await.unwrap_or_else(|| {
            Err(Error::new(
                ErrorKind::Denied,
                format!(
                    "expected data of a served folder for the geometry `{}`, found a file that is served by itself: serve its \
                     folder, with `corridor serve FOLDER`",
                    asked.name
                ),
            ))
        })
    }
}
