//! Pages of the console.

use crate::stack::Stack;

#[tokio::test]
async fn a_browser_gets_a_page_everywhere_but_below_the_interfaces() {
    let stack = Stack::start().await;
    let get = |path: &'static str, accept: &'static str| {
        let request = stack.http.get(stack.url(path)).header("accept", accept);
        async move { request.send().await.expect("answer") }
    };
    for path in ["/", "/jobs/some-id", "/index.html"] {
        let page = get(path, "text/html,*/*;q=0.8").await;
        assert_eq!(page.status().as_u16(), 200, "{path}");
        assert!(
            page.headers()["content-type"]
                .to_str()
                .expect("text")
                .starts_with("text/html")
        );
        assert!(
            page.headers()["content-security-policy"]
                .to_str()
                .expect("text")
                .contains("default-src 'self'")
        );
        assert_eq!(page.headers()["x-content-type-options"], "nosniff");
    }
    for path in ["/api/v1/moon", "/api/moon", "/v1/moon", "/ws/moon"] {
        assert_eq!(get(path, "text/html").await.status().as_u16(), 404, "{path}");
    }
    assert_eq!(get("/moon.js", "*/*").await.status().as_u16(), 404);
    assert_eq!(get("/jobs", "application/json").await.status().as_u16(), 404);
}

#[tokio::test]
async fn a_file_that_did_not_change_is_not_sent_again() {
    let stack = Stack::start().await;
    let first = stack.http.get(stack.url("/")).send().await.expect("answer");
    // Without a built console there is only a page, which has no tag.
    let Some(etag) = first.headers().get("etag").cloned() else {
        return;
    };
    let again = stack
        .http
        .get(stack.url("/"))
        .header("if-none-match", etag)
        .send()
        .await
        .expect("answer");
    assert_eq!(again.status().as_u16(), 304);
}
