# Books exactly what a sealed order says, once, or nothing. Run by the payer, who holds no other right.
# Every check comes before the first write.
texts = ('marker', 'store', 'company', 'bill', 'total', 'vendor', 'account', 'iban', 'amount', 'currency', 'journal', 'source_iban', 'memo', 'date', 'not_after')
if not isinstance(order, dict) or order.get('v') != 1 or not isinstance(order.get('seq'), int) or order['seq'] < 1 or any(not isinstance(order.get(name), str) for name in texts):
    raise UserError('COUNTERSIGN bad_request')
if any(not order[name] or len(order[name]) > 9 or order[name].strip('0123456789') for name in ('company', 'bill', 'vendor', 'account')):
    raise UserError('COUNTERSIGN bad_request')
company_id, bill_id, vendor_id, account_id = int(order['company']), int(order['bill']), int(order['vendor']), int(order['account'])

# The lock under which everything about this bill is decided. A transaction that changed the bill since
# this one began makes the database refuse here, and Odoo begins anew with the present state.
env.cr.execute('SELECT company_id FROM account_move WHERE id = %s FOR UPDATE', [bill_id])
row = env.cr.fetchone()
su = env(su=True, context={'lang': 'en_US', 'tz': 'UTC', 'allowed_company_ids': [company_id], 'active_test': False})
bill = su['account.move'].browse(bill_id)
env.cr.execute('SELECT payment, digest FROM countersign_order WHERE marker = %s', [order['marker']])
known = env.cr.fetchone()
if known and known[1] != digest:
    raise UserError('COUNTERSIGN marker_used_otherwise')
# What was booked is answered though its bill may be gone since.
if not known and (not row or row[0] != company_id):
    raise UserError('COUNTERSIGN no_such_bill')
if known:
    payment_id = known[0]
