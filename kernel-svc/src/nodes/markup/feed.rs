//! Feeds in RSS, Atom and JSON.

use async_trait::async_trait;
use atelier_proto::value::{Map, Value};
use feed_rs::model::{Entry, Feed, Text};

use super::page::{Style, text_of_html};
use crate::{
    node::{Context, NodeError},
    nodes::{
        args::{Args, map, missing, one},
        code::{Generator, Sink, Streamed, Types, factory},
        dates, http,
        work::{Reaching, blocking},
    },
};

/// Entries of one feed that are given.
const MAX_ENTRIES: usize = 5_000;

/// All types of this part.
pub(super) fn types() -> Types {
    vec![
        (
            "lib.rss.ExtractFeedMetadata",
            factory(Reaching(|args, ctx| Box::pin(metadata(args, ctx)))),
        ),
        ("lib.rss.FetchRSSFeed", factory(Streamed(Entries))),
    ]
}

async fn fetch(args: Args<'_>, ctx: &Context) -> Result<Feed, NodeError> {
    let url = args.text("url");
    if url.trim().is_empty() {
        return Err(missing("url", "the address of a feed is needed"));
    }
    let bytes = http::fetch(ctx, &url).await?;
    blocking(ctx, move || parse(&bytes)).await
}
fn parse(bytes: &[u8]) -> Result<Feed, NodeError> {
    feed_rs::parser::parse(bytes)
        .map_err(|_| NodeError::new("what the input `url` leads to is no feed").code("input.value"))
}
fn text(text: Option<Text>) -> String {
    text.map(|text| text.content).unwrap_or_default()
}
async fn metadata(args: Args<'_>, ctx: &Context) -> Result<Map, NodeError> {
    Ok(one("output", about(fetch(args, ctx).await?)))
}
fn about(feed: Feed) -> Map {
    let updated = feed.updated.or(feed.published);
    map([
        ("title", text(feed.title).into()),
        ("description", text(feed.description).into()),
        (
            "link",
            feed.links
                .into_iter()
                .next()
                .map(|link| link.href)
                .unwrap_or_default()
                .into(),
        ),
        ("language", feed.language.unwrap_or_default().into()),
        (
            "updated",
            updated.map(|at| at.to_rfc3339()).unwrap_or_default().into(),
        ),
        (
            "generator",
            feed.generator.map(|by| by.content).unwrap_or_default().into(),
        ),
        ("entry_count", crate::nodes::args::count(feed.entries.len())),
    ])
}
fn entry(entry: Entry) -> Map {
    let content = entry.content.and_then(|content| content.body);
    let summary = entry
        .summary
        .map(|text| text.content)
        .or(content)
        .unwrap_or_default();
    let at = entry.published.or(entry.updated);
    let authors: Vec<String> = entry
        .authors
        .into_iter()
        .filter_map(|person| person.name)
        .collect();
    map([
        ("title", text(entry.title).into()),
        (
            "link",
            entry
                .links
                .into_iter()
                .next()
                .map(|link| link.href)
                .unwrap_or_default()
                .into(),
        ),
        (
            "published",
            at.map_or(Value::Null, |at| dates::value(at.fixed_offset())),
        ),
        (
            "summary",
            text_of_html(
                &summary,
                Style {
                    lines: true,
                    ..Style::default()
                },
            )
            .into(),
        ),
        ("author", authors.join(", ").into()),
    ])
}

/// One frame for each entry, then all of them.
#[derive(Clone, Copy)]
struct Entries;
#[async_trait]
impl Generator for Entries {
    async fn generate(&self, inputs: Map, frames: &mut dyn Sink, ctx: &Context) -> Result<(), NodeError> {
        let feed = fetch(Args(&inputs), ctx).await?;
        let mut all = Vec::new();
        for own in feed.entries.into_iter().take(MAX_ENTRIES) {
            let frame = entry(own);
            all.push(Value::from(frame.clone()));
            frames.frame(frame).await?;
        }
        frames.frame(one("items", Value::list(all))).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FEED: &str = "<?xml version=\"1.0\"?><rss version=\"2.0\"><channel><title>News</title><link>https://a.org/</link>\
        <description>All of it</description><item><title>One</title><link>https://a.org/1</link>\
        <pubDate>Mon, 30 Nov 2026 10:00:00 GMT</pubDate><description>&lt;p&gt;Short &lt;b&gt;text&lt;/b&gt;&lt;/p&gt;</description>\
        <author>Ann</author></item></channel></rss>";

    #[test]
    fn feeds_are_read() {
        let feed = parse(FEED.as_bytes()).expect("a feed");
        let own = entry(feed.entries[0].clone());
        let get = |name: &str| own[name].as_str().unwrap_or_default().to_owned();
        assert_eq!(
            (get("title"), get("summary")),
            ("One".to_owned(), "Short text".to_owned())
        );
        assert_eq!(own["published"].get("hour"), Some(Value::Int(10)));
        let about = about(feed);
        assert_eq!(
            (about["title"].as_str(), about["entry_count"].as_i64()),
            (Some("News"), Some(1))
        );
        assert!(parse(b"<html>").is_err());
    }
}
