//! Connections: how many, how long, how large a head. A peer that sends or reads slowly, or not at
//! all, loses its connection; work that was begun for it goes on elsewhere.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

use super::envelope::CALL_LIMIT;
use crate::metrics::Metrics;

/// How many connections there may be; further ones wait in the system's queue.
const CONNECTIONS_MAX: usize = 1024;
/// How long a connection may take to send the head of a request, or be idle before it.
const HEAD_LIMIT: Duration = Duration::from_secs(30);
/// The same once half of all places are taken.
const HEAD_LIMIT_CROWDED: Duration = Duration::from_secs(5);
/// How many headers a request may have.
const HEADERS_MAX: usize = 64;
/// How large the head of a request may be.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// How much of a connection is held in memory.
const BUFFER_BYTES_MAX: usize = 64 * 1024;
/// After this a connection takes no further request; also what ends a peer that does not read.
const CONNECTION_AGE_MAX: Duration = Duration::from_mins(10);
/// How long calls may still take when the daemon stops.
const STOP_LIMIT: Duration = Duration::from_secs(15);
/// How long nothing is accepted after the system refused to give a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(500);

/// Serves until told to stop, then lets calls finish up to a limit.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    metrics: Metrics,
    shutdown: CancellationToken,
) {
    let connections = TaskTracker::new();
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    while let Some((stream, peer, place)) = accept(&listener, &places, &shutdown).await {
        let (router, shutdown) = (router.clone(), shutdown.clone());
        // Whoever comes when half of the places are taken is served and shown out, so that nobody
        // can keep all places by holding connections open.
        let crowded = places.available_permits() < CONNECTIONS_MAX / 2;
        let (metrics, connected) = (metrics.clone(), metrics.connected());
        connections.spawn(async move {
            if let Err(fault) = hold(stream, peer, router, shutdown, crowded).await {
                note(&fault, &metrics);
            }
            drop((place, connected));
        });
    }
    drop(listener);
    connections.close();
    connections.wait().await;
}

type Place = tokio::sync::OwnedSemaphorePermit;

/// The next connection and its place; none once told to stop.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
    shutdown: &CancellationToken,
) -> Option<(TcpStream, SocketAddr, Place)> {
    let next = async {
        let place = Arc::clone(places).acquire_owned().await.ok()?;
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => return Some((stream, peer, place)),
                // A peer that is gone already, or no file descriptor left: neither ends the daemon.
                Err(fault) => {
                    tracing::warn!(error = %fault, "a connection was not accepted: {fault}");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    };
    shutdown.run_until_cancelled(next).await.flatten()
}

async fn hold(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    shutdown: CancellationToken,
    crowded: bool,
) -> hyper::Result<()> {
    let service = service_fn(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(peer));
        let answer = router.clone().oneshot(request);
        async move { Ok::<_, Infallible>(answer.await.unwrap_or_else(|never| match never {})) }
    });
    let mut protocol = http1::Builder::new();
    protocol
        .timer(TokioTimer::new())
        .keep_alive(!crowded)
        .header_read_timeout(if crowded { HEAD_LIMIT_CROWDED } else { HEAD_LIMIT })
        .max_headers(HEADERS_MAX)
        .max_header_size(HEAD_BYTES_MAX)
        .max_buf_size(BUFFER_BYTES_MAX);
    let mut connection = pin!(protocol.serve_connection(TokioIo::new(stream), service));
    let limit = tokio::select! {
        ended = connection.as_mut() => return ended,
        () = shutdown.cancelled() => STOP_LIMIT,
        () = tokio::time::sleep(CONNECTION_AGE_MAX) => CALL_LIMIT,
    };
    connection.as_mut().graceful_shutdown();
    let stopped = async {
        shutdown.cancelled().await;
        tokio::time::sleep(STOP_LIMIT).await;
    };
    tokio::select! {
        ended = connection => ended,
        () = tokio::time::sleep(limit) => Ok(()),
        () = stopped => Ok(()),
    }
}

/// What peers do wrong is of interest only to whoever looks for it.
fn note(fault: &hyper::Error, metrics: &Metrics) {
    if fault.is_parse() {
        metrics.unreadable();
    }
    tracing::debug!(error = %fault, "a connection ended: {fault}");
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// The answer to one request, up to where the peer closes or the answer is whole.
    async fn ask(stream: &mut TcpStream) -> String {
        stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        let mut answer = vec![0; 1024];
        let length = stream.read(&mut answer).await.unwrap();
        String::from_utf8_lossy(&answer[..length]).to_ascii_lowercase()
    }

    #[tokio::test]
    async fn who_comes_when_it_is_crowded_is_served_and_shown_out() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let serving = tokio::task::JoinSet::from_iter([serve(
            listener,
            Router::new(),
            Metrics::default(),
            stop.clone(),
        )]);
        let mut early = TcpStream::connect(address).await.unwrap();
        assert!(!ask(&mut early).await.contains("connection: close"));
        let mut held = Vec::new();
        for _ in 0..=CONNECTIONS_MAX / 2 {
            held.push(TcpStream::connect(address).await.unwrap());
        }
        let mut late = TcpStream::connect(address).await.unwrap();
        assert!(ask(&mut late).await.contains("connection: close"));
        assert!(ask(&mut early).await.starts_with("http/1.1 404"), "who was there stays");
        drop((early, late, held));
        stop.cancel();
        serving.join_all().await;
    }
}
