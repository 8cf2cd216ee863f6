//! Two providers that do what a test says: `acme` can be polled, `oneshot` answers with the bytes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use atelier_provider::provider::{
    Bill, Call, CancelAnswer, Capability, Class, Emit, Failure, Finished, Job, Media, Model, Output, Polled,
    Provider, SeamPermit, Submitted, Usage,
};
use atelier_provider::seam::receipt::{self, Stated};
use bytes::Bytes;
use tokio::sync::Semaphore;

/// Prices for both.
pub const CATALOG: &str = r#"
schema = 1
[[entry]]
provider = "acme"
model = "m1"
unit = "image"
price = "0.04"
source = "test"
[[entry]]
provider = "fal_ai"
model = "fal-ai/flux/dev/image-to-image"
unit = "image"
price = "0.025"
source = "test"
[[entry]]
provider = "kie"
model = "google/nano-banana"
unit = "image"
price = "0.02"
source = "test"
[[entry]]
provider = "oneshot"
model = "s1"
unit = "1m_chars"
price = "50"
source = "test"
[[entry]]
provider = "replicate"
model = "own/slow"
unit = "compute_second"
price = "0.0014"
source = "test"
[[entry]]
provider = "openai"
model = "sora-2"
unit = "video_second"
price = "0.10"
source = "test"
[[entry]]
provider = "topaz"
model = "*"
unit = "credit"
price = "0.10"
source = "test"
"#;

/// A tiny PNG.
pub const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0\x90wS\xde\0\0\0\x0cIDATx\xdacP`\0\0\x01d\0\xe1\xee\x9aZ\0\0\0\0IEND\xaeB`\x82";

/// What the next calls do.
#[derive(Clone)]
pub struct Script {
    /// How many pictures a call gives.
    pub images: usize,
    /// The call fails with these words.
    pub fails: Option<&'static str>,
    /// What the provider states; NaN is refused.
    pub charge: Option<f64>,
    /// What it answers to a cancel.
    pub cancel: CancelAnswer,
    /// Permits for polls to say that the job is done; absent means at once.
    pub gate: Option<Arc<Semaphore>>,
    /// The adapter panics after the submit.
    pub panics: bool,
    /// What becomes of a look at a bill.
    pub bill: Billing,
    /// A first task with this charge, before the one that is polled.
    pub first: Option<(&'static str, f64)>,
}
/// What becomes of a look at a bill.
#[derive(Clone)]
pub enum Billing {
    Says(Bill),
    Fails,
    Panics,
    Hangs,
}
impl Default for Script {
    fn default() -> Self {
        Self {
            images: 1,
            fails: None,
            charge: None,
            cancel: CancelAnswer::Requested,
            gate: None,
            panics: false,
            bill: Billing::Says(Bill::Unsupported),
            first: None,
        }
    }
}

/// The provider that can be polled, or the one that cannot.
pub struct Acme {
    id: &'static str,
    script: Mutex<Script>,
    pub submits: AtomicUsize,
    pub cancelled: Mutex<Vec<String>>,
    pub looks: Mutex<Vec<String>>,
}
impl Acme {
    pub fn pollable() -> Arc<Self> {
        Self::new("acme")
    }
    pub fn oneshot() -> Arc<Self> {
        Self::new("oneshot")
    }
    fn new(id: &'static str) -> Arc<Self> {
        let (submits, cancelled) = (AtomicUsize::new(0), Mutex::default());
        Arc::new(Self {
            id,
            script: Mutex::default(),
            submits,
            cancelled,
            looks: Mutex::default(),
        })
    }
    /// Says what the next calls do.
    pub fn script(&self, script: Script) {
        *self.script.lock().unwrap() = script;
    }
    pub fn submits(&self) -> usize {
        self.submits.load(Ordering::SeqCst)
    }
    pub fn cancelled(&self) -> Vec<String> {
        self.cancelled.lock().unwrap().clone()
    }
    /// The request ids whose bills were looked for.
    pub fn looks(&self) -> Vec<String> {
        self.looks.lock().unwrap().clone()
    }
    fn read(&self) -> Script {
        self.script.lock().unwrap().clone()
    }
    fn finished(script: &Script) -> Finished {
        let media = Media {
            kind: "image",
            bytes: Bytes::from_static(PNG),
            mime: "image/png".to_owned(),
            extra: atelier_proto::value::Map::new(),
        };
        Finished {
            outputs: vec![Output::Media(media); script.images],
            usage: Usage::default(),
        }
    }
}

#[async_trait]
impl Provider for Acme {
    fn id(&self) -> &'static str {
        self.id
    }

    fn models(&self) -> Vec<Model> {
        let model = |id: &str, capability| Model {
            id: id.to_owned(),
            name: id.to_owned(),
            capabilities: vec![capability],
        };
        if self.id == "acme" {
            vec![model("m1", Capability::TextToImage)]
        } else {
            vec![model("s1", Capability::TextToSpeech)]
        }
    }

    fn resumable(&self) -> bool {
        self.id == "acme"
    }

    async fn reconcile(&self, _permit: &SeamPermit, job: &Job) -> Result<Bill, Failure> {
        self.looks.lock().unwrap().push(job.request_id.clone());
        match self.read().bill {
            Billing::Says(bill) => Ok(bill),
            Billing::Fails => Err(Failure::new(Class::ProviderTransient, "boom")),
            Billing::Panics => panic!("scripted"),
            Billing::Hangs => std::future::pending().await,
        }
    }

    async fn submit(
        &self,
        _permit: &SeamPermit,
        call: &Call,
        _emit: &dyn Emit,
    ) -> Result<Submitted, Failure> {
        let script = self.read();
        self.submits.fetch_add(1, Ordering::SeqCst);
        let request_id = format!("req-{}", call.generation_id);
        if self.id == "acme" {
            if let Some((id, charge)) = script.first {
                receipt::record("acme", Some(id), None).await;
                receipt::record("acme", None, Stated::from_f64(charge)).await;
            }
            if script.panics {
                receipt::record("acme", Some(&request_id), None).await;
                panic!("scripted");
            }
            return Ok(Submitted::Accepted {
                resume_token: request_id.clone(),
                request_id,
            });
        }
        if let Some(gate) = &script.gate {
            gate.acquire().await.unwrap().forget();
        }
        match script.fails {
            Some(words) => Err(Failure::new(Class::ProviderPermanent, words)),
            None => Ok(Submitted::Finished(Self::finished(&script))),
        }
    }

    async fn poll(&self, _permit: &SeamPermit, resume: &str, _emit: &dyn Emit) -> Result<Polled, Failure> {
        let script = self.read();
        if let Some(gate) = &script.gate
            && tokio::time::timeout(Duration::from_millis(20), gate.acquire())
                .await
                .is_err()
        {
            return Ok(Polled::Running {
                poll_after: Some(Duration::ZERO),
            });
        }
        if let Some(charge) = script.charge {
            receipt::record("acme", None, Stated::from_f64(charge)).await;
        }
        Ok(match script.fails {
            Some(words) => Polled::Failed(Failure::new(Class::ProviderPermanent, words)),
            None => Polled::Done(resume.to_owned()),
        })
    }

    async fn fetch(&self, _permit: &SeamPermit, _result: &str) -> Result<Finished, Failure> {
        Ok(Self::finished(&self.read()))
    }

    async fn cancel(&self, _permit: &SeamPermit, resume: &str) -> CancelAnswer {
        self.cancelled.lock().unwrap().push(resume.to_owned());
        self.read().cancel
    }
}
