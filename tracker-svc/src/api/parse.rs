//! Requests of drivers as domain values. What is wrong is named, and nothing has happened then.

use std::time::Duration;

use atelier_proto::common::v1::{MapValue, Origin, Surface};
use atelier_proto::tracker::v1;
use atelier_proto::value::{BytesForm, Map, Value, to_json};
use uuid::Uuid;

use crate::charge;
use crate::entity::words::{AttemptKind, OutputState, ProviderState, Status, Submission};
use crate::error::Error;
use crate::follow::{Introduction, Seated};
use crate::ledger::{
    self, Annotate, Bind, Close, Driver, Facets, Late, Link, Mark, NodeCost, Observe, Open, Told,
};
use crate::metadata::{PERSISTED, PROVIDER_CANCEL};
use crate::reconcile::{Outcome, Report};
use crate::text::{ERROR_LIMIT, sanitise};

/// Longest name, key or foreign id.
const TEXT_LIMIT: usize = 512;
/// Longest opaque token of an adapter.
const TOKEN_LIMIT: usize = 64 * 1024;
/// Largest parameters of a row, as JSON. The redaction keeps them far below.
const PARAMETERS_LIMIT: usize = 256 * 1024;
/// Most assets of one row.
const ASSETS_LIMIT: usize = 10_000;

pub(super) fn filled(text: String, field: &'static str) -> Result<String, Error> {
    match text.len() {
        0 => Err(Error::invalid(field, "must not be empty")),
        length if length > TEXT_LIMIT => Err(Error::invalid(
            field,
            format!("is longer than {TEXT_LIMIT} bytes"),
        )),
        _ => Ok(text),
    }
}

fn short(text: Option<String>, field: &'static str) -> Result<Option<String>, Error> {
    // Empty and absent are the same to a caller that fills in what it has.
    text.filter(|text| !text.is_empty())
        .map(|text| filled(text, field))
        .transpose()
}

fn generation_id(text: &str) -> Result<String, Error> {
    Uuid::parse_str(text)
        .map(|id| id.to_string())
        .map_err(|_| Error::invalid("generation_id", "is not a UUID"))
}

/// The id of a row that is to be there: what is no id names no row.
pub(super) fn known_id(text: &str) -> Result<String, Error> {
    Uuid::parse_str(text)
        .map(|id| id.to_string())
        .map_err(|_| Error::NotFound)
}

fn driver(driver: Option<v1::Driver>) -> Result<Driver, Error> {
    let v1::Driver { instance_id, epoch } = driver.ok_or_else(|| Error::invalid("driver", "must be set"))?;
    Ok(Driver {
        instance_id: filled(instance_id, "driver.instance_id")?,
        epoch,
    })
}

pub(super) fn open(user_id: String, request: v1::OpenGenerationRequest) -> Result<Open, Error> {
    let v1::OpenGenerationRequest {
        generation_id: id,
        provider,
        model,
        capability,
        origin: asked,
        parameters: bag,
        idempotency_key,
        input_fingerprint,
        estimate,
        unpriced_reason,
        background,
        instance_id,
        plan,
        parent_generation_id,
    } = request;
    if plan.as_ref().is_some_and(|plan| plan.len() > TOKEN_LIMIT) {
        return Err(Error::invalid(
            "plan",
            format!("is longer than {TOKEN_LIMIT} bytes"),
        ));
    }
    let parent = parent_generation_id.filter(|id| !id.is_empty());
    let parent = parent.map(|id| {
        Uuid::parse_str(&id)
            .map(|id| id.to_string())
            .map_err(|_| Error::invalid("parent_generation_id", "is not a UUID"))
    });
    if input_fingerprint.len() > TEXT_LIMIT {
        return Err(Error::invalid("input_fingerprint", "is not a SHA-256"));
    }
    let (estimate, warning) = charge::read(estimate.as_ref());
    Ok(Open {
        user_id,
        id: generation_id(&id)?,
        provider: filled(provider, "provider")?,
        model: filled(model, "model")?,
        capability: filled(capability, "capability")?,
        origin: origin(asked.unwrap_or_default())?,
        parameters: parameters(bag)?,
        idempotency_key: short(idempotency_key, "idempotency_key")?,
        input_fingerprint,
        estimate,
        warning,
        unpriced_reason: unpriced_reason.map(|reason| sanitise(&reason, TEXT_LIMIT)),
        background,
        instance_id: filled(instance_id, "instance_id")?,
        plan,
        parent: parent.transpose()?,
    })
}

