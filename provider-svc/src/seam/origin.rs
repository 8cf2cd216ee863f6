//! Who asked, when the request says it only in part (generations specification 4.1).

use atelier_proto::common::v1::{Origin, Surface};

/// The origin with its surface. What the request says wins; else a tool call is a capability, a thread is a chat (also
/// when a run is nested in it), a run is a workflow, and everything else came over an API.
#[must_use]
pub fn complete(origin: Option<Origin>) -> Origin {
    let mut origin = origin.unwrap_or_default();
    if Surface::try_from(origin.surface).unwrap_or_default() == Surface::Unspecified {
        let surface = if origin.tool_call_id.is_some() {
            Surface::Capability
        } else if origin.thread_id.is_some() {
            Surface::Chat
        } else if origin.job_id.is_some() {
            Surface::Workflow
        } else {
            Surface::Rpc
        };
        origin.surface = surface.into();
    }
    origin
}

/// The idempotency key of a request: its own, else for a direct call the id that its client made before it asked.
#[must_use]
pub fn idempotency_key(given: Option<String>, origin: &Origin) -> Option<String> {
    let given = given.filter(|key| !key.is_empty());
    let direct = Surface::try_from(origin.surface) == Ok(Surface::Rpc);
    given.or_else(|| {
        origin
            .request_id
            .as_ref()
            .filter(|_| direct)
            .map(|id| format!("rpc:{id}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(origin: Origin) -> (Surface, Origin) {
        let origin = complete(Some(origin));
        (Surface::try_from(origin.surface).expect("known"), origin)
    }

    #[test]
    fn g_023_inside_a_run_the_surface_is_workflow() {
        let given = Origin {
            job_id: Some("j1".to_owned()),
            node_id: Some("n1".to_owned()),
            invocation_id: Some("j1:n1:0".to_owned()),
            ..Origin::default()
        };
        let (surface, origin) = of(given.clone());
        assert_eq!(surface, Surface::Workflow);
        assert_eq!(
            origin,
            Origin {
                surface: Surface::Workflow.into(),
                ..given
            }
        );
    }

    #[test]
    fn g_024_a_chat_with_a_nested_run_is_a_chat() {
        let (surface, origin) = of(Origin {
            job_id: Some("j1".to_owned()),
            thread_id: Some("t1".to_owned()),
            ..Origin::default()
        });
        assert_eq!((surface, origin.job_id.as_deref()), (Surface::Chat, Some("j1")));
        assert_eq!(origin.thread_id.as_deref(), Some("t1"));
    }

    #[test]
    fn g_025_a_stated_surface_wins_and_absent_ids_stay_absent() {
        let (surface, origin) = of(Origin {
            surface: Surface::Chat.into(),
            job_id: Some("j1".to_owned()),
            ..Origin::default()
        });
        assert_eq!((surface, origin.thread_id), (Surface::Chat, None));
        assert_eq!(
            of(Origin {
                tool_call_id: Some("c".to_owned()),
                ..Origin::default()
            })
            .0,
            Surface::Capability
        );
        assert_eq!(of(Origin::default()).0, Surface::Rpc);
    }

    #[test]
    fn direct_calls_are_keyed_by_their_request_id() {
        let direct = Origin {
            request_id: Some("q".to_owned()),
            surface: Surface::Rpc.into(),
            ..Origin::default()
        };
        assert_eq!(idempotency_key(None, &direct).as_deref(), Some("rpc:q"));
        assert_eq!(
            idempotency_key(Some("k".to_owned()), &direct).as_deref(),
            Some("k")
        );
        let run = Origin {
            surface: Surface::Workflow.into(),
            ..direct
        };
        assert_eq!(idempotency_key(Some(String::new()), &run), None);
    }
}
