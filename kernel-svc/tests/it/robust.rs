//! Nodes that misbehave, and graphs that are large.
