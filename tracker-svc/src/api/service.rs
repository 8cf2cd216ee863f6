//! `atelier.tracker.v1.GenerationService`.

use atelier_common::db::Db;
use atelier_common::identity::caller;
use atelier_proto::time::proto_duration;
use atelier_proto::tracker::v1;
use atelier_proto::tracker::v1::generation_service_server::GenerationService;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, Streaming};

use super::budgets::ADMIN;
use super::{ask, follow, parse, render};
use crate::costs;
use crate::error::Error;
use crate::follow::Following;
use crate::ledger::{Cancel, Cancelled, Closed, Ledger, Opened, Row};
use crate::queries::Queries;
use crate::reconcile::{Asked, Reconciliations};
use crate::runs::{self, CancelledRun};
use crate::time::LedgerTime;
use crate::waiting::Waiting;
use crate::zones;

/// The service. Clones are the same one.
#[derive(Clone)]
pub struct Service {
    pub(crate) ledger: Ledger,
    pub(crate) queries: Queries,
    pub(crate) waiting: Waiting,
    pub(crate) following: Following,
    pub(crate) reconciliations: Reconciliations,
    pub(crate) db: Db,
    pub(crate) time: LedgerTime,
    pub(crate) stop: CancellationToken,
}

/// The user that asks, and what they ask.
fn scoped<T>(request: Request<T>) -> Result<(String, T), Status> {
    let user_id = caller(&request)?.user_id;
    Ok((user_id, request.into_inner()))
}

fn generation(row: Row) -> Result<Option<v1::Generation>, Error> {
    render::generation(row).map(Some)
}

#[tonic::async_trait]
impl GenerationService for Service {
    async fn open_generation(
        &self,
        request: Request<v1::OpenGenerationRequest>,
    ) -> Result<Response<v1::OpenGenerationResponse>, Status> {
        let (user, request) = scoped(request)?;
        let Opened { row, created } = self.ledger.open(parse::open(user, request)?).await?;
        Ok(Response::new(v1::OpenGenerationResponse {
            generation: generation(row)?,
            created,
        }))
    }

    async fn mark_submitting(
        &self,
        request: Request<v1::MarkSubmittingRequest>,
    ) -> Result<Response<v1::MarkSubmittingResponse>, Status> {
        let (user, request) = scoped(request)?;
        let cancelled = self.ledger.mark(parse::mark(user, request)?).await?;
        Ok(Response::new(v1::MarkSubmittingResponse { cancelled }))
    }

    async fn bind_attempt(
        &self,
        request: Request<v1::BindAttemptRequest>,
    ) -> Result<Response<v1::BindAttemptResponse>, Status> {
        let (user, request) = scoped(request)?;
        let bound = self.ledger.bind(parse::bind(user, request)?).await?;
        let (attempt_number, cancelled) = (bound.attempt_number, bound.cancelled);
        Ok(Response::new(v1::BindAttemptResponse {
            attempt_number,
            cancelled,
        }))
    }

    async fn observe_generation(
        &self,
        request: Request<v1::ObserveGenerationRequest>,
    ) -> Result<Response<v1::ObserveGenerationResponse>, Status> {
        let (user, request) = scoped(request)?;
        let cancelled = self.ledger.observe(parse::observe(user, request)?).await?;
        Ok(Response::new(v1::ObserveGenerationResponse { cancelled }))
    }

    async fn close_generation(
        &self,
        request: Request<v1::CloseGenerationRequest>,
    ) -> Result<Response<v1::CloseGenerationResponse>, Status> {
        let (user, request) = scoped(request)?;
        let Closed {
            changed,
            lost_race,
            row,
        } = self.ledger.close(parse::close(user, request)?).await?;
        Ok(Response::new(v1::CloseGenerationResponse {
            changed,
            lost_race,
            generation: generation(row)?,
        }))
    }

    async fn annotate_generation(
        &self,
        request: Request<v1::AnnotateGenerationRequest>,
    ) -> Result<Response<v1::AnnotateGenerationResponse>, Status> {
        let (user, request) = scoped(request)?;
        let row = self.ledger.annotate(parse::annotate(user, request)?).await?;
        Ok(Response::new(v1::AnnotateGenerationResponse {
            generation: generation(row)?,
        }))
    }

