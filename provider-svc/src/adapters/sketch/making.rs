//! Making what a job asks for, at the pace that it asks for.

use std::time::Duration;

use atelier_common::tasks::Tasks;
use atelier_proto::value::{BytesForm, Map, MediaRef, Value, to_json};
use bytes::Bytes;
use rust_decimal::Decimal;

use super::job::{Job, Said};
use super::request::{Form, Request, tokens};
use super::{draw, embed, speak, tools, write};
use crate::provider::{Capability, Class, Failure, Finished, Media, Medium, Output, Params, Usage};

mod others;

/// Size of a piece of a sound file, in bytes.
const AUDIO_PIECE: usize = 8 * 1024;

/// Runs a job to its end, or until it is stopped.
pub(super) async fn make(job: &Job, tasks: &Tasks) {
    let made = async {
        if let Some(message) = &job.request.failure {
            tokio::time::sleep(job.request.delay).await;
            let mut failure = Failure::new(Class::ProviderPermanent, message.clone());
            failure.maybe_billed = job.request.bill_on_failure;
            return Err(failure);
        }
        let capability = job.request.capability;
        match (capability, capability.medium()) {
            (Capability::TextToSpeech, _) => sound(job, tasks).await,
            (Capability::GenerateMessage, _) => text(job).await,
            (Capability::Embedding, _) => vectors(job).await,
            (_, Medium::Text) => others::transcript(job, tasks).await,
            (_, Medium::Audio) => others::music(job, tasks).await,
            (_, Medium::Video) => others::film(job, tasks).await,
            (_, Medium::Model3d) => others::solid(job, tasks).await,
            (_, Medium::Image) => pictures(job, tasks).await,
        }
    };
    if let Some(end) = job.stop().run_until_cancelled(made).await {
        job.finish(end);
    }
}

/// Runs drawing and the like where it does not hold up others.
async fn work<T: Send + 'static>(
    tasks: &Tasks,
    what: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, Failure> {
    let broken = |message: String| Failure::new(Class::ProviderPermanent, message).because("bad_output");
    tasks
        .spawn_blocking("sketch work", what)
        .await
        .map_err(|_| broken("the sketch broke off".to_owned()))?
        .map_err(broken)
}

/// Takes the time that the job is to take, in the steps that it is to tell of. Pictures have previews.
async fn steps(job: &Job, tasks: &Tasks, previews: bool) -> Result<(), Failure> {
    let request = &job.request;
    let total = i64::from(request.steps);
    let pause = request
        .delay
        .checked_div(request.steps.max(1))
        .unwrap_or_default();
    for step in 1..=request.steps {
        tokio::time::sleep(pause).await;
        let preview = if previews && step < request.steps {
            Some(preview(request, step, tasks).await?)
        } else {
            None
        };
        job.say(Said::Progress {
            done: i64::from(step),
            total,
            preview,
        });
    }
    if request.steps == 0 {
        tokio::time::sleep(request.delay).await;
    }
    Ok(())
}

async fn pictures(job: &Job, tasks: &Tasks) -> Result<Finished, Failure> {
    let request = &job.request;
    if request.capability != Capability::TextToImage
        && let Some(input) = others::input(request, "image")
    {
        steps(job, tasks, false).await?;
        return others::derived(request, input, tasks).await;
    }
    steps(job, tasks, true).await?;
    let mut outputs = Vec::new();
    for number in 0..request.images {
        let seed = request.seed.wrapping_add(u64::from(number));
        let (prompt, (width, height)) = (request.prompt.clone(), request.size);
        let made = move || draw::draw(&prompt, seed, width, height).map_err(|error| error.to_string());
        let bytes = work(tasks, made).await?;
        let extra = Map::from([
            ("width".to_owned(), Value::Int(width.into())),
            ("height".to_owned(), Value::Int(height.into())),
            (
                "seed".to_owned(),
                Value::Int(i64::try_from(seed).unwrap_or(i64::MAX)),
            ),
        ]);
        outputs.push(Output::Media(Media {
            kind: "image",
            bytes: bytes.into(),
            mime: "image/png".to_owned(),
            extra,
        }));
    }
    Ok(Finished {
        outputs,
        usage: Usage::default(),
    })
}

async fn preview(request: &Request, step: u32, tasks: &Tasks) -> Result<MediaRef, Failure> {
    #[expect(clippy::cast_precision_loss, reason = "at most a hundred steps")]
    let fraction = step as f32 / request.steps.max(1) as f32;
    let (prompt, seed, (width, height)) = (request.prompt.clone(), request.seed, request.size);
    let made =
        move || draw::preview(&prompt, seed, width, height, fraction).map_err(|error| error.to_string());
    let bytes = work(tasks, made).await?;
    Ok(MediaRef {
        kind: "image".to_owned(),
        data: Some(bytes.into()),
        mime_type: Some("image/png".to_owned()),
        ..MediaRef::default()
    })
}

