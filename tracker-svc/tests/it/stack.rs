//! The service under test, and users and drivers of it.

use std::time::Duration;

use atelier_common::channel::{self, Transport};
use atelier_common::component::{Component, Deps};
use atelier_common::db::{DbSettings, Synchronous};
use atelier_common::identity::{Caller, Signer};
use atelier_common::testkit::TestDb;
use atelier_proto::tracker::v1::budget_service_client::BudgetServiceClient;
use atelier_proto::tracker::v1::{self, generation_service_client::GenerationServiceClient};
use atelier_tracker::ledger::Ledger;
use atelier_tracker::time::LedgerTime;
use atelier_tracker::{Settings, Tracker};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};
use uuid::Uuid;

/// A client of the service.
pub type Client = GenerationServiceClient<Transport>;

/// One replica.
pub struct Replica {
    /// A client without identity.
    pub client: Client,
    /// The same for budgets.
    pub budgets: BudgetServiceClient<Transport>,
    /// Its clock.
    pub time: LedgerTime,
    /// The ledger inside of it.
    pub ledger: Ledger,
}

/// A database with replicas of the service on it.
pub struct Stack {
    pub r1: Replica,
    pub signer: Signer,
    deps: Deps,
    pub db: TestDb,
    _folder: tempfile::TempDir,
}

impl Stack {
    pub async fn sqlite() -> Self {
        Self::on(TestDb::sqlite().await).await
    }

    pub async fn postgres() -> Option<Self> {
        Some(Self::on(TestDb::postgres().await?).await)
    }

    async fn on(db: TestDb) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let signer = Signer::random();
        let deps = Deps::new(folder.path(), signer.clone());
        let r1 = replica(&db, &deps).await;
        Self {
            r1,
            signer,
            deps,
            db,
            _folder: folder,
        }
    }

    /// Another replica on the same database.
    pub async fn replica(&self) -> Replica {
        replica(&self.db, &self.deps.restarted()).await
    }

    /// A user who calls the first replica.
    pub fn user(&self, id: &str) -> User {
        self.user_of(&self.r1, id)
    }

    /// A user who calls this replica.
    pub fn user_of(&self, replica: &Replica, id: &str) -> User {
        User {
            client: replica.client.clone(),
            budgets: replica.budgets.clone(),
            signer: self.signer.clone(),
            caller: Caller::new(id, if id == "operator" { ["admin"] } else { ["generate"] }),
            instance: "i1".to_owned(),
        }
    }
}

async fn replica(db: &TestDb, deps: &Deps) -> Replica {
    // What a commit waits for is not what is tested here.
    let (url, options) = match db.engine() {
        "postgres" => (db.url(), "?options[synchronous_commit]=off"),
        _ => (db.url(), ""),
    };
    let database = DbSettings {
        synchronous: Synchronous::Off,
        max_connections: 8,
        ..DbSettings::default()
    };
    let settings = Settings {
        database_url: format!("{url}{options}").into(),
        database,
        ..Settings::default()
    };
    let tracker = Tracker::build(settings, deps).await.unwrap();
    let transport = channel::local(tracker.routes(), &deps.signer);
    Replica {
        client: Client::new(transport.clone()),
        budgets: BudgetServiceClient::new(transport),
        time: tracker.time(),
        ledger: tracker.ledger(),
    }
}

/// A user of the service, and the driver that works for them.
#[derive(Clone)]
pub struct User {
    pub client: Client,
    budgets: BudgetServiceClient<Transport>,
    signer: Signer,
    caller: Caller,
    pub instance: String,
}

pub type Answer<T> = Result<T, Status>;

macro_rules! calls {
    ($client:ident: $($name:ident($request:ident) -> $response:ident;)*) => {
        $(pub async fn $name(&self, request: v1::$request) -> Answer<v1::$response> {
            let request = self.signer.request(request, &self.caller);
            Ok(self.$client.clone().$name(request).await?.into_inner())
        })*
    };
}

