//! A worker in Rust that says exactly what a test wants it to say.

use std::{sync::Arc, time::Duration};

use atelier_common::{
    channel::{Transport, local},
    identity::{Caller, Signer},
    tasks::Tasks,
};
use atelier_kernel::{
    api::WorkerApi,
    graph::{hydrate::hydrate, load::parse},
    run::RunOptions,
    workers::{NodeTypes, Timing, Workers},
};
use atelier_proto::{
    kernel::v1::{
        ConnectRequest, ConnectResponse, FrameEnd, FrameYield, Invocation, InvocationFrame, NodeType, Output,
        Property, WorkerDeclaration, WorkerDeclared, WorkerHello, WorkerNodeType, WorkerWelcome,
        connect_request::Message as Say, connect_response::Message as Said, invocation_frame::Body,
        worker_service_client::WorkerServiceClient, worker_service_server::WorkerServiceServer,
    },
    value::{Map, map_from_json},
};
use serde_json::{Value as Json, json};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming, service::Routes};

use crate::{
    harness::{Graph, Setup},
    nodes::{Log, registry},
};

/// A kernel's end of the protocol, without anything else of a kernel.
pub struct Kernel {
    pub types: NodeTypes,
    pub workers: Workers,
    pub signer: Signer,
    pub tasks: Tasks,
    transport: Transport,
    log: Arc<Log>,
}
impl Kernel {
    pub fn new() -> Self {
        Self::with(Duration::from_secs(20), Duration::from_secs(5))
    }
    pub fn with(grace: Duration, heartbeat: Duration) -> Self {
        let (log, tasks, signer) = (Arc::new(Log::default()), Tasks::new(), Signer::random());
        let types = NodeTypes::new(Arc::new(registry(&log)));
        let workers = Workers::new(types.clone(), Timing { grace, heartbeat }, tasks.clone());
        let service = WorkerServiceServer::new(WorkerApi::unsigned(workers.clone()))
            .max_decoding_message_size(atelier_kernel::workers::MAX_WORKER_MESSAGE);
        let transport = local(Routes::new(service), &signer);
        Self {
            types,
            workers,
            signer,
            tasks,
            transport,
            log,
        }
    }
    /// A run of a graph with the types that are there now.
    pub fn setup(&self, graph: &Graph) -> Setup {
        let registry = self.types.of("1");
        let raw = parse(&graph.json(), &mut Vec::new()).expect("a graph");
        Setup {
            graph: hydrate(&raw, &registry),
            params: Map::new(),
            options: RunOptions {
                strict: true,
                cancel_grace: Duration::from_secs(2),
                ..RunOptions::default()
            },
            log: Arc::clone(&self.log),
            registry,
            cancel: CancellationToken::new(),
            journal: None,
            trigger: None,
            resume: Default::default(),
            panics_after: None,
        }
    }
    /// A stream on which nothing was said yet.
    pub async fn open(&self, caller: Option<&Caller>) -> Client {
        let (out, inbound) = mpsc::channel(1_024);
        let mut request = tonic::Request::new(ReceiverStream::new(inbound));
        if let Some(caller) = caller {
            request = self.signer.attach(request, caller);
        }
        let mut client = WorkerServiceClient::new(self.transport.clone());
        let said = client.connect(request).await.expect("a stream").into_inner();
        Client { out, said }
    }
    pub async fn connect(&self, instance: &str, held: &[&str]) -> (Client, WorkerWelcome) {
        let mut client = self.open(None).await;
        client.say(Say::Hello(hello(instance, 4, held))).await;
        let Said::Welcome(welcome) = client.next().await else {
            panic!("no welcome")
        };
        (client, welcome)
    }
    /// A worker that serves these types.
    pub async fn worker(&self, instance: &str, types: Vec<WorkerNodeType>) -> Client {
        let (mut client, _) = self.connect(instance, &[]).await;
        let declared = client.declare(types).await;
        assert!(declared.types.iter().all(|ty| ty.accepted), "{declared:?}");
        client
    }
}
pub fn hello(instance: &str, slots: u32, held: &[&str]) -> WorkerHello {
    WorkerHello {
        worker_name: "tester".to_owned(),
        instance_id: instance.to_owned(),
        protocol_version: 1,
        max_invocations: slots,
        held_ids: held.iter().map(|id| (*id).to_owned()).collect(),
    }
}
/// `value: any` in, `output: any` out.
pub fn served(name: &str) -> WorkerNodeType {
    WorkerNodeType {
        node_type: Some(NodeType {
            node_type: name.to_owned(),
            properties: vec![Property {
                name: "value".to_owned(),
                r#type: "any".to_owned(),
                ..Property::default()
            }],
            outputs: vec![Output {
                name: "output".to_owned(),
                r#type: "any".to_owned(),
                stream: false,
            }],
            ..NodeType::default()
        }),
        ..WorkerNodeType::default()
    }
}
pub fn map(json: Json) -> atelier_proto::common::v1::MapValue {
    (&map_from_json(json).expect("an object")).into()
}
/// A result with the value `output`.
pub fn result(value: Json) -> Body {
    Body::Result(map(json!({"output": value})))
}
/// A yield with the value `output`.
pub fn yielded(value: Json) -> Body {
    Body::Values(FrameYield {
        values: Some(map(json!({"output": value}))),
        lineage: None,
    })
}
pub fn end() -> Body {
    Body::End(FrameEnd {})
}

