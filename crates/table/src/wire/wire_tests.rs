//! Operations survive their bytes; other bytes are refused.
