//! Questions of users as domain values. What is wrong is named.

use std::time::Duration;

use atelier_proto::common::v1::Surface;
use atelier_proto::time::micros_from_proto;
use atelier_proto::tracker::v1;

use super::parse::{duration_of, filled};
use crate::costs::Group;
use crate::entity::words::{ReconcileState, Status};
use crate::error::Error;
use crate::filter::Filter;
use crate::runs::CancelRun;

/// How long a row is waited for when nothing is said.
const PATIENCE: Duration = Duration::from_secs(300);
/// How long a row is waited for at most.
const LONGEST_PATIENCE: Duration = Duration::from_secs(1_800);
/// Most correlation ids of one look-up.
const LOOKUP_LIMIT: usize = 100;

pub(super) fn filter(user_id: String, filter: Option<v1::GenerationFilter>) -> Result<Filter, Error> {
    let v1::GenerationFilter {
        status,
        provider,
        model,
        capability,
        job_id,
        node_id,
        thread_id,
        surface,
        since,
        until,
        workflow_id,
        project_id,
        background,
        has_cost,
        reconcile_state,
    } = filter.unwrap_or_default();
    let known =
        |number| Status::from_proto(number).ok_or_else(|| Error::invalid("filter.status", "is not a status"));
    let surface = surface.map(|number| match Surface::try_from(number) {
        Ok(surface) if surface != Surface::Unspecified => Ok(number),
        Ok(_) | Err(_) => Err(Error::invalid("filter.surface", "is not a surface")),
    });
    let reconcile_state = reconcile_state.map(|word| {
        ReconcileState::parse(&word)
            .ok_or_else(|| Error::invalid("filter.reconcile_state", "is not a state of a reconciliation"))
    });
    Ok(Filter {
        user_id,
        all_users: false,
        status: status.map(known).transpose()?,
        provider,
        model,
        capability,
        job_id,
        node_id,
        thread_id,
        workflow_id,
        project_id,
        background,
        has_cost,
        reconcile_state: reconcile_state.transpose()?,
        surface: surface.transpose()?,
        since: since.as_ref().map(micros_from_proto),
        until: until.as_ref().map(micros_from_proto),
    })
}

pub(super) fn group(number: i32) -> Result<Group, Error> {
    match v1::CostGroup::try_from(number) {
        Ok(v1::CostGroup::Unspecified) => Ok(Group::Nothing),
        Ok(v1::CostGroup::Provider) => Ok(Group::Provider),
        Ok(v1::CostGroup::Model) => Ok(Group::Model),
        Ok(v1::CostGroup::Capability) => Ok(Group::Capability),
        Ok(v1::CostGroup::Job) => Ok(Group::Job),
        Ok(v1::CostGroup::Day) => Ok(Group::Day),
        Ok(v1::CostGroup::Node) => Ok(Group::Node),
        Ok(v1::CostGroup::Project) => Ok(Group::Project),
        Ok(v1::CostGroup::Surface) => Ok(Group::Surface),
        Ok(v1::CostGroup::User) => Ok(Group::User),
        Err(_) => Err(Error::invalid("group", "is not a group")),
    }
}

/// Correlation ids to look up.
pub(super) fn request_ids(request: v1::LookupGenerationsRequest) -> Result<Vec<String>, Error> {
    let v1::LookupGenerationsRequest { request_ids } = request;
    if request_ids.len() > LOOKUP_LIMIT {
        return Err(Error::invalid(
            "request_ids",
            format!("must be at most {LOOKUP_LIMIT}"),
        ));
    }
    request_ids
        .into_iter()
        .map(|id| filled(id, "request_ids"))
        .collect()
}

/// The run whose rows are to be cancelled.
pub(super) fn cancel_run(user_id: String, request: v1::CancelGenerationsRequest) -> Result<CancelRun, Error> {
    let v1::CancelGenerationsRequest {
        job_id,
        include_background,
    } = request;
    Ok(CancelRun {
        user_id,
        job_id: filled(job_id, "job_id")?,
        background: include_background,
    })
}

/// How long to wait for a row.
pub(super) fn patience(timeout: Option<prost_types::Duration>) -> Result<Duration, Error> {
    let Some(prost_types::Duration { seconds, nanos }) = timeout else {
        return Ok(PATIENCE);
    };
    if seconds < 0 || nanos < 0 {
        return Err(Error::invalid("timeout", "must not be negative"));
    }
    let asked = duration_of(prost_types::Duration { seconds, nanos }).unwrap_or(LONGEST_PATIENCE);
    Ok(if asked.is_zero() {
        PATIENCE
    } else {
        asked.min(LONGEST_PATIENCE)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g_130_patience_has_its_bounds() {
        let asked = |seconds| patience(Some(prost_types::Duration { seconds, nanos: 0 }));
        assert_eq!(patience(None).expect("patience"), PATIENCE);
        assert_eq!(asked(0).expect("patience").as_secs(), 300);
        assert_eq!(asked(7).expect("patience").as_secs(), 7);
        assert_eq!(asked(5_000).expect("patience").as_secs(), 1_800);
        assert_eq!(asked(i64::MAX).expect("patience").as_secs(), 1_800);
        assert!(asked(-1).is_err());
    }
}
