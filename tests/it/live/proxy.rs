//! A bad network between daemon and Odoo: it passes everything on, and loses the answer to one
//! order.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// A proxy that runs until it is dropped.
pub(super) struct Proxy {
    pub(super) url: String,
    orders: Arc<AtomicUsize>,
    // Ends with this value.
    _passing: JoinSet<()>,
}

impl Proxy {
    /// Stands before that host and port.
    pub(super) async fn before(odoo: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (orders, mut passing) = (Arc::<AtomicUsize>::default(), JoinSet::new());
        passing.spawn(pass_on(listener, odoo.to_owned(), Arc::clone(&orders)));
        Self { url, orders, _passing: passing }
    }

    /// How many orders went through.
    pub(super) fn orders(&self) -> usize {
        self.orders.load(Ordering::SeqCst)
    }
}

async fn pass_on(listener: TcpListener, odoo: String, orders: Arc<AtomicUsize>) {
    let mut connections = JoinSet::new();
    while let Ok((near, _)) = listener.accept().await {
        connections.spawn(one(near, odoo.clone(), Arc::clone(&orders)));
    }
}

/// One call. Odoo closes after each answer, so its end comes after the commit.
async fn one(mut near: TcpStream, odoo: String, orders: Arc<AtomicUsize>) {
    let (mut request, mut answer) = (Vec::new(), Vec::new());
    let mut chunk = [0; 8192];
    while !request.ends_with(b"</methodCall>") {
        match near.read(&mut chunk).await {
            Ok(count) if count > 0 => request.extend_from_slice(&chunk[..count]),
            // Whoever called is gone.
            Ok(_) | Err(_) => return,
        }
    }
    let mut far = TcpStream::connect(odoo).await.unwrap();
    far.write_all(&request).await.unwrap();
    far.read_to_end(&mut answer).await.unwrap();
    let is_order = has(&request, "<string>run</string>") && has(&request, "<name>seal</name>");
    if is_order && orders.fetch_add(1, Ordering::SeqCst) == 0 {
        return;
    }
    // A daemon that was killed reads no answer.
    drop(near.write_all(&answer).await);
}

fn has(request: &[u8], text: &str) -> bool {
    request.windows(text.len()).any(|window| window == text.as_bytes())
}
