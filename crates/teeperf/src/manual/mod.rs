//! Manual pages, of the same definition as parsing and help; what no definition has stands in [`told`].

mod page;
mod told;

use crate::cli::Cli;
use clap::{Command, CommandFactory};
pub(crate) use page::page;

/// The whole definition, as people see it: what stands in for a compiler has no options but the compiler's.
pub(crate) fn definition() -> Command {
    let mut cli = Cli::command().disable_help_subcommand(true);
    cli.build();
    ["cc", "c++"].iter().fold(cli, |cli, name| {
        cli.mut_subcommand(name, |wrapper| wrapper.mut_arg("color", |arg| arg.hide(true)))
    })
}

/// A command and those below it, each with the name of its page.
pub(crate) fn pages(command: &Command) -> Vec<(String, &Command)> {
    let own = command.get_display_name().unwrap_or(command.get_name()).to_owned();
    let below = command.get_subcommands().filter(|below| !below.is_hide_set());
    std::iter::once((own, command)).chain(below.flat_map(pages)).collect()
}
