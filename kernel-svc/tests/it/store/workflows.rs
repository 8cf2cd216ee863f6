//! Saved workflows: records, versions, pages.

use atelier_common::{
    clock::Clock,
    identity::Caller,
    testkit::{TestDb, engines},
};
use atelier_kernel::{
    error::Error,
    migration::Migrator,
    workflows::{Expected, Saved, Store, to_proto},
};
use atelier_proto::kernel::v1::{
    CreateWorkflowRequest, ListWorkflowVersionsRequest, ListWorkflowsRequest, Tags, UpdateWorkflowRequest,
};
use serde_json::json;

async fn stores() -> Vec<(Store, TestDb)> {
    let mut stores = Vec::new();
    for db in engines().await {
        db.migrate::<Migrator>().await.unwrap();
        // A clock that stands still: all rows are equally old.
        let clock = Clock::manual("2026-11-30T12:00:00Z".parse().unwrap());
        stores.push((Store::new(db.db().clone(), clock), db));
    }
    stores
}
fn user(id: &str) -> Caller {
    Caller::new(id, ["*"])
}
fn graph(text: &str) -> String {
    json!({"nodes": [{"id": "a", "type": "nodetool.constant.String", "data": {"value": text}}], "edges": []})
        .to_string()
}
fn named(name: &str) -> CreateWorkflowRequest {
    CreateWorkflowRequest {
        name: name.to_owned(),
        graph_json: graph("one"),
        ..CreateWorkflowRequest::default()
    }
}
async fn create(store: &Store, caller: &Caller, request: CreateWorkflowRequest) -> Saved {
    let (saved, created) = store.create(caller, request).await.unwrap();
    assert!(created);
    saved
}
fn save(saved: &Saved, text: &str) -> UpdateWorkflowRequest {
    UpdateWorkflowRequest {
        workflow_id: saved.row.workflow_id.clone(),
        graph_json: Some(graph(text)),
        ..UpdateWorkflowRequest::default()
    }
}
fn etag(saved: &Saved) -> String {
    to_proto(saved.row.clone(), None).unwrap().etag
}

