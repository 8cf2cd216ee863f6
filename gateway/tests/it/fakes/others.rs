//! The scripted provider, asset store and ledger.

use atelier_proto::asset::v1 as asset;
use atelier_proto::asset::v1::asset_service_server::AssetService;
use atelier_proto::provider::v1 as provider;
use atelier_proto::provider::v1::provider_service_server::ProviderService;
use atelier_proto::reason;
use atelier_proto::tracker::v1::generation_service_server::GenerationService;
use atelier_proto::tracker::v1::{self as tracker, CostSummary};
use tonic::{Request, Response, Status, Streaming};

use super::{Answers, Fakes, Reply, missing, user};

#[tonic::async_trait]
impl ProviderService for Fakes {
    type RunGenerationStream = Answers<provider::RunGenerationResponse>;

    async fn reconcile_generation(
        &self,
        _: Request<provider::ReconcileGenerationRequest>,
    ) -> Reply<provider::ReconcileGenerationResponse> {
        Err(Status::unimplemented("no bills here"))
    }

    async fn run_generation(
        &self,
        request: Request<provider::RunGenerationRequest>,
    ) -> Reply<Self::RunGenerationStream> {
        use provider::run_generation_response::Event;
        let request = request.into_inner();
        self.calls.lock().expect("lock").push(request.clone());
        if request.model == "unheard" {
            return Err(missing(reason::GENERATION_NOT_FOUND));
        }
        let row = |status: tracker::GenerationStatus| {
            let generation = tracker::Generation {
                generation_id: "019a0000-0000".to_owned(),
                status: status.into(),
                error: (request.model == "broken").then(|| "it broke".to_owned()),
                ..tracker::Generation::default()
            };
            Event::Prediction(provider::Prediction {
                generation: Some(generation),
                joined: false,
            })
        };
        let mut events = vec![Ok(row(tracker::GenerationStatus::Running))];
        if request.model == "broken" {
            events.push(Ok(row(tracker::GenerationStatus::Failed)));
            events.push(Err(Status::invalid_argument("it broke")));
        } else if !request.background {
            events.push(Ok(Event::Chunk(provider::Chunk {
                content_type: "text".to_owned(),
                text: "grün".to_owned(),
                ..provider::Chunk::default()
            })));
            events.push(Ok(Event::Result(provider::GenerationResult {
                output: Some((&atelier_proto::value::Value::from("grün")).into()),
                assets: vec![asset::Asset {
                    asset_id: "A1".to_owned(),
                    content_type: "text/plain".to_owned(),
                    ..asset::Asset::default()
                }],
                ..provider::GenerationResult::default()
            })));
            events.push(Ok(row(tracker::GenerationStatus::Completed)));
        }
        let messages = events
            .into_iter()
            .map(|event| event.map(|event| provider::RunGenerationResponse { event: Some(event) }));
        Ok(Response::new(Box::pin(futures_util::stream::iter(
            messages.collect::<Vec<_>>(),
        ))))
    }

    async fn cancel_generation(
        &self,
        request: Request<provider::CancelGenerationRequest>,
    ) -> Reply<provider::CancelGenerationResponse> {
        let id = request.into_inner().generation_id;
        let mut answer = provider::CancelGenerationResponse::default();
        if id == "running" {
            answer.cancelled = true;
            answer.status = "cancelled".to_owned();
        } else {
            answer.error = Some("not running".to_owned());
        }
        Ok(Response::new(answer))
    }

    async fn list_models(
        &self,
        _: Request<provider::ListModelsRequest>,
    ) -> Reply<provider::ListModelsResponse> {
        let model = provider::Model {
            provider: "sketch".to_owned(),
            model: "sketch-image".to_owned(),
            capabilities: vec!["text_to_image".to_owned()],
            price: "0.04 USD / image".to_owned(),
            available: true,
            ..provider::Model::default()
        };
        Ok(Response::new(provider::ListModelsResponse {
            models: vec![model],
        }))
    }
}

#[tonic::async_trait]
impl AssetService for Fakes {
    async fn upload_asset(
        &self,
        _: Request<Streaming<asset::UploadAssetRequest>>,
    ) -> Reply<asset::UploadAssetResponse> {
        Err(Status::unimplemented("not part of this script"))
    }

