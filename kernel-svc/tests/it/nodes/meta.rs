//! Declarations of the test node types (corpus section 3).

use std::{collections::BTreeMap, sync::OnceLock};

use atelier_kernel::node::{
    Correlation, CorrelationKind as Kind, InputMeta, InputMode, NodeMeta, OutputMeta,
};

const EXECUTION: &str = "__execution__";

fn meta(ty: &str, inputs: &[(&str, &str)], outputs: &[(&str, &str)]) -> NodeMeta {
    let input = |(name, ty): &(&str, &str)| InputMeta {
        name: (*name).into(),
        ty: (*ty).into(),
        ..InputMeta::default()
    };
    let output = |(name, ty): &(&str, &str)| OutputMeta {
        name: (*name).into(),
        ty: (*ty).into(),
        stream: false,
    };
    NodeMeta {
        node_type: ty.to_owned(),
        inputs: inputs.iter().map(input).collect(),
        outputs: outputs.iter().map(output).collect(),
        streaming_input: Some(false),
        streaming_output: Some(false),
        join: Some(false),
        ..NodeMeta::default()
    }
}
fn correlation(kind: Kind, source: &str, group: Option<&str>) -> Correlation {
    Correlation {
        kind,
        source: (!source.is_empty()).then(|| source.to_owned()),
        group: group.map(ToOwned::to_owned),
        collapse_innermost: kind == Kind::Aggregate,
    }
}
fn with(mut meta: NodeMeta, outputs: &[&str], rule: &Correlation) -> NodeMeta {
    let mut all: BTreeMap<String, Correlation> = std::mem::take(&mut meta.output_correlation);
    all.extend(outputs.iter().map(|name| ((*name).to_owned(), rule.clone())));
    meta.output_correlation = all;
    meta
}
fn streamed(meta: NodeMeta) -> NodeMeta {
    NodeMeta {
        streaming_output: Some(true),
        ..meta
    }
}
fn stream_input(meta: NodeMeta) -> NodeMeta {
    NodeMeta {
        streaming_input: Some(true),
        input_mode: Some(InputMode::Stream),
        ..meta
    }
}

/// All test node types.
pub fn metas() -> &'static [NodeMeta] {
    static ALL: OnceLock<Vec<NodeMeta>> = OnceLock::new();
    ALL.get_or_init(make)
}

fn make() -> Vec<NodeMeta> {
    let out: &[(&str, &str)] = &[("output", "any")];
    let mut all = Vec::new();
    for name in ["Value", "Double", "Bad", "EndlessFinalize"] {
        all.push(meta(&format!("nodetool.input.{name}"), &[], out));
    }
    for name in ["Pair", "Nothing"] {
        all.push(meta(
            &format!("nodetool.input.{name}"),
            &[],
            &[("a", "any"), ("b", "any")],
        ));
    }
    all.push(streamed(meta("nodetool.input.Stream", &[], out)));
    for ty in [
        "nodetool.constant.Value",
        "test.Const",
        "test.Pass",
        "test.Sink",
        "nodetool.output.Output",
        "test.Add",
        "test.Mul",
        "test.Concat",
        "test.Join",
        "test.Echo",
        "test.NullOut",
        "test.Empty",
        "test.FailOn",
        "test.Range",
        "test.Twice",
        "test.Len",
        "test.Panic",
        "test.Slow",
        "test.Stubborn",
        "test.PaidSlow",
        "test.Suspend",
        "test.BadInit",
        "test.BadFinalize",
        "test.EndlessFinalize",
        "test.Refuse",
        "test.LoseItem",
        "test.MissingRuntime",
    ] {
        all.push(meta(ty, &[], out));
    }
    for (name, ty) in [
        ("Int", "int"),
        ("Float", "float"),
        ("Str", "str"),
        ("ListStr", "list[str]"),
        ("Image", "image"),
    ] {
        all.push(meta(&format!("test.{name}Out"), &[], &[("output", ty)]));
        all.push(meta(&format!("test.{name}In"), &[("value", ty)], out));
    }
    all.push(meta("test.UnionIn", &[("value", "union[int, str]")], out));
    all.push(meta("test.AnyIn", &[("value", "any")], out));
    all.push(meta(
        "test.StrToImage",
        &[("text", "str")],
        &[("output", "image")],
    ));
    all.push(meta("test.Relay", &[], &[("value", "any"), ("text", "any")]));
    all.push(meta("test.Split", &[], &[("a", "any"), ("b", "any")]));
    all.push(NodeMeta {
        always_emit_output_updates: true,
        ..meta("test.SplitLive", &[], &[("a", "any"), ("b", "any")])
    });
    all.push(meta("test.Gate", &[], &[("yes", "any"), ("no", "any")]));
    all.push(meta("test.Gather", &[("items", "list[any]")], out));
    all.push(meta("test.GatherInt", &[("items", "list[int]")], out));
    all.push(meta("test.ControlOut", &[], &[("__control_output__", "any")]));
    all.push(meta("test.Controlled", &[], &[("result", "any")]));
    all.push(meta(
        "test.Caller",
        &[("value", "any")],
        &[("output", "any"), ("arg", "any")],
    ));
    all.push(meta("test.Variants", &[], &[("image", "any")]));
    all.push(meta(
        "nodetool.control.Loop",
        &[
            ("initial", "any"),
            ("next", "any"),
            ("condition", "any"),
            ("max_iterations", "int"),
        ],
        &[("value", "any"), ("index", "int"), ("done", "any")],
    ));
    for name in ["Less", "Append", "Resumable", "Big", "Block"] {
        all.push(meta(&format!("test.{name}"), &[], out));
    }
    let mut required = meta("test.Required", &[("value", "any")], out);
    required.inputs[0].required = true;
    all.push(required);
    all.extend(streams());
    all.extend(stream_inputs());
    all.extend(faulty());
    all
}

