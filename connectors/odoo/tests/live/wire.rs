//! Answers that are lost on the way, by a proxy that stands between.

use countersign_erp_source::{ErpSource, LookUp, OrderError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::scene::{self, Scene};

/// What the proxy does with the answer to the call that runs an action.
#[derive(Debug, Clone, Copy)]
enum Loss {
    /// Closes without a byte.
    Dropped,
    /// Sends half of it.
    Half,
    /// Says that the gateway failed.
    BadGateway,
}

async fn read_request(stream: &mut TcpStream) -> Vec<u8> {
    let (mut request, mut chunk) = (Vec::new(), [0; 8192]);
    while !request.ends_with(b"</methodCall>") {
        let count = stream.read(&mut chunk).await.unwrap();
        assert_ne!(count, 0, "a request was cut off");
        request.extend_from_slice(&chunk[..count]);
    }
    request
}

fn has(request: &[u8], text: &str) -> bool {
    request.windows(text.len()).any(|window| window == text.as_bytes())
}

/// Passes everything on, waits for Odoo's whole answer, and loses the one to the order.
async fn lose(listener: &TcpListener, odoo: &str, loss: Loss) {
    let mut was_order = false;
    while !was_order {
        let (mut near, _) = listener.accept().await.unwrap();
        let request = read_request(&mut near).await;
        was_order = has(&request, "<string>run</string>");
        let mut far = TcpStream::connect(odoo).await.unwrap();
        far.write_all(&request).await.unwrap();
        let mut answer = Vec::new();
        // Odoo closes after each answer, so the end of it is after the commit.
        far.read_to_end(&mut answer).await.unwrap();
        let kept = match loss {
            _ if !was_order => answer.as_slice(),
            Loss::Dropped => &[],
            Loss::Half => &answer[..answer.len() / 2],
            Loss::BadGateway => {
                b"HTTP/1.1 502 Bad Gateway\r\ncontent-type: text/html\r\n\
                                  content-length: 11\r\n\r\nBad Gateway"
            }
        };
        near.write_all(kept).await.unwrap();
    }
}

async fn pay_through(
    scene: &Scene,
    loss: Loss,
    order: &countersign_erp_source::SealedOrder,
) -> Result<countersign_erp_source::Booked, OrderError> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = format!("http://{}", listener.local_addr().unwrap());
    let odoo = scene.place.url.strip_prefix("http://").unwrap().trim_end_matches('/');
    let connector = scene.connector_at(&proxy);
    let (answer, ()) = tokio::join!(connector.register_payment(order), lose(&listener, odoo, loss));
    answer
}

#[tokio::test]
async fn an_answer_lost_after_the_commit_is_found_and_never_paid_again() {
    let Some(scene) = scene::enter().await else { return };
    for loss in [Loss::Dropped, Loss::Half, Loss::BadGateway] {
        let scenery = scene.open_bill("33.00").await;
        let order = scene.order(&scenery);
        let sealed = scene.sealed(order.clone());
        let answer = pay_through(&scene, loss, &sealed).await;
        assert!(matches!(answer, Err(OrderError::OutcomeUnknown { .. })), "{loss:?}: {answer:?}");

        let (company, bill, marker) =
            (order.company.clone(), order.bill.clone(), order.marker.clone());
        let found = scene.odoo.look_up(&LookUp { company, bill, marker }).await.unwrap();
        let booked = found.booked.unwrap();
        assert_eq!(booked.differences(&order), vec![], "{loss:?}");
        assert_eq!(scene.odoo.register_payment(&sealed).await, Ok(booked));
        assert_eq!(scene.payments_to(scenery.vendor.vendor).await.len(), 1, "{loss:?}");
    }
}
