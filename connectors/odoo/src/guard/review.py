# What became of payments that were booked, and what stands for their bills beyond their totals, whoever
# booked it. Takes no lock: it decides nothing. Run by the payer: it is asked by markers.
told = env.context.get('countersign')
if not isinstance(told, dict) or not isinstance(told.get('company'), str) or not isinstance(told.get('orders'), list) or len(told['orders']) > 1000:
    raise UserError('COUNTERSIGN bad_request')
wanted = told['orders']
if any(not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str) or not isinstance(pair[1], str) for pair in wanted):
    raise UserError('COUNTERSIGN bad_request')
if any(not id or len(id) > 9 or id.strip('0123456789') for id in [told['company']] + [pair[1] for pair in wanted]):
    raise UserError('COUNTERSIGN bad_request')
company_id = int(told['company'])
su = env(su=True, context={'lang': 'en_US', 'tz': 'UTC', 'allowed_company_ids': [company_id], 'active_test': False})
env.cr.execute("SELECT marker, bill, payment FROM countersign_order WHERE kind = 'payment' AND company = %s AND marker = ANY(%s::text[])", [company_id, [pair[0] for pair in wanted]])
payments = {(marker, bill): payment for marker, bill, payment in env.cr.fetchall()}

# A payment that settles several bills counts at each with what it settles there; what it settles nowhere
# counts whole. One that settles nothing is for the bill whose number or reference it names.
env.cr.execute("""
    WITH line AS (
             SELECT l.* FROM account_move_line l JOIN account_account a ON a.id = l.account_id
              WHERE a.account_type = 'liability_payable' AND l.move_id = ANY(%s::int[]) AND l.company_id = %s),
         bill AS (SELECT move_id AS id, -sum(amount_currency) AS total, min(currency_id) AS currency FROM line GROUP BY move_id),
         settled AS (
             SELECT line.move_id AS bill, sum(r.credit_amount_currency) AS amount
               FROM line JOIN account_partial_reconcile r ON r.credit_move_id = line.id GROUP BY line.move_id),
         payment AS (
             SELECT line.move_id AS bill, p.id
               FROM line JOIN account_partial_reconcile r ON r.credit_move_id = line.id
                    JOIN account_move_line d ON d.id = r.debit_move_id JOIN account_payment p ON p.move_id = d.move_id
             UNION SELECT o.bill, o.payment FROM countersign_order o JOIN bill ON bill.id = o.bill WHERE o.kind = 'payment'
             UNION SELECT b.id, p.id
               FROM bill JOIN account_move b ON b.id = bill.id
                    JOIN res_partner c ON c.commercial_partner_id = b.commercial_partner_id
                    JOIN account_move m ON m.partner_id = c.id AND m.company_id = b.company_id AND m.ref <> '' AND m.ref IN (b.name, b.ref, b.payment_reference)
                    JOIN account_payment p ON p.move_id = m.id AND p.payment_type = 'outbound'),
         beyond AS (
             SELECT payment.bill, sum(l.amount_residual_currency) AS amount
               FROM payment JOIN bill ON bill.id = payment.bill JOIN account_payment p ON p.id = payment.id
                    JOIN account_move m ON m.id = p.move_id AND m.state = 'posted'
                    JOIN account_move_line l ON l.move_id = m.id AND l.currency_id = bill.currency AND l.amount_residual_currency > 0
                    JOIN account_account a ON a.id = l.account_id AND a.account_type = 'liability_payable'
              GROUP BY payment.bill)
    SELECT bill.id, greatest(coalesce(settled.amount, 0) + coalesce(beyond.amount, 0) - bill.total, 0)::float8, bill.currency
      FROM bill LEFT JOIN settled ON settled.bill = bill.id LEFT JOIN beyond ON beyond.bill = bill.id
""", [[int(pair[1]) for pair in wanted], company_id])
overpaid = {bill: (amount, currency) for bill, amount, currency in env.cr.fetchall()}
reviewed = []
for marker, bill in wanted:
    payment_id = payments.get((marker, int(bill)))
    amount, currency = overpaid.get(int(bill), (0.0, 0))
    currency = su['res.currency'].browse(currency)
    reviewed.append({
        'booked': read_back(payment_id, su['account.move'].browse(int(bill))) if payment_id else [],
        'overpaid': [{'amount': '%.*f' % (currency.decimal_places, amount), 'currency': currency.name}] if currency else [],
    })
action = {'type': 'ir.actions.act_window_close', 'countersign': reviewed}
