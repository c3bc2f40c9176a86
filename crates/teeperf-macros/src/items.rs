//! Which functions an attribute means: the one that it stands at, or those of an `impl`, a trait, a module.
//!
//! Of several, those that cannot be recorded are left out: `const fn`, functions without a body. Where the attribute
//! stands at one function alone, that is an error.

use crate::arguments::Arguments;
use crate::function::{self, Owner};
use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::parse::{ParseStream, Parser};
use syn::spanned::Spanned;
use syn::{AttrStyle, Attribute, Error, ImplItem, Item, Meta, Result, TraitItem, TraitItemFn};

/// What `#[profile(…)]` makes of what it stands at.
pub(crate) fn attribute(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let original = item.clone();
    with_error(one(arguments, item), original)
}

/// What `profile_all! { … }` makes of its items.
pub(crate) fn all(items: TokenStream) -> TokenStream {
    let original = items.clone();
    with_error(several(items), original)
}

/// With the items as they were, nothing else is said to be missing.
fn with_error(result: Result<TokenStream>, original: TokenStream) -> TokenStream {
    result.unwrap_or_else(|error| {
        let mut tokens = error.into_compile_error();
        tokens.extend(original);
        tokens
    })
}

fn several(items: TokenStream) -> Result<TokenStream> {
    let parse = |input: ParseStream<'_>| {
        if let Some(first) = input.call(Attribute::parse_inner)?.first() {
            return Err(Error::new(first.span(), "this goes in front of `profile_all!`"));
        }
        let mut items = Vec::new();
        while !input.is_empty() {
            items.push(input.parse::<Item>()?);
        }
        Ok(items)
    };
    let mut items = parse.parse2(items)?;
    module(&mut items, &Arguments::default())?;
    let mut tokens = TokenStream::new();
    items.iter().for_each(|item| item.to_tokens(&mut tokens));
    Ok(tokens)
}

fn one(arguments: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let arguments: Arguments = syn::parse2(arguments)?;
    if arguments.skip {
        return Ok(item);
    }
    if let Ok(found) = syn::parse2::<TraitItemFn>(item.clone())
        && found.default.is_none()
    {
        return Err(Error::new(found.span(), "without a body there is nothing to record"));
    }
    let mut item: Item = syn::parse2(item)?;
    match &mut item {
        Item::Fn(found) => {
            function::check(&found.sig, &found.attrs)?;
            function::record(&mut found.sig, &mut found.block, &Owner::Module, &arguments);
        }
        Item::Mod(found) if found.content.is_none() => {
            let text = "of a module in another file the attribute sees nothing: put `profile_all! { … }` around what \
                        is in that file";
            return Err(Error::new(found.span(), text));
        }
        Item::Impl(_) | Item::Trait(_) | Item::Mod(_) => inside(&mut item, &arguments)?,
        other => {
            let text = "`#[profile]` goes with functions, `impl` blocks, traits and inline modules";
            return Err(Error::new(other.span(), text));
        }
    }
    Ok(item.into_token_stream())
}

fn module(items: &mut [Item], arguments: &Arguments) -> Result<()> {
    items.iter_mut().try_for_each(|item| {
        let attributes = match item {
            Item::Fn(found) => &mut found.attrs,
            Item::Impl(found) => &mut found.attrs,
            Item::Trait(found) => &mut found.attrs,
            Item::Mod(found) => &mut found.attrs,
            _ => return Ok(()),
        };
        let arguments = own(attributes, arguments);
        if arguments.skip { Ok(()) } else { inside(item, &arguments) }
    })
}

