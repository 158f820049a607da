//! A vendor that says no: about an account that the ERP was edited to, and about one that is nowhere.

use serde_json::json;

use super::{Bank, NEW, alarms, call, confirmed, history};
use crate::daemon::pay;

/// What the only alarm about a no says.
async fn told(bank: &Bank) -> String {
    let anna = bank.daemon().sign_in("anna").await;
    let found = alarms(&anna, "callback_denied").await;
    assert_eq!(found.len(), 1, "{found:?}");
    found[0]["detail"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_no_about_an_account_that_the_erp_was_edited_to_freezes_the_vendor() {
    for (changes, why_not) in [
        (json!({ "outcome": "denied" }), "vendor_denied"),
        (json!({ "read_back": "164301" }), "read_back_differs"),
    ] {
        let bank = Bank::new().await;
        let anna = bank.daemon().sign_in("anna").await;
        bank.daemon().put_vendor("V-100", json!({ "iban": NEW })).await;
        let is_seen = async || !alarms(&anna, "changed_in_erp").await.is_empty();
        bank.daemon().until("the edit is seen", is_seen).await;
        let mut no = confirmed(NEW);
        for (name, value) in changes.as_object().unwrap() {
            no[name] = value.clone();
        }
        let answer = call(&anna, "V-100", &no).await;
        assert_eq!(answer.json["why_not"], json!([why_not]), "{}", answer.json);
        let freezes = anna.get("/v1/freezes").await;
        assert_eq!(freezes.json["items"][0]["cause"], json!("callback_denied"), "{}", freezes.json);
        // Nobody asked for a change, so there is none to refuse: somebody edited.
        let detail = told(&bank).await;
        assert!(!detail.contains("refused"), "{detail}");
        assert!(detail.contains("Nobody has asked"), "{detail}");
        assert!(detail.contains("edited") && detail.contains("(by "), "{detail}");
        assert!(detail.contains("out of the ERP") && detail.contains("frozen"), "{detail}");
        let shown = history(&anna, "V-100").await;
        let events = shown["events"].as_array().unwrap();
        let event = events.iter().find(|event| event["source"] == json!("callback"));
        let event = event.unwrap_or_else(|| panic!("no event: {shown}"));
        assert_eq!((&event["before"], &event["by"]), (&json!("changed_in_erp"), &json!("anna")));
        let accounts = shown["accounts"].as_array().unwrap();
        let account = accounts.iter().find(|account| account["iban"] == json!(NEW)).unwrap();
        assert_eq!(account["payable"], json!(false), "{account}");
        bank.agent.propose("p1", &pay("INV-1", "V-100", "1200.00")).await.is_denied(
            403,
            "execution",
            "frozen",
        );
        // Said twice it is one freeze, and two alarms.
        call(&anna, "V-100", &no).await;
        let freezes = anna.get("/v1/freezes").await;
        assert_eq!(freezes.json["items"].as_array().unwrap().len(), 1, "{}", freezes.json);
        assert_eq!(alarms(&anna, "callback_denied").await.len(), 2);
    }
}

#[tokio::test]
async fn a_no_about_an_account_that_is_nowhere_tells_whether_somebody_asked_for_it() {
    for is_asked in [true, false] {
        let bank = Bank::new().await;
        if is_asked {
            bank.ask("k1", NEW).await.is_denied(403, "policy", "bank-change-needs-callback");
        }
        let anna = bank.daemon().sign_in("anna").await;
        let no = json!({
            "new_iban": NEW, "number_dialled": super::PHONE, "outcome": "denied",
        });
        assert_eq!(call(&anna, "V-100", &no).await.status, 201);
        assert_eq!(anna.get("/v1/freezes").await.json["items"], json!([]));
        let detail = told(&bank).await;
        assert!(!detail.starts_with(' '), "somebody answered: {detail}");
        assert_eq!(detail.contains("ap-agent"), is_asked, "{detail}");
        assert_eq!(detail.contains("Nobody has asked"), !is_asked, "{detail}");
    }
}
