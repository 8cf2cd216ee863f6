//! Tables in files, at addresses, and as assets.

use atelier_proto::value::Map;
use chrono::Utc;

use super::{
    frame::Frame,
    text::{read_csv, write_csv},
};
use crate::{
    node::{Context, Kept, NodeError},
    nodes::{
        args::{Args, missing, one, text_of},
        code::{Types, factory},
        files::{Workspace, named},
        http,
        work::{Filed, MAX_CONTENT, Reaching, blocking},
    },
};

/// All types of this part.
pub(super) fn types() -> Types {
    vec![
        (
            "nodetool.data.LoadCSVFile",
            factory(Filed(|args, folder| {
                let bytes = folder.read("file_path", &args.text("file_path"), MAX_CONTENT)?;
                Ok(one("output", read_csv("file_path", &bytes)?.value()))
            })),
        ),
        (
            "nodetool.data.LoadCSVURL",
            factory(Reaching(|args, ctx| Box::pin(load_url(args, ctx)))),
        ),
        ("nodetool.data.SaveCSVDataframeFile", factory(Filed(save_file))),
        (
            "nodetool.data.SaveDataframe",
            factory(Reaching(|args, ctx| Box::pin(save_asset(args, ctx)))),
        ),
    ]
}
async fn load_url(args: Args<'_>, ctx: &Context) -> Result<Map, NodeError> {
    let url = args.text("url");
    if url.trim().is_empty() {
        return Err(missing("url", "an address is needed"));
    }
    let bytes = http::fetch(ctx, &url).await?;
    let frame = blocking(ctx, move || read_csv("url", &bytes).map(Frame::value)).await?;
    Ok(one("output", frame))
}
/// Writes the table and hands it on.
fn save_file(args: Args<'_>, folder: &Workspace) -> Result<Map, NodeError> {
    let frame = Frame::read(args, "dataframe")?;
    let name = named(&args.text("filename"), "output.csv", Utc::now());
    let above = folder.place("folder", &args.text("folder"))?;
    let place = folder.place("filename", &above.join(name).display().to_string())?;
    folder.write("filename", &place, &write_csv(&frame)?)?;
    Ok(one("output", frame.value()))
}
/// Keeps the table as an asset in CSV and hands it on, with the reference.
async fn save_asset(args: Args<'_>, ctx: &Context) -> Result<Map, NodeError> {
    let frame = Frame::read(args, "df")?;
    let name = named(
        &args.0.get("name").map(text_of).unwrap_or_default(),
        "output.csv",
        Utc::now(),
    );
    let (frame, bytes) = blocking(ctx, move || {
        let bytes = write_csv(&frame)?;
        Ok((frame, bytes))
    })
    .await?;
    let kept = Kept {
        kind: "document".to_owned(),
        name,
        mime_type: "text/csv".to_owned(),
        bytes: bytes.into(),
    };
    let kept = ctx.services.keep(ctx, kept).await?;
    let mut value = frame.value();
    if let atelier_proto::value::Value::Map(map) = &mut value {
        let mut with = map.as_ref().clone();
        with.insert("uri".to_owned(), kept.uri.into());
        with.insert("asset_id".to_owned(), kept.asset_id.unwrap_or_default().into());
        value = with.into();
    }
    Ok(one("output", value))
}