pub struct Client {
    pub out: mpsc::Sender<ConnectRequest>,
    pub said: Streaming<ConnectResponse>,
}
impl Client {
    pub async fn say(&self, message: Say) {
        let request = ConnectRequest {
            message: Some(message),
        };
        self.out.send(request).await.expect("the stream is open");
    }
    pub async fn frame(&self, invocation: &str, ordinal: i64, body: Body) {
        self.say(Say::Frame(InvocationFrame {
            invocation_id: invocation.to_owned(),
            ordinal,
            body: Some(body),
        }))
        .await;
    }
    /// What is said next, heartbeats aside.
    pub async fn hear(&mut self) -> Result<Option<Said>, Status> {
        let next = async {
            loop {
                match self.said.message().await? {
                    Some(ConnectResponse {
                        message: Some(Said::Heartbeat(_)),
                    }) => {}
                    Some(ConnectResponse { message }) => return Ok(message),
                    None => return Ok(None),
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(30), next)
            .await
            .expect("something is said in time")
    }
    pub async fn next(&mut self) -> Said {
        self.hear().await.expect("no error").expect("no end")
    }
    pub async fn declare(&mut self, node_types: Vec<WorkerNodeType>) -> WorkerDeclared {
        self.say(Say::Declaration(WorkerDeclaration { node_types })).await;
        loop {
            if let Said::Declared(declared) = self.next().await {
                return declared;
            }
        }
    }
    pub async fn invocation(&mut self) -> Invocation {
        loop {
            match self.next().await {
                Said::Invocation(invocation) => return invocation,
                Said::FrameReceipt(_) => {}
                other => panic!("{other:?} and no invocation"),
            }
        }
    }
    /// The number of accepted frames that the next receipt tells, and whether it is the last one.
    pub async fn receipt(&mut self) -> (i64, bool) {
        match self.next().await {
            Said::FrameReceipt(receipt) => (receipt.next_frame, receipt.closed),
            other => panic!("{other:?} and no receipt"),
        }
    }
    /// Waits for the last receipt of an invocation.
    pub async fn closed(&mut self) {
        while !self.receipt().await.1 {}
    }
    /// The error that ends the stream.
    pub async fn error(&mut self) -> Status {
        loop {
            match self.hear().await {
                Err(status) => return status,
                Ok(Some(_)) => {}
                Ok(None) => panic!("the stream ended without an error"),
            }
        }
    }
}
