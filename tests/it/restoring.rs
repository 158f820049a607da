//! Back-ups made while the daemon works, what comes of restoring one, and a database that went back
//! under a running daemon.

use std::fs;

use serde_json::json;

use crate::daemon::{ACME, Daemon, Installation, http, pay};
use crate::support::{Place, on_both};

/// Where that installation's store is, for whoever changes it behind its back.
fn place_of(installation: &Installation, place: &Place) -> Place {
    if place.is_sqlite() {
        Place::of(format!("sqlite://{}", installation.path("countersign.db").display()))
    } else {
        Place::of(place.url.clone())
    }
}

async fn problems(daemon: &Daemon) -> (u16, String) {
    let answer = http().get(format!("{}/readyz", daemon.base)).send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

async fn metrics(daemon: &Daemon) -> String {
    let answer = http().get(format!("{}/metrics", daemon.base)).send().await.unwrap();
    answer.text().await.unwrap()
}

#[tokio::test]
async fn a_daemon_notices_that_its_database_went_back_and_does_nothing_any_more() {
    on_both(async |place: &Place| {
        let installation = Installation::at(place);
        installation.add_principal();
        let token = installation.mandate(&[]);
        let daemon = installation.start().await;
        let agent = daemon.agent(&token);
        agent.propose("a", &pay("INV-1", "V-100", "1200.00")).await.is_executed();
        let store = place_of(&installation, place);
        for sql in [
            "delete from signed_heads where seq = (select seq from ledger_head)",
            "update ledger_head set seq = (select max(seq) from signed_heads)",
            "update ledger_head set hash = (select r.entry_hash from receipts r \
             where r.seq = ledger_head.seq)",
            "delete from receipts where seq > (select seq from ledger_head)",
        ] {
            store.tamper(sql).await;
        }
        // Nobody has to write anything for it.
        let noticed = async || problems(&daemon).await.1.contains("went back");
        daemon.until("not ready", noticed).await;
        assert_eq!(problems(&daemon).await.0, 503);
        let refused = agent.propose("b", &pay("INV-2", "V-200", "340.00")).await;
        let found = (refused.status.as_u16(), refused.text("/code"));
        assert_eq!(found, (503, "store_unavailable".to_owned()));
        assert_eq!(agent.get("/v1/operations").await.status.as_u16(), 503);
        assert!(metrics(&daemon).await.contains("\ncountersign_store_went_back 1\n"));
        assert!(daemon.log().contains("\"alarm.kind\":\"store_went_back\""));
        let paid = vec![("INV-1".to_owned(), ACME.to_owned(), "1200.00".to_owned())];
        assert_eq!(daemon.payments().await, paid);
        daemon.stop();
        let refused = installation.refused_start();
        assert!(refused.contains("checkpoint"), "{refused}");
    })
    .await;
}
