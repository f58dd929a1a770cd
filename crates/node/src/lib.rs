//! Where the stages meet: one running Corridor process.