impl User {
    calls! {
        budgets:
        set_budget(SetBudgetRequest) -> SetBudgetResponse;
        get_budget(GetBudgetRequest) -> GetBudgetResponse;
        list_budgets(ListBudgetsRequest) -> ListBudgetsResponse;
        delete_budget(DeleteBudgetRequest) -> DeleteBudgetResponse;
    }

    calls! {
        client:
        open_generation(OpenGenerationRequest) -> OpenGenerationResponse;
        mark_submitting(MarkSubmittingRequest) -> MarkSubmittingResponse;
        bind_attempt(BindAttemptRequest) -> BindAttemptResponse;
        observe_generation(ObserveGenerationRequest) -> ObserveGenerationResponse;
        close_generation(CloseGenerationRequest) -> CloseGenerationResponse;
        annotate_generation(AnnotateGenerationRequest) -> AnnotateGenerationResponse;
        link_assets(LinkAssetsRequest) -> LinkAssetsResponse;
        cancel_generation(CancelGenerationRequest) -> CancelGenerationResponse;
        cancel_generations(CancelGenerationsRequest) -> CancelGenerationsResponse;
        record_node_cost(RecordNodeCostRequest) -> RecordNodeCostResponse;
        lookup_generations(LookupGenerationsRequest) -> LookupGenerationsResponse;
        await_generation(AwaitGenerationRequest) -> AwaitGenerationResponse;
        get_generation(GetGenerationRequest) -> GetGenerationResponse;
        list_generations(ListGenerationsRequest) -> ListGenerationsResponse;
        summarize_costs(SummarizeCostsRequest) -> SummarizeCostsResponse;
        sweep_generations(SweepGenerationsRequest) -> SweepGenerationsResponse;
        claim_reconciliation(ClaimReconciliationRequest) -> ClaimReconciliationResponse;
        report_reconciliation(ReportReconciliationRequest) -> ReportReconciliationResponse;
    }

    /// The same user with another driver.
    pub fn driven_by(&self, instance: &str) -> Self {
        Self {
            instance: instance.to_owned(),
            ..self.clone()
        }
    }

    pub fn driver(&self) -> Option<v1::Driver> {
        Some(v1::Driver {
            instance_id: self.instance.clone(),
            epoch: 1,
        })
    }

    /// What an ordinary generation is opened with.
    pub fn to_open(&self) -> v1::OpenGenerationRequest {
        v1::OpenGenerationRequest {
            generation_id: Uuid::now_v7().to_string(),
            provider: "acme".into(),
            model: "m1".into(),
            capability: "text_to_image".into(),
            parameters: Some(prompt("a paper boat")),
            input_fingerprint: "ab".repeat(32),
            estimate: Some(charge("0.04")),
            instance_id: self.instance.clone(),
            ..Default::default()
        }
    }

    /// Opens an ordinary generation; its id.
    pub async fn open(&self) -> String {
        self.opened(self.to_open()).await.generation_id
    }

    pub async fn opened(&self, request: v1::OpenGenerationRequest) -> v1::Generation {
        let opened = self.open_generation(request).await.unwrap();
        assert!(opened.created);
        opened.generation.unwrap()
    }

    /// Opens one and marks it as leaving.
    pub async fn submitted(&self) -> String {
        let id = self.open().await;
        assert!(!self.mark(&id).await.unwrap().cancelled);
        id
    }

    /// Opens one, marks it and binds a request id.
    pub async fn bound(&self, request_id: &str) -> String {
        let id = self.submitted().await;
        self.bind(&id, request_id).await.unwrap();
        id
    }

    pub async fn mark(&self, id: &str) -> Answer<v1::MarkSubmittingResponse> {
        self.mark_submitting(v1::MarkSubmittingRequest {
            generation_id: id.into(),
            driver: self.driver(),
        })
        .await
    }

    pub fn to_bind(&self, id: &str, request_id: &str) -> v1::BindAttemptRequest {
        v1::BindAttemptRequest {
            generation_id: id.into(),
            driver: self.driver(),
            provider_request_id: Some(request_id.into()),
            ..Default::default()
        }
    }

