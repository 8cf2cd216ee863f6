//! `atelier check`.

use std::path::Path;

use serde_json::{Value, json};

use crate::{
    FAILED, OK, UNREADABLE,
    args::Check,
    client::{Client, Refused},
    jobs::issue_line,
    print,
    run::{params, read_workflow},
};

/// Says all that is wrong with workflow files: 1 when something is, 2 when a file cannot be read at all.
///
/// # Errors
/// The server cannot be reached; a parameter that no input has.
pub async fn check(client: &Client, command: Check) -> anyhow::Result<u8> {
    let Check { files, params, json } = command;
    let mut code = OK;
    let several = files.len() > 1;
    for file in &files {
        let workflow = match read_workflow(file).await {
            Ok(workflow) => workflow,
            Err(error) => {
                code = code.max(UNREADABLE);
                let causes: Vec<String> = error.chain().map(ToString::to_string).collect();
                let text = causes.join(": ");
                if json {
                    print::json_line(
                        &json!({"file": file.display().to_string(), "ok": false, "error": text}),
                    )?;
                } else {
                    print::aside(&format!("error: {text}"));
                }
                continue;
            }
        };
        let params = params::parse(&params, &workflow)?;
        let issues = issues(client, workflow, params.into()).await?;
        if !issues.is_empty() {
            code = code.max(FAILED);
        }
        say(file, &issues, json, several)?;
    }
    Ok(code)
}
/// Everything that is wrong with a workflow. What the server cannot take as a graph is one more thing that is wrong.
async fn issues(client: &Client, workflow: Value, params: Value) -> anyhow::Result<Vec<Value>> {
    let body = json!({"workflow": workflow, "params": params});
    match client.post("/api/v1/check", &body).await {
        Ok(mut answer) => match answer.get_mut("issues").map(Value::take) {
            Some(Value::Array(issues)) => Ok(issues),
            _ => anyhow::bail!("the server answered without issues"),
        },
        Err(error) => match error.downcast_ref::<Refused>() {
            Some(refused) if refused.status == 400 => {
                let (code, message) = ("graph.malformed", refused.message.as_str());
                Ok(vec![
                    json!({"code": code, "node_id": "", "node_type": "", "property": "", "message": message}),
                ])
            }
            _ => Err(error),
        },
    }
}
fn say(file: &Path, issues: &[Value], json: bool, several: bool) -> anyhow::Result<()> {
    let name = file.display();
    if json {
        let line = json!({"file": name.to_string(), "ok": issues.is_empty(), "issues": issues});
        return print::json_line(&line);
    }
    if issues.is_empty() {
        return print::line(&format!("{name} can run."));
    }
    for issue in issues {
        let line = issue_line(issue);
        print::line(&if several { format!("{name}: {line}") } else { line })?;
    }
    Ok(())
}
