# Looks for a change under the vendor's lock, so that nothing of this vendor is under way when it
# answers. Run by the bank admin.
told = env.context.get('countersign')
if not isinstance(told, dict) or any(not isinstance(told.get(name), str) or not told[name] for name in ('company', 'vendor', 'marker')):
    raise UserError('COUNTERSIGN bad_request')
if any(len(told[name]) > 9 or told[name].strip('0123456789') for name in ('company', 'vendor')):
    raise UserError('COUNTERSIGN bad_request')
company_id, vendor_id = int(told['company']), int(told['vendor'])
# Taken as a change takes it: whoever waited for one begins anew, and sees what it did.
env.cr.execute("""
    INSERT INTO countersign_vendor AS known (vendor, turns) VALUES (%s, 1)
    ON CONFLICT (vendor) DO UPDATE SET turns = known.turns + 1
""", [vendor_id])
env.cr.execute('SELECT account, vendor, bills, kind, company FROM countersign_order WHERE marker = %s', [told['marker']])
known = env.cr.fetchone()
if known and (known[1] != vendor_id or known[3] != 'bank_change' or known[4] != company_id):
    raise UserError('COUNTERSIGN bad_request')
su = env(su=True, context={'lang': 'en_US', 'tz': 'UTC', 'allowed_company_ids': [company_id], 'active_test': False})
