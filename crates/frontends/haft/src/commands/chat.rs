//! `haft chat`: a conversation without tools, with the model of the role `chat`.

use std::io::IsTerminal;

use haft_agent::config::ModelRole;

use super::run;
use crate::cli::options::RunArgs;
use crate::exit::ProcessExit;
use crate::haft::Haft;
use crate::interactive::{self, InterfaceStyle};

pub(crate) fn run(haft: &Haft, mut args: RunArgs) -> anyhow::Result<ProcessExit> {
    let settings = haft.load_quietly(&args.common)?;
    if args.model.is_none() {
        args.model = settings
            .config
            .models_for_role(ModelRole::Chat)
            .into_iter()
            .next();
    }
    args.allowed_tools
        .get_or_insert_with(|| vec!["none".to_owned()]);
    let at_a_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    if args.prompt.is_none() && !args.resume_current && at_a_terminal {
        return interactive::run(haft, &args, InterfaceStyle::AsConfigured);
    }
    run::run(haft, &args)
}