async fn sound(job: &Job, tasks: &Tasks) -> Result<Finished, Failure> {
    let request = &job.request;
    let (text, voice, speed) = (request.prompt.clone(), request.voice.clone(), request.speed);
    let made = move || {
        let seconds = speak::duration_seconds(&text, speed);
        speak::speak(&text, &voice, speed)
            .map(|bytes| (bytes, seconds))
            .map_err(|error| error.to_string())
    };
    let (bytes, seconds) = work(tasks, made).await?;
    let bytes = Bytes::from(bytes);
    if request.stream {
        let pieces = bytes.len().div_ceil(AUDIO_PIECE);
        let pause = share(request.delay, pieces);
        for piece in 0..pieces {
            tokio::time::sleep(pause).await;
            let from = piece * AUDIO_PIECE;
            job.say(Said::Audio(
                bytes.slice(from..bytes.len().min(from + AUDIO_PIECE)),
            ));
        }
        job.say(Said::End("audio"));
    } else {
        tokio::time::sleep(request.delay).await;
    }
    let usage = Usage {
        seconds: seconds.to_string().parse::<Decimal>().ok(),
        ..Usage::default()
    };
    let extra = Map::from([
        ("duration".to_owned(), Value::Float(seconds)),
        ("sample_rate".to_owned(), Value::Int(speak::SAMPLE_RATE.into())),
    ]);
    let media = Media {
        kind: "audio",
        bytes,
        mime: "audio/wav".to_owned(),
        extra,
    };
    Ok(Finished {
        outputs: vec![Output::Media(media)],
        usage,
    })
}

/// Vectors of texts.
async fn vectors(job: &Job) -> Result<Finished, Failure> {
    let request = &job.request;
    tokio::time::sleep(request.delay).await;
    let params = Params(&request.params);
    let size = params
        .int("dimensions")
        .and_then(|size| usize::try_from(size).ok());
    let size = size.filter(|size| *size > 0).unwrap_or(embed::DIMENSIONS.1);
    let vector =
        |text: &String| Value::list(embed::embed(text, size).into_iter().map(Value::Float).collect());
    let mut made: Vec<Value> = super::request::texts(params).iter().map(vector).collect();
    let many = params
        .0
        .get("input")
        .is_some_and(|input| input.as_list().is_some());
    let output = if many {
        Value::list(made)
    } else {
        made.pop().unwrap_or_default()
    };
    let usage = Usage {
        input_tokens: Some(request.input_tokens),
        output_tokens: Some(0),
        ..Usage::default()
    };
    Ok(Finished {
        outputs: vec![Output::Value(output)],
        usage,
    })
}

async fn text(job: &Job) -> Result<Finished, Failure> {
    let request = &job.request;
    if let Some(calls) = &request.calls {
        tokio::time::sleep(request.delay).await;
        job.say(Said::End("text"));
        let usage = Usage {
            input_tokens: Some(request.input_tokens),
            output_tokens: Some(tokens(&to_json(calls, BytesForm::Tagged).to_string())),
            ..Usage::default()
        };
        return Ok(Finished {
            outputs: vec![Output::Value(calls.clone())],
            usage,
        });
    }
    let answer = match &request.form {
        Form::Text if !request.results.is_empty() => {
            tools::answer(&request.results, &request.prompt, request.seed)
        }
        Form::Text => write::reply(&request.system, &request.prompt, request.seed),
        Form::Json(schema) => write::json(&request.prompt, schema.as_ref(), request.seed).to_string(),
        Form::List(count) => {
            serde_json::json!(write::list(&request.prompt, *count, request.seed)).to_string()
        }
    };
    let pieces = write::chunks(&answer);
    let pause = share(request.delay, pieces.len());
    for piece in pieces {
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        job.say(Said::Text(piece));
    }
    job.say(Said::End("text"));
    let usage = Usage {
        input_tokens: Some(request.input_tokens),
        output_tokens: Some(tokens(&answer)),
        ..Usage::default()
    };
    Ok(Finished {
        outputs: vec![Output::Text(answer)],
        usage,
    })
}

fn share(delay: Duration, pieces: usize) -> Duration {
    delay
        .checked_div(u32::try_from(pieces.max(1)).unwrap_or(u32::MAX))
        .unwrap_or_default()
}
