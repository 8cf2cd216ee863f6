//! The offline provider: pictures, speech and text out of this process, for demos, tests and first steps.
//!
//! What lives here: an adapter that behaves like one to a real provider. A submit gives an id, the job runs on its own, a
//! poll says how far it is, a fetch gives the bytes, a cancel stops it, and every call is charged its catalog price. What
//! does not: the making of media itself, which is pure ([`draw`], [`derive`], [`film`], [`speak`], [`hear`], [`solid`],
//! [`write`], [`embed`]).
//!
//! Parameters of any call: `seed`, `delay_ms`, `steps` or `progress`, `fail` (true, or the text to fail with),
//! `fail_prompt` (fail when the prompt contains it) and `bill_on_failure`; the settings of these names hold otherwise.

pub mod derive;
pub mod draw;
pub mod embed;
pub mod film;
pub mod hear;
mod job;
mod making;
mod request;
pub mod solid;
pub mod speak;
mod tools;
pub mod write;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use atelier_common::tasks::Tasks;
use dashmap::DashMap;

use crate::pricing::{Catalog, Quantities, Quote};
use crate::provider::{
    Call, CancelAnswer, Capability, Class, Emit, Failure, Finished, Medium, Model, Params, Polled, Provider,
    SeamPermit, Submitted,
};
use crate::seam::receipt::{self, Stated};
use crate::settings;
use job::{Job, Said};
use request::Request;

/// Its id.
pub const ID: &str = "sketch";
/// Longest wait of one poll.
const POLL_LIMIT: Duration = Duration::from_secs(10);

/// The offline provider.
pub struct Sketch {
    settings: settings::Sketch,
    catalog: Arc<Catalog>,
    tasks: Tasks,
    jobs: DashMap<String, Arc<Job>>,
    counters: Arc<Counters>,
}

/// What the provider was asked, counted for tests and for whoever wants to know.
#[derive(Debug, Default)]
pub struct Counters {
    submits: AtomicU64,
    cancels: AtomicU64,
    fetches: AtomicU64,
}
impl Counters {
    /// Submits so far.
    #[must_use]
    pub fn submits(&self) -> u64 {
        self.submits.load(Ordering::Relaxed)
    }
    /// Cancels of known jobs so far.
    #[must_use]
    pub fn cancels(&self) -> u64 {
        self.cancels.load(Ordering::Relaxed)
    }
    /// Results that were fetched so far.
    #[must_use]
    pub fn fetches(&self) -> u64 {
        self.fetches.load(Ordering::Relaxed)
    }
}

impl Sketch {
    /// An offline provider whose jobs run on these tasks.
    #[must_use]
    pub fn new(settings: settings::Sketch, catalog: Arc<Catalog>, tasks: Tasks) -> Self {
        Self {
            settings,
            catalog,
            tasks,
            jobs: DashMap::new(),
            counters: Arc::default(),
        }
    }

    /// What it was asked.
    #[must_use]
    pub fn counters(&self) -> Arc<Counters> {
        self.counters.clone()
    }

    /// States the catalog's price for a job, as a provider that tells its charges would.
    async fn charge(&self, job: &Job, finished: &Finished) {
        let quantities = Quantities::of_request(job.request.capability, Params(&job.request.params));
        if let Ok(quote) = self
            .catalog
            .price(ID, &job.request.model, &quantities.with_result(finished))
        {
            receipt::record(ID, None, Some(stated(quote))).await;
        }
    }

    /// What happened since the last poll, told; and the last word, when there is one.
    async fn hear(&self, job: &Job, request_id: &str, emit: &dyn Emit) -> Option<Polled> {
        let (said, end) = job.drain();
        for said in said {
            match said {
                Said::Progress { done, total, preview } => emit.progress(done, total, preview),
                Said::Text(piece) => emit.text(&piece, false),
                Said::Audio(piece) => emit.audio(piece),
                Said::End(kind) => emit.end(kind),
            }
        }
        match end? {
            Ok(_) => Some(Polled::Done(request_id.to_owned())),
            Err(failure) => {
                if job.request.bill_on_failure {
                    self.charge(job, &job.request.as_if_done()).await;
                }
                self.jobs.remove(request_id);
                Some(Polled::Failed(failure))
            }
        }
    }
}

fn stated(quote: Quote) -> Stated {
    let Quote {
        cost,
        billing_unit,
        quantity,
        unit_price,
        breakdown,
    } = quote;
    Stated {
        cost,
        billing_unit: Some(billing_unit.to_owned()),
        quantity: Some(quantity),
        unit_price,
        breakdown: Some(breakdown),
        total: false,
    }
}

