//! The gateway's ports on the ERP of a sequence: what it shows, and what its side of an order looks at
//! again before it books.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard};

use async_trait::async_trait;
use countersign_erp_source::{
    AccountId, AccountNumber, Amount, Attestation, Beside, BesideQuery, Bill, BillId, BillKind,
    BillQuery, BillReading, BillState, Booked, BookedState, ChangeLookUp, Changed, ChangedAccount,
    Clock, CompanyId, Currency, ErpCompanyId, ErpSource, HeaderFigures, Iban, JournalId,
    LoggedChange, LoggedField, LookUp, LookUpAnswer, NoAnswer, OrderError, PayableFigures,
    PayeeVerifier, PaymentId, Phone, PhoneKind, ReadError, RecordedOrder, Refusal, Review,
    Reviewed, SanctionsScreen, Screening, SealedBankChange, SealedOrder, SourceAccount, Timestamp,
    Traits, Vendor, VendorAccount, VendorId, VopReport, VopResult,
};

use super::erp::{Claims, Erp, Event, Paid, Record};
use super::numbers::OWN;

/// The ERP, and what time it is.
#[derive(Debug)]
pub(super) struct Port(Mutex<Erp>);

pub(super) fn euros() -> Currency {
    Currency::from_code("EUR").unwrap()
}

pub(super) fn vendor_id(vendor: usize) -> VendorId {
    VendorId::new(format!("V{vendor}")).unwrap()
}

pub(super) fn bill_id(bill: usize) -> BillId {
    BillId::new(format!("B{bill}")).unwrap()
}

fn account_id(record: u32) -> AccountId {
    AccountId::new(record.to_string()).unwrap()
}

fn nth(id: &str) -> Option<usize> {
    id.get(1..)?.parse().ok()
}

fn record_of(account: &AccountId) -> Option<u32> {
    account.as_str().parse().ok()
}

impl Port {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Erp::empty()))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Erp> {
        self.0.lock().unwrap()
    }

    /// The ERP, where it has that company.
    fn of(&self, company: &CompanyId) -> Result<MutexGuard<'_, Erp>, ReadError> {
        let erp = self.lock();
        if erp.company == company.as_str() {
            Ok(erp)
        } else {
            Err(ReadError::UnknownCompany(company.clone()))
        }
    }
}

fn vendor(erp: &Erp, at: usize) -> Vendor {
    let of = &erp.vendors[at];
    let phones = [PhoneKind::Phone, PhoneKind::Mobile].into_iter().zip(&of.phones);
    let since = |since: Timestamp| match erp.claims {
        Claims::Truth => Some(since),
        Claims::Nothing => None,
        Claims::Lies => Some(erp.oldest),
    };
    Vendor {
        company: CompanyId::new(erp.company.as_str()).unwrap(),
        id: vendor_id(at),
        name: of.name.clone(),
        tax_number: of.tax_number.clone(),
        parent: of.parent.map(vendor_id),
        accounts: erp
            .accounts(at)
            .map(|record| VendorAccount {
                id: account_id(record.id),
                owner: vendor_id(at),
                number: AccountNumber::from_erp(&record.number),
                holder: None,
                active: record.active,
                erp_allows: record.allowed,
                unchanged_since: since(record.since),
                changed_after_creation: match erp.claims {
                    Claims::Truth => record.edited,
                    Claims::Nothing => true,
                    Claims::Lies => false,
                },
            })
            .collect(),
        phones: phones
            .filter_map(|(kind, phone)| {
                let (raw, at) = phone.clone()?;
                Some(Phone { kind, raw, since: since(at) })
            })
            .collect(),
    }
}

