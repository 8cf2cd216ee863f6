//! The stream between a driver and the ledger.

use std::pin::Pin;
use std::time::Duration;

use atelier_proto::time::proto_duration;
use atelier_proto::tracker::v1::{self, follow_request, follow_response};
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};

use super::{parse, render};
use crate::adopt::Resume;
use crate::error::Error;
use crate::follow::{Chores, Following};

/// What goes down.
pub(super) type Down = Pin<Box<dyn Stream<Item = Result<v1::FollowResponse, Status>> + Send>>;

enum Event {
    Order(String),
    Message(Option<v1::FollowRequest>),
    Broken,
    Draining,
}

/// Serves one driver until it says goodbye, its stream breaks, or this process stops. A broken stream leaves the lease
/// to run out; a driver that comes back in time has lost nothing.
pub(super) fn serve(
    following: Following,
    mut up: Streaming<v1::FollowRequest>,
    stop: CancellationToken,
) -> Down {
    Box::pin(async_stream::try_stream! {
        let first = up.message().await?;
        let driver = parse::hello(first)?;
        let resumable = driver.resumable();
        let (_seat, mut orders) = following.hello(&driver).await?;
        let lease = following.instances.lease();
        yield ack(0, lease);
        for chore in chores(following.chores(&driver, &resumable).await?)? {
            yield chore;
        }
        loop {
            match next(&mut up, &mut orders, &stop).await {
                Event::Order(generation_id) => yield order(generation_id),
                Event::Message(Some(v1::FollowRequest { message: Some(message) })) => match message {
                    follow_request::Message::Heartbeat(v1::Heartbeat { sequence }) => {
                        following.instances.heartbeat(&driver.instance_id).await?;
                        yield ack(sequence, lease);
                        for chore in chores(following.chores(&driver, &resumable).await?)? {
                            yield chore;
                        }
                    }
                    follow_request::Message::Goodbye(v1::Goodbye {}) => {
                        following.instances.goodbye(&driver.instance_id).await?;
                        tracing::info!(instance_id = driver.instance_id, "a driver said goodbye");
                        break;
                    }
                    follow_request::Message::Resumed(v1::Resumed { generation_id, epoch }) => {
                        following.adoption.resumed(&driver.instance_id, &generation_id, epoch).await?;
                    }
                    follow_request::Message::Hello(_) => {
                        Err(Error::invalid("message", "only the first one may be hello"))?;
                    }
                },
                // A message of a later version: whoever sent it is alive.
                Event::Message(Some(v1::FollowRequest { message: None })) => {
                    following.instances.heartbeat(&driver.instance_id).await?;
                }
                Event::Message(None) | Event::Broken => {
                    tracing::info!(instance_id = driver.instance_id, "the stream of a driver ended");
                    break;
                }
                Event::Draining => Err(Error::Draining)?,
            }
        }
    })
}

async fn next(
    up: &mut Streaming<v1::FollowRequest>,
    orders: &mut mpsc::Receiver<String>,
    stop: &CancellationToken,
) -> Event {
    tokio::select! {
        biased;
        () = stop.cancelled() => Event::Draining,
        order = orders.recv() => order.map_or(Event::Broken, Event::Order),
        message = up.message() => message.map_or(Event::Broken, Event::Message),
    }
}

fn ack(sequence: i64, lease: Duration) -> v1::FollowResponse {
    let ack = v1::HeartbeatAck {
        sequence,
        lease: Some(proto_duration(lease)),
    };
    down(follow_response::Message::HeartbeatAck(ack))
}

fn order(generation_id: String) -> v1::FollowResponse {
    down(follow_response::Message::CancelOrder(v1::CancelOrder {
        generation_id,
    }))
}

fn chores(chores: Chores) -> Result<Vec<v1::FollowResponse>, Error> {
    let Chores {
        cancels,
        resumes,
        bills,
    } = chores;
    let mut all: Vec<_> = cancels.into_iter().map(order).collect();
    for Resume { row, age } in resumes {
        let plan = row.generation.plan.clone().unwrap_or_default();
        all.push(down(follow_response::Message::ResumeOrder(v1::ResumeOrder {
            generation: Some(render::generation(row)?),
            plan,
            age: Some(proto_duration(age)),
        })));
    }
    for claimed in bills {
        let order = render::reconcile_order(claimed, false)?;
        all.push(down(follow_response::Message::ReconcileOrder(order)));
    }
    Ok(all)
}

fn down(message: follow_response::Message) -> v1::FollowResponse {
    v1::FollowResponse {
        message: Some(message),
    }
}
