# What stands for the order now, read back from the records, never repeated from the order.
def read_back(payment_id, bill):
    env.cr.execute('SELECT amount::text, currency, iban, date::text FROM countersign_order WHERE payment = %s', [payment_id])
    kept = env.cr.fetchone()
    payment = su['account.payment'].browse(payment_id).exists()
    # A bill may be deleted once its payment was drafted. Of such a bill nothing is left to pay.
    bill = bill.exists()
    return [{
        'payment': str(payment_id),
        'number': (payment.name or '') if payment else '',
        'state': payment.state if payment else 'deleted',
        'amount': '%.*f' % (payment.currency_id.decimal_places, payment.amount) if payment else kept[0],
        'currency': payment.currency_id.name if payment else kept[1],
        'account': (payment.partner_bank_id.sanitized_acc_number or '') if payment else kept[2],
        'bills': [str(settled) for settled in payment.reconciled_bill_ids.ids] if payment else [],
        'date': str(payment.date) if payment else kept[3],
        'bill_state': bill.state if bill else 'cancel',
        'bill_currency': bill.currency_id.name if bill else kept[1],
        'residual': '%.*f' % (bill.currency_id.decimal_places, bill.amount_residual) if bill else '0',
    }]

