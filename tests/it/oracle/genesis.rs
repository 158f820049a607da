//! The beginning: a world made of a seed, and the file that the sandbox reads it from.

use std::fmt::Write as _;

use super::dice::Dice;
use super::world::{Account, Bill, COMPANIES, OWN, State, Vendor, Vop, World, date, euros};

/// Vendors of each company.
const VENDORS: [usize; 2] = [30, 8];
/// Bills of each company.
const BILLS: [usize; 2] = [70, 16];

/// Amounts around every limit that there is, in cents, and many plain ones.
pub(super) const AMOUNTS: [(usize, i64); 18] = [
    (10, 4_000),
    (10, 12_345),
    (10, 34_000),
    (10, 120_000),
    (8, 250_000),
    (6, 310_055),
    (4, 499_999),
    (5, 500_000),
    (4, 500_001),
    (3, 800_000),
    (2, 999_999),
    (2, 1_000_000),
    (2, 1_000_001),
    (2, 2_500_000),
    (2, 4_999_999),
    (2, 5_000_000),
    (2, 5_000_001),
    (1, 9_000_000),
];

pub(super) fn world(dice: &mut Dice) -> World {
    let mut world = World::empty();
    world.crew = dice.index();
    for company in [0, 1] {
        for _ in 0..VENDORS[company] {
            let vendor = vendor(&mut world, company, dice);
            world.companies[company].vendors.push(vendor);
        }
        for _ in 0..BILLS[company] {
            let bill = bill(&mut world, company, dice);
            world.companies[company].bills.push(bill);
        }
    }
    world
}

fn vendor(world: &mut World, company: usize, dice: &mut Dice) -> Vendor {
    let id = world.new_id(company, "V");
    let real = world.new_number();
    let mut vendor =
        Vendor { name: format!("Vendor {id}"), id, accounts: Vec::new(), records: 0, real };
    let age = dice.weighted(&[(76, 400), (6, 8), (8, 7), (6, 6), (4, 0)]);
    let others = &world.companies[company].vendors;
    let shared = others.first().map_or_else(|| vendor.real.clone(), |other| other.real.clone());
    let own = OWN[company][dice.below(OWN[company].len())].1.to_owned();
    let second = world.new_number();
    let numbers = dice.weighted(&[
        (82, vec![vendor.real.clone()]),
        (8, vec![vendor.real.clone(), second]),
        (4, vec![]),
        (4, vec![shared]),
        (2, vec![own]),
    ]);
    for number in numbers {
        vendor.records += 1;
        let answer = dice.weighted(&[
            (93, Vop::Match),
            (3, Vop::Close),
            (2, Vop::NotPossible),
            (2, Vop::NoMatch),
        ]);
        world.vop.insert((vendor.name.clone(), number.clone()), answer);
        if dice.chance(2) {
            world.sanctioned.insert(number.clone());
        }
        let (active, allowed) = (!dice.chance(2), !dice.chance(2));
        let record = vendor.records;
        vendor.accounts.push(Account { record, number, active, allowed, age_days: age });
    }
    vendor
}

fn bill(world: &mut World, company: usize, dice: &mut Dice) -> Bill {
    let id = world.new_id(company, "B");
    let vendor = dice.below(world.companies[company].vendors.len());
    let total = dice.weighted(&AMOUNTS);
    Bill {
        vendor,
        reference: dice.weighted(&[(94, Some(format!("Ref/{id}"))), (6, None)]),
        // Far apart, so that no two are alike by chance alone.
        date: -10 * i64::try_from(world.companies[company].bills.len()).unwrap(),
        currency: "EUR",
        total,
        paid: if dice.chance(4) { total / 2 } else { 0 },
        state: dice.weighted(&[(95, State::Posted), (3, State::Draft), (2, State::Cancelled)]),
        is_note: false,
        named: world.companies[company].vendors[vendor].first().map(|record| (vendor, record)),
        id,
    }
}

/// The world as the sandbox reads it.
pub(super) fn file(world: &World) -> String {
    let mut text = String::new();
    let listed: Vec<String> = world.sanctioned.iter().map(|iban| format!("{iban:?}")).collect();
    writeln!(text, "sanctioned_ibans = [{}]", listed.join(", ")).unwrap();
    for (at, company) in world.companies.iter().enumerate() {
        let id = COMPANIES[at];
        let own = |(journal, iban): &(&str, &str)| {
            format!("{{ journal = \"{journal}\", iban = \"{iban}\" }}")
        };
        let own: Vec<String> = OWN[at].iter().map(own).collect();
        writeln!(text, "[company.{id}]\nname = \"{id}\"\ncurrency = \"EUR\"").unwrap();
        writeln!(text, "accounts = [{}]", own.join(", ")).unwrap();
        for vendor in &company.vendors {
            writeln!(text, "[company.{id}.vendor.{}]\nname = {:?}", vendor.id, vendor.name)
                .unwrap();
            let account = |account: &Account| {
                let Account { number, active, allowed, age_days, .. } = account;
                format!(
                    "{{ iban = \"{number}\", age_days = {age_days}, active = {active}, \
                     allowed = {allowed} }}"
                )
            };
            let accounts: Vec<String> = vendor.accounts.iter().map(account).collect();
            writeln!(text, "accounts = [{}]", accounts.join(", ")).unwrap();
        }
        for bill in &company.bills {
            let vendor = &company.vendors[bill.vendor].id;
            writeln!(text, "[company.{id}.bill.{}]\nvendor = \"{vendor}\"", bill.id).unwrap();
            if let Some(reference) = &bill.reference {
                writeln!(text, "vendor_reference = {reference:?}").unwrap();
            }
            let (total, paid) = (euros(bill.total), euros(bill.paid));
            writeln!(text, "amount = \"{total}\"\npaid = \"{paid}\"").unwrap();
            writeln!(text, "date = \"{}\"\nstate = \"{}\"", date(bill.date), bill.word()).unwrap();
        }
    }
    for ((name, iban), answer) in &world.vop {
        let answer = answer.word();
        writeln!(text, "[[vop]]\nname = {name:?}\niban = \"{iban}\"\nresult = \"{answer}\"")
            .unwrap();
    }
    text
}