else:
    # A number that another marker used comes from an older copy of the store, late or not. A deadline
    # far away would keep an order alive that nobody waits for any more.
    env.cr.execute("""
        SELECT clock_timestamp() <= %s::timestamptz, clock_timestamp() + interval '15 minutes' < %s::timestamptz,
               (SELECT count(*) FROM countersign_order WHERE store = %s AND seq = %s)
    """, [order['not_after'], order['not_after'], order['store'], order['seq']])
    in_time, too_far, used = env.cr.fetchone()
    if used:
        raise UserError('COUNTERSIGN store_behind')
    if not in_time:
        raise UserError('COUNTERSIGN too_late')
    if too_far:
        raise UserError('COUNTERSIGN deadline_too_far')

    # Shared, so that whoever changes the account at this moment waits, or this transaction begins anew.
    env.cr.execute('SELECT id FROM res_partner_bank WHERE id = %s FOR SHARE', [account_id])
    if not env.cr.fetchone():
        raise UserError('COUNTERSIGN bank_mismatch')
    account = su['res.partner.bank'].browse(account_id)
    vendor = bill.partner_id.commercial_partner_id
    currency = bill.currency_id
    lines = bill.line_ids.filtered(lambda line: line.account_id.account_type == 'liability_payable')
    if bill.move_type != 'in_invoice' or bill.state != 'posted' or not lines:
        raise UserError('COUNTERSIGN bill_not_payable')
    if vendor.id != vendor_id or bill.commercial_partner_id != vendor or account.partner_id != vendor or any(line.partner_id.commercial_partner_id != vendor for line in lines):
        raise UserError('COUNTERSIGN vendor_inconsistent')
    if not account.active or account.acc_type != 'iban' or account.sanitized_acc_number != order['iban'] or (account.company_id and account.company_id.id != company_id):
        raise UserError('COUNTERSIGN bank_mismatch')
    if not account.allow_out_payment:
        raise UserError('COUNTERSIGN bank_untrusted')
    own = su['res.company'].search([]).partner_id
    if account.partner_id in own or su['res.partner.bank'].search_count([('sanitized_acc_number', '=', order['iban']), '|', ('partner_id', 'in', own.ids), ('journal_id', '!=', False)]):
        raise UserError('COUNTERSIGN bank_is_own')

    # The lines prove the figures; the header can be written by anybody with billing rights.
    amount, pinned = float(order['amount']), float(order['total'])
    total, residual = -sum(lines.mapped('amount_currency')), -sum(lines.mapped('amount_residual_currency'))
    if currency.name != order['currency'] or any(line.currency_id != currency for line in lines) or currency.compare_amounts(total, pinned) != 0 or currency.compare_amounts(total, bill.amount_total) != 0 or currency.compare_amounts(residual, bill.amount_residual) != 0:
        raise UserError('COUNTERSIGN figures_inconsistent')
    env.cr.execute('SELECT coalesce(sum(amount), 0)::text FROM countersign_order WHERE bill = %s', [bill_id])
    ours = float(env.cr.fetchone()[0])
    if amount <= 0 or abs(currency.round(amount) - amount) > 1e-6 or currency.compare_amounts(amount, residual) > 0 or currency.compare_amounts(ours + amount, pinned) > 0:
        raise UserError('COUNTERSIGN amount_exceeds_residual')

    journal = su['account.journal'].search([('type', '=', 'bank'), ('company_id', '=', company_id), ('code', '=', order['journal']), ('active', '=', True)])
    if len(journal) != 1 or journal.bank_account_id.sanitized_acc_number != order['source_iban'] or (journal.currency_id or journal.company_id.currency_id) != currency:
        raise UserError('COUNTERSIGN journal_mismatch')
    method = journal.outbound_payment_method_line_ids.filtered(lambda line: line.code == 'manual')[:1]
    if not method:
        raise UserError('COUNTERSIGN journal_mismatch')

    # One payment of a journal at a time. Two at once would take the same number, and the database
    # would refuse the second in a way that tells the caller nothing. Whoever waited here begins anew.
    env.cr.execute("""
        INSERT INTO countersign_turn (journal, turns) VALUES (%s, 1)
        ON CONFLICT (journal) DO UPDATE SET turns = countersign_turn.turns + 1
    """, [journal.id])
    # Whoever edits the vendor's accounts at this moment begins anew, and finds the order on record.
    env.cr.execute("""
        INSERT INTO countersign_vendor AS known (vendor, turns) VALUES (%s, 1)
        ON CONFLICT (vendor) DO UPDATE SET turns = known.turns + 1
    """, [vendor_id])

    # One bill, one wizard, no default taken: each figure is the order's.
    before = bill.amount_residual
    # What Odoo's own rules say no to is said in our words, which prove that it was before the commit.
    try:
        wizard = su['account.payment.register'].with_context(active_model='account.move', active_ids=bill.ids).create({
            'payment_date': order['date'], 'amount': amount, 'currency_id': currency.id, 'journal_id': journal.id, 'payment_method_line_id': method.id,
            'partner_bank_id': account.id, 'communication': order['memo'], 'group_payment': True, 'payment_difference_handling': 'open',
        })
        editable = wizard.can_edit_wizard and wizard.partner_bank_id == account
        answer = wizard.action_create_payments() if editable else {}
        env.flush_all()
    except UserError:
        raise UserError('COUNTERSIGN erp_refused')
    if not editable:
        raise UserError('COUNTERSIGN bill_not_payable')
    payment = su['account.payment'].browse(answer.get('res_id') or 0).exists()
    if (len(payment) != 1 or payment.state != 'posted' or not payment.is_reconciled or payment.payment_type != 'outbound' or payment.partner_type != 'supplier'
            or payment.partner_id.commercial_partner_id != vendor or payment.partner_bank_id != account or payment.journal_id != journal or payment.currency_id != currency
            or payment.company_id.id != company_id or currency.compare_amounts(payment.amount, amount) != 0 or currency.compare_amounts(before - bill.amount_residual, amount) != 0
            or payment.reconciled_bill_ids.ids != bill.ids or account.sanitized_acc_number != order['iban']):
        raise UserError('COUNTERSIGN post_check_failed')
    # The trigger keeps what is on record; what was still in memory is written by now.
    env.cr.execute("""
        INSERT INTO countersign_order (marker, digest, store, seq, company, bill, vendor, account, iban, journal, source_iban, amount, total, currency, date, payment)
        VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s::numeric, %s::numeric, %s, %s::date, %s) ON CONFLICT DO NOTHING
    """, [order['marker'], digest, order['store'], order['seq'], company_id, bill_id, vendor_id, account_id, order['iban'], order['journal'], order['source_iban'],
          order['amount'], order['total'], order['currency'], order['date'], payment.id])
    if env.cr.rowcount != 1:
        raise UserError('COUNTERSIGN store_behind')
    payment_id = payment.id