fn bill(erp: &Erp, at: usize) -> BillReading {
    let of = &erp.bills[at];
    let owner = erp.commercial(of.entered);
    let money = |minor| Amount::from_minor(minor, euros());
    let company = CompanyId::new(erp.company.as_str()).unwrap();
    let (total, residual) = (money(of.total), money(of.total - of.paid));
    BillReading {
        bill: Bill {
            erp_company: ErpCompanyId::new(company.as_str()).unwrap(),
            company,
            id: bill_id(at),
            number: Some(format!("BILL/{at}")),
            reference: Some(format!("R-{at}")),
            kind: BillKind::Bill,
            state: BillState::Posted,
            header: HeaderFigures {
                entered: vendor_id(of.entered),
                vendor: vendor_id(owner),
                commercial_vendor: vendor_id(owner),
                total,
                residual,
            },
            payable: PayableFigures { vendors: vec![vendor_id(owner)], total, residual },
            named_account: of.named.map(account_id),
            date: None,
            due: None,
        },
        vendor: Some(vendor(erp, owner)),
        company_currency: euros(),
        own_accounts: vec![Iban::parse(OWN).unwrap()],
        read_at: erp.now,
    }
}

/// Books a payment, where everything is as it was ordered.
fn pay(erp: &mut Erp, order: &SealedOrder) -> Result<Booked, Refusal> {
    let order = order.order();
    let at = nth(order.bill.as_str()).ok_or(Refusal::NoSuchBill)?;
    let of = erp.bills.get(at).ok_or(Refusal::NoSuchBill)?.clone();
    let owner = erp.commercial(of.entered);
    let id = record_of(&order.account).ok_or(Refusal::AccountMismatch)?;
    let record = erp.record(id).ok_or(Refusal::AccountMismatch)?.clone();
    let is_whose = erp.commercial(record.owner) == owner && order.vendor == vendor_id(owner);
    if !is_whose || !record.active || record.number != order.iban.electronic() {
        return Err(Refusal::AccountMismatch);
    }
    if !record.allowed {
        return Err(Refusal::AccountUntrusted);
    }
    if order.amount.minor() > of.total - of.paid {
        return Err(Refusal::AmountExceedsResidual);
    }
    let shared = !erp.others_with(&record.number, owner).is_empty();
    let bill = &mut erp.bills[at];
    bill.paid += order.amount.minor();
    let booked = Booked {
        payment: PaymentId::new(format!("P-{}", order.seq)).unwrap(),
        number: format!("PAY/{}", order.seq),
        state: BookedState::Posted,
        amount: order.amount,
        account: AccountNumber::from_erp(&record.number),
        bills: vec![order.bill.clone()],
        date: order.date,
        bill_state: BillState::Posted,
        residual: Amount::from_minor(bill.total - bill.paid, euros()),
    };
    erp.payments.insert(order.marker.to_hex(), booked.clone());
    erp.events.push(Event::Paid(Paid {
        amount: order.amount.minor(),
        entered: of.entered,
        vendor: owner,
        named: of.named,
        record: id,
        number: record.number,
        shared,
    }));
    Ok(booked)
}

/// Changes bank details, where everything is as it was ordered.
fn change(erp: &mut Erp, order: &SealedBankChange) -> Result<Changed, Refusal> {
    let order = order.order();
    let at = nth(order.vendor.as_str()).ok_or(Refusal::NoSuchVendor)?;
    if !erp.standing().contains(&at) {
        return Err(Refusal::NoSuchVendor);
    }
    let active: Vec<Record> = erp.accounts(at).filter(|record| record.active).cloned().collect();
    let number = order.new_iban.electronic();
    let is_old = |record: &Record| {
        order.old.as_ref().is_some_and(|old| {
            old.account == account_id(record.id) && old.number.whole() == record.number
        })
    };
    match active.as_slice() {
        [] if order.old.is_none() => {}
        [only] if is_old(only) => {}
        [_, _, ..] => return Err(Refusal::SeveralAccounts),
        [] | [_] => return Err(Refusal::AccountMismatch),
    }
    if number == OWN || active.iter().any(|record| record.number == number) {
        return Err(Refusal::AccountIsOwn);
    }
    let (now, old) = (erp.now, active.first().map(|record| record.id));
    let mine: Vec<usize> = (0..erp.records.len())
        .filter(|place| erp.commercial(erp.records[*place].owner) == at)
        .collect();
    for place in &mine {
        let record = &mut erp.records[*place];
        if Some(record.id) == old {
            (record.active, record.since, record.edited) = (false, now, true);
        }
    }
    let back = mine.iter().find(|place| {
        let record = &erp.records[**place];
        !record.active && record.number == number && Some(record.id) != old
    });
    let new = match back {
        Some(place) => {
            let record = &mut erp.records[*place];
            (record.active, record.since, record.edited) = (true, now, true);
            record.allowed = true;
            record.id
        }
        None => erp.add(at, number.to_owned(), false),
    };
    let mut bills = Vec::new();
    for place in 0..erp.bills.len() {
        let names_old = erp.bills[place].named.is_none() || erp.bills[place].named == old;
        if erp.commercial(erp.bills[place].entered) == at && names_old {
            erp.bills[place].named = Some(new);
            bills.push(bill_id(place));
        }
    }
    if erp.claims == Claims::Truth {
        erp.log.push((now, at, LoggedField::Added, true));
    }
    let done = Changed {
        account: Some(ChangedAccount {
            id: account_id(new),
            owner: vendor_id(at),
            number: AccountNumber::Iban(order.new_iban.clone()),
            active: true,
            erp_allows: true,
        }),
        also_active: Vec::new(),
        bills,
    };
    erp.changes.insert(order.marker.to_hex(), done.clone());
    let number = number.to_owned();
    erp.events.push(Event::Changed { vendor: at, old, new, number });
    Ok(done)
}