    async fn link_assets(
        &self,
        request: Request<v1::LinkAssetsRequest>,
    ) -> Result<Response<v1::LinkAssetsResponse>, Status> {
        let (user, request) = scoped(request)?;
        let row = self.ledger.link(parse::link(user, request)?).await?;
        Ok(Response::new(v1::LinkAssetsResponse {
            generation: generation(row)?,
        }))
    }

    async fn record_node_cost(
        &self,
        request: Request<v1::RecordNodeCostRequest>,
    ) -> Result<Response<v1::RecordNodeCostResponse>, Status> {
        let (user, request) = scoped(request)?;
        let generation_ids = self
            .ledger
            .record_node_cost(parse::node_cost(user, request)?)
            .await?;
        Ok(Response::new(v1::RecordNodeCostResponse { generation_ids }))
    }

    async fn cancel_generation(
        &self,
        request: Request<v1::CancelGenerationRequest>,
    ) -> Result<Response<v1::CancelGenerationResponse>, Status> {
        let (user_id, request) = scoped(request)?;
        // What is no id names no row, like an id that nobody has.
        let cancelled = match parse::known_id(&request.generation_id) {
            Ok(id) => {
                let cancelled = self
                    .ledger
                    .cancel(Cancel {
                        user_id,
                        id: id.clone(),
                    })
                    .await?;
                if let Cancelled::Now { owner_instance } = &cancelled {
                    let told = self.following.hub.order(owner_instance, &id);
                    tracing::debug!(generation_id = id, told, "cancelled a generation");
                }
                cancelled
            }
            Err(_) => Cancelled::NotRunning,
        };
        let (cancelled, status, error) = match cancelled {
            Cancelled::Now { .. } => (true, "cancelled", None),
            Cancelled::Before => (false, "cancelled", Some("already settled")),
            Cancelled::NotRunning => (false, "", Some("not running")),
        };
        let (status, error) = (status.to_owned(), error.map(ToOwned::to_owned));
        Ok(Response::new(v1::CancelGenerationResponse {
            cancelled,
            status,
            error,
        }))
    }

    async fn cancel_generations(
        &self,
        request: Request<v1::CancelGenerationsRequest>,
    ) -> Result<Response<v1::CancelGenerationsResponse>, Status> {
        let (user, request) = scoped(request)?;
        let run = ask::cancel_run(user, request)?;
        let CancelledRun { cancelled, skipped } =
            runs::cancel(&self.ledger, &self.following.hub, &self.db, &run).await?;
        Ok(Response::new(v1::CancelGenerationsResponse {
            cancelled_count: i64::try_from(cancelled).unwrap_or(i64::MAX),
            skipped_count: i64::try_from(skipped).unwrap_or(i64::MAX),
        }))
    }

    async fn await_generation(
        &self,
        request: Request<v1::AwaitGenerationRequest>,
    ) -> Result<Response<v1::AwaitGenerationResponse>, Status> {
        let (user, request) = scoped(request)?;
        let v1::AwaitGenerationRequest {
            generation_id,
            timeout,
        } = request;
        let patience = ask::patience(timeout)?;
        let begun = Instant::now();
        let wait = self
            .waiting
            .settled_row(&self.queries, &user, &generation_id, patience);
        let row = self
            .stop
            .run_until_cancelled(wait)
            .await
            .ok_or(Error::Draining)??;
        Ok(Response::new(v1::AwaitGenerationResponse {
            generation: generation(row)?,
            waited: Some(proto_duration(begun.elapsed())),
        }))
    }

    async fn get_generation(
        &self,
        request: Request<v1::GetGenerationRequest>,
    ) -> Result<Response<v1::GetGenerationResponse>, Status> {
        let (user, request) = scoped(request)?;
        let row = self.queries.get(&user, &request.generation_id).await?;
        Ok(Response::new(v1::GetGenerationResponse {
            generation: generation(row)?,
        }))
    }

