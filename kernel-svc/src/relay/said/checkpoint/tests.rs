use atelier_proto::{
    kernel::v1::{
        EdgeStatus, EdgeUpdate, GenerationComplete, JobEvent, JobStatus, JobUpdate, LogUpdate, NodeStatus,
        NodeUpdate, OutputUpdate, Prediction, job_event::Event as Frame,
    },
    tracker::v1::Generation,
};
use proptest::prelude::*;

use super::*;

fn event(frame: Frame) -> JobEvent {
    JobEvent {
        event: Some(frame),
        ..JobEvent::default()
    }
}
/// One of some events that a few nodes may say.
fn said(kind: u8, node: u8, number: u8) -> JobEvent {
    let (node_id, content) = (format!("n{node}"), format!("t{number}"));
    event(match kind {
        0 => Frame::JobUpdate(JobUpdate {
            status: if number == 0 {
                JobStatus::Suspended.into()
            } else {
                JobStatus::Running.into()
            },
            ..JobUpdate::default()
        }),
        1 => {
            let statuses = [NodeStatus::Running, NodeStatus::Completed, NodeStatus::Warning];
            Frame::NodeUpdate(NodeUpdate {
                node_id,
                status: statuses[usize::from(number % 3)].into(),
                error: Some(content),
                ..NodeUpdate::default()
            })
        }
        2 => Frame::GenerationComplete(GenerationComplete {
            node_id,
            ..GenerationComplete::default()
        }),
        3 => Frame::OutputUpdate(OutputUpdate {
            node_id,
            output_name: content,
            ..OutputUpdate::default()
        }),
        4 => {
            let statuses = [EdgeStatus::Active, EdgeStatus::Completed, EdgeStatus::Drained];
            Frame::EdgeUpdate(EdgeUpdate {
                edge_id: node_id,
                status: statuses[usize::from(number % 3)].into(),
                counter: Some(i64::from(number)),
            })
        }
        5 => Frame::LogUpdate(LogUpdate {
            node_id,
            content,
            ..LogUpdate::default()
        }),
        _ => Frame::Prediction(Prediction {
            generation: Some(Generation {
                generation_id: node_id,
                status: i32::from(number),
                ..Generation::default()
            }),
            ..Prediction::default()
        }),
    })
}
proptest! {
    #[test]
    fn checkpoints_of_a_log_are_the_log(
        events in prop::collection::vec((0..7_u8, 0..3_u8, 0..4_u8), 0..60),
        lengths in prop::collection::vec(1..9_usize, 1..60),
    ) {
        let events: Vec<JobEvent> =
            events.into_iter().map(|(kind, node, number)| said(kind, node, number)).collect();
        let mut whole = Said::default();
        events.iter().for_each(|event| whole.note(event));
        let (mut folded, mut rest) = (Said::default(), events.as_slice());
        for length in lengths {
            let (stretch, after) = rest.split_at(length.min(rest.len()));
            let mut part = Said::default();
            stretch.iter().for_each(|event| part.note(event));
            folded = folded.then(Said::decode(&part.encode()).unwrap());
            rest = after;
        }
        let mut last = Said::default();
        rest.iter().for_each(|event| last.note(event));
        prop_assert_eq!(folded.then(last), whole);
    }
}
#[test]
fn a_checkpoint_weighs_what_its_events_are_and_not_what_the_run_is() {
    let mut since = Said::default();
    let (mut due, mut largest) = (Vec::new(), 0);
    for number in 0..60_000_i64 {
        // The worst: each event says something that no other said, at length.
        since.note(&event(Frame::LogUpdate(LogUpdate {
            node_id: "n".to_owned(),
            content: format!("{number} {}", "long ".repeat(100)),
            ..LogUpdate::default()
        })));
        if let Some(checkpoint) = since.checkpoint(number + 1) {
            largest = largest.max(checkpoint.state.len());
            due.push(checkpoint.seq);
            assert_eq!(since, Said::default(), "what is held begins with nothing");
        }
    }
    let every: Vec<i64> = (1..=12).map(|times| times * 5_000).collect();
    assert_eq!(due, every);
    assert!(largest < EVENTS * 20, "{largest}");
}
#[test]
fn what_is_no_checkpoint_is_damaged() {
    let saved = Saved {
        lines: vec![0; 17],
        ..Saved::default()
    };
    for state in [vec![0xff], saved.encode_to_vec()] {
        assert!(matches!(Said::decode(&state), Err(Error::DamagedLog)));
    }
}