#[async_trait]
impl ErpSource for Port {
    fn companies(&self) -> Vec<CompanyId> {
        vec![CompanyId::new(self.lock().company.as_str()).unwrap()]
    }

    fn company_of(&self, erp_company: &ErpCompanyId) -> Option<CompanyId> {
        CompanyId::new(erp_company.as_str()).ok()
    }

    fn erp_company(&self, company: &CompanyId) -> Option<ErpCompanyId> {
        ErpCompanyId::new(company.as_str()).ok()
    }

    async fn find_bill(
        &self,
        company: &CompanyId,
        wanted: &BillId,
    ) -> Result<Option<BillReading>, ReadError> {
        let mut erp = self.of(company)?;
        erp.before_a_look();
        let Some(at) = nth(wanted.as_str()).filter(|at| *at < erp.bills.len()) else {
            return Ok(None);
        };
        let owner = erp.commercial(erp.bills[at].entered);
        erp.show(owner, true);
        Ok(Some(bill(&erp, at)))
    }

    async fn list_bills(
        &self,
        company: &CompanyId,
        _query: &BillQuery,
    ) -> Result<Vec<BillReading>, ReadError> {
        let erp = self.of(company)?;
        Ok((0..erp.bills.len()).map(|at| bill(&erp, at)).collect())
    }

    async fn look_beside(
        &self,
        company: &CompanyId,
        query: &BesideQuery,
    ) -> Result<Beside, ReadError> {
        let erp = self.of(company)?;
        let mut holders = BTreeSet::new();
        if let Some((number, vendor)) = &query.held {
            let vendor = nth(vendor.as_str()).unwrap_or(usize::MAX);
            let others = erp.others_with(number.electronic(), vendor);
            holders.extend(others.into_iter().map(vendor_id));
        }
        let documents = (0..erp.bills.len()).map(|at| {
            let bill = bill(&erp, at).bill;
            countersign_erp_source::Document { id: bill.id.clone(), traits: Traits::of(&bill) }
        });
        Ok(Beside { documents: documents.collect(), holders, ..Beside::default() })
    }

    async fn find_vendor(
        &self,
        company: &CompanyId,
        wanted: &VendorId,
    ) -> Result<Option<Vendor>, ReadError> {
        let mut erp = self.of(company)?;
        erp.before_a_look();
        let at = nth(wanted.as_str()).filter(|at| erp.standing().contains(at));
        let Some(at) = at else { return Ok(None) };
        erp.show(at, false);
        Ok(Some(vendor(&erp, at)))
    }

