//! One run of ffmpeg: files in a folder of its own, bounded in time and size, ended with the run.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt},
    process::{Child, Command},
};

use crate::{
    node::{Context, NodeError},
    nodes::media_io::{MAX_RESULT, value_fault},
};

/// Longest run.
const LIMIT: Duration = Duration::from_secs(15 * 60);
/// What is kept of what a program complains about, in bytes.
const MAX_WORDS: usize = 64 * 1024;
/// Most that a program may answer in text, in bytes.
const MAX_ANSWER: usize = 4 * 1024 * 1024;
/// What a program sees of the environment: where programs, libraries and fonts are, and no key of a provider.
const SEEN: &[&str] = &[
    "PATH",
    "HOME",
    "LANG",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "FONTCONFIG_FILE",
    "FONTCONFIG_PATH",
    "XDG_CACHE_HOME",
    "XDG_DATA_DIRS",
];

/// How a result is written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Form {
    pub name: &'static str,
    pub mime: &'static str,
    pub args: &'static [&'static str],
}
pub(super) const MP4: Form = Form {
    name: "out.mp4",
    mime: "video/mp4",
    args: &[
        "-c:v",
        "libx264",
        "-preset",
        "veryfast",
        "-pix_fmt",
        "yuv420p",
        "-c:a",
        "aac",
        "-movflags",
        "+faststart",
    ],
};
/// With alpha.
pub(super) const WEBM: Form = Form {
    name: "out.webm",
    mime: "video/webm",
    args: &[
        "-c:v",
        "libvpx-vp9",
        "-deadline",
        "realtime",
        "-cpu-used",
        "8",
        "-pix_fmt",
        "yuva420p",
        "-c:a",
        "libopus",
    ],
};
pub(super) const WAV: Form = Form {
    name: "out.wav",
    mime: "audio/wav",
    args: &["-vn", "-c:a", "pcm_s16le"],
};
pub(super) const PNG: Form = Form {
    name: "out.png",
    mime: "image/png",
    args: &["-an", "-c:v", "png"],
};

/// A file in the folder, and what it is.
#[derive(Debug, Clone)]
pub(super) struct Input {
    pub path: PathBuf,
    /// The reader that is to be used: nothing is guessed, so that a text file that names other files is no film.
    pub format: &'static str,
}
/// A folder that is gone when this is dropped.
pub(super) struct Scratch(PathBuf);
impl Drop for Scratch {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}
fn lost(error: std::io::Error) -> NodeError {
    NodeError::new(format!("a temporary file cannot be used: {}", error.kind()))
}
impl Scratch {
    pub fn new(ctx: &Context) -> Result<Self, NodeError> {
        let folder = ctx
            .services
            .scratch()
            .join(format!("film-{}", uuid::Uuid::now_v7()));
        std::fs::create_dir_all(&folder).map_err(lost)?;
        Ok(Self(folder))
    }
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
    /// Writes an input down.
    pub async fn input(&self, name: &str, number: usize, bytes: &[u8]) -> Result<Input, NodeError> {
        let format = format(bytes).ok_or_else(|| {
            value_fault(name, "is no film or sound that can be read: mp4, mov, webm, mkv, avi, mpeg, flv, gif, wav, mp3, flac and ogg can")
        })?;
        let path = self.path(&format!("in{number}"));
        tokio::fs::write(&path, bytes).await.map_err(lost)?;
        Ok(Input { path, format })
    }
    /// A text file for a filter.
    pub async fn text(&self, name: &str, text: &str) -> Result<PathBuf, NodeError> {
        let path = self.path(name);
        tokio::fs::write(&path, text).await.map_err(lost)?;
        Ok(path)
    }
    /// Runs ffmpeg on inputs and reads what it made.
    pub async fn run(
        &self,
        ctx: &Context,
        inputs: &[Input],
        args: Vec<String>,
        form: Form,
    ) -> Result<Vec<u8>, NodeError> {
        let mut command = program(ctx, "ffmpeg", &self.0);
        command.args(["-hide_banner", "-nostdin", "-loglevel", "error", "-y"]);
        for input in inputs {
            command
                .args(["-protocol_whitelist", "file,pipe", "-f", input.format, "-i"])
                .arg(&input.path);
        }
        command.args(args).args(form.args).args(["-threads", "2"]);
        // One byte more than is allowed shows that it was too much.
        command
            .args(["-fs", &(MAX_RESULT + 1).to_string()])
            .arg(self.path(form.name));
        finished(ctx, command, "ffmpeg").await?;
        self.made(form.name).await
    }
    /// What was made, whole.
    pub async fn made(&self, name: &str) -> Result<Vec<u8>, NodeError> {
        let path = self.path(name);
        let size = tokio::fs::metadata(&path).await.map_or(0, |info| info.len());
        if size == 0 {
            return Err(NodeError::new("ffmpeg made nothing of the input"));
        }
        if size > MAX_RESULT as u64 {
            let message = format!("the result has more than {MAX_RESULT} bytes that can be handed on");
            return Err(NodeError::new(message).code("output.size"));
        }
        tokio::fs::read(&path).await.map_err(lost)
    }
}
/// What a file is, by its first bytes, in ffmpeg's words.
fn format(bytes: &[u8]) -> Option<&'static str> {
    Some(match bytes {
        [_, _, _, _, b'f', b't', b'y', b'p', ..] | [_, _, _, _, b'm', b'o', b'o', b'v', ..] => "mov",
        [0x1a, 0x45, 0xdf, 0xa3, ..] => "matroska",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'A', b'V', b'I', b' ', ..] => "avi",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E', ..] => "wav",
        [0, 0, 1, 0xba, ..] => "mpeg",
        [b'F', b'L', b'V', 1, ..] => "flv",
        [b'G', b'I', b'F', b'8', ..] => "gif",
        [b'O', b'g', b'g', b'S', ..] => "ogg",
        [b'f', b'L', b'a', b'C', ..] => "flac",
        [b'I', b'D', b'3', ..] | [0xff, 0xfb | 0xf3 | 0xf2, ..] => "mp3",
        [0x47, ..] if bytes.get(188) == Some(&0x47) => "mpegts",
        _ => return None,
    })
}
/// A program that ends with whoever started it, sees no input and little of the environment.
pub(super) fn program(ctx: &Context, name: &str, folder: &Path) -> Command {
    let mut command = Command::new(ctx.services.program(name));
    let seen = SEEN
        .iter()
        .filter_map(|name| Some((*name, atelier_common::settings::variable(name)?)));
    command
        .current_dir(folder)
        .env_clear()
        .envs(seen)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}
