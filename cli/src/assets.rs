//! `atelier assets`.

use std::path::Path;

use anyhow::Context;
use futures_util::StreamExt;
use serde_json::Value;
use tokio::io::AsyncWriteExt;

use crate::{
    OK,
    args::{Assets, Listing},
    client::{Client, Refused},
    generations::segment,
    print,
};

/// Does it.
///
/// # Errors
/// The server refused or cannot be reached; the file cannot be written.
pub async fn assets(client: &Client, command: Assets) -> anyhow::Result<u8> {
    match command {
        Assets::List {
            job_id,
            content_type,
            listing,
        } => list(client, job_id, content_type, &listing).await,
        Assets::Get { id, out, json } => get(client, &id, out.as_deref(), json).await,
    }
}
async fn list(
    client: &Client,
    job_id: Option<String>,
    content_type: Option<String>,
    listing: &Listing,
) -> anyhow::Result<u8> {
    let limit = print::limit(&listing.limit)?;
    let filters = [("job_id", job_id), ("content_type", content_type)];
    let query: Vec<_> = filters
        .into_iter()
        .filter_map(|(name, value)| value.map(|value| (name, value)))
        .collect();
    let rows = client.list("/api/v1/assets", "assets", &query, limit).await?;
    if listing.json {
        for row in &rows {
            print::json_line(row)?;
        }
        return Ok(OK);
    }
    if rows.is_empty() {
        print::line("No assets yet.")?;
        return Ok(OK);
    }
    let cells = |row: &Value| {
        [
            "id",
            "name",
            "content_type",
            "size_bytes",
            "node_id",
            "index",
            "created_at",
        ]
        .iter()
        .map(|key| print::text(row, key))
        .collect()
    };
    print::table(
        &["id", "name", "type", "bytes", "node", "index", "created"],
        rows.iter().map(cells).collect(),
    )?;
    Ok(OK)
}
async fn get(client: &Client, id: &str, out: Option<&Path>, json: bool) -> anyhow::Result<u8> {
    let asset = match client.get(&format!("/api/v1/assets/{}", segment(id)), &[]).await {
        Ok(asset) => asset,
        Err(error)
            if error
                .downcast_ref::<Refused>()
                .is_some_and(|refused| refused.status == 404) =>
        {
            anyhow::bail!("Asset {id} was not found.")
        }
        Err(error) => return Err(error),
    };
    if let Some(out) = out {
        if out == Path::new("-") {
            print_bytes(client, id).await?;
            return Ok(OK);
        }
        save(client, id, out).await?;
    }
    if json {
        print::json_line(&asset)?;
        return Ok(OK);
    }
    print::record(&[
        ("id", print::text(&asset, "id")),
        ("name", print::text(&asset, "name")),
        ("type", print::text(&asset, "content_type")),
        ("bytes", print::text(&asset, "size_bytes")),
        ("file", print::text(&asset, "path")),
        ("job", print::text(&asset, "job_id")),
        ("node", print::text(&asset, "node_id")),
        ("index", print::text(&asset, "index")),
        ("generations", print::text(&asset, "generation_ids")),
        ("created", print::text(&asset, "created_at")),
    ])?;
    Ok(OK)
}
/// Writes an asset's bytes to a file: under another name first, so that no half file is left.
///
/// # Errors
/// The server refused; the file cannot be written.
pub async fn save(client: &Client, id: &str, to: &Path) -> anyhow::Result<()> {
    let mut partial = to.as_os_str().to_owned();
    partial.push(".part");
    let partial = Path::new(&partial);
    let cannot_write = || format!("cannot write {}", to.display());
    let mut file = tokio::fs::File::create(partial)
        .await
        .with_context(cannot_write)?;
    copy(client, id, &mut file).await?;
    file.sync_all().await.with_context(cannot_write)?;
    tokio::fs::rename(partial, to).await.with_context(cannot_write)?;
    Ok(())
}
/// Writes an asset's bytes to stdout.
///
/// # Errors
/// The server refused; stdout cannot be written.
pub async fn print_bytes(client: &Client, id: &str) -> anyhow::Result<()> {
    copy(client, id, &mut tokio::io::stdout()).await
}
async fn copy(
    client: &Client,
    id: &str,
    to: &mut (impl tokio::io::AsyncWrite + Unpin),
) -> anyhow::Result<()> {
    let mut bytes = client
        .download(&format!("/api/v1/assets/{}/content", segment(id)))
        .await?;
    while let Some(chunk) = bytes.next().await {
        to.write_all(&chunk?).await?;
    }
    to.flush().await?;
    Ok(())
}