fn origin(origin: Origin) -> Result<ledger::Origin, Error> {
    let Origin {
        surface,
        thread_id,
        tool_call_id,
        request_id,
        job_id,
        node_id,
        node_type,
        invocation_id,
        workflow_id,
        project_id,
    } = origin;
    let surface = match Surface::try_from(surface) {
        Err(_) => return Err(Error::invalid("origin.surface", "is not a surface")),
        Ok(Surface::Unspecified) if tool_call_id.is_some() => Surface::Capability,
        Ok(Surface::Unspecified) if thread_id.is_some() => Surface::Chat,
        Ok(Surface::Unspecified) if job_id.is_some() => Surface::Workflow,
        Ok(Surface::Unspecified) => Surface::Rpc,
        Ok(stated) => stated,
    };
    Ok(ledger::Origin {
        surface: surface.into(),
        thread_id: short(thread_id, "origin.thread_id")?,
        tool_call_id: short(tool_call_id, "origin.tool_call_id")?,
        request_id: short(request_id, "origin.request_id")?,
        job_id: short(job_id, "origin.job_id")?,
        node_id: short(node_id, "origin.node_id")?,
        node_type: short(node_type, "origin.node_type")?,
        invocation_id: short(invocation_id, "origin.invocation_id")?,
        workflow_id: short(workflow_id, "origin.workflow_id")?,
        project_id: short(project_id, "origin.project_id")?,
    })
}

fn parameters(bag: Option<MapValue>) -> Result<String, Error> {
    let map = Map::try_from(bag.unwrap_or_default())
        .map_err(|wrong| Error::invalid("parameters", wrong.to_string()))?;
    let text = to_json(&Value::map(map), BytesForm::Tagged).to_string();
    if text.len() > PARAMETERS_LIMIT {
        return Err(Error::invalid(
            "parameters",
            "are larger than 256 KiB after redaction",
        ));
    }
    Ok(text)
}

pub(super) fn mark(user_id: String, request: v1::MarkSubmittingRequest) -> Result<Mark, Error> {
    let v1::MarkSubmittingRequest {
        generation_id,
        driver: by,
    } = request;
    Ok(Mark {
        user_id,
        id: known_id(&generation_id)?,
        driver: driver(by)?,
    })
}

pub(super) fn bind(user_id: String, request: v1::BindAttemptRequest) -> Result<Bind, Error> {
    let v1::BindAttemptRequest {
        generation_id,
        driver: by,
        provider_request_id,
        resume_token,
        charge,
        kind,
    } = request;
    if resume_token
        .as_ref()
        .is_some_and(|token| token.len() > TOKEN_LIMIT)
    {
        return Err(Error::invalid("resume_token", "is longer than 64 KiB"));
    }
    let kind = kind.filter(|kind| !kind.is_empty());
    let kind =
        kind.map(|kind| AttemptKind::parse(&kind).ok_or_else(|| Error::invalid("kind", "is not a kind")));
    let (charge, warning) = charge::read(charge.as_ref());
    Ok(Bind {
        user_id,
        id: known_id(&generation_id)?,
        driver: driver(by)?,
        told: Told {
            request_id: short(provider_request_id, "provider_request_id")?,
            resume_token,
            charge,
            kind: kind.transpose()?,
        },
        warning,
    })
}

fn facets(told: Option<v1::Facets>) -> Facets {
    let v1::Facets {
        submission,
        provider,
        output,
    } = told.unwrap_or_default();
    Facets {
        submission: Submission::from_proto(submission),
        provider: ProviderState::from_proto(provider),
        output: OutputState::from_proto(output),
    }
}

pub(super) fn observe(user_id: String, request: v1::ObserveGenerationRequest) -> Result<Observe, Error> {
    let v1::ObserveGenerationRequest {
        generation_id,
        driver: by,
        facets: told,
    } = request;
    Ok(Observe {
        user_id,
        id: known_id(&generation_id)?,
        driver: driver(by)?,
        facets: facets(told),
    })
}

