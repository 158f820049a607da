//! The gateway's own record of vendors, their accounts and telephones, as it first saw them.

use countersign_erp_source::{CompanyId, Timestamp, VendorId};

use super::{Conn, Row, StoreError, Val};

/// How an account came to be on file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AccountStatus {
    /// There at the first contact.
    Adopted,
    /// Confirmed by a call-back and four eyes.
    Verified,
    /// Of a vendor first seen later.
    Unverified,
    /// Changed, or appeared, without an operation of ours.
    ChangedInErp,
}

impl AccountStatus {
    /// The stable code.
    pub fn code(self) -> &'static str {
        match self {
            Self::Adopted => "adopted",
            Self::Verified => "verified",
            Self::Unverified => "unverified",
            Self::ChangedInErp => "changed_in_erp",
        }
    }

    fn from_code(code: &str) -> Option<Self> {
        [Self::Adopted, Self::Verified, Self::Unverified, Self::ChangedInErp]
            .into_iter()
            .find(|status| status.code() == code)
    }
}

/// An account of the baseline.
#[derive(Clone, PartialEq, Eq)]
pub struct BaselineAccount {
    /// The ERP's record.
    pub account: String,
    /// Whose it was when it was last compared.
    pub vendor: String,
    /// Its number then, whole.
    pub number: String,
    /// Whether it was active then.
    pub active: bool,
    /// Since when it is exactly this, by the gateway's own clock (adopted ones: by the ERP's proof).
    pub since: Timestamp,
    /// How it came to be on file.
    pub status: AccountStatus,
    /// Whether it was another vendor's at any time, by a merge or an edit.
    pub reowned: bool,
    /// What changed last, in words.
    pub note: Option<String>,
}

impl std::fmt::Debug for BaselineAccount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BaselineAccount")
            .field("account", &self.account)
            .field("vendor", &self.vendor)
            .field("active", &self.active)
            .field("since", &self.since)
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

/// A vendor of the baseline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaselineVendor {
    /// The ERP's id.
    pub vendor: String,
    /// Its name then.
    pub name: String,
    /// Its tax number then.
    pub tax_number: Option<String>,
    /// The vendor it belonged to then.
    pub parent: Option<String>,
    /// When the gateway first saw it.
    pub first_seen: Timestamp,
    /// Whether it was there at the first contact.
    pub adopted: bool,
}

/// A telephone of the baseline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaselinePhone {
    /// Whose.
    pub vendor: String,
    /// Which of the vendor's numbers.
    pub kind: &'static str,
    /// As it was written.
    pub number: String,
    /// Since when it is on file.
    pub since: Timestamp,
    /// Whether it was there at the first contact.
    pub adopted: bool,
}

/// What the baseline holds that concerns one vendor.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Known {
    /// When the company's vendors were adopted; `None` is no baseline.
    pub adopted_at: Option<Timestamp>,
    /// The vendor.
    pub vendor: Option<BaselineVendor>,
    /// Its accounts, and any other vendor's with a record id that was asked for.
    pub accounts: Vec<BaselineAccount>,
    /// Whether the contact that was entered on the bill is itself known as a vendor.
    pub entered_is_vendor: bool,
}

/// What the first contact found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Adoption {
    /// The vendors.
    pub vendors: Vec<BaselineVendor>,
    /// All accounts.
    pub accounts: Vec<BaselineAccount>,
    /// All telephones.
    pub phones: Vec<BaselinePhone>,
}

/// Reads what concerns the vendor and the account records named.
pub async fn known(
    conn: &mut Conn<'_>,
    company: &CompanyId,
    vendor: &VendorId,
    accounts: &[&str],
) -> Result<Known, StoreError> {
    let adopted_at = adopted_at(conn, company).await?;
    let sql = "select vendor, name, tax_number, parent, first_seen, adopted from baseline_vendor \
               where company = $1 and vendor = $2";
    let args = [company.as_str().into(), vendor.as_str().into()];
    let row = conn.fetch_optional(sql, &args).await?;
    let of_vendor = "select account, vendor, number, active, since, status, reowned, note \
                     from baseline_account where company = $1 and vendor = $2 order by account";
    let mut found: Vec<BaselineAccount> = conn
        .fetch_all(of_vendor, &args)
        .await?
        .iter()
        .map(account_from_row)
        .collect::<Result<_, _>>()?;
    let by_record = "select account, vendor, number, active, since, status, reowned, note \
                     from baseline_account where company = $1 and account = $2";
    for account in accounts {
        if found.iter().any(|known| known.account == **account) {
            continue;
        }
        let args = [company.as_str().into(), (*account).into()];
        if let Some(row) = conn.fetch_optional(by_record, &args).await? {
            found.push(account_from_row(&row)?);
        }
    }
    let vendor = row.map(|row| vendor_from_row(&row)).transpose()?;
    Ok(Known { adopted_at, vendor, accounts: found, entered_is_vendor: false })
}

/// Whether the baseline has that vendor.
pub async fn is_known(
    conn: &mut Conn<'_>,
    company: &CompanyId,
    vendor: &VendorId,
) -> Result<bool, StoreError> {
    let sql = "select count(*) as found from baseline_vendor where company = $1 and vendor = $2";
    let args = [company.as_str().into(), vendor.as_str().into()];
    Ok(conn.fetch_one(sql, &args).await?.int("found")? > 0)
}

