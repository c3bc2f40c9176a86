//! The attribute `#[profile]` of `teeperf-hooks`, where it is documented.
//!
//! * `arguments`: what stands in the attribute; `items`: which functions that means; `function`: what becomes of one.

#[cfg(any(feature = "on", test))]
mod arguments;
#[cfg(any(feature = "on", test))]
mod function;
#[cfg(any(feature = "on", test))]
mod items;

use proc_macro::TokenStream;

#[expect(missing_docs, reason = "documented where it is re-exported, where examples can be run")]
#[proc_macro_attribute]
pub fn profile(arguments: TokenStream, item: TokenStream) -> TokenStream {
    #[cfg(feature = "on")]
    return items::attribute(arguments.into(), item.into()).into();
    #[cfg(not(feature = "on"))]
    {
        let _ = arguments;
        item
    }
}

#[expect(missing_docs, reason = "likewise")]
#[proc_macro]
pub fn profile_all(items: TokenStream) -> TokenStream {
    #[cfg(feature = "on")]
    return items::all(items.into()).into();
    #[cfg(not(feature = "on"))]
    items
}
