//! Preloaded into a client application of trusted applications: stands between it and the TEE Client
//! API (GlobalPlatform, TEE Client API Specification 1.0; `libteec` of OP-TEE).
//!
//! Each thread has an arena (`teeperf_wire::arena`) from the recorder. Calls of the API are events in it.
//! With every session that is opened and every command the arena goes along as a parameter, in a
//! slot that the client leaves free; a trusted application that was built with hooks goes on in
//! the same chunk, so that one stack leads from the client into it.
//!
//! The client sees nothing of it: results, parameters and errors are those of the API itself. A
//! trusted application without hooks, which may refuse a parameter that it does not expect, is asked
//! again without.
//!
//! Preloaded into the supplicant as well, it records what that is asked for.
//!
//! * `calls`: the functions of the API; `supplicant`: the other end of the secure world's requests; `labels`: frames
//!   that are no functions; `lending`: the parameter; `sessions`: what is known of contexts
//!   and sessions; `teec`: the API's types. Threads' arenas are those of [`teeperf_lender`].
//!
//! Without a recorder every call is handed on and nothing else.

mod calls;
mod labels;
mod lending;
mod sessions;
mod supplicant;
mod system;
mod teec;