pub(super) fn close(user_id: String, request: v1::CloseGenerationRequest) -> Result<Close, Error> {
    let v1::CloseGenerationRequest {
        generation_id,
        driver: by,
        status,
        receipt,
        catalog_charge,
        unpriced_reason,
        asset_ids,
        persisted,
        error,
        error_code,
        duration,
        facets: told,
        input_tokens,
        output_tokens,
        evidence,
    } = request;
    let status = match Status::from_proto(status) {
        Some(status @ (Status::Completed | Status::Failed | Status::Cancelled)) => status,
        Some(Status::Running | Status::Interrupted) | None => {
            return Err(Error::invalid("status", "must be completed, failed or cancelled"));
        }
    };
    let v1::Receipt {
        provider_request_id,
        charge,
    } = receipt.unwrap_or_default();
    let (charge, wrong) = charge::read(charge.as_ref());
    let (catalog_charge, wrong_catalog) = charge::read(catalog_charge.as_ref());
    Ok(Close {
        user_id,
        id: known_id(&generation_id)?,
        driver: driver(by)?,
        status,
        request_id: short(provider_request_id, "receipt.provider_request_id")?,
        charge,
        catalog_charge,
        warnings: wrong.into_iter().chain(wrong_catalog).collect(),
        unpriced_reason: unpriced_reason.map(|reason| sanitise(&reason, TEXT_LIMIT)),
        asset_ids: assets(asset_ids)?,
        persisted: word(Some(persisted), "persisted", &PERSISTED)?,
        error: error.map(|error| sanitise(&error, ERROR_LIMIT)),
        error_code: code(error_code, status),
        duration: duration.and_then(duration_of),
        facets: facets(told),
        input_tokens: input_tokens.filter(|tokens| *tokens >= 0),
        output_tokens: output_tokens.filter(|tokens| *tokens >= 0),
        evidence,
    })
}

/// An outcome is never refused for the look of its code; what is no code becomes the plainest one.
fn code(told: Option<String>, status: Status) -> Option<String> {
    let clean = |code: &String| {
        (1..=64).contains(&code.len())
            && code
                .chars()
                .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
    };
    match (told, status) {
        (_, Status::Completed) => None,
        (Some(code), _) if clean(&code) => Some(code),
        (_, Status::Cancelled) => Some("CANCELLED".to_owned()),
        (_, Status::Failed | Status::Running | Status::Interrupted) => Some("PROVIDER_ERROR".to_owned()),
    }
}

pub(super) fn duration_of(duration: prost_types::Duration) -> Option<Duration> {
    let seconds = u64::try_from(duration.seconds).ok()?;
    Some(Duration::new(
        seconds,
        u32::try_from(duration.nanos).ok()?.min(999_999_999),
    ))
}

fn word(told: Option<String>, field: &'static str, words: &[&str]) -> Result<Option<String>, Error> {
    match told.filter(|word| !word.is_empty()) {
        Some(word) if !words.contains(&word.as_str()) => Err(Error::invalid(
            field,
            format!("must be one of {}", words.join(", ")),
        )),
        word => Ok(word),
    }
}

fn assets(ids: Vec<String>) -> Result<Vec<String>, Error> {
    if ids.len() > ASSETS_LIMIT {
        return Err(Error::invalid("asset_ids", "are too many"));
    }
    ids.into_iter().map(|id| filled(id, "asset_ids")).collect()
}

pub(super) fn annotate(user_id: String, request: v1::AnnotateGenerationRequest) -> Result<Annotate, Error> {
    let v1::AnnotateGenerationRequest {
        generation_id,
        receipt,
        asset_ids,
        provider_cancel,
    } = request;
    let v1::Receipt {
        provider_request_id,
        charge,
    } = receipt.unwrap_or_default();
    Ok(Annotate {
        user_id,
        id: known_id(&generation_id)?,
        late: Late {
            request_id: short(provider_request_id, "receipt.provider_request_id")?,
            charge: charge::read(charge.as_ref()).0,
            asset_ids: assets(asset_ids)?,
            provider_cancel: word(provider_cancel, "provider_cancel", &PROVIDER_CANCEL)?,
        },
    })
}

