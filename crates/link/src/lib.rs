//! How messages cross: TLS over TCP, WebSocket, in-process.
