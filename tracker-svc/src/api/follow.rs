//! The stream between a driver and the ledger.

use std::pin::Pin;
use std::time::Duration;

use atelier_proto::time::proto_duration;
use atelier_proto::tracker::v1::{self, follow_request, follow_response};
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};

use super::parse;
use crate::error::Error;
use crate::follow::Following;

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
        let (_seat, mut orders) = following.hello(&driver.instance_id, &driver.service, driver.sole_process).await?;
        let lease = following.instances.lease();
        yield ack(0, lease);
        for generation_id in following.untold(&driver.instance_id).await? {
            yield order(generation_id);
        }
        loop {
            match next(&mut up, &mut orders, &stop).await {
                Event::Order(generation_id) => yield order(generation_id),
                Event::Message(Some(v1::FollowRequest { message: Some(message) })) => match message {
                    follow_request::Message::Heartbeat(v1::Heartbeat { sequence }) => {
                        following.instances.heartbeat(&driver.instance_id).await?;
                        yield ack(sequence, lease);
                        for generation_id in following.untold(&driver.instance_id).await? {
                            yield order(generation_id);
                        }
                    }
                    follow_request::Message::Goodbye(v1::Goodbye {}) => {
                        following.instances.goodbye(&driver.instance_id).await?;
                        tracing::info!(instance_id = driver.instance_id, "a driver said goodbye");
                        break;
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
    v1::FollowResponse {
        message: Some(follow_response::Message::HeartbeatAck(ack)),
    }
}

fn order(generation_id: String) -> v1::FollowResponse {
    let order = v1::CancelOrder { generation_id };
    v1::FollowResponse {
        message: Some(follow_response::Message::CancelOrder(order)),
    }
}
