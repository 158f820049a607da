//! One unit of work within the writer's transaction.

use std::ops::{Deref, DerefMut};

use super::ledger::ChainEnd;
use super::{Conn, ReceiptHead, StoreError, query};
use crate::metrics::Decided;
use crate::receipts::Receipt;

/// What a unit of work writes with: statements, as on [`Conn`], and receipts.
#[derive(Debug)]
pub struct Unit<'a> {
    conn: Conn<'a>,
    chain: &'a mut ChainEnd,
}

impl<'a> Unit<'a> {
    pub(super) fn new(conn: Conn<'a>, chain: &'a mut ChainEnd) -> Self {
        Self { conn, chain }
    }

    /// The connection, for functions that take one.
    pub fn conn(&mut self) -> &mut Conn<'a> {
        &mut self.conn
    }

    /// Leaves a receipt and says where it will be; if the unit is undone there is none.
    pub fn receipt(&mut self, receipt: Receipt) -> Result<ReceiptHead, StoreError> {
        self.chain.push(receipt)
    }

    /// Has a decision counted once it is durable; if the unit is undone it is not.
    pub fn decided(&mut self, decided: Decided) {
        self.chain.count(decided);
    }

    /// The store's next number for an order to the ERP; one that is undone is given again.
    pub async fn next_order_seq(&mut self) -> Result<i64, StoreError> {
        self.conn.fetch_one(query::NEXT_ORDER, &[]).await?.int("order_seq")
    }

    /// Makes the next number for an order larger than `used`, which the ERP has already seen.
    pub async fn raise_order_seq(&mut self, used: i64) -> Result<(), StoreError> {
        self.conn.execute(query::RAISE_ORDER, &[used.into()]).await.map(drop)
    }
}

impl<'a> Deref for Unit<'a> {
    type Target = Conn<'a>;

    fn deref(&self) -> &Conn<'a> {
        &self.conn
    }
}

impl<'a> DerefMut for Unit<'a> {
    fn deref_mut(&mut self) -> &mut Conn<'a> {
        &mut self.conn
    }
}
