//! `scripted-model SCRIPT.yaml [--port N]`: serves a script over the four APIs until it is stopped.
//!
//! The first line on stdout lists the base URLs. Requests that got no scripted reply are reported
//! on stderr.

use std::io::Write;
use std::process::ExitCode;

use haft_testkit::{Handled, Recorded, Script, ScriptedServer};
use haft_types::Api;

const USAGE: &str = "usage: scripted-model SCRIPT.yaml [--port N]

Serves the script on 127.0.0.1 over openai-chat, openai-responses, anthropic and gemini.
The format of scripts is described in docs/scripted-model.md.";

struct Arguments {
    file: String,
    port: u16,
}

fn parse_arguments(given: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let mut file = None;
    let mut port = 0;
    let mut given = given;
    while let Some(argument) = given.next() {
        match argument.as_str() {
            "--port" => {
                let number = given.next().ok_or("`--port` needs a number")?;
                port = number
                    .parse()
                    .map_err(|_| format!("`{number}` is not a port; use 0 to 65535"))?;
            }
            flag if flag.starts_with('-') => return Err(format!("unknown option `{flag}`")),
            _ if file.is_none() => file = Some(argument),
            _ => {
                return Err(format!(
                    "unexpected argument `{argument}`; one script is served at a time"
                ));
            }
        }
    }
    Ok(Arguments {
        file: file.ok_or("no script given")?,
        port,
    })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let given: Vec<String> = std::env::args().skip(1).collect();
    if given
        .iter()
        .any(|argument| argument == "--help" || argument == "-h")
    {
        return match writeln!(std::io::stdout(), "{USAGE}") {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }
    let complaint = match parse_arguments(given.into_iter()) {
        Ok(arguments) => match serve_script(arguments).await {
            Ok(never) => match never {},
            Err(complaint) => complaint,
        },
        Err(complaint) => format!("{complaint}\n\n{USAGE}"),
    };
    // A closed stderr can't be reported anywhere.
    let _ = writeln!(std::io::stderr(), "scripted-model: {complaint}");
    ExitCode::from(2)
}

async fn serve_script(
    Arguments { file, port }: Arguments,
) -> Result<std::convert::Infallible, String> {
    let text =
        std::fs::read_to_string(&file).map_err(|error| format!("cannot read `{file}`: {error}"))?;
    let script = Script::from_yaml(&file, &text).map_err(|error| error.to_string())?;
    let server = ScriptedServer::start_on(script, port)
        .await
        .map_err(|error| error.to_string())?;
    let urls: Vec<String> = Api::ALL
        .iter()
        .map(|api| format!("{api}={}", server.base_url(*api)))
        .collect();
    writeln!(std::io::stdout(), "{}", urls.join(" "))
        .map_err(|error| format!("cannot write to stdout: {error}"))?;
    let mut reported = 0;
    loop {
        server.wait_for_requests(reported + 1).await;
        for request in server.requests().into_iter().skip(reported) {
            reported += 1;
            if let Some(line) = describe_failure(&request) {
                let _ = writeln!(std::io::stderr(), "{line}");
            }
        }
    }
}

fn describe_failure(request: &Recorded) -> Option<String> {
    let what = match &request.handled {
        Handled::Replied { .. } | Handled::Informed => return None,
        Handled::Refused(refusal) => {
            format!("refused by rule `{}`: {}", refusal.rule, refusal.body)
        }
        Handled::RanOut => "the script has run out".to_owned(),
        Handled::Unreadable { reason } => format!("unreadable: {reason}"),
        Handled::NotFound => "nothing is served there".to_owned(),
    };
    Some(format!(
        "request {} {} {}: {what}",
        request.number, request.method, request.path
    ))
}