/// Other vendors than that one with that number on an account that is active in the baseline; one
/// with several such accounts several times.
pub async fn holders(
    conn: &mut Conn<'_>,
    company: &CompanyId,
    number: &str,
    but: &VendorId,
) -> Result<Vec<String>, StoreError> {
    let sql = "select vendor from baseline_account \
               where company = $1 and number = $2 and vendor <> $3 and active = 1";
    let args = [company.as_str().into(), number.into(), but.as_str().into()];
    conn.fetch_all(sql, &args).await?.iter().map(|row| row.text("vendor")).collect()
}

/// When that company's vendors were adopted.
pub async fn adopted_at(
    conn: &mut Conn<'_>,
    company: &CompanyId,
) -> Result<Option<Timestamp>, StoreError> {
    let sql = "select adopted_at from baseline_company where company = $1";
    let row = conn.fetch_optional(sql, &[company.as_str().into()]).await?;
    row.map(|row| row.int("adopted_at").map(Timestamp::from_millis)).transpose()
}

/// Writes the first contact, once for each company. `false` if it was written before.
pub async fn adopt(
    conn: &mut Conn<'_>,
    company: &CompanyId,
    found: Adoption,
    attested_since: Option<Timestamp>,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let vendors = i64::try_from(found.vendors.len()).unwrap_or(i64::MAX);
    let sql = "insert into baseline_company (company, adopted_at, attested_since, vendors) \
               values ($1, $2, $3, $4) on conflict (company) do nothing";
    let since = attested_since.map(Timestamp::as_millis);
    let args = [company.as_str().into(), now.as_millis().into(), since.into(), vendors.into()];
    if conn.execute(sql, &args).await? == 0 {
        return Ok(false);
    }
    let vendors = found.vendors.iter().map(|vendor| vendor_values(company, vendor));
    conn.insert_many(
        "insert into baseline_vendor (company, vendor, name, tax_number, parent, first_seen, adopted) ",
        vendors.collect(),
        "",
    )
    .await?;
    let accounts = found.accounts.iter().map(|account| account_values(company, account));
    conn.insert_many(
        "insert into baseline_account (company, account, vendor, number, active, since, status, reowned, note) ",
        accounts.collect(),
        "",
    )
    .await?;
    let phones = found.phones.iter().map(|phone| phone_values(company, phone));
    conn.insert_many(
        "insert into baseline_phone (company, vendor, kind, number, since, adopted) ",
        phones.collect(),
        "",
    )
    .await?;
    Ok(true)
}

/// Writes a vendor first seen after the adoption. Nothing if it is there.
pub async fn first_seen(
    conn: &mut Conn<'_>,
    company: &CompanyId,
    vendor: &BaselineVendor,
) -> Result<(), StoreError> {
    let sql = "insert into baseline_vendor (company, vendor, name, tax_number, parent, first_seen, \
               adopted) values ($1, $2, $3, $4, $5, $6, $7) on conflict (company, vendor) do nothing";
    conn.execute(sql, &vendor_values(company, vendor)).await?;
    Ok(())
}

/// Writes how an account is now, over what was known of its record.
pub async fn observe(
    conn: &mut Conn<'_>,
    company: &CompanyId,
    account: &BaselineAccount,
) -> Result<(), StoreError> {
    let sql = "insert into baseline_account (company, account, vendor, number, active, since, \
               status, reowned, note) values ($1, $2, $3, $4, $5, $6, $7, $8, $9) \
               on conflict (company, account) do update set vendor = excluded.vendor, \
               number = excluded.number, active = excluded.active, since = excluded.since, \
               status = excluded.status, reowned = excluded.reowned, note = excluded.note";
    conn.execute_one(sql, &account_values(company, account)).await
}

fn vendor_values(company: &CompanyId, vendor: &BaselineVendor) -> Vec<Val> {
    vec![
        company.as_str().into(),
        vendor.vendor.as_str().into(),
        vendor.name.as_str().into(),
        vendor.tax_number.clone().into(),
        vendor.parent.clone().into(),
        vendor.first_seen.as_millis().into(),
        vendor.adopted.into(),
    ]
}

fn account_values(company: &CompanyId, account: &BaselineAccount) -> Vec<Val> {
    vec![
        company.as_str().into(),
        account.account.as_str().into(),
        account.vendor.as_str().into(),
        account.number.as_str().into(),
        account.active.into(),
        account.since.as_millis().into(),
        account.status.code().into(),
        account.reowned.into(),
        account.note.clone().into(),
    ]
}

fn phone_values(company: &CompanyId, phone: &BaselinePhone) -> Vec<Val> {
    vec![
        company.as_str().into(),
        phone.vendor.as_str().into(),
        phone.kind.into(),
        phone.number.as_str().into(),
        phone.since.as_millis().into(),
        phone.adopted.into(),
    ]
}

fn vendor_from_row(row: &Row) -> Result<BaselineVendor, StoreError> {
    Ok(BaselineVendor {
        vendor: row.text("vendor")?,
        name: row.text("name")?,
        tax_number: row.opt_text("tax_number")?,
        parent: row.opt_text("parent")?,
        first_seen: Timestamp::from_millis(row.int("first_seen")?),
        adopted: row.flag("adopted")?,
    })
}

fn account_from_row(row: &Row) -> Result<BaselineAccount, StoreError> {
    let status = row.text("status")?;
    Ok(BaselineAccount {
        account: row.text("account")?,
        vendor: row.text("vendor")?,
        number: row.text("number")?,
        active: row.flag("active")?,
        since: Timestamp::from_millis(row.int("since")?),
        status: AccountStatus::from_code(&status)
            .ok_or_else(|| row.inconsistent("status", "cannot be read"))?,
        reowned: row.flag("reowned")?,
        note: row.opt_text("note")?,
    })
}