/// All functions in an item.
fn inside(item: &mut Item, arguments: &Arguments) -> Result<()> {
    match item {
        Item::Fn(found) if function::check(&found.sig, &found.attrs).is_ok() => {
            function::record(&mut found.sig, &mut found.block, &Owner::Module, arguments);
        }
        Item::Impl(found) => {
            arguments.of_several()?;
            let owner = Owner::of_impl(&found.self_ty, found.trait_.as_ref().map(|(path, _)| path));
            for item in &mut found.items {
                let ImplItem::Fn(method) = item else { continue };
                let arguments = own(&mut method.attrs, arguments);
                if !arguments.skip && function::check(&method.sig, &method.attrs).is_ok() {
                    function::record(&mut method.sig, &mut method.block, &owner, &arguments);
                }
            }
        }
        Item::Trait(found) => {
            arguments.of_several()?;
            let owner = Owner::Type(found.ident.to_string());
            for item in &mut found.items {
                let TraitItem::Fn(method) = item else { continue };
                let arguments = own(&mut method.attrs, arguments);
                if let Some(body) = &mut method.default
                    && !arguments.skip
                    && function::check(&method.sig, &method.attrs).is_ok()
                {
                    function::record(&mut method.sig, body, &owner, &arguments);
                }
            }
        }
        Item::Mod(found) => {
            arguments.of_several()?;
            if let Some((_, items)) = &mut found.content {
                module(items, arguments)?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// What counts for something in an `impl`, trait or module: its own attribute, which is taken away, in the place of the
/// whole's.
fn own(attributes: &mut Vec<Attribute>, whole: &Arguments) -> Arguments {
    let mut arguments = Arguments { name: None, ..whole.clone() };
    attributes.retain(|attribute| {
        let Some(own) = ours(attribute) else { return true };
        arguments.skip |= own.skip;
        arguments.name = own.name.or(arguments.name.take());
        arguments.hooks = own.hooks.or(arguments.hooks.take());
        false
    });
    arguments
}

/// What `#[profile(…)]` says, by whatever path, as the crate may have another name here. What does not fit is left, to be
/// another's, or an error where it is looked at next.
fn ours(attribute: &Attribute) -> Option<Arguments> {
    let is_named = attribute.path().segments.last().is_some_and(|last| last.ident == "profile");
    match &attribute.meta {
        _ if !is_named || !matches!(attribute.style, AttrStyle::Outer) => None,
        Meta::Path(_) => Some(Arguments::default()),
        _ => attribute.parse_args().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What becomes of an item with this attribute, without white space.
    fn expanded(arguments: &str, item: &str) -> String {
        let parsed = |text: &str| text.parse::<TokenStream>().unwrap();
        attribute(parsed(arguments), parsed(item)).to_string().replace([' ', '\n'], "")
    }

    #[test]
    fn a_function_keeps_what_it_has_and_is_a_call() {
        let text = expanded("", "#[inline] pub unsafe extern \"C\" fn f<T>(x: T) -> T { x }");
        assert!(text.starts_with("#[inline]pubunsafeextern\"C\"fnf<T>(x:T)->T{"), "{text}");
        assert!(
            text.contains("::teeperf_hooks::__call!(1,[\"\",module_path!(),\"::f\"],"),
            "{text}"
        );
        assert!(text.ends_with(";x}"), "{text}");
    }

    #[test]
    fn an_async_function_is_a_future() {
        let text =
            expanded("crate = a::b", "async fn f() -> Result<(), E> { g().await? ; Ok(()) }");
        assert!(text.starts_with("asyncfnf()->Result<(),E>{a::b::__future!(2,"), "{text}");
        assert!(text.contains("a::b::__private::never::<Result<(),E>>()"), "{text}");
        assert!(text.ends_with(").await}"), "{text}");
        for output in ["impl Sized", "Box<impl Sized>", "!"] {
            let text = expanded("", &format!("async fn f() -> {output} {{ g() }}"));
            assert!(!text.contains("never"), "{text}");
        }
    }

    #[test]
    fn of_several_those_that_can_be() {
        let text = expanded(
            "",
            "mod m { const fn a() {} fn b() {} #[profile(skip)] fn c() {}
             impl T for U { fn d(&self) {} const E: u8 = 1; }
             trait V { fn e(); fn f() {} } #[profile(skip)] mod g { fn h() {} }
             mod i { #[x::profile(a = 1)] #[y::profile] fn j() {} #[teeperf_hooks::profile(name = \"own\")] fn k() {} } }",
        );
        assert_eq!(text.matches("__call!").count(), 5, "{text}");
        for name in ["\"::b\"", "\"<\",module_path!(),\"::UasT>::d\"", "\"::V::f\"", "[\"own\"]"] {
            assert!(text.contains(name), "{name} in {text}");
        }
        assert!(!text.contains("skip") && text.contains("modi{#[x::profile(a=1)]fnj(){"), "{text}");
    }

    #[test]
    fn what_is_wrong_stands_beside_what_was_there() {
        for (arguments, item, what) in [
            ("", "const fn f() {}", "may run in the compiler"),
            ("", "struct S;", "goes with functions"),
            ("", "mod m;", "another file"),
            ("", "fn f(&self);", "without a body"),
            ("name = \"x\"", "impl S {}", "one function's"),
            ("loud", "fn f() {}", "no `loud` here"),
            ("", "#[unsafe(naked)] fn f() {}", "naked"),
            ("crate = 1", "fn f() {}", "expected identifier"),
        ] {
            let text = expanded(arguments, item);
            assert!(text.contains("compile_error!"), "{text}");
            assert!(text.contains(&what.replace(' ', "")), "{what} in {text}");
            assert!(text.ends_with(&item.replace(' ', "")), "{text}");
        }
        let wrong = all("#![allow(x)] fn f() {}".parse().unwrap()).to_string();
        assert!(wrong.contains("in front of"), "{wrong}");
    }
}
