//! Charts of tables: lines, areas, points, bars, histograms and pies, drawn as pictures.
//!
//! What lives here: reading a chart's settings (`data`), and drawing it (`draw`). Kinds of charts of statistics are drawn as
//! the nearest of those. What does not live here: tables, and text (`image/text`).

mod data;
mod draw;
mod ink;

#[cfg(test)]
mod tests;

use async_trait::async_trait;
use atelier_proto::value::Map;

use super::{
    args::one,
    code::{Types, factory},
    image::encode,
    media_io::{Params, work},
};
use crate::node::{Context, Executor, NodeError};

/// All types of this family.
pub(super) fn types() -> Types {
    vec![("lib.charts.ChartRenderer", factory(Render))]
}

#[derive(Clone, Copy)]
struct Render;
#[async_trait]
impl Executor for Render {
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        let params = Params::new(ctx, inputs);
        let output = work(ctx, move |stop| {
            let chart = data::chart(&params)?;
            stop.check()?;
            encode(&draw::draw(&chart, stop)?)
        });
        Ok(one("output", output.await?))
    }
}
