//! kernel-svc is killed after every step of a run of six images: another takes the run up, and nobody can tell.

use std::{collections::BTreeSet, time::Duration};

use atelier_tests::{
    cluster::Cluster,
    stack::{of_type, text},
    stand_in::ImageProvider,
    workflows::fan_out,
};
use futures_util::StreamExt;
use serde_json::{Value, json};

/// Events that such a run has at least.
const STEPS: usize = 36;

/// Runs six images and kills kernel-svc when so many events were seen. True when there were as many.
async fn killed_after(
    cluster: &mut Cluster,
    provider: &ImageProvider,
    job_id: &str,
    step: usize,
) -> anyhow::Result<bool> {
    let prompts: Vec<String> = (0..6).map(|number| format!("{job_id} {number}")).collect();
    let texts: Vec<&str> = prompts.iter().map(String::as_str).collect();
    let model = json!({"model": {"type": "image_model", "provider": "openai", "id": "gpt-image-1"}});
    let client = cluster.client().clone();
    let body = json!({"graph": fan_out(&texts, model), "job_id": job_id});
    client.post("/api/v1/jobs", &body).await?;
    let mut frames: Vec<Value> = Vec::new();
    let mut killed = false;
    let mut events = std::pin::pin!(client.events(job_id, 0));
    while let Some(event) = tokio::time::timeout(Duration::from_secs(60), events.next()).await? {
        frames.push(event?);
        if !killed && frames.len() > step {
            cluster.crash_kernel().await?;
            killed = true;
        }
    }
    let about = format!("{job_id}, killed after {step} events");
    let numbers: Vec<i64> = frames
        .iter()
        .filter_map(|frame| frame["job_seq"].as_i64())
        .collect();
    let whole: Vec<i64> = (1..=i64::try_from(numbers.len())?).collect();
    assert_eq!(numbers, whole, "{about}: one sequence without a gap");
    let job = client.get(&format!("/api/v1/jobs/{job_id}"), &[]).await?;
    assert_eq!(text(&job, "status"), "completed", "{about}: {job}");
    let made: Vec<&Value> = of_type(&frames, "generation_complete")
        .into_iter()
        .filter(|frame| text(frame, "node_id") == "g")
        .collect();
    let indexes: Vec<i64> = made.iter().filter_map(|frame| frame["index"].as_i64()).collect();
    assert_eq!(indexes, [0, 1, 2, 3, 4, 5], "{about}");
    let assets: BTreeSet<&str> = made
        .iter()
        .map(|frame| text(&frame["outputs"]["output"], "asset_id"))
        .collect();
    assert_eq!(assets.len(), 6, "{about}: six different assets");
    for status in ["running", "completed"] {
        let said = of_type(&frames, "node_update")
            .into_iter()
            .filter(|frame| text(frame, "node_id") == "g" && text(frame, "status") == status);
        assert_eq!(said.count(), 1, "{about}: {status}");
    }
    let of_job = [("job_id", job_id.to_owned())];
    let rows = client
        .list("/api/v1/generations", "generations", &of_job, 100)
        .await?;
    let done = rows
        .iter()
        .filter(|row| text(row, "status") == "completed")
        .count();
    assert_eq!((rows.len(), done), (6, 6), "{about}: {rows:?}");
    assert_eq!(
        client.list("/api/v1/assets", "assets", &of_job, 100).await?.len(),
        6,
        "{about}"
    );
    for prompt in &prompts {
        assert_eq!(provider.asked(prompt), 1, "{about}: {prompt} is paid for once");
    }
    Ok(killed)
}

#[tokio::test(flavor = "multi_thread")]
async fn six_images_are_made_once_whenever_the_kernel_is_killed() -> anyhow::Result<()> {
    let provider = ImageProvider::start(Duration::from_millis(30)).await?;
    let environment = [
        ("OPENAI_BASE_URL", provider.address()),
        ("OPENAI_API_KEY", "a-key-for-tests"),
    ];
    let mut cluster = Cluster::start(&environment).await?;
    // Every third step, in turn; ATELIER_KILLS=n: every step, again and again, n times.
    let kills: Option<usize> = std::env::var("ATELIER_KILLS").ok().and_then(|n| n.parse().ok());
    let steps: Vec<usize> = match kills {
        Some(kills) => (0..kills).map(|kill| kill % (STEPS + 8)).collect(),
        None => (0..STEPS).step_by(3).collect(),
    };
    let mut killed = 0;
    for (number, step) in steps.iter().enumerate() {
        let job = format!("run-{number}");
        killed += usize::from(killed_after(&mut cluster, &provider, &job, *step).await?);
    }
    assert!(
        killed * 4 >= steps.len() * 3,
        "most runs were long enough: {killed}"
    );
    println!("killed {killed} times in {} runs", steps.len());
    Ok(())
}
