//! Commands on this machine: only where the deployment allows them, in the workspace folder, with bounds.
//!
//! A command has the rights of the process, so nothing runs unless `kernel.allow_commands` is set. It sees none of the
//! process's environment, is ended with everything that it started when the run is cancelled or it takes too long, and
//! what it writes is kept up to a size.

use std::{process::Stdio, time::Duration};

use atelier_proto::value::{Map, Value};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    process::{Child, Command},
};

use super::{
    args::{Args, map, missing, text_of},
    boolean::unknown,
    code::{Types, factory},
    files::Workspace,
    work::{Reach, Reaching},
};
use crate::node::{Context, NodeError};

/// Longest time of one command.
const LONGEST: Duration = Duration::from_secs(600);
/// Bytes of each of its streams that are kept; more is read and left out.
const MAX_OUTPUT: usize = 1 << 20;
/// Where commands are looked for.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// Inputs of these types that are no variables of the command.
const OWN: &[&str] = &[
    "command",
    "code",
    "image",
    "execution_mode",
    "stdin",
    "executable",
    "timeout_seconds",
    "timeout",
    "sync_mode",
];
const OFF: &str =
    "commands and code are not run in this deployment: the setting `kernel.allow_commands` is off";

/// All types of this family.
pub(super) fn types() -> Types {
    let reaching: [(&'static str, Reach); 19] = [
        ("nodetool.code.ExecuteBash", |args, ctx| {
            Box::pin(code(args, ctx, "bash"))
        }),
        ("nodetool.code.ExecuteCommand", |args, ctx| {
            Box::pin(execute(args, ctx))
        }),
        ("nodetool.code.ExecuteJavaScript", |args, ctx| {
            Box::pin(code(args, ctx, "node"))
        }),
        ("nodetool.code.ExecuteLua", |args, ctx| {
            Box::pin(code(args, ctx, "lua"))
        }),
        ("nodetool.code.ExecutePython", |args, ctx| {
            Box::pin(code(args, ctx, "python3"))
        }),
        ("nodetool.code.ExecuteRuby", |args, ctx| {
            Box::pin(code(args, ctx, "ruby"))
        }),
        ("nodetool.code.RunBashCommand", |args, ctx| {
            Box::pin(command(args, ctx, "bash"))
        }),
        ("nodetool.code.RunBashCommandDocker", |args, ctx| {
            Box::pin(docker(args, ctx))
        }),
        ("nodetool.code.RunJavaScriptCommand", |args, ctx| {
            Box::pin(command(args, ctx, "node"))
        }),
        ("nodetool.code.RunJavaScriptCommandDocker", |args, ctx| {
            Box::pin(docker(args, ctx))
        }),
        ("nodetool.code.RunLuaCommand", |args, ctx| {
            Box::pin(command(args, ctx, "lua"))
        }),
        ("nodetool.code.RunLuaCommandDocker", |args, ctx| {
            Box::pin(docker(args, ctx))
        }),
        ("nodetool.code.RunPythonCommand", |args, ctx| {
            Box::pin(command(args, ctx, "python3"))
        }),
        ("nodetool.code.RunPythonCommandDocker", |args, ctx| {
            Box::pin(docker(args, ctx))
        }),
        ("nodetool.code.RunRubyCommand", |args, ctx| {
            Box::pin(command(args, ctx, "ruby"))
        }),
        ("nodetool.code.RunRubyCommandDocker", |args, ctx| {
            Box::pin(docker(args, ctx))
        }),
        ("nodetool.code.RunShellCommand", |args, ctx| {
            Box::pin(command(args, ctx, "sh"))
        }),
        ("nodetool.code.RunShellCommandDocker", |args, ctx| {
            Box::pin(docker(args, ctx))
        }),
        ("nodetool.code.Code", |_, _| {
            let text = "code is not run in this deployment: it has no sandbox for it";
            Box::pin(async move { Err(NodeError::new(text).code("command.off")) })
        }),
    ];
    reaching
        .into_iter()
        .map(|(name, reach)| (name, factory(Reaching(reach))))
        .collect()
}

fn allowed(ctx: &Context) -> Result<(), NodeError> {
    if ctx.services.host().allow_commands {
        return Ok(());
    }
    Err(NodeError::new(OFF).code("command.off"))
}
async fn docker(_args: Args<'_>, ctx: &Context) -> Result<Map, NodeError> {
    allowed(ctx)?;
    let text = "containers are not started by this deployment: use the type without `Docker`";
    Err(NodeError::new(text).code("command.off"))
}
/// Types that would run in a container unless they say otherwise.
fn in_process(args: Args<'_>, ctx: &Context) -> Result<(), NodeError> {
    allowed(ctx)?;
    match args.text_or("execution_mode", "docker").as_str() {
        "subprocess" => Ok(()),
        "docker" => {
            let text = "the input `execution_mode` asks for docker, which this deployment does not offer: choose \
                        subprocess";
            Err(NodeError::new(text).code("command.off"))
        }
        other => Err(unknown("execution_mode", other, "docker, subprocess")),
    }
}
async fn execute(args: Args<'_>, ctx: &Context) -> Result<Map, NodeError> {
    in_process(args, ctx)?;
    run(args, ctx, "sh", "command").await
}
async fn code(args: Args<'_>, ctx: &Context, interpreter: &str) -> Result<Map, NodeError> {
    in_process(args, ctx)?;
    run(args, ctx, interpreter, "code").await
}
async fn command(args: Args<'_>, ctx: &Context, interpreter: &str) -> Result<Map, NodeError> {
    allowed(ctx)?;
    run(args, ctx, interpreter, "command").await
}

async fn run(args: Args<'_>, ctx: &Context, interpreter: &str, input: &str) -> Result<Map, NodeError> {
    let text = args.text(input);
    if text.trim().is_empty() {
        return Err(missing(input, "something to run is needed"));
    }
    let program = match interpreter {
        "lua" => match args.text_or("executable", "lua").as_str() {
            "luajit" => "luajit",
            _ => "lua",
        },
        other => other,
    };
    let flag = if matches!(interpreter, "node" | "lua" | "ruby") {
        "-e"
    } else {
        "-c"
    };
    let workspace = Workspace::of(ctx.services.host())?;
    let asked = args.int("timeout_seconds", 0)?;
    let longest = match u64::try_from(asked) {
        Ok(seconds) if seconds > 0 => LONGEST.min(Duration::from_secs(seconds)),
        _ => LONGEST,
    };
    let scalars = args
        .others(OWN)
        .filter(|(name, value)| is_name(name) && is_scalar(value));
    let child = Command::new(program)
        .arg(flag)
        .arg(&text)
        .current_dir(workspace.root())
        .env_clear()
        .env("PATH", PATH)
        .env("HOME", workspace.root())
        .env("LANG", "C.UTF-8")
        .envs(scalars.map(|(name, value)| (name.clone(), text_of(value))))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| {
            NodeError::new(format!("`{program}` cannot be started: {}", error.kind())).code("command.start")
        })?;
    let group = Group(child.id());
    let ended = tokio::select! {
        biased;
        () = ctx.cancel.cancelled() => Err(NodeError::cancelled()),
        () = tokio::time::sleep(longest) => {
            let text = format!("the command took longer than {} seconds", longest.as_secs());
            Err(NodeError::new(text).code("command.timeout"))
        }
        ended = finish(child, args.text("stdin")) => ended,
    };
    drop(group);
    let (code, stdout, stderr) = ended?;
    if code != Some(0) {
        let code = code.map_or("a signal".to_owned(), |code| format!("status {code}"));
        let last: String = stderr.trim().chars().take(2_000).collect();
        return Err(NodeError::new(format!("the command ended with {code}: {last}")).code("command.failed"));
    }
    Ok(map([("stdout", stdout.into()), ("stderr", stderr.into())]))
}
fn is_name(name: &str) -> bool {
    let reserved = matches!(name, "PATH" | "HOME" | "LANG") || name.starts_with("LD_");
    !reserved
        && !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
fn is_scalar(value: &Value) -> bool {
    matches!(value, Value::Bool(_) | Value::Int(_) | Value::Float(_))
        || value.as_str().is_some_and(|text| !text.contains('\0'))
}
/// Gives a command its input and reads what it writes, both streams at once, until it ends.
async fn finish(mut child: Child, stdin: String) -> Result<(Option<i32>, String, String), NodeError> {
    let (input, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let writing = async {
        if let Some(mut input) = input {
            // A command that does not read its input is no fault.
            let _ = input.write_all(stdin.as_bytes()).await;
        }
    };
    let ((), stdout, stderr, status) = tokio::join!(writing, kept(stdout), kept(stderr), child.wait());
    let lost = |_| NodeError::new("the command's end was not seen").code("command.failed");
    Ok((status.map_err(lost)?.code(), stdout, stderr))
}
async fn kept(stream: Option<impl AsyncRead + Unpin>) -> String {
    let Some(mut stream) = stream else {
        return String::new();
    };
    let (mut kept, mut buffer) = (Vec::new(), vec![0; 16 * 1024]);
    while let Ok(length) = stream.read(&mut buffer).await {
        if length == 0 {
            break;
        }
        let room = MAX_OUTPUT.saturating_sub(kept.len()).min(length);
        kept.extend_from_slice(buffer.get(..room).unwrap_or_default());
    }
    String::from_utf8_lossy(&kept).into_owned()
}
/// All processes that a command started; they end when this is dropped.
struct Group(Option<u32>);
impl Drop for Group {
    fn drop(&mut self) {
        let id = self.0.and_then(|id| i32::try_from(id).ok());
        if let Some(group) = id.and_then(rustix::process::Pid::from_raw) {
            // There is nothing left to end when the command has ended with all its children.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use rstest::rstest;
    use serde_json::{Value as Json, json};

    use crate::nodes::testing::Node;

    #[rstest]
    #[case("RunShellCommand", json!({"command": "echo x"}), "`kernel.allow_commands` is off")]
    #[case("RunPythonCommandDocker", json!({"command": "1"}), "`kernel.allow_commands` is off")]
    #[case("ExecutePython", json!({"code": "1"}), "`kernel.allow_commands` is off")]
    #[case("Code", json!({"code": "return {}"}), "no sandbox")]
    #[tokio::test]
    async fn nothing_runs_unless_it_is_allowed(#[case] name: &str, #[case] inputs: Json, #[case] part: &str) {
        let mut node = Node::new(&format!("nodetool.code.{name}"));
        let error = node.process(inputs).await.expect_err("off");
        assert!(error.message.contains(part), "{error}");
        assert_eq!(error.code.as_deref(), Some("command.off"));
    }

    #[tokio::test]
    async fn a_command_runs_in_the_folder_without_the_environment() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut node = Node::in_folder("nodetool.code.RunShellCommand", folder.path());
        node.allow_commands();
        let inputs = json!({"command": "echo $WHO > f; cat f; env | grep -c CARGO >&2 || true", "WHO": "me"});
        let out = node.process(inputs).await.expect("ran");
        assert_eq!((&out["stdout"], &out["stderr"]), (&json!("me\n"), &json!("0\n")));
        assert!(folder.path().join("f").exists());
        let error = node
            .process(json!({"command": "echo no >&2; exit 3"}))
            .await
            .expect_err("failed");
        assert_eq!(error.message, "the command ended with status 3: no");
        let error = node.process(json!({"command": " "})).await.expect_err("empty");
        assert!(error.message.contains("`command`"));
    }

    #[tokio::test]
    async fn what_a_command_writes_is_bounded_and_it_ends_with_all_its_children() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut node = Node::in_folder("nodetool.code.RunBashCommand", folder.path());
        node.allow_commands();
        let out = node
            .process(json!({"command": "head -c 3000000 /dev/zero | tr '\\0' x"}))
            .await
            .expect("ran");
        assert_eq!(out["stdout"].as_str().map(str::len), Some(super::MAX_OUTPUT));
        let started = Instant::now();
        let inputs = json!({"command": "(sleep 60; touch late) & sleep 60", "timeout_seconds": 1});
        let error = node.process(inputs).await.expect_err("too long");
        assert_eq!(error.code.as_deref(), Some("command.timeout"));
        assert!(started.elapsed().as_secs() < 30);
    }
}
