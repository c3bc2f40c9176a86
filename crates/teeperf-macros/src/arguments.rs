//! What can stand in the attribute: `skip`, `crate = path`, `name = "…"`.

use syn::parse::{Parse, ParseStream};
use syn::{Error, Ident, LitStr, Path, Result, Token, parse_quote};

/// What stands in one attribute.
#[derive(Clone, Default)]
pub(crate) struct Arguments {
    /// Nothing of it is recorded.
    pub(crate) skip: bool,
    /// Where the hooks are.
    pub(crate) hooks: Option<Path>,
    /// What the function is called in reports.
    pub(crate) name: Option<LitStr>,
}

impl Arguments {
    /// The path of the hooks' crate.
    pub(crate) fn path(&self) -> Path {
        self.hooks.clone().unwrap_or_else(|| parse_quote!(::teeperf_hooks))
    }

    /// An error where something is said that is one function's.
    pub(crate) fn of_several(&self) -> Result<()> {
        match &self.name {
            Some(name) => Err(Error::new(name.span(), "a name is one function's")),
            None => Ok(()),
        }
    }
}

impl Parse for Arguments {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut arguments = Self::default();
        while !input.is_empty() {
            if input.peek(Token![crate]) {
                input.parse::<Token![crate]>()?;
                input.parse::<Token![=]>()?;
                arguments.hooks = Some(input.call(Path::parse_mod_style)?);
            } else {
                let word: Ident = input.parse()?;
                if word == "skip" {
                    arguments.skip = true;
                } else if word == "name" {
                    input.parse::<Token![=]>()?;
                    arguments.name = Some(input.parse()?);
                } else {
                    let text =
                        format!("no `{word}` here: `skip`, `name = \"…\"` or `crate = path`");
                    return Err(Error::new(word.span(), text));
                }
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(arguments)
    }
}
