//! G-14: the values that wait in a run take no more memory than it may have.
