//! Types that read an iteration to its end and give one value for each parent item: a list, a number, the last item.

use async_trait::async_trait;
use atelier_proto::value::{Map, Value};

use crate::{
    node::{Context, Executor, NodeError, Offers},
    nodes::{
        args::{Args, count, one},
        code::{Types, factory},
    },
    run::{Envelope, Inputs, Outputs},
};

const INPUT: &str = "input_item";

/// All types of this part.
pub(super) fn types() -> Types {
    let list = |items: Vec<Envelope>| Some(Value::list(items.into_iter().map(|item| item.value).collect()));
    vec![
        ("nodetool.control.Collect", factory(Gather { result: list })),
        (
            "nodetool.control.Count",
            factory(Gather {
                result: |items| Some(count(items.len())),
            }),
        ),
        (
            "nodetool.control.Last",
            factory(Gather {
                result: |items| items.into_iter().last().map(|item| item.value),
            }),
        ),
    ]
}

/// One result for each group; none when the function says so.
#[derive(Clone, Copy)]
struct Gather {
    result: fn(Vec<Envelope>) -> Option<Value>,
}
#[async_trait]
impl Executor for Gather {
    fn offers(&self) -> Offers {
        Offers {
            stream: false,
            run: true,
        }
    }
    /// Called as a whole, the items are those of the list that is given.
    async fn process(&mut self, inputs: Map, _ctx: &Context) -> Result<Map, NodeError> {
        let items = Args(&inputs).list(INPUT).into_iter();
        let items = items
            .map(|value| Envelope {
                value,
                ..Envelope::default()
            })
            .collect();
        Ok((self.result)(items)
            .map(|value| one("output", value))
            .unwrap_or_default())
    }
    async fn run(
        &mut self,
        inputs: &mut Inputs<'_>,
        outputs: &mut Outputs<'_>,
        _ctx: &Context,
    ) -> Result<(), NodeError> {
        while let Some(mut group) = inputs.next_group(INPUT).await {
            let items = std::mem::take(&mut group.items);
            if let Some(value) = (self.result)(items) {
                outputs.finish_group(&group, "output", value).await?;
            }
        }
        Ok(())
    }
}
