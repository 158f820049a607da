# Looks for an order under the bill's lock, so that nothing of this bill is under way when it answers.
# Run by the payer.
told = env.context.get('countersign')
if not isinstance(told, dict) or any(not isinstance(told.get(name), str) or not told[name] for name in ('company', 'bill', 'marker')):
    raise UserError('COUNTERSIGN bad_request')
if any(len(told[name]) > 9 or told[name].strip('0123456789') for name in ('company', 'bill')):
    raise UserError('COUNTERSIGN bad_request')
company_id, bill_id = int(told['company']), int(told['bill'])

# A bill that is gone has no lock to take, and no order can be booked for it any more.
env.cr.execute('SELECT company_id FROM account_move WHERE id = %s FOR UPDATE', [bill_id])
row = env.cr.fetchone()
if row and row[0] != company_id:
    raise UserError('COUNTERSIGN no_such_bill')
env.cr.execute('SELECT payment, bill FROM countersign_order WHERE marker = %s', [told['marker']])
known = env.cr.fetchone()
if known and known[1] != bill_id:
    raise UserError('COUNTERSIGN bad_request')
su = env(su=True, context={'lang': 'en_US', 'tz': 'UTC', 'allowed_company_ids': [company_id], 'active_test': False})
bill = su['account.move'].browse(bill_id)
payment_id = known[0] if known else 0
