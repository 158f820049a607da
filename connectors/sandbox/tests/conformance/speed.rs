//! That nothing scans: with many records, a single one is found by its index.

use std::fmt::Write;

use countersign_erp_source::{BillId, BillQuery, ErpSource, VendorId};

use crate::world::{Place, WORLD, company, nobody_s_iban};

/// Enough that a scan for each of many reads would not end in time.
const MANY: u64 = 5_000;

#[tokio::test]
async fn many_records_are_loaded_and_found() {
    let mut world = WORLD.to_owned();
    for number in 0..MANY {
        let iban = nobody_s_iban(number);
        write!(
            world,
            "[company.blue-sparrow.vendor.W-{number:06}]\nname = \"W\"\niban = \"{iban}\"\n\
             [company.blue-sparrow.bill.X-{number:06}]\nvendor = \"W-{number:06}\"\n\
             amount = \"1.00\"\n"
        )
        .unwrap();
    }
    let place = Place::with_world(&world);
    let sandbox = place.open().await;
    for number in (0..MANY).step_by(10) {
        let bill = BillId::new(format!("X-{number:06}")).unwrap();
        let reading = sandbox.find_bill(&company(), &bill).await.unwrap().unwrap();
        let owner = reading.vendor.unwrap();
        assert_eq!(owner.id.as_str(), format!("W-{number:06}"));
        assert_eq!(owner.accounts.len(), 1);
    }
    let query = BillQuery {
        open_only: true,
        vendor: Some(VendorId::new("W-004999").unwrap()),
        limit: 10,
        ..BillQuery::default()
    };
    let found = sandbox.list_bills(&company(), &query).await.unwrap();
    assert_eq!(found.len(), 1);
}