    async fn lookup_generations(
        &self,
        request: Request<v1::LookupGenerationsRequest>,
    ) -> Result<Response<v1::LookupGenerationsResponse>, Status> {
        let (user, request) = scoped(request)?;
        let (rows, unmatched) = self.queries.lookup(&user, ask::request_ids(request)?).await?;
        let generations = rows
            .into_iter()
            .map(render::generation)
            .collect::<Result<_, _>>()?;
        Ok(Response::new(v1::LookupGenerationsResponse {
            generations,
            unmatched,
        }))
    }

    async fn list_generations(
        &self,
        request: Request<v1::ListGenerationsRequest>,
    ) -> Result<Response<v1::ListGenerationsResponse>, Status> {
        let (user, request) = scoped(request)?;
        let v1::ListGenerationsRequest {
            filter,
            page_size,
            page_token,
        } = request;
        let page = self
            .queries
            .list(&ask::filter(user, filter)?, page_size, &page_token)
            .await?;
        let generations = page
            .rows
            .into_iter()
            .map(render::generation)
            .collect::<Result<_, _>>()?;
        Ok(Response::new(v1::ListGenerationsResponse {
            generations,
            next_page_token: page.next_page_token,
        }))
    }

    async fn summarize_costs(
        &self,
        request: Request<v1::SummarizeCostsRequest>,
    ) -> Result<Response<v1::SummarizeCostsResponse>, Status> {
        let admin = caller(&request)?.may(ADMIN);
        let (user, request) = scoped(request)?;
        let v1::SummarizeCostsRequest {
            filter,
            group,
            time_zone,
            all_users,
        } = request;
        let (mut filter, group) = (ask::filter(user, filter)?, ask::group(group)?);
        if all_users && !admin {
            return Err(Error::AdminOnly.into());
        }
        filter.all_users = all_users;
        let (_, zone) = zones::named(&time_zone)?;
        let report = costs::summarize(&self.db, &self.time, &filter, group, &zone).await?;
        Ok(Response::new(v1::SummarizeCostsResponse {
            total: Some(render::summary(report.total)),
            groups: report.groups.into_iter().map(render::summary).collect(),
        }))
    }

    type FollowStream = follow::Down;

    async fn follow(
        &self,
        request: Request<Streaming<v1::FollowRequest>>,
    ) -> Result<Response<Self::FollowStream>, Status> {
        let (_, up) = scoped(request)?;
        Ok(Response::new(follow::serve(
            self.following.clone(),
            up,
            self.stop.clone(),
        )))
    }

    async fn sweep_generations(
        &self,
        request: Request<v1::SweepGenerationsRequest>,
    ) -> Result<Response<v1::SweepGenerationsResponse>, Status> {
        let (_, v1::SweepGenerationsRequest {}) = scoped(request)?;
        let interrupted = self.following.sweep.run().await?;
        let interrupted_count = i64::try_from(interrupted).unwrap_or(i64::MAX);
        Ok(Response::new(v1::SweepGenerationsResponse { interrupted_count }))
    }

    async fn claim_reconciliation(
        &self,
        request: Request<v1::ClaimReconciliationRequest>,
    ) -> Result<Response<v1::ClaimReconciliationResponse>, Status> {
        let (user, request) = scoped(request)?;
        let id = parse::known_id(&request.generation_id)?;
        let response = match self.reconciliations.ask(&user, &id).await? {
            Asked::Claimed(claimed) => v1::ClaimReconciliationResponse {
                order: Some(render::reconcile_order(claimed, true)?),
                ..Default::default()
            },
            Asked::Nothing(row, reason) => v1::ClaimReconciliationResponse {
                order: None,
                reason: Some(reason.to_owned()),
                generation: generation(row)?,
            },
        };
        Ok(Response::new(response))
    }

    async fn report_reconciliation(
        &self,
        request: Request<v1::ReportReconciliationRequest>,
    ) -> Result<Response<v1::ReportReconciliationResponse>, Status> {
        let (user, request) = scoped(request)?;
        let report = parse::report(user, request)?;
        let (accepted, row) = self.reconciliations.report(&report).await?;
        if accepted {
            // What budgets booked for the call follows its bill.
            self.ledger.recount(&report.user_id, &report.id).await?;
        }
        Ok(Response::new(v1::ReportReconciliationResponse {
            accepted,
            generation: generation(row)?,
        }))
    }
}
