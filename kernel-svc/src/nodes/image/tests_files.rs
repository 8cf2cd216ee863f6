//! Pictures from files and to them, one by one and as whole folders.

use std::sync::Arc;

use atelier_proto::{
    kernel::v1::JobStatus,
    value::{Map, Value},
};
use rstest::rstest;
use serde_json::{Value as Json, json};

use crate::nodes::media_testing::{Local, call, context, graph, grey, inputs, node, only, reds, run_file};

/// A folder, a chain on each picture, and all of them again.
#[tokio::test]
async fn a_folder_is_worked_through() {
    let folder = tempfile::tempdir().expect("a folder");
    let photos = folder.path().join("photos");
    std::fs::create_dir(&photos).expect("a folder");
    for (name, values) in [("b.png", [0, 100]), ("a.png", [50, 100])] {
        let data = grey(2, &values)
            .as_media()
            .and_then(|media| media.data.clone())
            .expect("bytes");
        std::fs::write(photos.join(name), data).expect("a file");
    }
    std::fs::write(photos.join("notes.txt"), "no picture").expect("a file");
    let services = Arc::new(Local {
        workspace: Some(folder.path().to_owned()),
        ..Local::default()
    });
    let nodes = json!([
        ["folder", "nodetool.image.LoadImageFolder", {"folder": "./photos"}],
        ["stretch", "lib.image.enhance.AutoContrast", {}],
        ["all", "nodetool.control.Collect", {}],
        ["paths", "nodetool.control.Collect", {}],
        ["out", "nodetool.output.Output", {"name": "pictures"}],
        ["names", "nodetool.output.Output", {"name": "names"}],
    ]);
    let edges = [
        "folder.image -> stretch.image",
        "stretch.output -> all.input_item",
        "all.output -> out.value",
        "folder.path -> paths.input_item",
        "paths.output -> names.value",
    ];
    let (result, artifacts) = graph(nodes, &edges, Map::new(), services).await;
    assert_eq!(result.status, JobStatus::Completed, "{:?}", result.error);
    assert_eq!(artifacts.iter().filter(|(id, _)| id == "stretch").count(), 2);
    let pictures = only(&result, "pictures").as_list().expect("a list").to_vec();
    assert_eq!(
        pictures.iter().map(reds).collect::<Vec<_>>(),
        [[0, 255], [0, 255]]
    );
    assert_eq!(
        only(&result, "names"),
        Value::list(vec!["photos/a.png".into(), "photos/b.png".into()])
    );
}

#[rstest]
#[case("../secret.png")]
#[case("/etc/hostname")]
#[case("photos/../../secret.png")]
#[case("link/secret.png")]
#[tokio::test]
async fn files_beyond_the_workspace_are_out_of_reach(#[case] path: &str) {
    let outer = tempfile::tempdir().expect("a folder");
    let folder = outer.path().join("workspace");
    std::fs::create_dir(&folder).expect("a folder");
    std::fs::write(outer.path().join("secret.png"), "secret").expect("a file");
    std::os::unix::fs::symlink(outer.path(), folder.join("link")).expect("a link");
    let services = Arc::new(Local {
        workspace: Some(folder.clone()),
        ..Local::default()
    });
    let ctx = context("nodetool.image.LoadImageFile", Arc::clone(&services));
    let error = call(&ctx, inputs(json!({"path": path}), &[]))
        .await
        .expect_err("a fault");
    assert_eq!(
        error.message,
        "the input `path` must be a path within the workspace folder"
    );
    let image = grey(1, &[1]);
    let write = context("nodetool.image.SaveImageFile", services);
    let away = std::path::Path::new(path)
        .parent()
        .expect("a folder")
        .to_string_lossy()
        .into_owned();
    let params = json!({"folder": away, "filename": "x.png"});
    let error = call(&write, inputs(params, &[("image", &image)]))
        .await
        .expect_err("a fault");
    assert_eq!(
        error.message,
        "the input `folder` must be a path within the workspace folder"
    );
    assert_eq!(
        std::fs::read_dir(outer.path()).expect("entries").count(),
        2,
        "nothing was written"
    );
}

