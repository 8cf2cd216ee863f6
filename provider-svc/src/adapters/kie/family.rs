//! The families of models, which have their own paths and words. Pure.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Family {
    /// What has come since: one path for all.
    Jobs,
    /// Songs.
    Suno,
}

/// How a task is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    Waiting,
    Running,
    Done,
    Failed { code: String, message: String },
    Strange(String),
}

impl Family {
    /// The family of a model.
    pub(super) fn of(model: &str) -> Self {
        if model.starts_with("suno") {
            Self::Suno
        } else {
            Self::Jobs
        }
    }

    pub(super) const fn submit_path(self) -> &'static str {
        match self {
            Self::Jobs => "api/v1/jobs/createTask",
            Self::Suno => "api/v1/generate",
        }
    }

    pub(super) const fn record_path(self) -> &'static str {
        match self {
            Self::Jobs => "api/v1/jobs/recordInfo",
            Self::Suno => "api/v1/generate/record-info",
        }
    }

    pub(super) const fn needs_callback(self) -> bool {
        match self {
            Self::Jobs => false,
            Self::Suno => true,
        }
    }

    /// How a task is, by its record.
    pub(super) fn state(self, data: &Value) -> State {
        let text = |key: &str| match data.get(key) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            Some(_) | None => String::new(),
        };
        match self {
            Self::Jobs => match text("state").as_str() {
                "waiting" | "queuing" | "queueing" | "wait" => State::Waiting,
                "generating" => State::Running,
                "success" => State::Done,
                // Seen, though not documented.
                "fail" | "failed" => State::Failed {
                    code: text("failCode"),
                    message: text("failMsg"),
                },
                word => State::Strange(word.to_owned()),
            },
            Self::Suno => match text("status").as_str() {
                "PENDING" => State::Waiting,
                "TEXT_SUCCESS" | "FIRST_SUCCESS" => State::Running,
                "SUCCESS" => State::Done,
                word @ ("CREATE_TASK_FAILED"
                | "GENERATE_AUDIO_FAILED"
                | "CALLBACK_EXCEPTION"
                | "SENSITIVE_WORD_ERROR") => State::Failed {
                    code: word.to_owned(),
                    message: text("errorMessage"),
                },
                word => State::Strange(word.to_owned()),
            },
        }
    }

    /// The result in the one form that is read: an object with `resultUrls`.
    pub(super) fn result(self, data: &Value) -> Value {
        match self {
            Self::Jobs => data.get("resultJson").cloned().unwrap_or_default(),
            Self::Suno => {
                let songs = data
                    .get("response")
                    .and_then(|response| response.get("sunoData")?.as_array())
                    .map(Vec::as_slice)
                    .unwrap_or_default();
                let addresses: Vec<&Value> = songs.iter().filter_map(|song| song.get("audioUrl")).collect();
                Value::String(serde_json::json!({ "resultUrls": addresses }).to_string())
            }
        }
    }
}