    pub async fn bind(&self, id: &str, request_id: &str) -> Answer<v1::BindAttemptResponse> {
        self.bind_attempt(self.to_bind(id, request_id)).await
    }

    pub async fn observe(&self, id: &str, facets: v1::Facets) -> Answer<v1::ObserveGenerationResponse> {
        let (generation_id, driver, facets) = (id.into(), self.driver(), Some(facets));
        self.observe_generation(v1::ObserveGenerationRequest {
            generation_id,
            driver,
            facets,
        })
        .await
    }

    pub fn to_close(&self, id: &str, status: v1::GenerationStatus) -> v1::CloseGenerationRequest {
        v1::CloseGenerationRequest {
            generation_id: id.into(),
            driver: self.driver(),
            status: status.into(),
            ..Default::default()
        }
    }

    /// What an ordinary success is closed with: one asset, and the catalog's price.
    pub fn to_complete(&self, id: &str) -> v1::CloseGenerationRequest {
        v1::CloseGenerationRequest {
            catalog_charge: Some(charge("0.04")),
            asset_ids: vec!["a1".into()],
            persisted: "assets".into(),
            ..self.to_close(id, v1::GenerationStatus::Completed)
        }
    }

    pub async fn complete(&self, id: &str) -> Answer<v1::CloseGenerationResponse> {
        self.close_generation(self.to_complete(id)).await
    }

    pub async fn fail(&self, id: &str) -> Answer<v1::CloseGenerationResponse> {
        self.close_generation(v1::CloseGenerationRequest {
            error: Some("exploded".into()),
            ..self.to_close(id, v1::GenerationStatus::Failed)
        })
        .await
    }

    pub async fn cancel(&self, id: &str) -> v1::CancelGenerationResponse {
        self.cancel_generation(v1::CancelGenerationRequest {
            generation_id: id.into(),
        })
        .await
        .unwrap()
    }

    pub async fn get(&self, id: &str) -> v1::Generation {
        self.find(id).await.unwrap()
    }

    pub async fn find(&self, id: &str) -> Answer<v1::Generation> {
        let request = v1::GetGenerationRequest {
            generation_id: id.into(),
        };
        Ok(self.get_generation(request).await?.generation.unwrap())
    }

    pub async fn all(&self) -> Vec<v1::Generation> {
        let request = v1::ListGenerationsRequest {
            page_size: 500,
            ..Default::default()
        };
        self.list_generations(request).await.unwrap().generations
    }

    pub async fn costs(&self, group: v1::CostGroup) -> v1::SummarizeCostsResponse {
        let request = v1::SummarizeCostsRequest {
            group: group.into(),
            ..Default::default()
        };
        self.summarize_costs(request).await.unwrap()
    }

    pub async fn total(&self) -> v1::CostSummary {
        self.costs(v1::CostGroup::Unspecified).await.total.unwrap()
    }

    pub async fn sweep(&self) -> i64 {
        self.sweep_generations(v1::SweepGenerationsRequest {})
            .await
            .unwrap()
            .interrupted_count
    }

    /// Follows as this user's driver.
    pub async fn follow(&self) -> Follower {
        self.follow_as(false).await
    }

    pub async fn follow_as(&self, sole_process: bool) -> Follower {
        self.follow_with(sole_process, Vec::new()).await
    }

    /// Follows as a driver that can call acme, with this key.
    pub async fn follow_able(&self, key: &str) -> Follower {
        let seat = v1::ProviderSeat {
            provider: "acme".into(),
            resumable: true,
            credential: key.into(),
        };
        self.follow_with(false, vec![seat]).await
    }

    pub async fn follow_with(&self, sole_process: bool, providers: Vec<v1::ProviderSeat>) -> Follower {
        let mut follower = self.connect().await;
        let (instance_id, service) = (self.instance.clone(), "provider-svc".into());
        follower
            .say(v1::follow_request::Message::Hello(v1::Hello {
                instance_id,
                service,
                sole_process,
                providers,
            }))
            .await;
        assert_eq!(follower.ack().await, 0);
        follower
    }