    async fn list_vendors(
        &self,
        company: &CompanyId,
        after: Option<&VendorId>,
        limit: u16,
    ) -> Result<Vec<Vendor>, ReadError> {
        let mut erp = self.of(company)?;
        let from = after.and_then(|after| nth(after.as_str()));
        let all = erp.standing().into_iter().filter(|at| from.is_none_or(|from| *at > from));
        let page: Vec<usize> = all.take(usize::from(limit)).collect();
        for at in &page {
            erp.show(*at, false);
        }
        Ok(page.into_iter().map(|at| vendor(&erp, at)).collect())
    }

    async fn source_accounts(&self, company: &CompanyId) -> Result<Vec<SourceAccount>, ReadError> {
        drop(self.of(company)?);
        let (journal, iban) = (JournalId::new("BNK1").unwrap(), Iban::parse(OWN).unwrap());
        Ok(vec![SourceAccount { journal, iban, currency: euros() }])
    }

    async fn register_payment(&self, order: &SealedOrder) -> Result<Booked, OrderError> {
        pay(&mut self.lock(), order).map_err(OrderError::Refused)
    }

    async fn look_up(&self, wanted: &LookUp) -> Result<LookUpAnswer, ReadError> {
        let erp = self.of(&wanted.company)?;
        let booked = erp.payments.get(&wanted.marker.to_hex()).cloned();
        Ok(LookUpAnswer { erp_time: erp.now, booked })
    }

    async fn change_bank_details(&self, order: &SealedBankChange) -> Result<Changed, OrderError> {
        change(&mut self.lock(), order).map_err(OrderError::Refused)
    }

    async fn look_up_change(
        &self,
        wanted: &ChangeLookUp,
    ) -> Result<LookUpAnswer<Changed>, ReadError> {
        let erp = self.of(&wanted.company)?;
        let booked = erp.changes.get(&wanted.marker.to_hex()).cloned();
        Ok(LookUpAnswer { erp_time: erp.now, booked })
    }

    async fn list_changes(
        &self,
        company: &CompanyId,
        after: u64,
        limit: u16,
    ) -> Result<Vec<LoggedChange>, ReadError> {
        let erp = self.of(company)?;
        let entries = (1..).zip(&erp.log).filter(|(id, _)| *id > after);
        let entries = entries.map(|(id, (at, vendor, field, ordered))| LoggedChange {
            id,
            at: *at,
            by: Some("somebody".to_owned()),
            vendor: vendor_id(*vendor),
            account: None,
            field: *field,
            before: None,
            after: None,
            ordered: *ordered,
        });
        Ok(entries.take(usize::from(limit)).collect())
    }

    async fn review(&self, wanted: &Review) -> Result<Vec<Reviewed>, ReadError> {
        let erp = self.of(&wanted.company)?;
        let reviewed = wanted.orders.iter().map(|(marker, _bill)| Reviewed {
            marker: marker.clone(),
            booked: erp.payments.get(&marker.to_hex()).cloned(),
            overpaid_minor: 0,
        });
        Ok(reviewed.collect())
    }

    async fn list_orders(
        &self,
        _store: &str,
        _after: u64,
        _limit: u16,
    ) -> Result<Vec<RecordedOrder>, ReadError> {
        Ok(Vec::new())
    }

    async fn attest(&self, _store: &str) -> Result<Attestation, ReadError> {
        let erp_time = self.lock().now;
        Ok(Attestation {
            erp_time,
            newest_seq: 0,
            guard_problems: Vec::new(),
            identities: Vec::new(),
        })
    }
}

#[async_trait]
impl PayeeVerifier for Port {
    /// Whoever asks is told yes: that nothing else holds a payment back.
    async fn verify(&self, _name: &str, _iban: &Iban) -> Result<VopReport, NoAnswer> {
        let at = self.lock().now;
        Ok(VopReport { result: VopResult::Match, provider: "test".to_owned(), at })
    }
}

#[async_trait]
impl SanctionsScreen for Port {
    fn list(&self) -> &'static str {
        "test"
    }

    async fn screen(&self, _iban: &Iban) -> Result<Screening, NoAnswer> {
        Ok(Screening::NotListed)
    }
}

impl Clock for Port {
    fn now(&self) -> Timestamp {
        self.lock().now
    }
}
