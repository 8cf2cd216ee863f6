//! Node types and models: what workflows can be made of.

use atelier_proto::common::v1::Value as ValueMessage;
use atelier_proto::kernel::v1;
use atelier_proto::provider::v1::Model as ModelMessage;
use atelier_proto::value::{BytesForm, to_json};
use serde::Serialize;
use serde_json::Value as Json;
use utoipa::ToSchema;

use crate::wire::value;

/// What a node type takes and gives.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NodeType {
    /// The dotted type.
    #[schema(example = "nodetool.image.TextToImage")]
    node_type: String,
    /// Title for people.
    title: String,
    /// What it does.
    description: String,
    /// The part of the type before the last dot.
    namespace: String,
    /// Its inputs.
    properties: Vec<Property>,
    /// Its outputs.
    outputs: Vec<Output>,
    /// It drains its own inbox.
    is_streaming_input: bool,
    /// It yields frames.
    is_streaming_output: bool,
    /// It is run by control events.
    is_controlled: bool,
    /// It may take inputs of unrelated iterations.
    is_join: bool,
    /// Unknown properties become inputs.
    is_dynamic: bool,
    /// Its artifacts are saved as assets.
    auto_save_asset: bool,
    /// Its main output.
    #[schema(required)]
    primary_output: Option<String>,
    /// Secrets it needs.
    required_settings: Vec<String>,
    /// Outputs may be added by the user.
    supports_dynamic_outputs: bool,
    /// It runs, and new workflows should not use it.
    deprecated: bool,
    /// The type that does its work today.
    #[schema(required)]
    replaced_by: Option<String>,
    /// What runs it: `built_in`, `provider` (a call of a provider's model), or `connector` (a worker that declares it).
    #[schema(example = "built_in")]
    runner: &'static str,
}

/// One input of a node type.
#[derive(Debug, Serialize, ToSchema)]
struct Property {
    /// Its name.
    name: String,
    /// Its type, for instance `list[str]`.
    #[serde(rename = "type")]
    kind: String,
    /// Its value when nothing is given.
    #[schema(required, value_type = Option<Object>)]
    default: Json,
    /// Whether a value must be given.
    required: bool,
    /// What it means.
    description: String,
    /// Smallest value.
    #[schema(required)]
    min: Option<f64>,
    /// Largest value.
    #[schema(required)]
    max: Option<f64>,
    /// The allowed values, when they are few.
    #[schema(required, value_type = Option<Vec<Object>>)]
    values: Option<Vec<Json>>,
}

/// One output of a node type.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = NodeOutput)]
struct Output {
    /// Its name.
    name: String,
    /// Its type.
    #[serde(rename = "type")]
    kind: String,
    /// Whether it comes in pieces.
    stream: bool,
}

fn json(value: Option<ValueMessage>) -> Json {
    to_json(&value::value_for(value, ""), BytesForm::Tagged)
}

impl From<v1::Property> for Property {
    fn from(property: v1::Property) -> Self {
        let v1::Property {
            name,
            r#type,
            default_value,
            required,
            description,
            min,
            max,
            values,
        } = property;
        let values: Vec<_> = values.into_iter().map(|value| json(Some(value))).collect();
        Self {
            name,
            kind: r#type,
            default: json(default_value),
            required,
            description,
            min,
            max,
            values: Some(values).filter(|values| !values.is_empty()),
        }
    }
}

impl From<v1::NodeType> for NodeType {
    fn from(node: v1::NodeType) -> Self {
        let v1::NodeType {
            node_type,
            title,
            description,
            namespace,
            properties,
            outputs,
            streaming_input,
            streaming_output,
            controlled,
            join,
            dynamic_inputs,
            auto_save_asset,
            primary_output,
            required_settings,
            dynamic_outputs,
            deprecated,
            replaced_by,
            runner,
        } = node;
        let runner = match v1::NodeRunner::try_from(runner).unwrap_or_default() {
            v1::NodeRunner::Provider => "provider",
            v1::NodeRunner::Connector => "connector",
            v1::NodeRunner::BuiltIn | v1::NodeRunner::Unspecified => "built_in",
        };
        let outputs = outputs.into_iter().map(|output| {
            let v1::Output { name, r#type, stream } = output;
            Output {
                name,
                kind: r#type,
                stream,
            }
        });
        Self {
            node_type,
            title,
            description,
            namespace,
            properties: properties.into_iter().map(Into::into).collect(),
            outputs: outputs.collect(),
            is_streaming_input: streaming_input,
            is_streaming_output: streaming_output,
            is_controlled: controlled,
            is_join: join,
            is_dynamic: dynamic_inputs,
            auto_save_asset,
            primary_output: super::text(primary_output),
            required_settings,
            supports_dynamic_outputs: dynamic_outputs,
            deprecated,
            replaced_by: super::text(replaced_by),
            runner,
        }
    }
}

/// A model of a provider.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Model {
    /// The provider.
    provider: String,
    /// The provider's name of it.
    model: String,
    /// Name for people.
    name: String,
    /// What it can do.
    capabilities: Vec<String>,
    /// What one unit costs, for people; null when that is not known.
    #[schema(required, example = "0.04 USD / image")]
    price: Option<String>,
    /// Whether it can be called, that is, has what it needs.
    available: bool,
    /// What is missing when it cannot.
    #[schema(required)]
    unavailable_reason: Option<String>,
}

impl From<ModelMessage> for Model {
    fn from(model: ModelMessage) -> Self {
        let ModelMessage {
            provider,
            model,
            name,
            capabilities,
            price,
            available,
            unavailable_reason,
        } = model;
        Self {
            provider,
            model,
            name,
            capabilities,
            price: super::text(price),
            available,
            unavailable_reason: super::text(unavailable_reason),
        }
    }
}
