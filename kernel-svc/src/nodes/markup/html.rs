//! Types that take something out of a page.

use async_trait::async_trait;
use atelier_proto::value::{Map, Value};

use super::page::{Piece, Style, main_content, pieces, text_of_html};
use crate::{
    node::{Context, NodeError},
    nodes::{
        args::{Args, map, one},
        code::{Generator, Route, Sink, Streamed, Types, factory},
        http::linked,
        work::{Heavy, MAX_CONTENT, blocking},
    },
};

/// Things that are taken out of one page at most.
const MAX_FOUND: usize = 10_000;

const TAKEN: [(&str, Taken); 4] = [
    ("lib.html.ExtractAudio", Taken::Audio),
    ("lib.html.ExtractImages", Taken::Images),
    ("lib.html.ExtractLinks", Taken::Links),
    ("lib.html.ExtractVideos", Taken::Videos),
];
/// All types of this part.
pub(super) fn types() -> Types {
    let heavy: [(&'static str, Route); 5] = [
        ("lib.html.BaseUrl", base_url),
        ("lib.html.ExtractMetadata", metadata),
        ("lib.html.HTMLToText", |args| {
            let style = Style {
                lines: args.flag("preserve_linebreaks", true),
                ..Style::default()
            };
            Ok(one("output", text_of_html(&page(args, "text")?, style)))
        }),
        ("lib.html.WebsiteContentExtractor", |args| {
            Ok(one("output", main_content(&page(args, "html_content")?)))
        }),
        ("nodetool.text.HtmlToText", |args| {
            let style = Style {
                lines: true,
                marks: true,
                images: !args.flag("ignore_images", true),
                only_content: false,
            };
            Ok(one("output", text_of_html(&page(args, "html")?, style)))
        }),
    ];
    let mut types: Types = heavy
        .into_iter()
        .map(|(name, route)| (name, factory(Heavy(route))))
        .collect();
    types.extend(
        TAKEN
            .into_iter()
            .map(|(name, taken)| (name, factory(Streamed(taken)))),
    );
    types
}
/// The code of a type that yields frames, for tests.
#[cfg(test)]
pub(super) fn generator(node_type: &str) -> Option<Box<dyn Generator>> {
    let found = TAKEN.into_iter().find(|(name, _)| *name == node_type);
    found.map(|(_, taken)| Box::new(taken) as Box<dyn Generator>)
}

fn page(args: Args<'_>, input: &str) -> Result<String, NodeError> {
    let html = args.text(input);
    if html.len() > MAX_CONTENT {
        let text = format!("the input `{input}` is larger than {MAX_CONTENT} bytes");
        return Err(NodeError::new(text).code("input.size"));
    }
    Ok(html)
}
fn base_url(args: Args<'_>) -> Result<Map, NodeError> {
    let bad = || NodeError::new("the input `url` is no address with a scheme and a host").code("input.value");
    let text = args.text("url");
    let url = url::Url::parse(text.trim()).map_err(|_| bad())?;
    if url.host_str().is_none() {
        return Err(bad());
    }
    Ok(one("output", url.origin().ascii_serialization()))
}
fn metadata(args: Args<'_>) -> Result<Map, NodeError> {
    let (mut title, mut heading) = (String::new(), None);
    let (mut description, mut keywords) = (None, None);
    let mut in_title = false;
    for piece in pieces(&page(args, "html")?) {
        match &piece {
            Piece::Open(name, _) if name == "title" => in_title = title.is_empty(),
            Piece::Close(name) if name == "title" => in_title = false,
            Piece::Text(text) if in_title => title.push_str(text),
            Piece::Open(name, _) if name == "meta" => {
                let key = piece.attribute("name").or_else(|| piece.attribute("property"));
                let content = piece.attribute("content").map(str::to_owned);
                match key.unwrap_or_default().to_lowercase().as_str() {
                    "description" => description = content,
                    "og:description" => description = description.or(content),
                    "keywords" => keywords = content,
                    "og:title" => heading = content,
                    _ => {}
                }
            }
            _ => {}
        }
    }
    let title = Some(title.trim().to_owned()).filter(|title| !title.is_empty());
    let text = |value: Option<String>| value.map_or(Value::Null, Value::from);
    Ok(map([
        ("title", text(title.or(heading))),
        ("description", text(description)),
        ("keywords", text(keywords)),
    ]))
}

/// What is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taken {
    Audio,
    Images,
    Links,
    Videos,
}
#[async_trait]
impl Generator for Taken {
    async fn generate(&self, inputs: Map, frames: &mut dyn Sink, ctx: &Context) -> Result<(), NodeError> {
        let taken = *self;
        let found = blocking(ctx, move || {
            let args = Args(&inputs);
            let html = page(args, "html")?;
            let base = url::Url::parse(args.text("base_url").trim()).ok();
            Ok(match taken {
                Self::Links => links(&html, base.as_ref()),
                media => media.addresses(&html, base.as_ref()),
            })
        })
        .await?;
        let (item, items) = match self {
            Self::Audio => ("audio", "audios"),
            Self::Images => ("image", "images"),
            Self::Videos => ("video", "videos"),
            Self::Links => ("", "links"),
        };
        let mut all = Vec::new();
        for frame in found {
            all.push(if item.is_empty() {
                frame.clone().into()
            } else {
                frame.get(item).cloned().unwrap_or_default()
            });
            frames.frame(frame).await?;
        }
        frames.frame(one(items, Value::list(all))).await
    }
}
/// An address of a page, whole where the page's own is known.
fn whole(href: &str, base: Option<&url::Url>) -> String {
    let href = href.trim();
    let joined = base.and_then(|base| base.join(href).ok());
    joined.map_or_else(|| href.to_owned(), String::from)
}
fn links(html: &str, base: Option<&url::Url>) -> Vec<Map> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut open = None;
    for piece in pieces(html) {
        match &piece {
            Piece::Open(name, _) if name == "a" => {
                open = piece
                    .attribute("href")
                    .filter(|_| found.len() < MAX_FOUND)
                    .map(|href| {
                        found.push((whole(href, base), String::new()));
                        found.len() - 1
                    });
            }
            Piece::Close(name) if name == "a" => open = None,
            Piece::Text(text) => {
                if let Some((_, own)) = open.and_then(|at| found.get_mut(at)) {
                    own.push_str(text);
                }
            }
            _ => {}
        }
    }
    let host = base.and_then(|base| base.host_str()).map(str::to_owned);
    let link = |(href, text): (String, String)| {
        let own = url::Url::parse(&href)
            .ok()
            .and_then(|url| url.host_str().map(str::to_owned));
        let kind = if own.is_none() || own == host {
            "internal"
        } else {
            "external"
        };
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        map([
            ("href", href.into()),
            ("text", text.into()),
            ("type", kind.into()),
        ])
    };
    found.into_iter().map(link).collect()
}
impl Taken {
    /// Each address once, in order.
    fn addresses(self, html: &str, base: Option<&url::Url>) -> Vec<Map> {
        let (tag, kind) = match self {
            Self::Audio => ("audio", "audio"),
            Self::Images => ("img", "image"),
            Self::Videos | Self::Links => ("video", "video"),
        };
        let mut seen = indexmap::IndexSet::new();
        let mut inside = false;
        for piece in pieces(html) {
            let source = match &piece {
                Piece::Open(name, _) if name == tag => {
                    inside = true;
                    piece.attribute("src").or_else(|| piece.attribute("data-src"))
                }
                Piece::Open(name, _) if name == "source" && inside && self != Self::Images => {
                    piece.attribute("src")
                }
                Piece::Open(name, _) if name == "iframe" && self == Self::Videos => {
                    let player = |src: &&str| ["youtube", "vimeo"].iter().any(|host| src.contains(host));
                    piece.attribute("src").filter(player)
                }
                Piece::Close(name) if name == tag => {
                    inside = false;
                    None
                }
                _ => None,
            };
            let source = source.filter(|source| !source.trim().is_empty() && seen.len() < MAX_FOUND);
            seen.extend(source.map(|source| whole(source, base)));
        }
        let frame = |address: String| one(kind, linked(kind, address));
        seen.into_iter().map(frame).collect()
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value as Json, json};

