//! The runtime that requests run on: one thread, which also receives what comes. Whoever reads waits for it
//! without being part of it.

use crate::options::options;
use std::future::Future;
use std::io;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, channel};
use tokio::runtime::{Builder, Handle};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

static HANDLE: OnceLock<Result<Handle, String>> = OnceLock::new();
static REQUESTS: OnceLock<Semaphore> = OnceLock::new();

/// Something under way; it ends when nobody waits for it any more.
#[derive(Debug)]
pub(crate) struct Task<T> {
    work: JoinHandle<()>,
    // Not one of tokio's: waiting for those panics where the reader runs in a runtime of its own.
    done: Receiver<T>,
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.work.abort();
    }
}

/// Begins to do something.
pub(crate) fn spawn<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> io::Result<Task<T>> {
    let handle = HANDLE.get_or_init(|| start().map_err(|error| error.to_string()));
    let handle = handle.as_ref().map_err(|error| io::Error::other(error.clone()))?;
    let (tell, done) = channel();
    let work = handle.spawn(async move {
        // Nobody may wait any more.
        let _ = tell.send(work.await);
    });
    Ok(Task { work, done })
}

fn start() -> io::Result<Handle> {
    let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
    let handle = runtime.handle().clone();
    let run = move || runtime.block_on(std::future::pending::<()>());
    std::thread::Builder::new().name("object storage".to_owned()).spawn(run)?;
    Ok(handle)
}

impl<T> Task<T> {
    /// Waits for what comes of it.
    pub(crate) fn wait(&self) -> io::Result<T> {
        self.done.recv().map_err(|_| io::Error::other("a request ended without an answer"))
    }
}

/// Does something and waits for it.
pub(crate) fn wait_for<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> io::Result<T> {
    spawn(work)?.wait()
}

/// One permit for each request that may be under way.
pub(crate) fn requests() -> &'static Semaphore {
    REQUESTS.get_or_init(|| Semaphore::new(options().connections.get()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_a_runtime_of_its_own_may_wait_too() {
        let own = Builder::new_current_thread().build().expect("a runtime");
        let came = own.block_on(async { wait_for(async { 7 }) });
        assert_eq!(came.expect("an answer"), 7);
    }
}