#[tokio::test]
async fn a_save_of_another_graph_is_a_version_and_a_save_of_the_same_is_none() {
    for (store, db) in stores().await {
        let me = user("1");
        let first = create(&store, &me, named("Postcards")).await;
        assert_eq!(
            (first.row.version, first.row.node_count),
            (1, 1),
            "{}",
            db.engine()
        );
        let (second, changed) = store.update(&me, save(&first, "two")).await.unwrap();
        assert!(changed && second.row.version == 2 && second.graph == graph("two"));
        // Other spaces and another order of fields are the same graph.
        let same = r#"{ "edges": [], "nodes": [{"type": "nodetool.constant.String", "id": "a", "data": {"value": "two"}}]}"#;
        let request = UpdateWorkflowRequest {
            graph_json: Some(same.to_owned()),
            ..save(&first, "")
        };
        let (third, changed) = store.update(&me, request).await.unwrap();
        assert!(!changed && third == second);
        let request = UpdateWorkflowRequest {
            graph_json: None,
            name: Some("Cards".to_owned()),
            ..save(&first, "")
        };
        let (renamed, changed) = store.update(&me, request).await.unwrap();
        assert!(changed && renamed.row.version == 2 && renamed.row.name == "Cards");
        assert_ne!(etag(&renamed), etag(&second));
        let id = first.row.workflow_id.as_str();
        assert_eq!(
            store.version(&me, id, Some(1)).await.unwrap().1.graph,
            graph("one")
        );
        assert_eq!(store.version(&me, id, None).await.unwrap().1.graph, graph("two"));
        let missing = store.version(&me, id, Some(3)).await;
        assert!(matches!(missing, Err(Error::VersionNotFound { version: 3, .. })));
    }
}
#[tokio::test]
async fn w_146_a_save_over_somebody_elses_is_refused_and_changes_nothing() {
    for (store, db) in stores().await {
        let me = user("1");
        let first = create(&store, &me, named("Postcards")).await;
        let (second, _) = store.update(&me, save(&first, "two")).await.unwrap();
        for (version, tag) in [(Some(1), None), (None, Some(etag(&first)))] {
            let late = UpdateWorkflowRequest {
                expected_version: version,
                expected_etag: tag,
                ..save(&first, "late")
            };
            let refused = store.update(&me, late).await.unwrap_err();
            let Error::WorkflowChanged {
                version, etag: told, ..
            } = refused
            else {
                panic!("{refused:?}")
            };
            assert_eq!((version, told), (2, etag(&second)), "{}", db.engine());
        }
        assert_eq!(store.get(&me, &first.row.workflow_id).await.unwrap(), second);
        // A repeat of the save that won, whose answer was lost, is no conflict.
        let again = UpdateWorkflowRequest {
            expected_version: Some(1),
            ..save(&first, "two")
        };
        let (same, changed) = store.update(&me, again).await.unwrap();
        assert!(!changed && same == second);
        let quoted = UpdateWorkflowRequest {
            expected_etag: Some(format!("\"{}\"", etag(&second))),
            ..save(&first, "three")
        };
        assert_eq!(store.update(&me, quoted).await.unwrap().0.row.version, 3);
    }
}
#[tokio::test]
async fn saves_at_once_are_versions_one_after_the_other() {
    for (store, db) in stores().await {
        let me = user("1");
        let first = create(&store, &me, named("Postcards")).await;
        let texts: Vec<String> = (0..6).map(|number| format!("text {number}")).collect();
        let saves = texts.iter().map(|text| store.update(&me, save(&first, text)));
        for done in futures_util::future::join_all(saves).await {
            assert!(done.unwrap().1, "{}", db.engine());
        }
        let request = ListWorkflowVersionsRequest {
            workflow_id: first.row.workflow_id.clone(),
            ..ListWorkflowVersionsRequest::default()
        };
        let page = store.versions(&me, &request).await.unwrap();
        let numbers: Vec<i64> = page.rows.iter().map(|row| row.version).collect();
        assert_eq!(numbers, [7, 6, 5, 4, 3, 2, 1]);
        assert!(
            page.rows
                .iter()
                .all(|row| row.graph.is_empty() && row.graph_bytes > 0)
        );
        // Those who expect a version: exactly one wins.
        let request = |text: &str| UpdateWorkflowRequest {
            expected_version: Some(7),
            ..save(&first, text)
        };
        let saves = ["x", "y", "z"].map(|text| store.update(&me, request(text)));
        let won = futures_util::future::join_all(saves).await;
        assert_eq!(
            won.iter().filter(|done| done.is_ok()).count(),
            1,
            "{}",
            db.engine()
        );
    }
}
#[tokio::test]
async fn an_older_version_is_brought_back_as_a_new_one() {
    for (store, db) in stores().await {
        let me = user("1");
        let first = create(&store, &me, named("Postcards")).await;
        let id = first.row.workflow_id.as_str();
        store.update(&me, save(&first, "two")).await.unwrap();
        let (restored, changed) = store.restore(&me, id, 1, &Expected::default()).await.unwrap();
        assert!(
            changed && restored.row.version == 3 && restored.graph == graph("one"),
            "{}",
            db.engine()
        );
        let (_, version) = store.version(&me, id, Some(3)).await.unwrap();
        assert_eq!(version.restored_from, Some(1));
        let (same, changed) = store.restore(&me, id, 3, &Expected::default()).await.unwrap();
        assert!(!changed && same == restored);
        let missing = store.restore(&me, id, 9, &Expected::default()).await;
        assert!(matches!(missing, Err(Error::VersionNotFound { version: 9, .. })));
        let late = Expected {
            version: Some(1),
            etag: None,
        };
        let late = store.restore(&me, id, 2, &late).await;
        assert!(matches!(late, Err(Error::WorkflowChanged { version: 3, .. })));
    }
}
#[tokio::test]
async fn the_same_creation_again_is_the_same_workflow() {
    for (store, db) in stores().await {
        let me = user("1");
        let keyed = || CreateWorkflowRequest {
            idempotency_key: "k".to_owned(),
            ..named("Postcards")
        };
        let asked = (0..8).map(|_| store.create(&me, keyed()));
        let answers = futures_util::future::try_join_all(asked).await.unwrap();
        let made = answers.iter().filter(|(_, created)| *created).count();
        assert_eq!(made, 1, "{}", db.engine());
        assert!(answers.iter().all(|(saved, _)| saved == &answers[0].0));
        let other = CreateWorkflowRequest {
            name: "Other".to_owned(),
            ..keyed()
        };
        assert!(matches!(store.create(&me, other).await, Err(Error::IdempotencyConflict(key)) if key == "k"));
        // Somebody else's key is another key.
        assert!(store.create(&user("2"), keyed()).await.unwrap().1);
        let chosen = || CreateWorkflowRequest {
            workflow_id: "w".to_owned(),
            ..named("Chosen")
        };
        assert!(store.create(&me, chosen()).await.unwrap().1);
        assert!(!store.create(&me, chosen()).await.unwrap().1);
        let other = CreateWorkflowRequest {
            graph_json: graph("other"),
            ..chosen()
        };
        assert!(matches!(store.create(&me, other).await, Err(Error::WorkflowIdUsed(id)) if id == "w"));
    }
}
#[tokio::test]
async fn what_belongs_to_others_or_was_deleted_is_not_there() {
    for (store, db) in stores().await {
        let (me, you) = (user("1"), user("2"));
        let mine = create(&store, &me, named("Mine")).await;
        let id = mine.row.workflow_id.as_str();
        let text = |error: Error| error.to_string().replace(id, "ID");
        let missing = store.get(&you, "nothing").await.unwrap_err().to_string();
        let missing = missing.replace("nothing", "ID");
        let none = Expected::default();
        let versions = ListWorkflowVersionsRequest {
            workflow_id: id.to_owned(),
            ..ListWorkflowVersionsRequest::default()
        };
        assert_eq!(
            text(store.get(&you, id).await.unwrap_err()),
            missing,
            "{}",
            db.engine()
        );
        assert_eq!(
            text(store.update(&you, save(&mine, "x")).await.unwrap_err()),
            missing
        );
        assert_eq!(text(store.delete(&you, id, &none).await.unwrap_err()), missing);
        assert_eq!(text(store.version(&you, id, Some(1)).await.unwrap_err()), missing);
        assert_eq!(
            text(store.restore(&you, id, 1, &none).await.unwrap_err()),
            missing
        );
        assert_eq!(
            text(store.versions(&you, &versions).await.err().unwrap()),
            missing
        );
        assert!(
            store
                .list(&you, &ListWorkflowsRequest::default())
                .await
                .unwrap()
                .rows
                .is_empty()
        );
        let stale = Expected {
            version: None,
            etag: Some("stale".to_owned()),
        };
        assert!(matches!(
            store.delete(&me, id, &stale).await,
            Err(Error::WorkflowChanged { .. })
        ));
        store.delete(&me, id, &none).await.unwrap();
        assert_eq!(text(store.get(&me, id).await.unwrap_err()), missing);
        assert_eq!(text(store.delete(&me, id, &none).await.unwrap_err()), missing);
        assert!(
            store
                .list(&me, &ListWorkflowsRequest::default())
                .await
                .unwrap()
                .rows
                .is_empty()
        );
    }
}
#[tokio::test]
async fn pages_hold_each_workflow_once_and_filters_find_words() {
    for (store, db) in stores().await {
        let me = user("1");
        for number in 0..12 {
            let request = CreateWorkflowRequest {
                description: format!(
                    "Draws 100% of the {}",
                    if number % 2 == 0 { "Sea" } else { "moor" }
                ),
                tags: Some(Tags {
                    values: vec![format!("Tag {number}"), "all".to_owned()],
                }),
                run_mode: (number == 3).then(|| "chat".to_owned()),
                ..named(&format!("Ärger_{number}"))
            };
            create(&store, &me, request).await;
        }
        let list = |request: ListWorkflowsRequest| {
            let (store, me) = (&store, &me);
            async move { store.list(me, &request).await }
        };
        let of = |page_size: i32, page_token: &str| ListWorkflowsRequest {
            page_size,
            page_token: page_token.to_owned(),
            ..ListWorkflowsRequest::default()
        };
        let (mut names, mut token) = (Vec::new(), String::new());
        loop {
            let page = list(of(5, &token)).await.unwrap();
            names.extend(page.rows.into_iter().map(|row| row.name));
            token = page.next;
            if token.is_empty() {
                break;
            }
        }
        let newest_first: Vec<_> = (0..12).rev().map(|number| format!("Ärger_{number}")).collect();
        assert_eq!(names, newest_first, "{}", db.engine());
        let count = |request: ListWorkflowsRequest| async { list(request).await.unwrap().rows.len() };
        let words = |query: &str| ListWorkflowsRequest {
            query: query.to_owned(),
            ..ListWorkflowsRequest::default()
        };
        for (query, found) in [
            ("sea", 6),
            ("SEA ärger_1", 1),
            ("ärger%", 0),
            ("100%", 12),
            ("ärger_1", 3),
            ("sea moor", 0),
            ("\\", 0),
        ] {
            assert_eq!(count(words(query)).await, found, "{query} on {}", db.engine());
        }
        let tag = |tag: &str| ListWorkflowsRequest {
            tag: Some(tag.to_owned()),
            ..ListWorkflowsRequest::default()
        };
        for (text, found) in [("ALL", 12), ("tag 1", 1), ("tag", 0)] {
            assert_eq!(count(tag(text)).await, found, "{text} on {}", db.engine());
        }
        let mode = |mode: &str| ListWorkflowsRequest {
            run_mode: Some(mode.to_owned()),
            ..ListWorkflowsRequest::default()
        };
        assert_eq!(
            (count(mode("workflow")).await, count(mode("chat")).await),
            (11, 1)
        );
        let name = ListWorkflowsRequest {
            name: Some("Ärger_7".to_owned()),
            ..ListWorkflowsRequest::default()
        };
        assert_eq!(count(name).await, 1);
        let token = list(of(5, "")).await.unwrap().next;
        for request in [
            ListWorkflowsRequest {
                query: "sea".to_owned(),
                ..of(5, &token)
            },
            of(5, "nonsense"),
        ] {
            assert!(matches!(list(request).await, Err(Error::InvalidPageToken)));
        }
        assert!(matches!(
            list(of(-1, "")).await,
            Err(Error::InvalidField {
                field: "page_size",
                ..
            })
        ));
        assert!(matches!(
            list(mode("song")).await,
            Err(Error::InvalidField {
                field: "run_mode",
                ..
            })
        ));
    }
}
#[tokio::test]
async fn bad_fields_are_named_and_nothing_is_saved() {
    for (store, db) in stores().await {
        let me = user("1");
        let large = json!({"nodes": [], "edges": [], "x": "y".repeat(8 * 1024 * 1024)}).to_string();
        let with = |change: &dyn Fn(&mut CreateWorkflowRequest)| {
            let mut request = named("Fine");
            change(&mut request);
            request
        };
        let tags = |values: Vec<String>| Some(Tags { values });
        let cases: Vec<(&str, CreateWorkflowRequest)> = vec![
            ("name", with(&|request| request.name = "  ".to_owned())),
            ("name", with(&|request| request.name = "n".repeat(201))),
            ("name", with(&|request| request.name = "a\nb".to_owned())),
            (
                "description",
                with(&|request| request.description = "d".repeat(20_001)),
            ),
            (
                "description",
                with(&|request| request.description = "a\0b".to_owned()),
            ),
            ("tags", with(&|request| request.tags = tags(vec![String::new()]))),
            (
                "tags",
                with(&|request| request.tags = tags(vec!["t".to_owned(); 65])),
            ),
            (
                "settings_json",
                with(&|request| request.settings_json = "[1]".to_owned()),
            ),
            (
                "settings_json",
                with(&|request| request.settings_json = "{".to_owned()),
            ),
            ("extra_json", with(&|request| request.extra_json = "7".to_owned())),
            (
                "run_mode",
                with(&|request| request.run_mode = Some("song".to_owned())),
            ),
            (
                "workflow_id",
                with(&|request| request.workflow_id = "i".repeat(129)),
            ),
            (
                "idempotency_key",
                with(&|request| request.idempotency_key = "k".repeat(201)),
            ),
            ("note", with(&|request| request.note = "n".repeat(2_001))),
            (
                "graph_json",
                with(&|request| request.graph_json.clone_from(&large)),
            ),
        ];
        for (field, request) in cases {
            let refused = store.create(&me, request).await.unwrap_err();
            assert!(
                matches!(&refused, Error::InvalidField { field: named, .. } if *named == field),
                "{field}: {refused:?}"
            );
        }
        for (graph, told) in [
            ("{", "not JSON"),
            (r#"{"nodes": []}"#, "edges"),
            (r#"{"nodes": [{"id": "a"}], "edges": []}"#, "node number 0"),
            (r#"{"nodes": [], "edges": [{"source": "a"}]}"#, "edge number 0"),
        ] {
            let refused = store
                .create(&me, with(&|request| request.graph_json = graph.to_owned()))
                .await
                .unwrap_err();
            let Error::MalformedGraph(text) = refused else {
                panic!("{refused:?}")
            };
            assert!(text.contains(told), "{text}");
        }
        let saved = store.list(&me, &ListWorkflowsRequest::default()).await.unwrap();
        assert!(saved.rows.is_empty(), "{}", db.engine());
        let fine = create(&store, &me, named("Fine")).await;
        let bad = UpdateWorkflowRequest {
            name: Some("New".to_owned()),
            graph_json: Some("{}".to_owned()),
            ..save(&fine, "")
        };
        assert!(matches!(
            store.update(&me, bad).await,
            Err(Error::MalformedGraph(_))
        ));
        assert_eq!(store.get(&me, &fine.row.workflow_id).await.unwrap(), fine);
    }
}