#[tokio::test]
async fn pictures_are_saved_and_loaded_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let services = Arc::new(Local {
        workspace: Some(folder.path().to_owned()),
        ..Local::default()
    });
    let image = grey(2, &[10, 200]);
    let save = context("nodetool.image.SaveImageFile", Arc::clone(&services));
    for expected in ["out/a.bmp", "out/a_1.bmp"] {
        let params = json!({"folder": "out", "filename": "a.bmp"});
        call(&save, inputs(params, &[("image", &image)]))
            .await
            .expect("saved");
        assert!(folder.path().join(expected).is_file(), "{expected}");
    }
    let load = context("nodetool.image.LoadImageFile", Arc::clone(&services));
    let out = call(&load, inputs(json!({"path": "out/a_1.bmp"}), &[]))
        .await
        .expect("a picture");
    assert_eq!(out["output"].get("mime_type"), Some("image/bmp".into()));
    let grey = node("lib.image.filter.Invert", json!({}), &[("image", &out["output"])])
        .await
        .expect("a picture");
    assert_eq!(reds(&grey["output"]), [245, 55]);
    let error = call(&save, inputs(json!({"filename": "a.exe"}), &[("image", &image)]))
        .await
        .expect_err("a fault");
    assert_eq!(
        error.message,
        "the input `filename` must end with .png, .jpg, .webp, .gif or .bmp, got .exe"
    );
    let asset = context("nodetool.image.SaveImage", Arc::clone(&services));
    let out = call(&asset, inputs(json!({"name": "%Y.png"}), &[("image", &image)]))
        .await
        .expect("stored");
    assert_eq!(out["output"].get("asset_id"), Some("a1".into()));
    let saved = services.saved.lock().expect("assets");
    assert_eq!(
        (saved[0].mime_type.as_str(), saved[0].name.len()),
        ("image/png", "2026.png".len())
    );
}

/// The field's file for photos, up to the node that asks a provider.
#[tokio::test]
async fn the_photo_enhancement_file_runs_on_real_bytes() {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/spec");
    let specs = std::env::var("ATELIER_SPECS").unwrap_or_else(|_| beside.to_owned());
    let Ok(text) = std::fs::read_to_string(format!("{specs}/../workflows/Photo Enhancement Suite.json"))
    else {
        return;
    };
    let mut file: Json = serde_json::from_str(&text).expect("JSON");
    if let Some(nodes) = file["graph"]["nodes"].as_array_mut() {
        nodes.retain(|node| node["type"] != json!("nodetool.image.ImageToImage"));
    }
    if let Some(edges) = file["graph"]["edges"].as_array_mut() {
        edges.retain(|edge| edge["source"] != json!("3") && edge["target"] != json!("3"));
    }
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("photos")).expect("a folder");
    for name in ["a.png", "b.png"] {
        let data = grey(4, &[40, 60, 80, 100])
            .as_media()
            .and_then(|media| media.data.clone())
            .expect("bytes");
        std::fs::write(folder.path().join("photos").join(name), data).expect("a file");
    }
    let services = Arc::new(Local {
        workspace: Some(folder.path().to_owned()),
        ..Local::default()
    });
    let (result, artifacts) = run_file(&file, Map::new(), services).await;
    assert_eq!(result.status, JobStatus::Completed, "{:?}", result.error);
    let of = |id: &str| {
        artifacts
            .iter()
            .filter(|(node, _)| node == id)
            .map(|(_, out)| reds(&out["output"]))
            .collect::<Vec<_>>()
    };
    assert_eq!(of("8"), vec![vec![0, 85, 170, 255]; 2]);
    // The connected factor of 1.05.
    assert_eq!(of("7"), vec![vec![0, 89, 179, 255]; 2]);
    assert_eq!(of("4").len(), 2);
}
