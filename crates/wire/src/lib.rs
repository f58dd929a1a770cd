//! What crosses the network: operations and framing as state machines without I/O.
