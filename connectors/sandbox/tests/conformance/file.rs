//! Opening, sharing and keeping the file.

use std::fmt::Write;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use countersign_erp_source::{
    BillId, Clock, Contradiction, ErpSource, LookUp, OrderError, Refusal, SealKey, SealedOrder,
};
use countersign_sandbox::{OpenError, Options, Sandbox};
use sqlx::{Connection, SqliteConnection};

use crate::world::{Place, TestClock, UNUSED_IBAN, WORLD, acme_bill, company, nobody_s_iban};

/// Names the sandbox's file to a process of its own.
const CHILD_FILE: &str = "COUNTERSIGN_SANDBOX_OPENING_FILE";

#[tokio::test]
async fn a_new_file_needs_a_world_and_says_so() {
    let place = Place::new();
    let missing = Options { world: None, ..place.options() };
    let error = Sandbox::open(missing).await.unwrap_err();
    assert!(matches!(error, OpenError::NoWorld { .. }), "{error}");
    assert!(error.to_string().contains("sandbox.db"), "{error}");

    std::fs::remove_file(place.world_file()).unwrap();
    let error = Sandbox::open(place.options()).await.unwrap_err().to_string();
    assert!(error.contains("world.toml"), "{error}");
    assert!(!place.file().exists(), "a file was made without a world");
}

#[tokio::test]
async fn a_wrong_world_leaves_no_file() {
    let place = Place::with_world("[company.c]\nname = \"C\"\ncurrency = \"EURO\"\n");
    let error = Sandbox::open(place.options()).await.unwrap_err();
    let OpenError::World { source, .. } = error else { panic!("{error}") };
    assert_eq!(source.place, "company `c`");
    assert!(!place.file().exists(), "a file was made of a wrong world");
}

#[tokio::test]
async fn the_world_is_read_once() {
    let place = Place::new();
    place.open().await.close().await;
    std::fs::write(place.world_file(), "nonsense").unwrap();
    let again = place.open().await;
    assert_eq!(again.bill("blue-sparrow", "INV-2291").await.unwrap().amount, "1200.00");
    std::fs::remove_file(place.world_file()).unwrap();
    Sandbox::open(Options { world: None, ..place.options() }).await.unwrap();
}

#[tokio::test]
async fn a_large_world_is_read_whole() {
    let mut world = WORLD.to_owned();
    for number in 0..1_200 {
        let iban = nobody_s_iban(number);
        write!(
            world,
            "[company.blue-sparrow.vendor.W-{number:04}]\nname = \"W\"\niban = \"{iban}\"\n\
             [company.blue-sparrow.bill.X-{number:04}]\nvendor = \"W-{number:04}\"\n\
             amount = \"1.00\"\n"
        )
        .unwrap();
    }
    let place = Place::with_world(&world);
    let sandbox = place.open().await;
    for number in 0..1_200 {
        let bill = BillId::new(format!("X-{number:04}")).unwrap();
        let reading = sandbox.find_bill(&company(), &bill).await.unwrap().unwrap();
        let owner = reading.vendor.unwrap();
        assert_eq!(owner.id.as_str(), format!("W-{number:04}"));
        assert_eq!(owner.accounts[0].number.whole(), nobody_s_iban(number));
        assert_eq!(reading.bill.named_account.unwrap(), owner.accounts[0].id);
    }
}

#[tokio::test]
async fn somebody_else_s_file_is_refused() {
    let place = Place::new();
    std::fs::write(place.file(), "no database at all, but long enough to look like a header")
        .unwrap();
    let error = Sandbox::open(place.options()).await.unwrap_err();
    assert!(matches!(error, OpenError::File { .. }), "{error}");
}

/// Runs statements on the file behind the sandbox's back.
async fn run(place: &Place, sql: &'static str) {
    let url = format!("sqlite://{}", place.file().display());
    let mut conn = SqliteConnection::connect(&url).await.unwrap();
    sqlx::raw_sql(sql).execute(&mut conn).await.unwrap();
    conn.close().await.unwrap();
}

/// What the file's tables are made of.
async fn tables(place: &Place) -> Vec<String> {
    let url = format!("sqlite://{}", place.file().display());
    let mut conn = SqliteConnection::connect(&url).await.unwrap();
    let made = sqlx::query_scalar("select sql from sqlite_schema where sql is not null order by 1");
    let made = made.fetch_all(&mut conn).await.unwrap();
    conn.close().await.unwrap();
    made
}

