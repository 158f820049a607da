//! Stage `policy`: the only place that knows Cedar.
