# Changes a vendor's bank details exactly as a sealed order says, once, or not at all. Run by the bank
# admin, who holds no other right.
texts = ['company', 'kind', 'marker', 'new_iban', 'not_after', 'old_account', 'old_number', 'store', 'vendor']
if not isinstance(order, dict) or sorted(order) != sorted(texts + ['seq', 'v']) or order['v'] != 1 or order['kind'] != 'bank_change':
    raise UserError('COUNTERSIGN bad_request')
if not isinstance(order['seq'], int) or order['seq'] < 1 or any(not isinstance(order[name], str) for name in texts):
    raise UserError('COUNTERSIGN bad_request')
if any(not order[name] or len(order[name]) > 9 or order[name].strip('0123456789') for name in ('company', 'vendor')) or len(order['old_account']) > 9 or order['old_account'].strip('0123456789'):
    raise UserError('COUNTERSIGN bad_request')
company_id, vendor_id, old_id = int(order['company']), int(order['vendor']), int(order['old_account'] or 0)

# The lock under which everything about this vendor's accounts is decided. Whoever edits one takes it
# too; a transaction that had it since this one began makes the database refuse here, and Odoo begins anew
# with the present state.
env.cr.execute("""
    INSERT INTO countersign_vendor AS known (vendor, turns) VALUES (%s, 1)
    ON CONFLICT (vendor) DO UPDATE SET turns = known.turns + 1
""", [vendor_id])
su = env(su=True, context={'lang': 'en_US', 'tz': 'UTC', 'allowed_company_ids': [company_id], 'active_test': False})
Bank = su['res.partner.bank']
env.cr.execute('SELECT account, vendor, bills, digest FROM countersign_order WHERE marker = %s', [order['marker']])
known = env.cr.fetchone()
if known and known[3] != digest:
    raise UserError('COUNTERSIGN marker_used_otherwise')
if not known:
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

    # A vendor of this company is who stands for itself and has a bill here, as the reader sees it.
    env.cr.execute('SELECT company_id FROM res_partner WHERE id = %s FOR UPDATE', [vendor_id])
    row = env.cr.fetchone()
    vendor = su['res.partner'].browse(vendor_id)
    if not row or row[0] not in (None, company_id) or vendor.commercial_partner_id != vendor or not su['account.move'].search_count([
            ('company_id', '=', company_id), ('state', '=', 'posted'), ('move_type', 'in', ('in_invoice', 'in_refund', 'in_receipt')), ('commercial_partner_id', '=', vendor_id)], limit=1):
        raise UserError('COUNTERSIGN no_such_vendor')

    env.cr.execute('SELECT id FROM res_partner_bank WHERE partner_id = %s ORDER BY id FOR UPDATE', [vendor_id])
    accounts = Bank.browse([found[0] for found in env.cr.fetchall()])
    active = accounts.filtered(lambda account: account.active and account.company_id.id in (False, company_id))
    if len(active) > 1:
        raise UserError('COUNTERSIGN several_accounts')
    if (active.id or 0, active.sanitized_acc_number or '') != (old_id, order['old_number']):
        raise UserError('COUNTERSIGN bank_mismatch')
    if order['old_number'] == order['new_iban']:
        raise UserError('COUNTERSIGN bad_request')
    own = su['res.company'].search([]).partner_id
    if vendor in own or Bank.search_count([('sanitized_acc_number', '=', order['new_iban']), '|', ('partner_id', 'in', own.ids), ('journal_id', '!=', False)]):
        raise UserError('COUNTERSIGN bank_is_own')
    new = accounts.filtered(lambda account: account.sanitized_acc_number == order['new_iban'])
    if Bank.retrieve_acc_type(order['new_iban']) != 'iban' or (new and new.company_id.id not in (False, company_id)):
        raise UserError('COUNTERSIGN erp_refused')

    # Open by its lines: the header can be written by anybody with billing rights.
    bills = su['account.move'].search([
        ('company_id', '=', company_id), ('move_type', '=', 'in_invoice'), ('state', '=', 'posted'),
        ('commercial_partner_id', '=', vendor_id), ('partner_id.commercial_partner_id', '=', vendor_id), ('partner_bank_id', 'in', [False] + active.ids)], order='id')
    bills = bills.filtered(lambda bill: bill.currency_id.compare_amounts(0, sum(bill.line_ids.filtered(lambda line: line.account_id.account_type == 'liability_payable').mapped('amount_residual_currency'))) > 0)
    try:
        # Odoo would let a trusted account's number be changed together with the trust. It is archived
        # as it was.
        active.write({'allow_out_payment': False, 'active': False})
        if new:
            new.write({'allow_out_payment': True, 'active': True})
        else:
            new = Bank.create({'partner_id': vendor_id, 'acc_number': order['new_iban'], 'allow_out_payment': True, 'company_id': active.company_id.id, 'sequence': active.sequence or 10})
        bills.write({'partner_bank_id': new.id})
        env.flush_all()
    except UserError:
        raise UserError('COUNTERSIGN erp_refused')
    env.invalidate_all()
    left = Bank.search([('partner_id', '=', vendor_id), ('active', '=', True), ('company_id', 'in', (False, company_id))])
    if (left != new or new.partner_id != vendor or new.acc_type != 'iban' or new.sanitized_acc_number != order['new_iban'] or not new.allow_out_payment
            or active.active or active.allow_out_payment or (active.sanitized_acc_number or '') != order['old_number'] or any(bill.partner_bank_id != new for bill in bills)):
        raise UserError('COUNTERSIGN post_check_failed')
    env.cr.execute("""
        INSERT INTO countersign_order (marker, digest, store, seq, kind, company, vendor, old_account, old_number, account, iban, bills)
        VALUES (%s, %s, %s, %s, 'bank_change', %s, %s, %s, %s, %s, %s, %s::int[]) ON CONFLICT DO NOTHING
    """, [order['marker'], digest, order['store'], order['seq'], company_id, vendor_id, active.id or None, order['old_number'], new.id, order['new_iban'], bills.ids])
    if env.cr.rowcount != 1:
        raise UserError('COUNTERSIGN store_behind')
    known = (new.id, vendor_id, bills.ids)
