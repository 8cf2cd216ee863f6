//! Kernel specification 9: known failures, one test each.
