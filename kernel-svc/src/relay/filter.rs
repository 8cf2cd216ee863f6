//! What subscribers see: nothing of constants and inputs, display values only where somebody shows them, and no more than
//! the run asked for.

use atelier_proto::kernel::v1::{EventDetail, NodeStatus, RunOptions, job_event::Event as Frame};

use crate::{
    event::{Event, NodeLabel},
    node::Registry,
};

/// Whether an event is for subscribers at all.
pub(super) fn passes(event: &Event, registry: &Registry) -> bool {
    match event {
        Event::Job { .. }
        | Event::Queued { .. }
        | Event::Edge { .. }
        | Event::Note { .. }
        | Event::Frames { .. }
        | Event::Supervision { .. } => true,
        Event::Node { node, .. } | Event::Artifact { node, .. } => !is_source(node),
        Event::Output { node, .. } => !is_source(node) && is_shown(node, registry),
    }
}
/// Constants and inputs: their values are in the graph or with the client.
fn is_source(node: &NodeLabel) -> bool {
    node.node_type.starts_with("nodetool.constant.") || node.node_type.starts_with("nodetool.input.")
}
/// Display sinks, and nodes that stream or keep what they make.
fn is_shown(node: &NodeLabel, registry: &Registry) -> bool {
    node.node_type.contains("Output")
        || node.node_type.ends_with(".Preview")
        || registry.meta(&node.node_type).is_none_or(|meta| {
            meta.auto_save_asset
                || meta.streaming_output.unwrap_or(false)
                || meta.streaming_input.unwrap_or(false)
                || meta.always_emit_output_updates
        })
}
/// Whether the run's subscribers asked for a frame.
pub(super) fn detail_allows(frame: &Frame, options: &RunOptions) -> bool {
    let terminal_only = match options.event_detail() {
        EventDetail::Unspecified | EventDetail::Full => return true,
        EventDetail::Outputs => false,
        EventDetail::Terminal => true,
    };
    match frame {
        Frame::JobUpdate(_) | Frame::Gap(_) => true,
        Frame::NodeUpdate(update) => update.status() == NodeStatus::Error,
        Frame::GenerationComplete(_) | Frame::EdgeUpdate(_) => false,
        Frame::OutputUpdate(_)
        | Frame::NodeProgress(_)
        | Frame::LogUpdate(_)
        | Frame::Prediction(_)
        | Frame::Chunk(_) => !terminal_only,
        // Whoever has to answer must hear the question.
        Frame::SupervisorEscalation(_) | Frame::SupervisorDecision(_) => true,
    }
}
