//! A store that was put back to before a change of bank details.

use std::fs;

use super::{Bank, NEW, alarms};
use crate::daemon::pay;
use crate::votes::{Office, approve};

#[tokio::test]
async fn a_change_that_the_copy_does_not_have_is_one_made_behind_its_back() {
    let bank = Bank::new().await;
    let token = bank.office.installation.mandate(&[]);
    bank.called(NEW).await;
    let pending = bank.ask("k1", NEW).await;
    let Bank { office: Office { installation, daemon, .. }, .. } = bank;
    daemon.stop();
    let (store, kept) = (installation.path("countersign.db"), installation.path("kept.db"));
    fs::copy(&store, &kept).unwrap();
    let daemon = installation.start().await;
    let paul = daemon.sign_in("paul").await;
    approve(&paul, &pending).await.is_executed();
    daemon.stop();

    fs::copy(&kept, &store).unwrap();
    fs::rename(installation.path("checkpoint.txt"), installation.path("evidence.txt")).unwrap();
    let daemon = installation.start_unready(&[]);
    let list = async || installation.ok(&["freeze", "list"], "");
    daemon.until("frozen", async || list().await.contains("store_behind")).await;
    let id =
        list().await.split_whitespace().find(|word| word.starts_with("fz_")).unwrap().to_owned();
    installation.ok(&["freeze", "remove", &id, "--reason", "restored"], "");
    daemon.until_ready().await;
    assert!(!list().await.contains("store_behind"), "{}", list().await);

    let agent = daemon.agent(&token);
    let denied = agent.propose("p1", &pay("INV-1", "V-100", "1200.00")).await;
    denied.is_denied(403, "policy", "account-changed-in-erp-never-paid");
    let anna = daemon.sign_in("anna").await;
    assert_eq!(alarms(&anna, "changed_in_erp").await.len(), 1);
    // The number of the change is not given to another order.
    agent.propose("p2", &pay("INV-2", "V-200", "340.00")).await.is_executed();
    daemon.stop();
    installation.ok(&["receipts", "verify"], "");
}