    use crate::nodes::testing::{Node, process};

    const PAGE: &str = "<html><head><title>The &amp; page</title><meta name=description content='short'>\
        <script>if (a < b) { document.write('<a href=\"x\">no</a>') }</script><style>p{}</style></head><body><nav>Menu</nav>\
        <h1>Head</h1><p>One <b>bold</b>\n  word.<br>Next</p><ul><li>a</li><li>b <a href='/l?q=1'>link</a></li></ul>\
        <img src='p.png' alt='Pic'><video><source src='v.mp4'></video><audio src='s.mp3'></audio>\
        <a href='https://other.org/'>out</a></body></html>";

    #[rstest]
    #[case("lib.html.HTMLToText", "text", json!({}),
        "Menu\n\nHead\n\nOne bold word.\nNext\n\na\nb link\n\nout")]
    #[case("lib.html.HTMLToText", "text", json!({"preserve_linebreaks": false}), "Menu Head One bold word. Next a b link out")]
    #[case("nodetool.text.HtmlToText", "html", json!({"ignore_images": false}),
        "Menu\n\n# Head\n\nOne **bold** word.\nNext\n\n- a\n- b [link](/l?q=1)\n\n![Pic](p.png)[out](https://other.org/)")]
    #[case("lib.html.WebsiteContentExtractor", "html_content", json!({}), "Head\n\nOne bold word.\nNext\n\na\nb link\n\nout")]
    #[tokio::test]
    async fn pages_become_texts(
        #[case] name: &str,
        #[case] input: &str,
        #[case] mut inputs: Json,
        #[case] expected: &str,
    ) {
        inputs[input] = json!(PAGE);
        let out = process(name, inputs).await.expect("a text");
        assert_eq!(out["output"], expected);
    }

    #[tokio::test]
    async fn things_are_taken_out_of_a_page() {
        let inputs = json!({"html": PAGE, "base_url": "https://a.org/b/"});
        let frames = Node::new("lib.html.ExtractLinks")
            .frames(inputs.clone())
            .await
            .expect("links");
        let link = json!({"href": "https://a.org/l?q=1", "text": "link", "type": "internal"});
        let out = json!({"href": "https://other.org/", "text": "out", "type": "external"});
        assert_eq!(frames, [link.clone(), out.clone(), json!({"links": [link, out]})]);
        for (name, item, uri) in [
            ("Images", "image", "p.png"),
            ("Videos", "video", "v.mp4"),
            ("Audio", "audio", "s.mp3"),
        ] {
            let mut node = Node::new(&format!("lib.html.Extract{name}"));
            let frames = node.frames(inputs.clone()).await.expect("frames");
            assert_eq!(frames.len(), 2, "{name}");
            assert_eq!(frames[0][item]["uri"], format!("https://a.org/b/{uri}"));
        }
        let about = process("lib.html.ExtractMetadata", json!({"html": PAGE}))
            .await
            .expect("metadata");
        assert_eq!(
            about,
            json!({"title": "The & page", "description": "short", "keywords": null})
        );
    }

    #[rstest]
    #[case("https://a.org:8080/x/y?z", "https://a.org:8080")]
    #[case("http://user:pw@b.org/x", "http://b.org")]
    #[tokio::test]
    async fn addresses_have_a_base(#[case] url: &str, #[case] expected: &str) {
        let out = process("lib.html.BaseUrl", json!({"url": url}))
            .await
            .expect("a base");
        assert_eq!(out["output"], expected);
        let error = process("lib.html.BaseUrl", json!({"url": "x"}))
            .await
            .expect_err("no address");
        assert!(error.message.contains("`url`"));
    }
}