/// Starts a program; one that is not there is named.
pub(super) fn started(command: &mut Command, name: &str) -> Result<Child, NodeError> {
    command.spawn().map_err(|error| {
        if error.kind() == std::io::ErrorKind::NotFound {
            let message = format!(
                "{name} is not installed: install the package ffmpeg where the kernel runs, for instance with `apt install ffmpeg`"
            );
            NodeError::missing_package("ffmpeg", message)
        } else {
            NodeError::new(format!("{name} cannot be started: {}", error.kind()))
        }
    })
}
/// Runs a program to its end and gives what it answered.
pub(super) async fn finished(ctx: &Context, mut command: Command, name: &str) -> Result<Vec<u8>, NodeError> {
    let mut child = started(&mut command, name)?;
    let (out, words) = (child.stdout.take(), child.stderr.take());
    let running = async {
        let (answer, words) = tokio::join!(bounded(out, MAX_ANSWER), bounded(words, MAX_WORDS));
        let status = child.wait().await.map_err(lost)?;
        Ok::<_, NodeError>((status, answer, words))
    };
    let ended = ctx
        .cancel
        .run_until_cancelled(tokio::time::timeout(LIMIT, running))
        .await;
    let ended = ended.ok_or_else(NodeError::cancelled)?;
    let (status, answer, words) = ended.map_err(|_| {
        NodeError::new(format!(
            "{name} took longer than {} minutes",
            LIMIT.as_secs() / 60
        ))
    })??;
    if status.success() {
        Ok(answer)
    } else {
        Err(failed(name, &words))
    }
}
/// Reads to the end, and keeps what fits.
pub(super) async fn bounded(from: Option<impl AsyncRead + Unpin>, most: usize) -> Vec<u8> {
    let (mut kept, mut piece) = (Vec::new(), vec![0_u8; 16 * 1024]);
    if let Some(mut from) = from {
        while let Ok(read) = from.read(&mut piece).await {
            if read == 0 {
                break;
            }
            let fits = read.min(most.saturating_sub(kept.len()));
            kept.extend(piece.iter().take(fits));
        }
    }
    kept
}
/// The last thing that a program complained about, without paths.
pub(super) fn failed(name: &str, words: &[u8]) -> NodeError {
    let words = String::from_utf8_lossy(words);
    let last = words
        .lines()
        .rev()
        .find(|line| !line.trim().is_empty())
        .unwrap_or("no reason was given");
    let plain: Vec<&str> = last
        .split_whitespace()
        .filter(|word| !word.contains('/'))
        .collect();
    let plain: String = plain.join(" ").chars().take(300).collect();
    NodeError::new(format!("{name} failed: {plain}")).code("ffmpeg.failed")
}
