//! What measures and proves: rules, benchmarks, golden images.