pub(super) fn node_cost(user_id: String, request: v1::RecordNodeCostRequest) -> Result<NodeCost, Error> {
    let v1::RecordNodeCostRequest {
        origin: asked,
        provider,
        model,
        charge,
        provider_request_id,
    } = request;
    let origin = origin(asked.unwrap_or_default())?;
    if origin.invocation_id.is_none() {
        return Err(Error::invalid("origin.invocation_id", "must be set"));
    }
    let charge = charge::strict(charge.as_ref(), "charge")?;
    Ok(NodeCost {
        user_id,
        origin,
        provider: filled(provider, "provider")?,
        model: short(Some(model), "model")?.unwrap_or_default(),
        charge: charge.ok_or_else(|| Error::invalid("charge", "must be set"))?,
        request_id: short(provider_request_id, "provider_request_id")?,
    })
}

pub(super) fn link(user_id: String, request: v1::LinkAssetsRequest) -> Result<Link, Error> {
    let v1::LinkAssetsRequest {
        generation_id,
        asset_ids,
    } = request;
    Ok(Link {
        user_id,
        id: known_id(&generation_id)?,
        asset_ids: assets(asset_ids)?,
    })
}

/// Most providers of one driver.
const PROVIDERS_LIMIT: usize = 256;

pub(super) fn hello(message: Option<v1::FollowRequest>) -> Result<Introduction, Error> {
    match message.and_then(|message| message.message) {
        Some(v1::follow_request::Message::Hello(v1::Hello {
            instance_id,
            service,
            sole_process,
            providers,
        })) => {
            if providers.len() > PROVIDERS_LIMIT {
                return Err(Error::invalid("hello.providers", "are too many"));
            }
            Ok(Introduction {
                instance_id: filled(instance_id, "hello.instance_id")?,
                service: sanitise(&service, 128),
                sole_process,
                providers: providers.into_iter().map(seated).collect::<Result<_, _>>()?,
            })
        }
        Some(_) | None => Err(Error::invalid("message", "the first one must be hello")),
    }
}

fn seated(seat: v1::ProviderSeat) -> Result<Seated, Error> {
    let v1::ProviderSeat {
        provider,
        resumable,
        credential,
    } = seat;
    Ok(Seated {
        provider: filled(provider, "hello.providers.provider")?,
        resumable,
        credential: short(Some(credential), "hello.providers.credential")?.unwrap_or_default(),
    })
}

pub(super) fn report(user_id: String, request: v1::ReportReconciliationRequest) -> Result<Report, Error> {
    let v1::ReportReconciliationRequest {
        generation_id,
        claim,
        manual,
        outcome,
        bills,
        error,
        credential,
    } = request;
    let mut outcome = match v1::ReconcileOutcome::try_from(outcome) {
        Ok(v1::ReconcileOutcome::Billed) => Outcome::Billed,
        Ok(v1::ReconcileOutcome::NotYet) => Outcome::NotYet,
        Ok(v1::ReconcileOutcome::Unsupported) => Outcome::Unsupported,
        Ok(v1::ReconcileOutcome::Denied) => Outcome::Denied,
        Ok(v1::ReconcileOutcome::Error) => Outcome::Error,
        Ok(v1::ReconcileOutcome::Unspecified) | Err(_) => {
            return Err(Error::invalid("outcome", "is not an outcome"));
        }
    };
    let mut error = error;
    let mut charges = Vec::with_capacity(bills.len());
    for bill in bills {
        // A bill that is no amount is an answer that cannot be read, and is asked for again.
        match charge::read(bill.charge.as_ref()) {
            (Some(charge), _) => charges.push((bill.attempt_number, charge)),
            (None, wrong) => {
                outcome = Outcome::Error;
                error = wrong.or(Some("a bill without an amount".to_owned()));
            }
        }
    }
    Ok(Report {
        user_id,
        id: known_id(&generation_id)?,
        claim: filled(claim, "claim")?,
        manual,
        outcome,
        bills: charges,
        error,
        credential: short(credential, "credential")?,
    })
}
