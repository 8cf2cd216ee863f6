//! Downloads, and who may see what.

use tonic::Code;

use crate::world::{Artifact, PNG, image, reason, worlds};

#[tokio::test]
async fn ranges_are_cut_at_the_end_and_counted_from_it() {
    for world in worlds().await {
        let bytes: Vec<u8> = (0..200_000_u32).map(|n| u8::try_from(n % 251).unwrap()).collect();
        let asset = world.upload("ramp", &bytes).await;
        for (offset, length, from, to) in [
            (None, None, 0, 200_000),
            (Some(0), Some(1), 0, 1),
            (Some(65_535), Some(65_538), 65_535, 131_073),
            (Some(199_999), Some(50), 199_999, 200_000),
            (Some(-1), None, 199_999, 200_000),
            (Some(-70_000), Some(10), 130_000, 130_010),
            (Some(-900_000), None, 0, 200_000),
            (Some(5), Some(0), 5, 5),
        ] {
            let (header, got) = world
                .download_as("1", &asset.asset_id, offset, length)
                .await
                .unwrap();
            assert_eq!(
                header.offset,
                i64::try_from(from).unwrap(),
                "{offset:?} {length:?} {}",
                world.name
            );
            assert_eq!(Some(got.as_slice()), bytes.get(from..to));
            assert_eq!(header.asset.as_ref(), Some(&asset));
        }
        for offset in [200_000, i64::MAX] {
            let refused = world
                .download_as("1", &asset.asset_id, Some(offset), None)
                .await
                .unwrap_err();
            assert_eq!(
                (refused.code(), reason(&refused).as_str()),
                (Code::OutOfRange, "RANGE_NOT_SATISFIABLE")
            );
        }
        let refused = world
            .download_as("1", &asset.asset_id, None, Some(-1))
            .await
            .unwrap_err();
        assert_eq!(reason(&refused), "INVALID_FIELD");
    }
}

#[tokio::test]
async fn g_134_what_is_somebody_elses_does_not_exist() {
    for world in worlds().await {
        let asset = world.upload("mine", PNG).await;
        let made_up = "01890000-0000-7000-8000-000000000000";
        for id in [asset.asset_id.as_str(), made_up, "no id", ""] {
            let refused = world.get_as("2", id).await.unwrap_err();
            let reference = world.get_as("2", made_up).await.unwrap_err();
            assert_eq!(
                (refused.code(), reason(&refused).as_str()),
                (Code::NotFound, "ASSET_NOT_FOUND")
            );
            assert_eq!(refused.message(), reference.message(), "{}", world.name);
            assert_eq!(refused.details(), reference.details());
            let refused = world.download_as("2", id, None, None).await.unwrap_err();
            assert_eq!(
                (refused.code(), refused.details()),
                (Code::NotFound, reference.details())
            );
        }
        let request = world.by("2", atelier_proto::asset::v1::ListAssetsRequest::default());
        assert!(
            world
                .client
                .clone()
                .list_assets(request)
                .await
                .unwrap()
                .into_inner()
                .assets
                .is_empty()
        );
    }
}

#[tokio::test]
async fn g_134_a_run_of_the_same_name_of_another_user_is_another_run() {
    for world in worlds().await {
        let mine = world
            .commit(&Artifact::of(serde_json::json!({"out": image(1)})))
            .await;
        let theirs = world
            .commit(&Artifact::of(serde_json::json!({"out": image(2)})).by("2"))
            .await;
        assert_ne!(mine.ids(), theirs.ids());
        assert_eq!(
            world.get_as("2", theirs.ids()[0]).await.unwrap(),
            theirs.assets[0]
        );
        assert_eq!(world.all().await, mine.assets, "{}", world.name);
    }
}
