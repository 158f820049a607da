
# What the records say now of the change that was made, never what was ordered.
def read_changed(account_id, vendor_id, bills):
    account = su['res.partner.bank'].browse(account_id).exists()
    active = su['res.partner.bank'].search([('partner_id', '=', vendor_id), ('active', '=', True), ('company_id', 'in', (False, company_id))], order='id')
    return [{
        'account': [{
            'id': str(account.id),
            'owner': str(account.partner_id.id),
            'number': account.sanitized_acc_number or '',
            'active': account.active,
            'allowed': account.allow_out_payment and account.active and (not account.company_id or account.company_id.id == company_id),
        }] if account else [],
        'also_active': [str(other) for other in (active - account).ids],
        'bills': [str(bill) for bill in bills],
    }]