fn streams() -> Vec<NodeMeta> {
    let out: &[(&str, &str)] = &[("output", "any")];
    let ab: &[(&str, &str)] = &[("a", "any"), ("b", "any")];
    let items = correlation(Kind::Iteration, EXECUTION, Some("items"));
    let chunk = correlation(Kind::Chunk, EXECUTION, None);
    let each = streamed(meta("test.ForEach", &[], &[("output", "any"), ("index", "int")]));
    let artifacts = streamed(meta(
        "test.ArtifactFrames",
        &[],
        &[("image", "any"), ("note", "any")],
    ));
    vec![
        with(each, &["output", "index"], &items),
        with(streamed(meta("test.StreamN", &[], out)), &["output"], &items),
        with(
            streamed(meta("test.Chunks", &[], &[("chunk", "any")])),
            &["chunk"],
            &chunk,
        ),
        with(
            streamed(meta("test.ChunkNums", &[], &[("chunk", "any")])),
            &["chunk"],
            &chunk,
        ),
        streamed(meta("test.Raw", &[], out)),
        with(
            NodeMeta {
                trigger: true,
                ..streamed(meta("test.Trigger", &[], &[("value", "any"), ("other", "any")]))
            },
            &["value", "other"],
            &correlation(Kind::Iteration, EXECUTION, Some("events")),
        ),
        streamed(meta("test.BigStream", &[], out)),
        with(
            streamed(meta("test.Frames", &[], ab)),
            &["a", "b"],
            &correlation(Kind::Iteration, EXECUTION, Some("f")),
        ),
        streamed(meta("test.PlainFrames", &[], ab)),
        streamed(meta("test.Controller", &[], &[("__control__", "any")])),
        NodeMeta {
            artifact_outputs: vec!["image".to_owned()],
            ..artifacts
        },
    ]
}

fn stream_inputs() -> Vec<NodeMeta> {
    let out: &[(&str, &str)] = &[("output", "any")];
    let mut all = vec![stream_input(meta("test.Cap", &[], &[]))];
    for name in ["Collect", "Count", "SumAll", "Last"] {
        let meta = stream_input(meta(&format!("test.{name}"), &[], out));
        all.push(with(
            meta,
            &["output"],
            &correlation(Kind::Aggregate, "input_item", None),
        ));
    }
    for name in [
        "Filter",
        "Take",
        "Running",
        "Replay",
        "NullForward",
        "StreamFail",
        "LateEmit",
        "Bare",
        "SlowForward",
    ] {
        let meta = stream_input(meta(&format!("test.{name}"), &[], out));
        all.push(with(
            meta,
            &["output"],
            &correlation(Kind::Forward, "value", None),
        ));
    }
    for name in [
        "Accumulate",
        "LegacyStream",
        "Endless",
        "BFirst",
        "TwoSlots",
        "Hold",
    ] {
        all.push(stream_input(meta(&format!("test.{name}"), &[], out)));
    }
    for (name, slots, group) in [
        ("Zip", &["left", "right", "index"][..], "zip"),
        ("Cross", &["left", "right"][..], "cross"),
    ] {
        let outputs: Vec<(&str, &str)> = slots
            .iter()
            .map(|slot| (*slot, if *slot == "index" { "int" } else { "any" }))
            .collect();
        let meta = stream_input(meta(&format!("test.{name}"), &[], &outputs));
        let meta = NodeMeta {
            join: Some(true),
            ..meta
        };
        all.push(with(
            meta,
            slots,
            &correlation(Kind::Iteration, EXECUTION, Some(group)),
        ));
    }
    all
}

fn faulty() -> Vec<NodeMeta> {
    let out: &[(&str, &str)] = &[("output", "any")];
    let no_collapse = Correlation {
        collapse_innermost: false,
        ..correlation(Kind::Aggregate, "value", None)
    };
    vec![
        with(
            meta("test.BadAggregate", &[], out),
            &["output"],
            &correlation(Kind::Aggregate, "value", None),
        ),
        with(
            stream_input(meta("test.BadNoCollapse", &[], out)),
            &["output"],
            &no_collapse,
        ),
        with(
            meta("test.BadForward", &[], out),
            &["output"],
            &correlation(Kind::Forward, EXECUTION, None),
        ),
        with(
            meta("test.BadForwardList", &[("items", "list[any]")], out),
            &["output"],
            &correlation(Kind::Forward, "items", None),
        ),
        with(
            meta("test.BadNoSource", &[], out),
            &["output"],
            &correlation(Kind::Single, "", None),
        ),
        with(
            meta("test.Narrow", &[], out),
            &["output"],
            &correlation(Kind::Single, "outer", None),
        ),
    ]
}
