//! How pictures reach a viewer: frame loop, encoders, bounded frames in flight.
