//! The stream to the ledger: this process's lease on the rows that it drives, and the way cancels, jobs to take up and due
//! bills come to it.
//!
//! Hello, a heartbeat every ten seconds, goodbye at the end. The stream is opened again when it breaks, with pauses that
//! grow; whenever it stands, what the spool holds is delivered.

use std::time::Duration;

use atelier_common::backoff::Exponential;
use atelier_common::health::{Gate, Health};
use atelier_common::identity::Caller;
use atelier_common::tasks::Tasks;
use atelier_proto::tracker::v1::{
    FollowRequest, FollowResponse, Goodbye, Heartbeat, Hello, Resumed, follow_request, follow_response,
};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};

use crate::seam::Seam;

/// Time between heartbeats.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// Messages that may wait to go up: more than the ledger orders at a time.
const UPWARD: usize = 512;
/// The health gate of the stream.
const GATE: &str = "ledger";
/// How long the goodbye may take.
const GOODBYE_LIMIT: Duration = Duration::from_secs(2);

/// Follows the ledger until told to stop.
pub struct Follower {
    /// Whose calls are to be cancelled.
    pub seam: Seam,
    /// Where to say whether the ledger can be reached.
    pub health: Health,
    /// Tells when the process goes down, and the ledger's end of the stream with it.
    pub tasks: Tasks,
    /// Whether leases of earlier instances are dead.
    pub sole_process: bool,
    /// Whether the process is not ready while the ledger cannot be reached.
    pub required: bool,
}

impl Follower {
    /// Holds the stream until `stop` is tripped, then says goodbye.
    pub async fn run(&self, stop: &CancellationToken) {
        self.gate("connecting");
        let schedule = Exponential::new(Duration::from_millis(100), Duration::from_secs(5));
        let mut pauses = schedule.iter();
        loop {
            let mut stood = false;
            match self.once(stop, &mut stood).await {
                Ok(()) if stop.is_cancelled() => return,
                // A ledger in the same process goes down too; the lease lasts longer than what is left to do.
                Ok(()) | Err(_) if self.tasks.stopping() => return stop.cancelled().await,
                Ok(()) => tracing::warn!("the ledger closed the stream"),
                Err(status) => tracing::warn!(code = ?status.code(), "the stream to the ledger broke"),
            }
            if stood {
                pauses = schedule.iter();
            }
            self.gate("reconnecting");
            let pause = pauses.next().unwrap_or_default();
            if stop
                .run_until_cancelled(tokio::time::sleep(pause))
                .await
                .is_none()
            {
                return;
            }
        }
    }

    fn gate(&self, reason: &str) {
        if self.required {
            self.health.set(GATE, Gate::NotReady(reason.to_owned()));
        }
    }

    /// Holds one stream to its end. Says in `stood` whether the ledger ever answered on it.
    async fn once(&self, stop: &CancellationToken, stood: &mut bool) -> Result<(), Status> {
        // A hello, a heartbeat, a goodbye, and the answers to one heartbeat's orders.
        let (up, outbound) = mpsc::channel(UPWARD);
        let ledger = self.seam.ledger();
        let hello = Hello {
            instance_id: ledger.instance().to_string(),
            service: "provider-svc".to_owned(),
            sole_process: self.sole_process,
            providers: self.seam.directory().seats(),
        };
        send(&up, follow_request::Message::Hello(hello)).await?;
        let outbound = ReceiverStream::new(outbound);
        let request = ledger.stream_request(outbound, &service());
        let mut down = ledger.client().follow(request).await?.into_inner();
        let mut beat = interval(HEARTBEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        beat.tick().await;
        let mut sequence = 0;
        loop {
            tokio::select! {
                message = down.message() => match message? {
                    None => return Ok(()),
                    Some(message) => {
                        *stood = true;
                        self.obey(message, &up);
                    }
                },
                _ = beat.tick() => {
                    sequence += 1;
                    send(&up, follow_request::Message::Heartbeat(Heartbeat { sequence })).await?;
                }
                () = stop.cancelled() => {
                    send(&up, follow_request::Message::Goodbye(Goodbye {})).await?;
                    drop(up);
                    let _ = tokio::time::timeout(GOODBYE_LIMIT, until_closed(&mut down)).await;
                    return Ok(());
                }
            }
        }
    }

    fn obey(&self, message: FollowResponse, up: &mpsc::Sender<FollowRequest>) {
        match message.message {
            Some(follow_response::Message::HeartbeatAck(ack)) => {
                if ack.sequence == 0 {
                    tracing::info!("the ledger gave the lease");
                }
                self.health.set(GATE, Gate::Ready);
                self.seam.ledger().spool().kick();
            }
            Some(follow_response::Message::CancelOrder(order)) => {
                if let Ok(id) = order.generation_id.parse() {
                    let aborted = self.seam.registry().trip_by_order(id);
                    tracing::debug!(
                        generation_id = order.generation_id,
                        aborted,
                        "the ledger orders a cancel"
                    );
                }
            }
            Some(follow_response::Message::ResumeOrder(order)) => {
                let Some(generation) = &order.generation else {
                    return;
                };
                let resumed = Resumed {
                    generation_id: generation.generation_id.clone(),
                    epoch: generation.owner_epoch,
                };
                if self.seam.take_up(order) {
                    let message = Some(follow_request::Message::Resumed(resumed));
                    // No room, no answer: the order comes again with the next heartbeat.
                    let _ = up.try_send(FollowRequest { message });
                }
            }
            Some(follow_response::Message::ReconcileOrder(order)) => self.seam.look_for_bill(order),
            None => {}
        }
    }
}

/// Delivers what the spool holds, until told to stop: after the last call has ended, as calls fill the spool.
pub async fn deliver(seam: &Seam, stop: &CancellationToken) {
    let schedule = Exponential::new(Duration::from_millis(200), Duration::from_secs(10));
    let mut pauses = schedule.iter();
    while !stop.is_cancelled() {
        let ledger = seam.ledger();
        let pause = if ledger.spool().is_empty() {
            None
        } else {
            // The ledger takes a write twice as once, so a delivery may be cut.
            match stop.run_until_cancelled(ledger.deliver()).await {
                None => break,
                Some(true) => {
                    tracing::info!("the ledger has been told everything");
                    pauses = schedule.iter();
                    None
                }
                Some(false) => pauses.next(),
            }
        };
        let wait = async {
            match pause {
                Some(pause) => tokio::time::timeout(pause, ledger.spool().filled())
                    .await
                    .unwrap_or_default(),
                None => ledger.spool().filled().await,
            }
        };
        if stop.run_until_cancelled(wait).await.is_none() {
            break;
        }
    }
    // One last try; what is left is on disk.
    let _ = tokio::time::timeout(Duration::from_secs(2), seam.ledger().deliver()).await;
}

/// The caller of what a service does on its own account.
fn service() -> Caller {
    Caller::new("provider-svc", ["service"])
}

async fn send(up: &mpsc::Sender<FollowRequest>, message: follow_request::Message) -> Result<(), Status> {
    let message = FollowRequest {
        message: Some(message),
    };
    up.send(message)
        .await
        .map_err(|_| Status::unavailable("the stream to the ledger is closed"))
}

async fn until_closed(down: &mut Streaming<FollowResponse>) {
    while let Ok(Some(_)) = down.message().await {}
}
