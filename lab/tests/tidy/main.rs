//! Rules of the repository that a compiler does not check. A rule that is not kept everywhere yet has a table of its
//! exceptions beside it, which only shrinks.
//!
//! ```text
//! crates     which crate may use which; lints       purity     crates without I/O, clocks and threads
//! licenses   those that deny.toml allows            reexports  interfaces without names of other crates
//! folders    size of folders; one module style      cycles     files that use each other
//! texts      size of files, words that stay out     prose      beginnings of doc comments
//! names      one meaning for each type name         limits, queues, headlines, map   generated and checked pages
//!
//! sources, tokens, use_paths, items, modules        files of the repository and what they say
//! ratchet, pages                                    how rules with exceptions, and pages, are compared
//! ```

mod crates;
mod cycles;
mod folders;
mod headlines;
mod items;
mod licenses;
mod limits;
mod map;
mod modules;
mod names;
mod pages;
mod prose;
mod purity;
mod queues;
mod ratchet;
mod reexports;
mod sources;
mod texts;
mod tokens;
mod use_paths;
