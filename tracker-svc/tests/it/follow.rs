//! The stream of a driver: its lease, and what is ordered over it.

use std::time::Duration;

use atelier_proto::reason;
use atelier_proto::tracker::v1::{self, GenerationStatus as Is, follow_request::Message};
use tonic::Code;

use crate::stack::{Stack, refused};

pub async fn a_hello_is_answered_with_the_lease(stack: Stack) {
    let mut driver = stack.user("u1").follow().await;
    for sequence in 1..4 {
        assert_eq!(driver.beat(sequence).await, sequence);
    }
    driver.goodbye().await;
}

pub async fn the_first_message_has_to_be_hello(stack: Stack) {
    let u1 = stack.user("u1");
    let mut driver = u1.connect().await;
    driver
        .say(Message::Heartbeat(v1::Heartbeat { sequence: 1 }))
        .await;
    refused(driver.next().await, Code::InvalidArgument, reason::INVALID_FIELD);
    let mut driver = u1.connect().await;
    driver.say(Message::Hello(v1::Hello::default())).await;
    refused(driver.next().await, Code::InvalidArgument, reason::INVALID_FIELD);
}

pub async fn a_goodbye_ends_the_lease_at_once(stack: Stack) {
    let u1 = stack.user("u1");
    let driver = u1.follow().await;
    let id = u1.submitted().await;
    assert_eq!(u1.sweep().await, 0);
    driver.goodbye().await;
    assert_eq!(u1.sweep().await, 1);
    assert_eq!(u1.get(&id).await.status(), Is::Interrupted);
}

pub async fn a_broken_stream_leaves_the_lease_to_run_out(stack: Stack) {
    let u1 = stack.user("u1");
    let driver = u1.follow().await;
    let id = u1.submitted().await;
    driver.hang_up().await;
    assert_eq!(u1.sweep().await, 0);
    // It comes back in time, and nothing was lost.
    stack.r1.time.advance(Duration::from_secs(40));
    let driver = u1.follow().await;
    stack.r1.time.advance(Duration::from_secs(40));
    assert_eq!(u1.sweep().await, 0);
    driver.hang_up().await;
    stack.r1.time.advance(Duration::from_secs(6));
    assert_eq!(u1.sweep().await, 1);
    assert_eq!(u1.get(&id).await.status(), Is::Interrupted);
}

pub async fn a_sole_process_ends_all_other_leases(stack: Stack) {
    let u1 = stack.user("u1");
    let before = u1.follow().await;
    let old = u1.submitted().await;
    let again = u1.driven_by("i2");
    let _after = again.follow_as(true).await;
    // Swept before the answer to the hello, without waiting for anything to run out.
    assert_eq!(u1.get(&old).await.status(), Is::Interrupted);
    let young = again.submitted().await;
    assert_eq!(u1.sweep().await, 0);
    assert_eq!(u1.get(&young).await.status(), Is::Running);
    drop(before);
}

pub async fn a_forgotten_instance_is_told_so(stack: Stack) {
    let u1 = stack.user("u1");
    let mut driver = u1.follow().await;
    stack.r1.time.advance(Duration::from_secs(46));
    u1.sweep().await;
    driver
        .say(Message::Heartbeat(v1::Heartbeat { sequence: 1 }))
        .await;
    refused(driver.next().await, Code::Aborted, reason::FENCED);
    // With another hello it may drive again.
    let _driver = u1.follow().await;
    u1.submitted().await;
    assert_eq!(u1.sweep().await, 0);
}

pub async fn cancels_that_were_missed_come_with_the_next_stream(stack: Stack) {
    let u1 = stack.user("u1");
    let driver = u1.follow().await;
    let id = u1.submitted().await;
    driver.hang_up().await;
    u1.cancel(&id).await;
    let mut driver = u1.follow().await;
    assert_eq!(driver.order().await, id);
    // The end of the row's work is knowledge enough.
    u1.complete(&id).await.unwrap();
    driver.beat(1).await;
    driver.orders.clear();
    driver.beat(2).await;
    driver.beat(3).await;
    assert!(driver.orders.is_empty());
}