    async fn commit_generation(
        &self,
        _: Request<asset::CommitGenerationRequest>,
    ) -> Reply<asset::CommitGenerationResponse> {
        Err(Status::unimplemented("not part of this script"))
    }

    async fn get_asset(&self, request: Request<asset::GetAssetRequest>) -> Reply<asset::GetAssetResponse> {
        let (asset, _) = self.asset_of(&request, &request.get_ref().asset_id)?;
        Ok(Response::new(asset::GetAssetResponse { asset: Some(asset) }))
    }

    async fn list_assets(
        &self,
        request: Request<asset::ListAssetsRequest>,
    ) -> Reply<asset::ListAssetsResponse> {
        let user_id = user(&request);
        let assets = self.assets.lock().expect("lock");
        let own = assets
            .values()
            .filter(|(owner, _, _)| *owner == user_id)
            .map(|(_, asset, _)| asset.clone());
        Ok(Response::new(asset::ListAssetsResponse {
            assets: own.collect(),
            next_page_token: "more".to_owned(),
        }))
    }

    type DownloadAssetStream = Answers<asset::DownloadAssetResponse>;

    async fn download_asset(
        &self,
        request: Request<asset::DownloadAssetRequest>,
    ) -> Reply<Self::DownloadAssetStream> {
        let (stored, bytes) = self.asset_of(&request, &request.get_ref().asset_id)?;
        let request = request.into_inner();
        self.downloads.lock().expect("lock").push(request.clone());
        let offset = usize::try_from(request.offset.unwrap_or(0)).expect("small");
        let length = usize::try_from(request.length.unwrap_or(stored.size_bytes)).expect("small");
        let header = asset::DownloadHeader {
            asset: Some(stored),
            offset: request.offset.unwrap_or(0),
            length: request.length.unwrap_or(0),
        };
        let mut parts = vec![asset::download_asset_response::Part::Header(header)];
        let wanted = bytes
            .iter()
            .skip(offset)
            .take(length)
            .copied()
            .collect::<Vec<_>>();
        parts.extend(
            wanted
                .chunks(64)
                .map(|chunk| asset::download_asset_response::Part::Chunk(chunk.to_vec().into())),
        );
        let parts = parts
            .into_iter()
            .map(|part| Ok(asset::DownloadAssetResponse { part: Some(part) }));
        Ok(Response::new(Box::pin(tokio_stream::iter(
            parts.collect::<Vec<_>>(),
        ))))
    }
}

#[tonic::async_trait]
impl GenerationService for Fakes {
    async fn claim_reconciliation(
        &self,
        _: Request<tracker::ClaimReconciliationRequest>,
    ) -> Reply<tracker::ClaimReconciliationResponse> {
        Err(Status::unimplemented("no bills here"))
    }

    async fn report_reconciliation(
        &self,
        _: Request<tracker::ReportReconciliationRequest>,
    ) -> Reply<tracker::ReportReconciliationResponse> {
        Err(Status::unimplemented("no bills here"))
    }

    async fn get_generation(
        &self,
        request: Request<tracker::GetGenerationRequest>,
    ) -> Reply<tracker::GetGenerationResponse> {
        let rows = self.rows.lock().expect("lock");
        let user_id = user(&request);
        let row = rows.iter().find(|row| {
            row.generation_id.starts_with(&request.get_ref().generation_id) && row.user_id == user_id
        });
        let generation = Some(row.ok_or_else(|| missing(reason::GENERATION_NOT_FOUND))?.clone());
        Ok(Response::new(tracker::GetGenerationResponse { generation }))
    }

    async fn list_generations(
        &self,
        request: Request<tracker::ListGenerationsRequest>,
    ) -> Reply<tracker::ListGenerationsResponse> {
        let user_id = user(&request);
        self.list_requests
            .lock()
            .expect("lock")
            .push(request.into_inner());
        let rows = self.rows.lock().expect("lock");
        let generations = rows
            .iter()
            .filter(|row| row.user_id == user_id)
            .cloned()
            .collect();
        Ok(Response::new(tracker::ListGenerationsResponse {
            generations,
            next_page_token: String::new(),
        }))
    }

