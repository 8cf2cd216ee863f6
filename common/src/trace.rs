//! W3C trace context: parsing it, carrying it along a task, writing it into requests.
//!
//! Export is not here; spans carry `trace_id` as a field, so logs of one request can be found across services.

use std::fmt;
use std::future::Future;

use http::{HeaderMap, HeaderValue};
use rand::Rng;

/// The header and metadata key, as the W3C recommendation names it.
pub const TRACEPARENT: &str = "traceparent";

tokio::task_local! {
    static CURRENT: Context;
}

/// Where in which trace the current code runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Context {
    trace_id: u128,
    span_id: u64,
    sampled: bool,
}

impl Context {
    /// Starts a trace.
    pub fn root() -> Self {
        let mut random = rand::rng();
        Self {
            trace_id: random.random::<u128>().max(1),
            span_id: random.random::<u64>().max(1),
            sampled: true,
        }
    }

    /// A span below this one, in the same trace.
    pub fn child(&self) -> Self {
        Self {
            span_id: rand::rng().random::<u64>().max(1),
            ..*self
        }
    }

    /// Reads a `traceparent` value; `None` when it is not one (the recommendation says to start a trace then).
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim().split('-');
        let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        if version.len() != 2
            || version.eq_ignore_ascii_case("ff")
            || (version == "00" && parts.next().is_some())
        {
            return None;
        }
        u8::from_str_radix(version, 16).ok()?;
        if trace.len() != 32 || span.len() != 16 || flags.len() != 2 {
            return None;
        }
        let hex = |text: &str| {
            text.bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
        };
        if !(hex(trace) && hex(span) && hex(flags)) {
            return None;
        }
        let trace_id = u128::from_str_radix(trace, 16).ok()?;
        let span_id = u64::from_str_radix(span, 16).ok()?;
        let sampled = u8::from_str_radix(flags, 16).ok()? & 1 == 1;
        (trace_id != 0 && span_id != 0).then_some(Self {
            trace_id,
            span_id,
            sampled,
        })
    }

    /// Reads the context out of HTTP headers or gRPC metadata headers.
    pub fn extract(headers: &HeaderMap) -> Option<Self> {
        Self::parse(headers.get(TRACEPARENT)?.to_str().ok()?)
    }

    /// Writes the context into headers, replacing what was there.
    pub fn inject(&self, headers: &mut HeaderMap) {
        if let Ok(value) = HeaderValue::from_str(&self.to_string()) {
            headers.insert(TRACEPARENT, value);
        }
    }

    /// The context of the running task, if it has one.
    pub fn current() -> Option<Self> {
        CURRENT.try_with(|context| *context).ok()
    }

    /// The trace's id: 32 hexadecimal digits.
    pub fn trace_id(&self) -> String {
        format!("{:032x}", self.trace_id)
    }

    /// The span's id: 16 hexadecimal digits.
    pub fn span_id(&self) -> String {
        format!("{:016x}", self.span_id)
    }

    /// Runs a future with this as its current context. As cancel safe as the future.
    pub fn scope<F: Future>(self, future: F) -> impl Future<Output = F::Output> {
        CURRENT.scope(self, future)
    }

    /// Runs a function with this as the current context.
    pub fn sync_scope<R>(self, function: impl FnOnce() -> R) -> R {
        CURRENT.sync_scope(self, function)
    }

    /// Gives a future the context of the code that calls this, for futures that are spawned.
    pub(crate) fn inherit<F: Future>(future: F) -> impl Future<Output = F::Output> {
        let context = Self::current();
        async move {
            match context {
                Some(context) => context.scope(future).await,
                None => future.await,
            }
        }
    }
}

/// The `traceparent` form.
impl fmt::Display for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "00-{:032x}-{:016x}-{:02x}",
            self.trace_id,
            self.span_id,
            u8::from(self.sampled)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_writes_and_refuses_what_is_malformed() {
        let context = Context::root();
        assert_eq!(Context::parse(&context.to_string()), Some(context));
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert_eq!(
            Context::parse(good).unwrap().trace_id(),
            "4bf92f3577b34da6a3ce929d0e0e4736"
        );
        for bad in [
            "",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-extra",
        ] {
            assert_eq!(Context::parse(bad), None, "{bad}");
        }
        // A later version may carry more.
        assert!(Context::parse("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more").is_some());
    }

    #[tokio::test]
    async fn spawned_tasks_inherit_the_context() {
        let tasks = crate::tasks::Tasks::new();
        let context = Context::root();
        let seen = context
            .scope(async { tasks.spawn("inner", async { Context::current() }).await })
            .await;
        assert_eq!(seen.unwrap(), Some(context));
        assert_eq!(Context::current(), None);
    }
}
