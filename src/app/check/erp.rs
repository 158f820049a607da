//! The ERP: its guard, its three identities and what each can do, its clock, and the orders that it
//! has of this store.

use std::sync::Arc;

use countersign_erp_source::{Attestation, Clock, ErpSource, Identity, IdentityProof, Timestamp};
use countersign_odoo::Odoo;

use super::{Finding, MaybeSandbox, told};
use crate::app::odoo_options;
use crate::settings::{OdooSettings, Settings};
use crate::store::{Store, attempts};
use crate::worker::{OFFSET_MAX, apart_from};

const GUARD: &str = "ERP";
const CLOCK: &str = "ERP clock";
const ORDERS: &str = "ERP orders";
const IDENTITIES: [Identity; 3] = [Identity::Reader, Identity::Payer, Identity::BankAdmin];

pub(super) async fn findings(
    settings: &Settings,
    sandbox: &MaybeSandbox,
    clock: &Arc<dyn Clock>,
    store: Option<&Store>,
) -> Vec<Finding> {
    let (erp, kind): (Arc<dyn ErpSource>, &str) = match (sandbox, settings.odoo()) {
        (Err(fault), _) => {
            let to_do = "mend what it names in `erp.sandbox`";
            return only(Finding::wrong(GUARD, fault.as_str()).mended_by(to_do), "the sandbox");
        }
        (Ok(Some(sandbox)), _) => {
            (Arc::new(sandbox.clone()), "the sandbox, so nothing real is paid")
        }
        (Ok(None), Some(odoo)) => match connect(settings, clock, odoo) {
            Ok(erp) => (erp, "its guard is ours, and whole"),
            Err(found) => return found,
        },
        (Ok(None), None) => return only(Finding::wrong(GUARD, "`erp.kind` names none"), "an ERP"),
    };
    // Without a store its orders there are not asked for, and everything else still is.
    let from = clock.now();
    let attested = erp.attest(store.map_or("", Store::id)).await;
    match attested {
        Ok(attestation) => of_attestation(&attestation, kind, (from, clock.now()), store).await,
        Err(fault) => {
            let problem = format!("its side could not be proved: {}", told(fault));
            let to_do = "look whether it runs, and whether `[erp.odoo]` names it rightly";
            only(Finding::wrong(GUARD, problem).mended_by(to_do), "an answer of the ERP")
        }
    }
}

/// What is wrong with the ERP as a whole, and that the rest cannot be looked at.
fn only(wrong: Finding, behind: &str) -> Vec<Finding> {
    let behind = format!("it needs {behind}");
    let mut found = vec![wrong];
    found.extend(IDENTITIES.map(|identity| Finding::hidden(name(identity), &behind)));
    found.extend([CLOCK, ORDERS].map(|what| Finding::hidden(what, &behind)));
    found
}

fn name(identity: Identity) -> String {
    format!("ERP {identity}")
}

/// What an identity that is as it must be can do.
fn can(identity: Identity) -> &'static str {
    match identity {
        Identity::Reader => "reads bills, vendors and accounts; writes and pays nothing",
        Identity::Payer => "hands sealed orders over; reads and writes no record",
        Identity::BankAdmin => "may trust an account; reads and writes no record, pays nothing",
    }
}

fn connect(
    settings: &Settings,
    clock: &Arc<dyn Clock>,
    odoo: &OdooSettings,
) -> Result<Arc<dyn ErpSource>, Vec<Finding>> {
    let logins = [
        ("erp.odoo.reader", &odoo.reader),
        ("erp.odoo.payer", &odoo.payer),
        ("erp.odoo.bank_admin", &odoo.bank_admin),
    ];
    let read = logins.map(|(key, login)| settings.password(key, login));
    if read.iter().any(Result::is_err) {
        let all = "the three passwords";
        let mut found = only(Finding::hidden(GUARD, &format!("it needs {all}")), all);
        for (identity, fault) in
            IDENTITIES.into_iter().zip(read).filter_map(|(of, read)| Some((of, read.err()?)))
        {
            let wrong = Finding::wrong(name(identity), told(fault))
                .mended_by("run `countersign odoo install`, which writes it where it is absent");
            for hidden in found.iter_mut().filter(|found| found.what == wrong.what) {
                *hidden = wrong.clone();
            }
        }
        return Err(found);
    }
    let opened = odoo_options(settings, clock, odoo)
        .and_then(|options| Odoo::new(options).map_err(anyhow::Error::new));
    match opened {
        Ok(erp) => Ok(Arc::new(erp)),
        Err(fault) => {
            let wrong = Finding::wrong(GUARD, format!("{fault:#}"));
            Err(only(wrong.mended_by("mend what it names in `[erp.odoo]`"), "the ERP"))
        }
    }
}

async fn of_attestation(
    attestation: &Attestation,
    kind: &str,
    asked: (Timestamp, Timestamp),
    store: Option<&Store>,
) -> Vec<Finding> {
    let guard = Finding::of_problems(GUARD, attestation.guard_problems.clone(), kind);
    if attestation.identities.is_empty() {
        return only(guard, "the guard");
    }
    let mut found = vec![guard];
    found.extend(attestation.identities.iter().map(|proof| {
        let IdentityProof { identity, problems } = proof;
        Finding::of_problems(&name(*identity), problems.clone(), can(*identity))
    }));
    let apart = apart_from(attestation.erp_time, asked);
    let (seconds, most) = (apart.as_secs(), OFFSET_MAX.as_secs());
    found.push(if apart > OFFSET_MAX {
        Finding::wrong(CLOCK, format!("differs from ours by {seconds} s; {most} s at most"))
            .mended_by("set both clocks; nothing is sent until they agree")
    } else {
        Finding::ok(CLOCK, format!("differs from ours by {seconds} s, of {most} s at most"))
    });
    found.push(match store {
        Some(store) => orders(attestation.newest_seq, store).await,
        None => Finding::hidden(ORDERS, "they are compared with the store"),
    });
    found
}

async fn orders(in_erp: u64, store: &Store) -> Finding {
    let newest = store.read(|conn| Box::pin(async move { attempts::newest_seq(conn).await })).await;
    match newest {
        Ok(newest) if u64::try_from(newest).is_ok_and(|newest| newest >= in_erp) => {
            Finding::ok(ORDERS, format!("the newest that it has of this store is {in_erp}"))
        }
        Ok(newest) => {
            let problem = format!(
                "it has order {in_erp} of this store, and the store itself {newest} only: it is an \
                 older copy"
            );
            Finding::wrong(ORDERS, problem)
                .mended_by("read \"Backup and restore\" in docs/OPERATING.md before anything else")
        }
        Err(fault) => Finding::wrong(ORDERS, told(fault)),
    }
}