    async fn summarize_costs(
        &self,
        request: Request<tracker::SummarizeCostsRequest>,
    ) -> Reply<tracker::SummarizeCostsResponse> {
        if *self.ledger_down.lock().expect("lock") {
            return Err(Status::unavailable("tcp connect error"));
        }
        self.cost_requests
            .lock()
            .expect("lock")
            .push(request.into_inner());
        let total = self.costs.lock().expect("lock").clone();
        let group = CostSummary {
            key: "sketch".to_owned(),
            ..total.clone()
        };
        Ok(Response::new(tracker::SummarizeCostsResponse {
            total: Some(total),
            groups: vec![group],
        }))
    }

    async fn record_node_cost(
        &self,
        _: Request<tracker::RecordNodeCostRequest>,
    ) -> Reply<tracker::RecordNodeCostResponse> {
        Err(Status::unimplemented("not part of this script"))
    }

    async fn lookup_generations(
        &self,
        _: Request<tracker::LookupGenerationsRequest>,
    ) -> Reply<tracker::LookupGenerationsResponse> {
        Err(Status::unimplemented("not part of this script"))
    }

    async fn cancel_generations(
        &self,
        _: Request<tracker::CancelGenerationsRequest>,
    ) -> Reply<tracker::CancelGenerationsResponse> {
        Err(Status::unimplemented("not part of this script"))
    }

    async fn await_generation(
        &self,
        request: Request<tracker::AwaitGenerationRequest>,
    ) -> Reply<tracker::AwaitGenerationResponse> {
        let rows = self.rows.lock().expect("lock");
        let user_id = user(&request);
        let row = rows
            .iter()
            .find(|row| row.generation_id == request.get_ref().generation_id && row.user_id == user_id);
        let generation = Some(row.ok_or_else(|| missing(reason::GENERATION_NOT_FOUND))?.clone());
        Ok(Response::new(tracker::AwaitGenerationResponse {
            generation,
            waited: request.into_inner().timeout,
        }))
    }

    async fn open_generation(
        &self,
        _: Request<tracker::OpenGenerationRequest>,
    ) -> Reply<tracker::OpenGenerationResponse> {
        Err(Status::unimplemented("not part of this script"))
    }

    async fn mark_submitting(
        &self,
        _: Request<tracker::MarkSubmittingRequest>,
    ) -> Reply<tracker::MarkSubmittingResponse> {
        Err(Status::unimplemented("not part of this script"))
    }

    async fn bind_attempt(
        &self,
        _: Request<tracker::BindAttemptRequest>,
    ) -> Reply<tracker::BindAttemptResponse> {
        Err(Status::unimplemented("not part of this script"))
    }

    async fn observe_generation(
        &self,
        _: Request<tracker::ObserveGenerationRequest>,
    ) -> Reply<tracker::ObserveGenerationResponse> {
        Err(Status::unimplemented("not part of this script"))
    }

    async fn close_generation(
        &self,
        _: Request<tracker::CloseGenerationRequest>,
    ) -> Reply<tracker::CloseGenerationResponse> {
        Err(Status::unimplemented("not part of this script"))
    }

    async fn annotate_generation(
        &self,
        _: Request<tracker::AnnotateGenerationRequest>,
    ) -> Reply<tracker::AnnotateGenerationResponse> {
        Err(Status::unimplemented("not part of this script"))
    }

    async fn link_assets(
        &self,
        _: Request<tracker::LinkAssetsRequest>,
    ) -> Reply<tracker::LinkAssetsResponse> {
        Err(Status::unimplemented("not part of this script"))
    }

    async fn cancel_generation(
        &self,
        _: Request<tracker::CancelGenerationRequest>,
    ) -> Reply<tracker::CancelGenerationResponse> {
        Err(Status::unimplemented("not part of this script"))
    }

    type FollowStream = Answers<tracker::FollowResponse>;

    async fn follow(&self, _: Request<Streaming<tracker::FollowRequest>>) -> Reply<Self::FollowStream> {
        Err(Status::unimplemented("not part of this script"))
    }

    async fn sweep_generations(
        &self,
        _: Request<tracker::SweepGenerationsRequest>,
    ) -> Reply<tracker::SweepGenerationsResponse> {
        Err(Status::unimplemented("not part of this script"))
    }
}
