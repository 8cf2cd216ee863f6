//! Pages.

use atelier_proto::asset::v1::{Asset, ListAssetsRequest, UploadHeader};

use crate::world::{PNG, World, reason, worlds};

async fn fill(world: &World) -> Vec<Asset> {
    let mut assets = Vec::new();
    for n in 0..7_u8 {
        let header = UploadHeader {
            name: Some(format!("{n}")),
            job_id: Some(format!("job-{}", n % 2)),
            node_id: Some(format!("node-{}", n % 3)),
            ..UploadHeader::default()
        };
        let bytes: &[u8] = if n % 2 == 0 { PNG } else { b"some text" };
        assets.push(world.upload_as("1", header, bytes).await.unwrap().asset.unwrap());
    }
    assets.reverse();
    assets
}

#[tokio::test]
async fn pages_are_newest_first_and_miss_nothing() {
    for world in worlds().await {
        let all = fill(&world).await;
        let mut found = Vec::new();
        let mut request = ListAssetsRequest {
            page_size: 3,
            ..ListAssetsRequest::default()
        };
        let mut pages = 0;
        loop {
            let page = world.list(request.clone()).await.unwrap();
            found.extend(page.assets);
            pages += 1;
            if page.next_page_token.is_empty() {
                break;
            }
            // What comes in between is not in the way.
            world.upload("later", b"later").await;
            request.page_token = page.next_page_token;
        }
        assert_eq!(pages, 3, "{}", world.name);
        assert_eq!(found, all);
    }
}

#[tokio::test]
async fn filters_are_joined_by_and() {
    for world in worlds().await {
        let all = fill(&world).await;
        let none = ListAssetsRequest::default();
        let text = |text: &str| Some(text.to_owned());
        let cases = [
            (
                ListAssetsRequest {
                    job_id: text("job-0"),
                    ..none.clone()
                },
                vec!["6", "4", "2", "0"],
            ),
            (
                ListAssetsRequest {
                    job_id: text("job-0"),
                    node_id: text("node-0"),
                    ..none.clone()
                },
                vec!["6", "0"],
            ),
            (
                ListAssetsRequest {
                    content_type: text("image"),
                    ..none.clone()
                },
                vec!["6", "4", "2", "0"],
            ),
            (
                ListAssetsRequest {
                    content_type: text("text/plain"),
                    ..none.clone()
                },
                vec!["5", "3", "1"],
            ),
            (
                ListAssetsRequest {
                    content_type: text("image/jpeg"),
                    ..none.clone()
                },
                vec![],
            ),
            (
                ListAssetsRequest {
                    since: all[2].created_at,
                    ..none.clone()
                },
                vec!["6", "5", "4"],
            ),
        ];
        for (request, expected) in cases {
            let found = world.list(request.clone()).await.unwrap().assets;
            let names: Vec<_> = found
                .iter()
                .map(|asset| asset.name.split('.').next().unwrap())
                .collect();
            assert_eq!(names, expected, "{request:?} {}", world.name);
        }
    }
}

#[tokio::test]
async fn a_token_belongs_to_one_list() {
    for world in worlds().await {
        fill(&world).await;
        let request = ListAssetsRequest {
            page_size: 2,
            ..ListAssetsRequest::default()
        };
        let token = world.list(request.clone()).await.unwrap().next_page_token;
        let other = ListAssetsRequest {
            page_token: token.clone(),
            job_id: Some("job-0".to_owned()),
            ..request.clone()
        };
        assert_eq!(
            reason(&world.list(other).await.unwrap_err()),
            "INVALID_PAGE_TOKEN",
            "{}",
            world.name
        );
        for bad in ["x", "e30", "%", &token[1..]] {
            let bad = ListAssetsRequest {
                page_token: bad.to_owned(),
                ..request.clone()
            };
            assert_eq!(reason(&world.list(bad).await.unwrap_err()), "INVALID_PAGE_TOKEN");
        }
        let theirs = world.by(
            "2",
            ListAssetsRequest {
                page_token: token,
                ..request.clone()
            },
        );
        let refused = world.client.clone().list_assets(theirs).await.unwrap_err();
        assert_eq!(reason(&refused), "INVALID_PAGE_TOKEN");
        let negative = ListAssetsRequest {
            page_size: -1,
            ..request
        };
        assert_eq!(reason(&world.list(negative).await.unwrap_err()), "INVALID_FIELD");
    }
}