/// Takes away what version 3 has beside version 2.
const BACK_TO_2: &str =
    "drop table bank_change_order; drop table change_log; update erp set version = 2";

#[tokio::test]
async fn a_file_of_the_version_before_is_brought_up_to_date() {
    let place = Place::new();
    let before = place.open().await;
    let order = place.sealed("500.00");
    let booked = before.register_payment(&order).await.unwrap();
    before.close().await;
    let as_new = tables(&place).await;
    run(&place, BACK_TO_2).await;
    assert_ne!(tables(&place).await, as_new);

    let after = place.open().await;
    assert_eq!(after.register_payment(&order).await, Ok(booked), "the order is known");
    assert_eq!(after.list_changes(&company(), 0, 10).await, Ok(vec![]));
    after.change_bank_details(&place.change(UNUSED_IBAN)).await.unwrap();
    assert_eq!(after.list_changes(&company(), 0, 10).await.unwrap().len(), 2);
    after.close().await;
    assert_eq!(tables(&place).await, as_new);
    // Once is enough.
    let again = place.open().await;
    assert_eq!(again.list_changes(&company(), 0, 10).await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_file_of_any_other_version_is_refused() {
    for version in ["update erp set version = 1", "update erp set version = 4"] {
        let place = Place::new();
        place.open().await.close().await;
        run(&place, version).await;
        let error = Sandbox::open(place.options()).await.unwrap_err();
        assert!(matches!(error, OpenError::OtherFile { .. }), "{version}: {error}");
    }
}

#[tokio::test]
async fn a_change_of_details_survives_a_restart() {
    let place = Place::new();
    let before = place.open().await;
    assert_eq!(before.list_changes(&company(), 0, 10).await, Ok(vec![]), "a world is no edit");
    let order = place.change(UNUSED_IBAN);
    let changed = before.change_bank_details(&order).await.unwrap();
    let log = before.list_changes(&company(), 0, 10).await.unwrap();
    before.close().await;
    let after = place.open().await;
    assert_eq!(after.change_bank_details(&order).await, Ok(changed), "the order is known");
    assert_eq!(after.list_changes(&company(), 0, 10).await, Ok(log));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_that_open_at_once_load_one_world() {
    let place = Place::new();
    let opening: Vec<_> = (0..8)
        .map(|_| {
            let options = place.options();
            #[expect(clippy::disallowed_methods, reason = "the test waits for it")]
            tokio::spawn(async move { Sandbox::open(options).await })
        })
        .collect();
    let mut opened = Vec::new();
    for handle in opening {
        opened.push(handle.await.unwrap().unwrap());
    }
    opened[0].register_payment(&place.sealed("1200.00")).await.unwrap();
    for sandbox in &opened {
        assert_eq!(sandbox.payments().await.unwrap().len(), 1);
    }
}

/// Runs in several processes at once.
#[tokio::test]
async fn child_that_opens() {
    let Some(file) = std::env::var_os(CHILD_FILE) else { return };
    let place = Place::new();
    let sandbox = Sandbox::open(Options { file: file.into(), ..place.options() }).await.unwrap();
    sandbox.advance_clock("1s").await.unwrap();
}

#[tokio::test]
async fn many_processes_that_open_at_once_load_one_world() {
    let place = Place::new();
    let children: Vec<_> = (0..6)
        .map(|_| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "file::child_that_opens", "--nocapture"])
                .env(CHILD_FILE, place.file())
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for child in children {
        let ended = child.wait_with_output().unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    }
    let sandbox = place.open().await;
    assert_eq!(sandbox.now(), place.clock.now().plus(Duration::from_secs(6)));
    assert!(sandbox.find_bill(&company(), &acme_bill()).await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_handles_on_one_file_book_one_payment() {
    let place = Place::new();
    let handles = [place.open().await, place.open().await];
    let orders: Vec<SealedOrder> = (0..16).map(|_| place.sealed("1200.00")).collect();
    let paying: Vec<_> = orders
        .into_iter()
        .enumerate()
        .map(|(at, order)| {
            let sandbox = handles[at % 2].clone();
            #[expect(clippy::disallowed_methods, reason = "the test waits for it")]
            tokio::spawn(async move { sandbox.register_payment(&order).await })
        })
        .collect();
    let mut booked = 0;
    for handle in paying {
        match handle.await.unwrap() {
            Ok(_) => booked += 1,
            Err(error) => {
                assert_eq!(error, OrderError::Refused(Refusal::AmountExceedsResidual));
            }
        }
    }
    assert_eq!((booked, handles[1].payments().await.unwrap().len()), (1, 1));
}

#[tokio::test]
async fn everything_survives_a_restart() {
    let place = Place::new();
    let before = place.open().await;
    let order = place.sealed("500.00");
    let booked = before.register_payment(&order).await.unwrap();
    before.advance_clock("8d").await.unwrap();
    let (now, payments) = (before.now(), before.payments().await.unwrap());
    before.close().await;

    let after = place.open().await;
    assert_eq!((after.now(), after.payments().await.unwrap()), (now, payments));
    assert_eq!(after.register_payment(&order).await, Ok(booked), "the order is known");
    assert_eq!(after.bill("blue-sparrow", "INV-2291").await.unwrap().paid, "500.00");
}

#[tokio::test]
async fn one_clock_is_shared_by_all() {
    let place = Place::new();
    let (one, other) = (place.open().await, place.open().await);
    let start = one.now();
    let moved = one.advance_clock("8d").await.unwrap();
    assert_eq!(moved, start.plus(Duration::from_hours(8 * 24)));
    assert_eq!(other.now(), start, "a clock moves when it is looked at");
    other.sync_clock().await.unwrap();
    assert_eq!(other.now(), moved);
    one.advance_clock("90s").await.unwrap();
    other.find_bill(&company(), &acme_bill()).await.unwrap();
    assert_eq!(other.now(), one.now(), "a call does not take the clock over");
    for wrong in ["", "8", "-1d", "8 parsecs", "300y"] {
        assert!(one.advance_clock(wrong).await.is_err(), "`{wrong}`");
    }
}

#[tokio::test]
async fn a_host_clock_that_steps_back_revives_no_order() {
    let place = Place::new();
    let sandbox = place.open().await;
    let order = place.order("1200.00");
    sandbox.advance_clock("10m").await.unwrap();
    let wanted = LookUp { company: company(), bill: acme_bill(), marker: order.marker.clone() };
    let answer = sandbox.look_up(&wanted).await.unwrap();
    assert!(answer.proves_absence(order.not_after));

    place.clock.set_back(Duration::from_hours(1));
    let late = sandbox.register_payment(&place.key.seal(order)).await;
    assert_eq!(late, Err(OrderError::Refused(Refusal::TooLate)));
}

#[tokio::test]
async fn the_first_key_is_the_one() {
    let place = Place::new();
    let keyless = Sandbox::open(Options { seal_key: None, ..place.options() }).await.unwrap();
    let bad_seal = Err(OrderError::Contradicted(Contradiction::BadSeal));
    assert_eq!(keyless.register_payment(&place.sealed("1.00")).await, bad_seal);
    let problems = keyless.attest("st_1").await.unwrap().problems();
    assert!(problems.iter().any(|problem| problem.contains("no seal key")), "{problems:?}");

    let first = place.open().await;
    let second_key = SealKey::from_bytes([9; 32]);
    let second = Options { seal_key: Some(second_key.clone()), ..place.options() };
    let second = Sandbox::open(second).await.unwrap();
    assert_eq!(second.register_payment(&second_key.seal(place.order("1.00"))).await, bad_seal);
    let problems = second.attest("st_1").await.unwrap().problems();
    assert!(problems.iter().any(|problem| problem.contains("another seal key")), "{problems:?}");
    assert_eq!(first.attest("st_1").await.unwrap().problems(), Vec::<String>::new());
    first.register_payment(&place.sealed("1.00")).await.unwrap();
}

#[tokio::test]
async fn the_sandbox_runs_ahead_of_the_clock_it_is_given() {
    let place = Place::new();
    let sandbox = place.open().await;
    let base: Arc<TestClock> = Arc::clone(&place.clock);
    assert_eq!(sandbox.now(), base.now());
}
