//! Tests of the engine: the recorded corpus, the tables of the kernel specification, properties, and a
//! benchmark.

mod basics;
mod bench;
mod control;
mod corpus;
mod ends;
mod harness;
mod iteration;
mod joins;
mod loading;
mod messages;
mod nodes;
mod properties;
mod streams;
