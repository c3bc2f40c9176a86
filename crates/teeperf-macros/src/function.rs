//! What becomes of one function: a call that lasts as long as its body, or a future whose polls are calls.

use crate::arguments::Arguments;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote};
use syn::{
    Attribute, Block, Error, FnArg, Meta, Pat, Path, Result, ReturnType, Signature, Stmt, Type,
    parse_quote,
};

/// What a function belongs to, for the name that it has in a program without symbols. With symbols these have it, with
/// types and all.
pub(crate) enum Owner {
    /// The module that it stands in.
    Module,
    /// A type or trait.
    Type(String),
    /// A type's implementation of a trait.
    Trait(String, String),
}

impl Owner {
    pub(crate) fn of_impl(of: &Type, implements: Option<&Path>) -> Self {
        let last = |path: &Path| path.segments.last().map(|last| last.ident.to_string());
        let name = match of {
            Type::Path(found) => last(&found.path),
            other => Some(other.to_token_stream().to_string()),
        };
        let name = name.unwrap_or_default();
        match implements.and_then(last) {
            Some(implements) => Self::Trait(name, implements),
            None => Self::Type(name),
        }
    }

    /// The name as literals, and what the compiler puts between them.
    fn name(&self, function: &Ident) -> TokenStream {
        let (before, after) = match self {
            Self::Module => (String::new(), format!("::{function}")),
            Self::Type(name) => (String::new(), format!("::{name}::{function}")),
            Self::Trait(name, of) => ("<".to_owned(), format!("::{name} as {of}>::{function}")),
        };
        let [before, after] = [before, after].map(|part| escaped(&part));
        quote!(#before, module_path!(), #after)
    }
}

/// Whether it can be recorded; if not, why.
pub(crate) fn check(signature: &Signature, attributes: &[Attribute]) -> Result<()> {
    if let Some(word) = &signature.constness {
        let text = "a `const fn` cannot be recorded, as it may run in the compiler: record its callers, or make \
                    it a function that is not `const`";
        return Err(Error::new(word.span, text));
    }
    let is_naked = |attribute: &&Attribute| match &attribute.meta {
        Meta::List(list) => {
            list.path.is_ident("unsafe") && list.tokens.to_string().trim() == "naked"
        }
        meta => meta.path().is_ident("naked"),
    };
    match attributes.iter().find(is_naked) {
        Some(_) => {
            let text = "a naked function cannot be recorded: it has no place for a call";
            Err(Error::new(signature.ident.span(), text))
        }
        None => Ok(()),
    }
}

/// Has the body record itself. Everything that is in the body stays as it is, and so does the signature, but for a `mut` that
/// goes along with an argument of an async function.
pub(crate) fn record(
    signature: &mut Signature,
    body: &mut Block,
    owner: &Owner,
    arguments: &Arguments,
) {
    let hooks = arguments.path();
    let (file, line) = place(signature.fn_token.span);
    let (file, line) = (escaped(&file), proc_macro2::Literal::u32_unsuffixed(line));
    let is_async = signature.asyncness.is_some();
    // The site stands in the function, or in the future that an async one is.
    let (depth, name) = match &arguments.name {
        Some(name) => (0u8, escaped(&name.value()).into_token_stream()),
        None => (1 + u8::from(is_async), owner.name(&signature.ident)),
    };
    let depth = proc_macro2::Literal::u8_unsuffixed(depth);
    if !is_async {
        let call = Ident::new("__teeperf_call", Span::mixed_site());
        body.stmts.insert(
            0,
            parse_quote! {
                let #call = #hooks::__call!(#depth, [#name], "", [#file], #line);
            },
        );
        return;
    }
    let returns = returns(&signature.output, &hooks);
    let moved = moved(signature);
    let statements = &body.stmts;
    let tail: syn::Expr = parse_quote! {
        #hooks::__future!(#depth, [#name], [#file], #line, async move {
            #(#moved)*
            #returns
            #(#statements)*
        }).await
    };
    body.stmts = vec![Stmt::Expr(tail, None)];
}

/// Moves arguments into the future, all of them, and takes them apart there, as the compiler does in an async function: so they
/// are dropped with what it has, and in the same order.
fn moved(signature: &mut Signature) -> Vec<Stmt> {
    let mut moved: Vec<Stmt> = Vec::new();
    let arguments = signature.inputs.iter_mut().enumerate();
    for (number, argument) in arguments {
        let FnArg::Typed(argument) = argument else { continue };
        match &mut *argument.pat {
            Pat::Ident(binding) if binding.by_ref.is_none() && binding.subpat.is_none() => {
                let (name, mutable) = (&binding.ident, binding.mutability.take());
                moved.push(parse_quote!(let #mutable #name = #name;));
            }
            pattern => {
                let name = Ident::new(&format!("__teeperf_argument{number}"), Span::mixed_site());
                let pattern = std::mem::replace(pattern, parse_quote!(#name));
                moved.push(parse_quote!(let #name = #name;));
                moved.push(parse_quote!(let #pattern = #name;));
            }
        }
    }
    moved
}

/// Tells the compiler what the body's value is converted to, which it does not see through the future around it.
fn returns(output: &ReturnType, hooks: &Path) -> Option<TokenStream> {
    let of: Type = match output {
        ReturnType::Default => parse_quote!(()),
        ReturnType::Type(_, of) => (**of).clone(),
    };
    // These cannot be written as a parameter.
    let is_said = matches!(of, Type::Never(_)) || has_word(of.to_token_stream(), "impl");
    (!is_said).then(|| {
        quote! {
            if false {
                return #hooks::__private::never::<#of>();
            }
        }
    })
}

fn has_word(tokens: TokenStream, word: &str) -> bool {
    tokens.into_iter().any(|token| match token {
        proc_macro2::TokenTree::Ident(ident) => ident == word,
        proc_macro2::TokenTree::Group(group) => has_word(group.stream(), word),
        _ => false,
    })
}

/// File and line of a function.
fn place(span: Span) -> (String, u32) {
    if !proc_macro::is_available() {
        return Default::default();
    }
    let span = span.unwrap();
    (span.file(), u32::try_from(span.line()).unwrap_or(0))
}

/// A text as the assembler's, within one of Rust's, of which braces mean something.
fn escaped(text: &str) -> syn::LitStr {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\\' => escaped.push_str("\\\\"),
            '"' => escaped.push_str("\\\""),
            '{' => escaped.push_str("{{"),
            '}' => escaped.push_str("}}"),
            letter if letter.is_control() => escaped.push(' '),
            letter => escaped.push(letter),
        }
    }
    syn::LitStr::new(&escaped, Span::call_site())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_mean_themselves_to_compiler_and_assembler() {
        assert_eq!(escaped("a{b}\"c\\\n").value(), "a{{b}}\\\"c\\\\ ");
    }
}