    /// A stream on which nothing was said yet.
    pub async fn connect(&self) -> Follower {
        let (up, messages) = mpsc::channel(16);
        let request = self.signer.request(ReceiverStream::new(messages), &self.caller);
        let down = self.client.clone().follow(request).await.unwrap().into_inner();
        Follower {
            up: Some(up),
            down,
            orders: Vec::new(),
            resumes: Vec::new(),
            bills: Vec::new(),
        }
    }
}

/// A driver's stream.
pub struct Follower {
    up: Option<mpsc::Sender<v1::FollowRequest>>,
    down: Streaming<v1::FollowResponse>,
    /// Orders that came while something else was waited for.
    pub orders: Vec<String>,
    /// Jobs to take up.
    pub resumes: Vec<v1::ResumeOrder>,
    /// Bills to look for.
    pub bills: Vec<v1::ReconcileOrder>,
}

impl Follower {
    pub async fn say(&self, message: v1::follow_request::Message) {
        let message = v1::FollowRequest {
            message: Some(message),
        };
        self.up.as_ref().unwrap().send(message).await.unwrap();
    }

    pub async fn next(&mut self) -> Answer<Option<v1::FollowResponse>> {
        tokio::time::timeout(Duration::from_secs(10), self.down.message())
            .await
            .expect("an answer in time")
    }

    /// The next acknowledgement; orders before it are kept.
    pub async fn ack(&mut self) -> i64 {
        loop {
            let message = self.next().await.unwrap().unwrap().message.unwrap();
            if let Some(sequence) = self.keep(message) {
                return sequence;
            }
        }
    }

    fn keep(&mut self, message: v1::follow_response::Message) -> Option<i64> {
        match message {
            v1::follow_response::Message::HeartbeatAck(ack) => {
                assert_eq!(ack.lease.unwrap().seconds, 45);
                return Some(ack.sequence);
            }
            v1::follow_response::Message::CancelOrder(order) => self.orders.push(order.generation_id),
            v1::follow_response::Message::ResumeOrder(order) => self.resumes.push(order),
            v1::follow_response::Message::ReconcileOrder(order) => self.bills.push(order),
        }
        None
    }

    /// All that is ordered with a heartbeat: what comes before the answer to the next one.
    pub async fn round(&mut self) {
        self.beat(1).await;
        self.beat(2).await;
    }

    /// The bills that are due now, out of one look.
    pub async fn due(&mut self) -> Vec<v1::ReconcileOrder> {
        self.round().await;
        std::mem::take(&mut self.bills)
    }

    /// The jobs that there are to take up.
    pub async fn jobs(&mut self) -> Vec<v1::ResumeOrder> {
        self.round().await;
        std::mem::take(&mut self.resumes)
    }

    /// The next order.
    pub async fn order(&mut self) -> String {
        loop {
            if let Some(order) = self.orders.pop() {
                return order;
            }
            if let v1::follow_response::Message::CancelOrder(order) =
                self.next().await.unwrap().unwrap().message.unwrap()
            {
                return order.generation_id;
            }
        }
    }

    pub async fn beat(&mut self, sequence: i64) -> i64 {
        self.say(v1::follow_request::Message::Heartbeat(v1::Heartbeat { sequence }))
            .await;
        self.ack().await
    }

    /// Says goodbye and waits for the end of the stream.
    pub async fn goodbye(mut self) {
        self.say(v1::follow_request::Message::Goodbye(v1::Goodbye {}))
            .await;
        while self.next().await.unwrap().is_some() {}
    }

    /// Hangs up, and waits until the service has noticed.
    pub async fn hang_up(mut self) {
        self.up = None;
        while self.next().await.is_ok_and(|message| message.is_some()) {}
    }
}

pub use crate::messages::*;
