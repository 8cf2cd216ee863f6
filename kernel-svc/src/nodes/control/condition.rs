//! Types that let items through by a condition, such as `item > 3` or `name.startsWith('a') and size < 10`.

use async_trait::async_trait;
use atelier_proto::value::{Map, Value};

use crate::{
    node::{Context, Executor, NodeError, Offers},
    nodes::{
        args::{Args, one, type_of},
        code::{Types, factory},
        table::Condition,
    },
    run::{Inputs, Outputs},
};

const INPUT: &str = "input_item";
const PREDICATE: &str = "predicate";

/// All types of this part.
pub(super) fn types() -> Types {
    vec![
        (
            "nodetool.control.DropWhile",
            factory(Conditional(Rule::DropWhile)),
        ),
        ("nodetool.control.FilterCode", factory(Conditional(Rule::Filter))),
        (
            "nodetool.control.TakeWhile",
            factory(Conditional(Rule::TakeWhile)),
        ),
    ]
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    DropWhile,
    Filter,
    TakeWhile,
}
#[derive(Clone, Copy)]
struct Conditional(Rule);

/// What decides about the items: the condition, and whether it has once been broken.
struct Gate {
    rule: Rule,
    condition: Condition,
    broken: bool,
}
impl Gate {
    fn new(rule: Rule, args: Args<'_>) -> Result<Self, NodeError> {
        let default = if rule == Rule::DropWhile { "false" } else { "true" };
        let text = args.text_or(PREDICATE, default);
        let text = text.trim().trim_start_matches("return ").trim_end_matches(';');
        Ok(Self {
            rule,
            condition: Condition::read(PREDICATE, text)?,
            broken: false,
        })
    }
    /// Whether nothing passes any more.
    fn is_shut(&self) -> bool {
        self.rule == Rule::TakeWhile && self.broken
    }
    fn lets(&mut self, item: &Value) -> Result<bool, NodeError> {
        if self.broken {
            return Ok(self.rule == Rule::DropWhile);
        }
        for name in self.condition.names() {
            if !is_known(item, name) {
                let text = format!(
                    "the input `{PREDICATE}` names `{name}`: the item is called `item`, its fields by their names, \
                     and this one is {}",
                    type_of(item)
                );
                return Err(NodeError::new(text).code("input.value"));
            }
        }
        let holds = self.condition.holds(&|name: &str| named(item, name));
        self.broken = !holds && self.rule != Rule::Filter;
        Ok(match self.rule {
            Rule::DropWhile => !holds,
            Rule::Filter | Rule::TakeWhile => holds,
        })
    }
}
/// Names of the item itself.
fn is_item(name: &str) -> bool {
    matches!(name, "item" | "value" | "x" | "input_item")
}
/// Fields of an object may be left out in some items.
fn is_known(item: &Value, name: &str) -> bool {
    is_item(name) || matches!(item, Value::Map(_))
}
fn named(item: &Value, name: &str) -> Value {
    match item {
        Value::Map(map) if map.contains_key(name) => map.get(name).cloned().unwrap_or_default(),
        item if is_item(name) => item.clone(),
        _ => Value::Null,
    }
}

#[async_trait]
impl Executor for Conditional {
    fn offers(&self) -> Offers {
        Offers {
            stream: false,
            run: true,
        }
    }
    async fn process(&mut self, inputs: Map, _ctx: &Context) -> Result<Map, NodeError> {
        let args = Args(&inputs);
        let item = args.value(INPUT);
        let passes = inputs.contains_key(INPUT) && Gate::new(self.0, args)?.lets(&item)?;
        Ok(if passes { one("output", item) } else { Map::new() })
    }
    async fn run(
        &mut self,
        inputs: &mut Inputs<'_>,
        outputs: &mut Outputs<'_>,
        _ctx: &Context,
    ) -> Result<(), NodeError> {
        let given = if inputs.is_connected(PREDICATE) {
            inputs.first(PREDICATE).await
        } else {
            inputs.property(PREDICATE).cloned()
        };
        let settings = one(PREDICATE, given.unwrap_or_default());
        let mut gate = Gate::new(self.0, Args(&settings))?;
        let mut completed = false;
        while let Some(item) = inputs.next(INPUT).await {
            if completed {
                continue;
            }
            if gate.lets(&item.value)? {
                outputs.forward("output", &item).await?;
            } else if gate.is_shut() {
                completed = true;
                outputs.complete("output");
            } else {
                outputs.drop("output", &item);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value as Json, json};

    use crate::nodes::testing::process;

    #[rstest]
    #[case("FilterCode", json!({"input_item": 5, "predicate": "item > 3"}), json!({"output": 5}))]
    #[case("FilterCode", json!({"input_item": 2, "predicate": "return item > 3;"}), json!({}))]
    #[case("FilterCode", json!({"input_item": {"a": "xy"}, "predicate": "a.length == 2 && !missing"}), json!({"output": {"a": "xy"}}))]
    #[case("FilterCode", json!({"input_item": {"a": 1}, "predicate": "item.a == 1"}), json!({"output": {"a": 1}}))]
    #[case("FilterCode", json!({"input_item": 1}), json!({"output": 1}))]
    #[case("DropWhile", json!({"input_item": 1}), json!({"output": 1}))]
    #[case("TakeWhile", json!({"input_item": 9, "predicate": "x < 5"}), json!({}))]
    #[tokio::test]
    async fn items_pass_by_a_condition(#[case] name: &str, #[case] inputs: Json, #[case] expected: Json) {
        let out = process(&format!("nodetool.control.{name}"), inputs)
            .await
            .expect("outputs");
        assert_eq!(out, expected);
    }

    #[rstest]
    #[case("item >", "`predicate` is no condition")]
    #[case("a > 1", "`predicate` names `a`")]
    #[case("process.exit(1)", "`predicate`")]
    #[tokio::test]
    async fn conditions_are_judged(#[case] predicate: &str, #[case] part: &str) {
        let inputs = json!({"input_item": 1, "predicate": predicate});
        let error = process("nodetool.control.FilterCode", inputs)
            .await
            .expect_err("a fault");
        assert!(error.message.contains(part), "{}", error.message);
    }
}