#[async_trait]
impl Provider for Sketch {
    fn id(&self) -> &'static str {
        ID
    }

    fn models(&self) -> Vec<Model> {
        let model = |id: &str, name: &str, capabilities: &[Capability]| Model {
            id: id.to_owned(),
            name: name.to_owned(),
            capabilities: capabilities.to_vec(),
        };
        let of = |medium: Medium| -> Vec<Capability> {
            let all = Capability::ALL.iter().copied();
            all.filter(|capability| capability.medium() == medium).collect()
        };
        let sounds = [
            Capability::TextToMusic,
            Capability::AudioToAudio,
            Capability::VideoToAudio,
        ];
        vec![
            model("sketch-image", "Sketch Image", &of(Medium::Image)),
            model("sketch-video", "Sketch Video", &of(Medium::Video)),
            model("sketch-speech", "Sketch Speech", &[Capability::TextToSpeech]),
            model("sketch-music", "Sketch Music", &sounds),
            model("sketch-3d", "Sketch 3D", &of(Medium::Model3d)),
            model("sketch-text", "Sketch Text", &[Capability::GenerateMessage]),
            model(
                "sketch-transcript",
                "Sketch Transcript",
                &[Capability::AutomaticSpeechRecognition],
            ),
            model("sketch-embedding", "Sketch Embedding", &[Capability::Embedding]),
        ]
    }

    fn wants_bytes(&self) -> bool {
        true
    }

    async fn submit(
        &self,
        _permit: &SeamPermit,
        call: &Call,
        _emit: &dyn Emit,
    ) -> Result<Submitted, Failure> {
        let number = self.counters.submits.fetch_add(1, Ordering::Relaxed) + 1;
        let request = Request::read(call, &self.settings, number);
        let request_id = format!("sk_{}", call.generation_id);
        let job = Arc::new(Job::new(request));
        self.jobs.insert(request_id.clone(), job.clone());
        receipt::record(ID, Some(&request_id), None).await;
        let tasks = self.tasks.clone();
        let _running = self
            .tasks
            .spawn("sketch", async move { making::make(&job, &tasks).await });
        let resume_token = serde_json::json!({"id": request_id}).to_string();
        Ok(Submitted::Accepted {
            request_id,
            resume_token,
        })
    }

    async fn poll(
        &self,
        _permit: &SeamPermit,
        resume_token: &str,
        emit: &dyn Emit,
    ) -> Result<Polled, Failure> {
        let request_id = id_of(resume_token)?;
        let Some(job) = self.jobs.get(&request_id).map(|job| job.clone()) else {
            return Ok(Polled::Lost);
        };
        let running = Polled::Running {
            poll_after: Some(Duration::ZERO),
        };
        if let Some(end) = self.hear(&job, &request_id, emit).await {
            return Ok(end);
        }
        if job.first_poll() {
            return Ok(running);
        }
        let _ = tokio::time::timeout(POLL_LIMIT, job.changed()).await;
        Ok(self.hear(&job, &request_id, emit).await.unwrap_or(running))
    }

    async fn fetch(&self, _permit: &SeamPermit, result: &str) -> Result<Finished, Failure> {
        let Some((_, job)) = self.jobs.remove(result) else {
            return Err(
                Failure::new(Class::ProviderPermanent, "the result is gone").because("result_expired")
            );
        };
        match job.drain().1 {
            Some(Ok(finished)) => {
                self.counters.fetches.fetch_add(1, Ordering::Relaxed);
                self.charge(&job, &finished).await;
                Ok(finished)
            }
            Some(Err(failure)) => Err(failure),
            None => Err(Failure::new(Class::ProviderPermanent, "the job is not done")),
        }
    }

    async fn cancel(&self, _permit: &SeamPermit, resume_token: &str) -> CancelAnswer {
        let Ok(request_id) = id_of(resume_token) else {
            return CancelAnswer::NotFound;
        };
        let Some((_, job)) = self.jobs.remove(&request_id) else {
            return CancelAnswer::NotFound;
        };
        self.counters.cancels.fetch_add(1, Ordering::Relaxed);
        let done = job.drain().1.is_some();
        job.stop().cancel();
        if done {
            CancelAnswer::AlreadyDone
        } else {
            CancelAnswer::Requested
        }
    }
}

fn id_of(resume_token: &str) -> Result<String, Failure> {
    let token: Option<serde_json::Value> = serde_json::from_str(resume_token).ok();
    token
        .as_ref()
        .and_then(|token| token.get("id")?.as_str().map(ToOwned::to_owned))
        .ok_or_else(|| Failure::new(Class::ProviderPermanent, "the resume token cannot be read"))
}
