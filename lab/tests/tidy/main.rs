//! Rules of the repository that the compiler does not check. A rule that does not hold everywhere yet has a table of
//! exceptions, which only shrinks.
//!
//! ```text
//! crates     allowed edges between crates; lints    purity     crates without I/O, clocks and threads
//! licenses   licenses allowed by deny.toml          reexports  interfaces without names of other crates
//! folders    size of folders; one module style      cycles     files that use each other
//! texts      size of files, forbidden words         prose      beginnings of doc comments
//! names      one meaning for each type name         limits, queues, headlines, map   generated and checked pages
//!
//! sources, tokens, use_paths, items, modules        files of the repository and their contents
//! ratchet, pages                                    comparison of rules with exceptions and of pages
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
